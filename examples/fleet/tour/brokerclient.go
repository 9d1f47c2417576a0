package tour

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"

	"github.com/eclipse/paho.golang/packets"
)

// client is one connection to the broker.
type client struct {
	broker   *broker
	id       string
	conn     net.Conn
	session  *session
	incoming chan *packets.Publish // read, and not yet in the queues
	slots    chan struct{}         // one for each message that the client has not acknowledged, up to its Receive Maximum

	writing sync.Mutex

	mu      sync.Mutex
	last    uint16 // packet id
	unacked map[uint16]sent
	order   []uint16 // of unacked
}

// sent is a message that the client has not acknowledged.
type sent struct {
	from *queue
	m    *packets.Publish
}

func newClient(b *broker, conn net.Conn, hello *packets.Connect) *client {
	most := uint16(65_535)
	if r := hello.Properties.ReceiveMaximum; r != nil && *r > 0 {
		most = *r
	}
	return &client{
		broker: b, id: hello.ClientID, conn: conn, unacked: map[uint16]sent{},
		incoming: make(chan *packets.Publish, unackedIn), slots: make(chan struct{}, most),
	}
}

// write sends a packet, and reports whether that succeeded. If not, the connection is closed.
func (c *client) write(p io.WriterTo) bool {
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := p.WriteTo(c.conn); err != nil {
		_ = c.conn.Close()
		return false
	}
	return true
}

// forward puts the client's messages into the queues and acknowledges them, in order.
func (c *client) forward(ctx context.Context) {
	for {
		var m *packets.Publish
		select {
		case m = <-c.incoming:
		case <-ctx.Done():
			return
		}
		reason := byte(packets.PubackNoMatchingSubscribers)
		for _, q := range c.broker.matching(m.Topic) {
			if !q.put(ctx, m) {
				return
			}
			reason = packets.PubackSuccess
		}
		if m.QoS == 1 && !c.write(&packets.Puback{PacketID: m.PacketID, ReasonCode: reason, Properties: &packets.Properties{}}) {
			return
		}
	}
}

// deliver sends the messages of a queue to the client, as many at once as it takes.
func (c *client) deliver(ctx context.Context, q *queue) {
	for {
		select {
		case c.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		m, ok := q.take(ctx)
		if !ok {
			return
		}
		out := *m
		out.QoS, out.Duplicate, out.Retain = min(m.QoS, q.qos), false, false
		if out.QoS == 0 {
			<-c.slots
			if !c.write(&out) {
				return
			}
			continue
		}
		c.mu.Lock()
		for c.last++; c.last == 0 || c.unacked[c.last].m != nil; c.last++ {
		}
		out.PacketID = c.last
		c.unacked[out.PacketID] = sent{q, m}
		c.order = append(c.order, out.PacketID)
		c.mu.Unlock()
		if !c.write(&out) {
			return
		}
	}
}

// acknowledged forgets a message that the client has.
func (c *client) acknowledged(id uint16) {
	c.mu.Lock()
	_, ok := c.unacked[id]
	delete(c.unacked, id)
	if i := slices.Index(c.order, id); i >= 0 { // clients acknowledge in order, so it is the first one
		c.order = slices.Delete(c.order, i, i+1)
	}
	c.mu.Unlock()
	if ok {
		<-c.slots
	}
}

// giveBack returns the messages that the client did not acknowledge to the front of their queues.
func (c *client) giveBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range slices.Backward(c.order) {
		s := c.unacked[id]
		s.from.putBack(s.m)
	}
	c.order, c.unacked = nil, map[uint16]sent{}
}

// queue holds the messages of one subscription, or of one group of shared subscriptions.
type queue struct {
	filter string
	qos    byte // the most

	mu      sync.Mutex
	changed sync.Cond
	waiting []*packets.Publish
	closed  bool
}

func newQueue(filter string, qos byte) *queue {
	q := &queue{filter: filter, qos: qos}
	q.changed.L = &q.mu
	return q
}

// wait waits until ready, the queue's end or ctx's end, and reports whether it is ready. It is called with q.mu held.
func (q *queue) wait(ctx context.Context, ready func() bool) bool {
	if !ready() && !q.closed {
		defer context.AfterFunc(ctx, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.changed.Broadcast()
		})()
	}
	for !ready() && !q.closed && ctx.Err() == nil {
		q.changed.Wait()
	}
	return ready() && !q.closed && ctx.Err() == nil
}

// put adds a message, once there is space. It reports false if ctx ended. Messages for a closed queue are dropped: nobody
// subscribes any more.
func (q *queue) put(ctx context.Context, m *packets.Publish) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.wait(ctx, func() bool { return len(q.waiting) < queueLength }) {
		return q.closed
	}
	q.waiting = append(q.waiting, m)
	q.changed.Broadcast()
	return true
}

// take removes the oldest message, once there is one. It reports false if ctx ended or the queue is closed.
func (q *queue) take(ctx context.Context) (*packets.Publish, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.wait(ctx, func() bool { return len(q.waiting) > 0 }) {
		return nil, false
	}
	m := q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	q.changed.Broadcast()
	return m, true
}

// putBack adds a message in front of the others. It may exceed the queue's length by what one client has not acknowledged.
func (q *queue) putBack(m *packets.Publish) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.Insert(q.waiting, 0, m)
	q.changed.Broadcast()
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.waiting = true, nil
	q.changed.Broadcast()
}
