package bridge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"
)

// Reason codes of MQTT 5.
const (
	codeTakenOver   = 0x8e
	codeNoReader    = 0x10 // a publication was accepted, and nobody subscribes to it
	codeBadProtocol = 0x84
	codeBadClientID = 0x85
	codeBadPassword = 0x86
	codeForbidden   = 0x87
	codeBanned      = 0x8a
	codeBadMethod   = 0x8c
)

// refusals are the codes with which a broker refuses a client, however often it connects.
var refusals = []byte{codeBadProtocol, codeBadClientID, codeBadPassword, codeForbidden, codeBanned, codeBadMethod}

// ErrTakenOver is the error of Run when another client connects with the same client ID: each bridge needs its own.
var ErrTakenOver = errors.New("another client has connected with the same client ID")

const (
	keepAlive = 20 // seconds
	// ackInterval is how often the client sends the acknowledgements that are next in order.
	ackInterval = 2 * time.Millisecond
	// maxPacket bounds a packet. Brokers discard larger ones for this client.
	maxPacket = 1<<20 + 64<<10
	// subscribeTimeout bounds the wait for the broker's response to a subscription.
	subscribeTimeout = 30 * time.Second
)

// connect begins to connect, and reconnects until ctx ends. It calls fail if that cannot succeed.
func (b *Bridge) connect(ctx context.Context, fail context.CancelCauseFunc) (*autopaho.ConnectionManager, error) {
	c := &b.config
	packetBytes := uint32(maxPacket)
	cfg := autopaho.ClientConfig{
		ServerUrls:                    []*url.URL{b.broker},
		KeepAlive:                     keepAlive,
		CleanStartOnInitialConnection: c.Clean,
		ConnectUsername:               c.Username,
		ConnectPassword:               c.Password,
		ReconnectBackoff:              b.backoff,
		ConnectTimeout:                connectTimeout,
		AttemptConnection: func(ctx context.Context, _ autopaho.ClientConfig, u *url.URL) (net.Conn, error) {
			return b.dial(ctx, u)
		},
		ConnectPacketBuilder: func(p *paho.Connect, _ *url.URL) (*paho.Connect, error) {
			session := c.sessionSeconds()
			p.Properties = &paho.ConnectProperties{ReceiveMaximum: &c.ReceiveMaximum, MaximumPacketSize: &packetBytes, SessionExpiryInterval: &session}
			return p, nil
		},
		OnConnectionUp: func(cm *autopaho.ConnectionManager, ack *paho.Connack) {
			b.manager.Store(cm)
			b.counters.connections.Add(1)
			b.connectedAt = time.Now()
			b.packetBytes.Store(math.MaxUint32)
			if p := ack.Properties; p != nil && p.MaximumPacketSize != nil {
				b.packetBytes.Store(*p.MaximumPacketSize)
			}
			b.log.Info("connected to the broker", "broker", b.broker.Redacted(), "session continues", ack.SessionPresent)
			go func() {
				if err := b.subscribe(ctx, cm); err != nil {
					fail(err)
				}
			}()
		},
		OnConnectError: func(err error) {
			refused, ok := errors.AsType[*autopaho.ConnackError](err)
			if ok && b.counters.connections.Load() == 0 && slices.Contains(refusals, refused.ReasonCode) {
				fail(fmt.Errorf("the broker %s refuses this client: reason code %#x %s", b.broker.Redacted(), refused.ReasonCode, refused.Reason))
				return
			}
			if errors.Is(err, errOldBroker) && b.counters.connections.Load() == 0 {
				fail(fmt.Errorf("%s: %w", b.broker.Redacted(), errOldBroker))
				return
			}
			b.log.Warn("cannot connect to the broker; trying again", "broker", b.broker.Redacted(), "error", err)
		},
		ClientConfig: paho.ClientConfig{
			ClientID:                   c.ClientID,
			EnableManualAcknowledgment: true,
			SendAcksInterval:           ackInterval,
			OnPublishReceived:          []func(paho.PublishReceived) (bool, error){b.receive},
			OnServerDisconnect: func(d *paho.Disconnect) {
				if d.ReasonCode == codeTakenOver {
					fail(fmt.Errorf("%w %q", ErrTakenOver, c.ClientID))
				}
				b.log.Warn("the broker has closed the connection", "reason code", fmt.Sprintf("%#x", d.ReasonCode))
			},
			OnClientError: func(err error) { b.log.Warn("the connection to the broker is lost", "error", err) },
		},
	}
	return autopaho.NewConnection(ctx, cfg)
}

// A connection that ends within shortLived has perhaps been taken over: brokers do not always say so.
const (
	shortLived   = time.Second
	shortLivedIn = 4 // in succession, before the log says what they mean
)

// backoff is the wait before an attempt to connect: up to 5 seconds, and random, so that the bridges of a group spread.
// Connections that end at once count as failed attempts.
func (b *Bridge) backoff(attempt int) time.Duration {
	if attempt == 0 {
		if up := b.connectedAt; !up.IsZero() && time.Since(up) < shortLived {
			b.short++
		} else {
			b.short = 0
		}
		if b.short == shortLivedIn {
			b.log.Warn("connections end soon after they begin: perhaps another client has the same client ID", "client ID", b.config.ClientID)
		}
		attempt = b.short
	}
	if attempt == 0 {
		return 0
	}
	longest := min(5*time.Second, 100*time.Millisecond<<min(attempt, 6))
	return longest/2 + rand.N(longest/2)
}

// subscribe subscribes to the topics of the routes. A broker repeats it at no cost if the session continues. The error
// is nil if the connection was lost meanwhile: then there will be another one.
func (b *Bridge) subscribe(ctx context.Context, cm *autopaho.ConnectionManager) error {
	s := &paho.Subscribe{}
	for _, filter := range b.routes.Filters() {
		if b.config.Group != "" {
			filter = "$share/" + b.config.Group + "/" + filter
		}
		s.Subscriptions = append(s.Subscriptions, paho.SubscribeOptions{
			Topic: filter, QoS: 1,
			RetainHandling:    2,    // a retained message is old: it was sent when it was new
			RetainAsPublished: true, // shows that an empty payload clears a retained message
		})
	}
	ctx, cancel := context.WithTimeout(ctx, subscribeTimeout)
	defer cancel()
	ack, err := cm.Subscribe(ctx, s)
	if ack != nil {
		for i, code := range ack.Reasons {
			if code != 1 {
				return fmt.Errorf("the broker refuses the subscription to %s with QoS 1: reason code %#x", s.Subscriptions[i].Topic, code)
			}
		}
	}
	if errors.Is(err, paho.ErrInvalidArguments) { // the broker has no wildcards or no shared subscriptions
		return err
	}
	if err != nil {
		b.log.Warn("cannot subscribe", "error", err)
		b.conn.Load().Close() // connect again, and subscribe then
		return nil
	}
	b.subscribeOnce.Do(func() { close(b.subscribed) })
	return nil
}
