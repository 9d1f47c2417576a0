package tour

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/eclipse/paho.golang/packets"
)

// broker is an MQTT 5 broker for this program only, in memory: QoS 0 and 1, shared subscriptions, persistent sessions, Receive
// Maximum. It has no users, retained messages or wills. A message that it acknowledged is in the queue of each subscription that
// matches. Where a queue is full, its publishers wait.
type broker struct {
	lis  net.Listener
	stop context.CancelFunc
	all  sync.WaitGroup

	mu       sync.Mutex
	queues   map[string]*queue // by subscription: see queueName
	sessions map[string]*session
}

// The bounds of the broker.
const (
	queueLength   = 10_000 // messages that wait for one subscription
	unackedIn     = 256    // QoS 1 messages of one publisher that the broker has not acknowledged
	connectWithin = 10 * time.Second
)

// startBroker starts a broker on a free port of this machine.
func startBroker() (*broker, error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	b := &broker{lis: lis, stop: stop, queues: map[string]*queue{}, sessions: map[string]*session{}}
	context.AfterFunc(ctx, func() { _ = lis.Close() })
	b.all.Go(func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			b.all.Go(func() { b.serve(ctx, conn) })
		}
	})
	return b, nil
}

// URL is the address for clients.
func (b *broker) URL() string { return "mqtt://" + b.lis.Addr().String() }

// Close ends all connections and waits for their goroutines.
func (b *broker) Close() error {
	b.stop()
	b.all.Wait()
	return nil
}

// session is what the broker knows about a client.
type session struct {
	queues map[string]*queue // its subscriptions
	keep   bool              // after the connection has ended
	end    func()            // ends the connection and waits for it; nil if there is none
}

// serve speaks with one client until it leaves, breaks the protocol, or the broker closes.
func (b *broker) serve(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(connectWithin))
	first, err := packets.ReadPacket(conn)
	if err != nil {
		return
	}
	hello, ok := first.Content.(*packets.Connect)
	if !ok {
		return
	}
	c := newClient(b, conn, hello)
	if hello.ProtocolVersion != 5 || hello.ClientID == "" {
		c.write(&packets.Connack{ReasonCode: packets.ConnackUnsupportedProtocolVersion, Properties: &packets.Properties{}})
		return
	}
	left := make(chan struct{})
	defer close(left)
	found := b.enter(hello, c, func() { cancel(); <-left })
	defer b.leave(hello.ClientID, c)
	most, no := uint16(unackedIn), byte(0)
	if !c.write(&packets.Connack{SessionPresent: found, Properties: &packets.Properties{ReceiveMaximum: &most, RetainAvailable: &no}}) {
		return
	}
	// All goroutines of this client end before it leaves its session.
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	workers.Go(func() { c.forward(ctx) })
	for _, q := range c.session.queues {
		workers.Go(func() { c.deliver(ctx, q) })
	}
	_ = c.read(ctx, hello.KeepAlive, func(q *queue) { workers.Go(func() { c.deliver(ctx, q) }) })
}

// enter opens the client's session. An earlier connection of the same client ends first.
func (b *broker) enter(hello *packets.Connect, c *client, end func()) (found bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.sessions[hello.ClientID] != nil && b.sessions[hello.ClientID].end != nil {
		before := b.sessions[hello.ClientID].end
		b.mu.Unlock()
		before()
		b.mu.Lock()
	}
	s := b.sessions[hello.ClientID]
	if s != nil && hello.CleanStart {
		b.forget(hello.ClientID, s)
		s = nil
	}
	found = s != nil
	if s == nil {
		s = &session{queues: map[string]*queue{}}
		b.sessions[hello.ClientID] = s
	}
	s.keep = hello.Properties.SessionExpiryInterval != nil && *hello.Properties.SessionExpiryInterval > 0
	s.end, c.session = end, s
	return found
}

// leave ends the connection's use of the session. What was not acknowledged waits for the next connection.
func (b *broker) leave(id string, c *client) {
	c.giveBack()
	b.mu.Lock()
	defer b.mu.Unlock()
	c.session.end = nil
	if !c.session.keep {
		b.forget(id, c.session)
	}
}

// forget removes a session with its subscriptions. It is called with b.mu held, as is drop.
func (b *broker) forget(id string, s *session) {
	delete(b.sessions, id)
	for name := range s.queues {
		b.drop(s, name)
	}
}

// drop removes a subscription from a session. Its queue ends if no other session has it.
func (b *broker) drop(s *session, name string) {
	delete(s.queues, name)
	for _, other := range b.sessions {
		if other.queues[name] != nil {
			return
		}
	}
	if q := b.queues[name]; q != nil {
		q.close()
		delete(b.queues, name)
	}
}

// subscribe returns the queue of a client's subscription, and whether the client had none of this filter.
func (b *broker) subscribe(id string, s *session, o packets.SubOptions) (q *queue, added bool) {
	name, topic := queueName(id, o.Topic)
	b.mu.Lock()
	defer b.mu.Unlock()
	q = b.queues[name]
	if q == nil {
		q = newQueue(topic, min(o.QoS, 1))
		b.queues[name] = q
	}
	added = s.queues[name] == nil
	s.queues[name] = q
	return q, added
}

// matching returns the queues of the subscriptions that match a topic.
func (b *broker) matching(topic string) (found []*queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range b.queues {
		if matches(q.filter, topic) {
			found = append(found, q)
		}
	}
	return found
}

// queueName returns the name of the queue of a subscription, and its filter: subscribers of $share/GROUP/FILTER have one queue,
// and each other client its own.
func queueName(id, filter string) (name, topic string) {
	if shared, ok := strings.CutPrefix(filter, "$share/"); ok {
		_, topic, _ = strings.Cut(shared, "/")
		return filter, topic
	}
	return "client/" + id + "/" + filter, filter
}

// matches reports whether a filter matches a topic.
func matches(filter, topic string) bool {
	if strings.HasPrefix(topic, "$") && (strings.HasPrefix(filter, "+") || strings.HasPrefix(filter, "#")) {
		return false
	}
	for {
		f, restFilter, moreFilter := strings.Cut(filter, "/")
		t, restTopic, moreTopic := strings.Cut(topic, "/")
		switch {
		case f == "#":
			return true
		case f != "+" && f != t:
			return false
		case !moreFilter || !moreTopic:
			return moreFilter == moreTopic || restFilter == "#"
		}
		filter, topic = restFilter, restTopic
	}
}

// errProtocol ends a connection whose client broke the protocol.
var errProtocol = errors.New("protocol error")

// read handles the client's packets until the connection ends. It calls added with each new subscription.
func (c *client) read(ctx context.Context, keepAlive uint16, added func(*queue)) error {
	for {
		var until time.Time
		if keepAlive > 0 {
			until = time.Now().Add(time.Duration(keepAlive) * 3 / 2 * time.Second)
		}
		_ = c.conn.SetReadDeadline(until)
		p, err := packets.ReadPacket(c.conn)
		if err != nil {
			return err
		}
		switch m := p.Content.(type) {
		case *packets.Publish:
			if m.QoS > 1 || strings.ContainsAny(m.Topic, "+#") || m.Topic == "" {
				return fmt.Errorf("%w: QoS %d on the topic %q", errProtocol, m.QoS, m.Topic)
			}
			select {
			case c.incoming <- m:
			case <-ctx.Done():
				return ctx.Err()
			}
		case *packets.Puback:
			c.acknowledged(m.PacketID)
		case *packets.Subscribe:
			reasons := make([]byte, 0, len(m.Subscriptions))
			for _, s := range m.Subscriptions {
				q, isNew := c.broker.subscribe(c.id, c.session, s)
				if isNew {
					added(q)
				}
				reasons = append(reasons, q.qos)
			}
			c.write(&packets.Suback{PacketID: m.PacketID, Reasons: reasons, Properties: &packets.Properties{}})
		case *packets.Unsubscribe:
			for _, filter := range m.Topics {
				name, _ := queueName(c.id, filter)
				c.broker.mu.Lock()
				c.broker.drop(c.session, name)
				c.broker.mu.Unlock()
			}
			c.write(&packets.Unsuback{PacketID: m.PacketID, Reasons: make([]byte, len(m.Topics)), Properties: &packets.Properties{}})
		case *packets.Pingreq:
			c.write(&packets.Pingresp{})
		case *packets.Disconnect:
			return io.EOF
		default:
			return fmt.Errorf("%w: unexpected %s", errProtocol, p.PacketType())
		}
	}
}
