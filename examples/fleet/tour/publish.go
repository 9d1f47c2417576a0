package tour

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"
)

// publisher sends the messages of all vehicles.
type publisher struct {
	fleet *fleet
	now   func() time.Time
	log   *slog.Logger
	// publish sends a message, and returns when it is accepted.
	publish func(ctx context.Context, topic string, body []byte) error

	published, skipped atomic.Uint64
}

const (
	// tick is how often the publisher looks which vehicles are due.
	tick = 100 * time.Millisecond
	// behind is how far the publisher may be behind the time, because messages are accepted slowly. It then leaves out
	// what is older, so that the picture stays live.
	behind = 30 * time.Second
	// width is how many messages are not accepted yet, at most.
	width = 16
	// patience is how long one message may take until it is sent again.
	patience = 10 * time.Second
	// drain is how long the acknowledgements of the last messages may take.
	drain = 2 * time.Second
)

// overMQTT publishes to a broker over one connection, with QoS 1. It reconnects as often as necessary. The connection
// outlasts ctx, for the last acknowledgements; stop ends it.
func (p *publisher) overMQTT(ctx context.Context, broker string) (stop func(), err error) {
	address, err := url.Parse(broker)
	if err != nil {
		return nil, err
	}
	link, end := context.WithCancel(context.WithoutCancel(ctx))
	cm, err := autopaho.NewConnection(link, autopaho.ClientConfig{
		ServerUrls: []*url.URL{address}, KeepAlive: 20, CleanStartOnInitialConnection: true,
		OnConnectError: func(err error) { p.log.Warn("the vehicles cannot connect to the broker", "error", err) },
		ClientConfig:   paho.ClientConfig{ClientID: "tidemark-fleet-vehicles"},
	})
	if err != nil {
		end()
		return nil, fmt.Errorf("connect the vehicles: %w", err)
	}
	p.publish = func(ctx context.Context, topic string, body []byte) error {
		if err := cm.AwaitConnection(ctx); err != nil {
			return err
		}
		_, err := cm.Publish(ctx, &paho.Publish{Topic: topic, QoS: 1, Payload: body})
		return err
	}
	return func() {
		bounded, cancel := context.WithTimeout(link, time.Second)
		defer cancel()
		_ = cm.Disconnect(bounded)
		end()
		<-cm.Done()
	}, nil
}

// run publishes from a time on until ctx ends.
func (p *publisher) run(ctx context.Context, from time.Time) error {
	link, stop := context.WithCancel(context.WithoutCancel(ctx)) // ends after the last acknowledgements
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(drain, stop) })()
	due := make(chan message)
	var workers sync.WaitGroup
	for range width {
		workers.Go(func() {
			for m := range due {
				p.send(link, m)
			}
		})
	}
	defer workers.Wait()
	defer close(due)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		now := p.now()
		if oldest := now.Add(-behind); from.Before(oldest) {
			p.skipped.Add(uint64(oldest.Sub(from) / p.fleet.step))
			from = oldest
		}
		for m := range p.fleet.sent(from, now) {
			select {
			case due <- m:
			case <-ctx.Done():
				return nil
			}
		}
		from = now
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// payload is the JSON of a message.
type payload struct {
	Time int64 `json:"ts"` // milliseconds
	reading
}

// send publishes a message until it is accepted. A message that is published twice is one point, because its time is
// the same.
func (p *publisher) send(ctx context.Context, m message) {
	body, err := json.Marshal(payload{m.time.UnixMilli(), m.vehicle.measure(m.time)})
	if err != nil {
		p.log.Error("a reading is not JSON", "error", err) // a mistake of this program: readings are finite
		return
	}
	for ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, patience)
		err := p.publish(bounded, m.vehicle.topic(), body)
		cancel()
		if err == nil {
			p.published.Add(1)
			return
		}
		select {
		case <-time.After(tick):
		case <-ctx.Done():
		}
	}
}
