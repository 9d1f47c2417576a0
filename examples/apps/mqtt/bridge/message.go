package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/errstatus"
)

// message is one that waits for its outcome. It holds a slot.
type message struct {
	packet  *paho.Publish
	client  *paho.Client // acknowledges it
	conn    *conn        // it came over
	arrived time.Time
	fault   error // why it is poison; nil if that is not known yet

	since   time.Time // since when it has waited while others were stored
	attempt time.Time // the beginning of this attempt
	tries   int

	route  *inbound.Route
	tenant tenant.ID
	events []inbound.Event

	mu        sync.Mutex // protects what the outcomes of the points set
	left      int
	journaled bool
	err       error
}

// The reasons of messages that are poison here. Others are those of package inbound.
const (
	reasonLarge      = "its payload is too large"
	reasonProperties = "its properties are too large"
	reasonRoute      = "no route matches its topic"
	reasonStuck      = "it cannot be stored while others are"
)

// receive takes a message of the client, which calls it for one after the other.
func (b *Bridge) receive(p paho.PublishReceived) (bool, error) {
	b.counters.received.Add(1)
	if p.Packet.Duplicate() {
		b.counters.repeated.Add(1)
	}
	now := time.Now()
	m := &message{packet: p.Packet, client: p.Client, conn: b.conn.Load(), arrived: now, since: now}
	b.bound(m)
	switch {
	case b.stopping.Err() != nil: // the broker sends it again
		return true, nil
	case m.packet.QoS == 0:
		if !b.slots.TryAcquire(1) {
			b.counters.lost.Add(1)
			return true, nil
		}
	case b.slots.Acquire(m.conn.gone, 1) != nil:
		return true, nil
	}
	b.counters.waiting.Add(1)
	b.arrived <- m // has space, because m has a slot
	return true, nil
}

// maxProperties is the most bytes of the user properties and the content type of a message, with propertyBytes of
// memory for each.
const (
	maxProperties = 16 << 10
	propertyBytes = 32
)

// bound cuts a message that takes too much memory, and then it is poison.
func (b *Bridge) bound(m *message) {
	if n := len(m.packet.Payload); n > b.config.MaxPayload {
		m.fault = &inbound.Error{Reason: reasonLarge, Err: fmt.Errorf("the payload has %d bytes; at most %d are allowed, and the dead letter has only these", n, b.config.MaxPayload)}
		m.packet.Payload = bytes.Clone(m.packet.Payload[:b.config.MaxPayload])
	}
	p := m.packet.Properties
	p.ResponseTopic, p.CorrelationData = "", nil
	n := len(p.ContentType)
	for _, u := range p.User {
		n += len(u.Key) + len(u.Value) + propertyBytes
	}
	if n > maxProperties {
		m.fault = &inbound.Error{Reason: reasonProperties, Err: fmt.Errorf("its %d user properties and its content type take %d bytes; at most %d are allowed", len(p.User), n, maxProperties)}
		p.User, p.ContentType = nil, ""
	}
}

// take begins messages in the order of arrival, until ctx ends. Once the bridge stops, it leaves them to the broker,
// which sends them again.
func (b *Bridge) take(ctx context.Context) {
	for {
		select {
		case m := <-b.arrived:
			if b.stopping.Err() != nil {
				b.release(m)
				continue
			}
			b.begin(m)
		case <-ctx.Done():
			return
		}
	}
}

// begin stores a message, or finds that it is poison.
func (b *Bridge) begin(m *message) {
	m.attempt = time.Now()
	m.tries++
	m.err, m.journaled = m.fault, false
	if m.err == nil && m.events == nil {
		if b.ignores(m) {
			b.counters.ignored.Add(1)
			b.acknowledge(m)
			return
		}
		if m.err = b.parse(m); m.err == nil && len(m.events) == 0 {
			b.counters.ignored.Add(1)
			b.acknowledge(m)
			return
		}
	}
	switch {
	case m.err != nil:
		b.settled <- m
	case m.route.Counts():
		b.work.Go(func() { b.count(m) })
	default:
		b.enqueue(m)
	}
}

// ignores reports whether a message stores nothing: a dead letter that a route's pattern matches, or an empty payload
// that clears a retained message.
func (b *Bridge) ignores(m *message) bool {
	return strings.HasPrefix(m.packet.Topic+"/", b.config.DeadLetters+"/") || m.packet.Retain && len(m.packet.Payload) == 0
}

// parse finds the route and the tenant of a message, and makes its points.
func (b *Bridge) parse(m *message) (err error) {
	route, names := b.routes.Match(m.packet.Topic)
	if route == nil {
		return &inbound.Error{Reason: reasonRoute, Err: fmt.Errorf("no route matches the topic %.128q", m.packet.Topic)}
	}
	in := inbound.Message{Names: names, Property: m.packet.Properties.User.GetAll, Payload: m.packet.Payload, Arrived: m.arrived}
	if m.tenant, err = route.Tenant(in, b.config.Tenant); err != nil {
		return err
	}
	if b.allowed != nil && !b.allowed[m.tenant] {
		return &inbound.Error{Reason: inbound.ReasonTenant, Err: fmt.Errorf("the tenant %s may not store", m.tenant)}
	}
	m.route = route
	m.events, err = route.Events(b.stopping, b.datasets, m.tenant, in)
	return err
}

// enqueue gives the points to the writer, which reports the outcome of each.
func (b *Bridge) enqueue(m *message) {
	m.left = len(m.events)
	ctx, cancel := context.WithTimeout(tenant.NewContext(b.stopping, m.tenant), b.attemptTimeout())
	defer cancel()
	for i := range m.events {
		b.sink.Enqueue(ctx, m.tenant, m.events[i].Point, func(out tsdb.Outcome) {
			if m.outcome(out) {
				b.settled <- m // has space, because m has a slot
			}
		})
	}
}

// outcome adds the outcome of one point, and reports whether it is the last. A point that may still be stored counts
// more than one that is refused: the message is tried again.
func (m *message) outcome(out tsdb.Outcome) (last bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = inbound.Graver(m.err, out.Err)
	m.journaled = m.journaled || out.State == tsdb.Journaled
	m.left--
	return m.left == 0
}

// count adds the message to the rollup of its route.
func (b *Bridge) count(m *message) {
	ctx, cancel := context.WithTimeout(tenant.NewContext(b.stopping, m.tenant), b.attemptTimeout())
	defer cancel()
	m.left = len(m.events)
	for _, e := range m.events {
		m.outcome(b.sink.Count(ctx, m.tenant, m.route, e))
	}
	b.settled <- m
}

// settle decides what to do with messages that have an outcome, until ctx ends.
func (b *Bridge) settle(ctx context.Context) {
	for {
		var m *message
		select {
		case m = <-b.settled:
		case <-ctx.Done():
			return
		}
		_, refused := errors.AsType[*inbound.Error](m.err)
		switch {
		case m.err == nil:
			b.health.stored(time.Now())
			b.countStored(m)
			b.acknowledge(m)
		case refused:
			b.work.Go(func() { b.publishDeadLetter(m) })
		case m.packet.QoS == 0:
			b.counters.lost.Add(1)
			b.release(m)
		default:
			b.work.Go(func() { b.retry(m) })
		}
	}
}

func (b *Bridge) countStored(m *message) {
	c := &b.counters
	switch {
	case m.route.Counts():
		c.counted.Add(1)
		return
	case m.journaled:
		c.journaled.Add(1)
	default:
		c.stored.Add(1)
	}
	c.points.Add(uint64(len(m.events)))
}

// acknowledge lets the client acknowledge a message, once all before it are. If its connection is gone, the broker
// sends it again.
func (b *Bridge) acknowledge(m *message) {
	if m.packet.QoS > 0 {
		_ = m.client.Ack(m.packet)
	}
	b.release(m)
}

func (b *Bridge) release(m *message) {
	b.counters.waiting.Add(-1)
	b.slots.Release(1)
}

// retry waits, and begins a message again. It gives up if the broker will send it again anyway, because its connection
// is gone, and moves it to the dead letters if it has waited for the deadline while others were stored.
func (b *Bridge) retry(m *message) {
	now := time.Now()
	if b.health.down(m, now, b.config.Deadline) {
		m.since = now
	} else if now.Sub(m.since) >= b.config.Deadline {
		m.err = &inbound.Error{Reason: reasonStuck, Err: fmt.Errorf("it was not stored within %v, while others were: %w", b.config.Deadline, m.err)}
		b.publishDeadLetter(m)
		return
	}
	b.faults.warn("a message is not stored; trying again", "error", m.err, "topic", m.packet.Topic)
	wait := max(b.retryWait(m.tries), min(errstatus.HTTP(m.err).RetryAfter, b.config.Deadline))
	if !b.wait(m, wait) {
		b.release(m)
		return
	}
	b.begin(m)
}

// wait returns false if meanwhile the bridge stops or the message's connection is gone.
func (b *Bridge) wait(m *message, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-m.conn.gone.Done():
	case <-b.stopping.Done():
	}
	return false
}

// retryWait grows to at most a quarter of the deadline: then each message that waits fails at least once within the
// deadline.
func (b *Bridge) retryWait(tries int) time.Duration {
	return min(2*time.Second, b.config.Deadline/4, 50*time.Millisecond<<min(tries, 6))
}

// attemptTimeout is half the deadline, so that a message has one whole attempt after the store is back.
func (b *Bridge) attemptTimeout() time.Duration { return b.config.Deadline / 2 }
