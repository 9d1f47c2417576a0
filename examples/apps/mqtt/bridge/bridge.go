// Package bridge is an MQTT ingestion service: it subscribes to a broker, stores what devices publish, and acknowledges
// each message when it is stored.
//
//	routes, err := inbound.ParseRoutes(strings.NewReader("v1/+tenant/+site/+device/telemetry dataset=telemetry key=site,device time=ts,ms"))
//	b, err := bridge.New(ctx, store, routes, bridge.Config{Broker: "mqtt://127.0.0.1:1883"})
//	go b.Run(ctx)   // until ctx ends
//	<-b.Subscribed()
//
// It speaks MQTT 5 to the broker. Devices may speak 5 or 3.1.1: the broker translates.
//
// # What is acknowledged when
//
// A message of QoS 1 is acknowledged when each of its points is stored or, with a journal, on disk in the journal. A
// poison message, which can never be stored as it is, is published to the dead-letter topic with the reason, and
// acknowledged when the broker has accepted that. Nothing else is acknowledged: after a crash, of the bridge or of the
// connection, the broker sends the rest again. A point that is stored twice is one point, because its key and time are
// the same; a route that counts messages counts each identity once. Points whose time is that of arrival are the
// exception: sent again, they are other points.
//
// MQTT requires acknowledgements in the order of arrival, so one message that waits holds back all later ones. While
// the store is down for all, messages wait: the broker keeps them, and sends at most Config.ReceiveMaximum of them. If
// only some wait while others are stored, Config.Deadline ends their wait: they are published to the dead-letter topic,
// too.
package bridge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"golang.org/x/sync/semaphore"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Config configures a bridge. The zero value connects to a broker on this machine.
type Config struct {
	// Broker is the broker's address: mqtt://host:port, or mqtts://host:port for TLS. Empty is mqtt://127.0.0.1:1883.
	Broker string
	// ClientID names the session at the broker. Each running bridge needs its own, and the same again after a restart.
	// Empty is "tidemark-" and the machine's name.
	ClientID string
	// Username and Password are those of the bridge. Empty is none.
	Username string
	Password []byte
	// TLS is used with mqtts. Nil verifies the broker with the machine's certificates.
	TLS *tls.Config
	// Group is the name of a shared subscription: the bridges of a group share the messages. Empty means that this
	// bridge gets all.
	Group string
	// Session is how long the broker keeps the session, with all messages that come meanwhile, while the bridge is
	// away. Zero is a day. It is in whole seconds.
	Session time.Duration
	// Clean begins without the messages of an earlier session, and ends the session with the connection: messages that
	// come while the bridge is away are lost.
	Clean bool
	// ReceiveMaximum is how many messages the broker sends before the first of them is acknowledged: the bridge holds
	// no more, and no more than twice as many while it reconnects. Zero is 512.
	ReceiveMaximum uint16
	// MaxPayload is the most bytes in a payload; a longer one is poison. Zero is 64 KiB. A message may have 16 KiB of
	// properties and 64 KiB of topic in addition, and the bridge holds up to 2 * ReceiveMaximum messages.
	MaxPayload int
	// Deadline is how long a message may wait while later ones are stored. Zero is 30 seconds.
	Deadline time.Duration
	// Drain is how long messages under way may take after the end of Run's context. Zero is 10 seconds.
	Drain time.Duration
	// DeadLetters begins the topics of dead letters: that of the message follows. Empty is "dead-letters". No route may
	// match it.
	DeadLetters string

	// Tenant is the tenant to whom the connection belongs, for a broker that has an account, a listener or a mount
	// point for each tenant. A message whose topic names another tenant is poison. Zero means that each message says
	// its tenant.
	Tenant tenant.ID
	// Tenants lists the tenants that may store. Nil means all.
	Tenants []tenant.ID

	// Journal makes messages durable on this machine before they are stored. Zero is none.
	Journal tsdb.JournalOptions
	// Times are the times of points that are accepted. A message with another one is poison.
	Times inbound.Bounds
	// Schema is what the datasets share that the bridge defines, such as their retention.
	Schema tsdb.SchemaOptions
	// Schemas are datasets that the program has defined itself, for options of their own such as rollups. Their key
	// fields must be those of the routes to them. The bridge defines the others.
	Schemas []*tsdb.Schema[codec.Record]

	// Log gets connections, faults and a few of the poison messages. Nil discards them.
	Log *slog.Logger
}

// Bridge stores messages of a broker. New makes one.
type Bridge struct {
	config   Config // with defaults
	broker   *url.URL
	routes   *inbound.Routes
	datasets *inbound.Datasets
	sink     inbound.Sink
	allowed  map[tenant.ID]bool // nil if all are
	log      *slog.Logger

	health   health
	counters counters
	slots    *semaphore.Weighted
	arrived  chan *message
	settled  chan *message
	work     sync.WaitGroup // retries, dead letters and counts
	stopping context.Context
	stop     context.CancelFunc

	conn          atomic.Pointer[conn] // the newest
	manager       atomic.Pointer[autopaho.ConnectionManager]
	packetBytes   atomic.Uint32 // the most that the broker accepts in a packet
	connectedAt   time.Time     // and short belong to the goroutine that connects
	short         int           // connections in succession that ended at once
	subscribed    chan struct{}
	subscribeOnce sync.Once

	faults, poison, unread rareLog
}

// New prepares the datasets of the routes and the writer. It does not connect yet.
func New(ctx context.Context, store *tsdb.Store, routes *inbound.Routes, c Config) (*Bridge, error) {
	c = c.withDefaults()
	broker, err := c.check(routes)
	if err != nil {
		return nil, err
	}
	b := &Bridge{config: c, broker: broker, routes: routes, log: c.Log, subscribed: make(chan struct{})}
	if c.Tenants != nil {
		b.allowed = map[tenant.ID]bool{}
		for _, id := range c.Tenants {
			b.allowed[id] = true
		}
	}
	slots := 2 * int(c.ReceiveMaximum)
	b.slots = semaphore.NewWeighted(int64(slots))
	b.arrived, b.settled = make(chan *message, slots), make(chan *message, slots)
	b.faults.log, b.poison.log, b.unread.log = c.Log, c.Log, c.Log
	b.stopping, b.stop = context.WithCancel(context.WithoutCancel(ctx))

	defined, err := routes.Schemas(c.Schema)
	if err != nil {
		return nil, err
	}
	opts := inbound.Options{Schema: c.Schema, Schemas: append(slices.Clip(c.Schemas), defined...), Mapping: routes.Mapping(), Times: c.Times, Log: c.Log}
	if b.datasets, err = inbound.NewDatasets(ctx, store, routes.Keys(), opts); err != nil {
		return nil, err
	}
	w, err := store.NewWriter(tsdb.WriterOptions{DeliveryTimeout: b.attemptTimeout(), Journal: c.Journal})
	if err != nil {
		return nil, err
	}
	b.sink = inbound.Sink{Store: store, Writer: w}
	return b, nil
}

// Run connects, stores messages until ctx ends, waits up to Config.Drain for those under way, disconnects and closes
// the writer. It reconnects as often as necessary. Call it once.
//
// The error is nil if ctx ended and nothing remains to be delivered. It is another one if the broker refuses the first
// connection or a subscription, if another client takes the session over, or if the writer could not deliver
// everything.
func (b *Bridge) Run(ctx context.Context) error {
	running, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	lasting, disconnect := context.WithCancel(context.WithoutCancel(ctx)) // the connection outlasts ctx, for acknowledgements
	defer disconnect()
	manager, err := b.connect(lasting, fail)
	if err != nil {
		return errors.Join(err, b.sink.Writer.Close(ctx))
	}
	var loops sync.WaitGroup
	loops.Go(func() { b.take(lasting) })
	loops.Go(func() { b.settle(lasting) })

	<-running.Done()
	if ctx.Err() == nil {
		err = context.Cause(running)
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.config.Drain)
	defer cancel()
	b.stop()
	b.drain(drain)
	disconnect()
	<-manager.Done()
	loops.Wait()
	b.work.Wait()
	if n := b.sink.Writer.Stats().Journal.DeadLetters; n > 0 {
		b.log.Warn("the journal has dead letters: points that the store refused after their messages were acknowledged", "points", n)
	}
	if closed := b.sink.Writer.Close(drain); closed != nil && b.config.Journal.Dir != "" { // without a journal, the broker sends them again
		err = errors.Join(err, fmt.Errorf("not all points of the journal are delivered: %w", closed))
	}
	return err
}

// drain waits until no message waits.
func (b *Bridge) drain(ctx context.Context) {
	if b.slots.Acquire(ctx, int64(cap(b.settled))) != nil {
		b.log.Warn("some messages are not stored yet; the broker will send them again", "messages", b.Stats().Waiting)
		return
	}
	time.Sleep(5 * ackInterval) // the client sends acknowledgements at intervals
}

// Subscribed is closed when the broker has accepted the first subscription: it keeps what is published from then on.
func (b *Bridge) Subscribed() <-chan struct{} { return b.subscribed }
