package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/errstatus"
)

// subscriber stores the messages of a subscription.
//
// Each message has a goroutine until it is acknowledged or given back. So Pub/Sub's flow control bounds the memory, and
// messages with the same ordering key are stored one after the other.
type subscriber struct {
	o        options
	route    *inbound.Route
	datasets *inbound.Datasets
	sink     inbound.Sink
	source   *pubsub.Subscriber
	letters  *pubsub.Publisher
	log      *slog.Logger

	stopping context.Context // ends with Ctrl-C: nothing is tried again
	work     context.Context // ends -drain later

	received, stored, journaled, counted, points, deadLetters, returned, unacknowledged atomic.Int64
	warned                                                                              atomic.Int64 // when, in Unix seconds
}

// newSubscriber prepares the table, and opens the writer.
func newSubscriber(ctx context.Context, store *tsdb.Store, client *pubsub.Client, o options, log *slog.Logger) (*subscriber, error) {
	schemas, err := o.routes.Schemas(o.schema)
	if err != nil {
		return nil, err
	}
	datasets, err := inbound.NewDatasets(ctx, store, o.routes.Keys(), inbound.Options{Schema: o.schema, Schemas: schemas, Times: o.times, Log: log})
	if err != nil {
		return nil, err
	}
	w, err := store.NewWriter(tsdb.WriterOptions{DeliveryTimeout: o.attempt, Journal: tsdb.JournalOptions{Dir: o.journal}})
	if err != nil {
		return nil, err
	}
	s := &subscriber{
		o: o, datasets: datasets, sink: inbound.Sink{Store: store, Writer: w}, log: log,
		source: client.Subscriber(o.subscription), letters: client.Publisher(o.deadLetters),
	}
	s.route, _ = o.routes.Match("message")
	s.source.ReceiveSettings.MaxOutstandingMessages = o.outstanding
	s.source.ReceiveSettings.MaxOutstandingBytes = o.memory
	// The client extends the lease of a message as long as it is tried. Then Pub/Sub sends it to nobody else.
	s.source.ReceiveSettings.MaxExtension = o.hold + o.attempt + o.drain
	return s, nil
}

// run stores messages until ctx ends. Then messages under way get -drain to be stored; those that wait for another try
// are given back at once.
func (s *subscriber) run(ctx context.Context) error {
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	s.stopping, s.work = ctx, work
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(s.o.drain, end) })
	defer stop()
	err := s.source.Receive(ctx, func(_ context.Context, m *pubsub.Message) { s.handle(m) })
	if err != nil {
		err = fmt.Errorf("receive from %s: %w", s.o.subscription, err)
	}
	s.letters.Stop()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.drain)
	defer cancel()
	if cerr := s.sink.Writer.Close(bounded); cerr != nil {
		err = errors.Join(err, fmt.Errorf("not all points were delivered: %w", cerr))
	}
	return err
}

// handle stores a message, publishes it as a dead letter, or gives it back. Then it is acknowledged or not.
func (s *subscriber) handle(m *pubsub.Message) {
	s.received.Add(1)
	begin := time.Now()
	for tries := 1; ; tries++ {
		ctx, cancel := context.WithTimeout(s.work, s.o.attempt)
		done, err := s.store(ctx, m)
		if refused, ok := errors.AsType[*inbound.Error](err); ok {
			done, err = &s.deadLetters, s.publishDeadLetter(ctx, m, refused)
		}
		cancel()
		if err == nil {
			s.acknowledge(m, done)
			return
		}
		s.warn("a message is not stored", "error", err, "id", m.ID, "tries", tries)
		if time.Since(begin) >= s.o.hold || !s.wait(max(retryWait(tries), min(errstatus.HTTP(err).RetryAfter, s.o.hold))) {
			s.returned.Add(1)
			m.Nack()
			return
		}
	}
}

// idProperty is the property that route words use for Pub/Sub's own identity of a message.
const idProperty = "pubsub.message_id"

// arrival returns the time of publication. Messages that are published at once have the same millisecond: the last
// digits of their IDs tell them apart in it, so that a message that comes again has the same time. There is space for
// 1,000 objects between messages with successive IDs.
func arrival(m *pubsub.Message) time.Time {
	n := 0
	for _, digit := range []byte(m.ID) {
		n = (10*n + int(digit-'0')) % 1_000_000
	}
	return m.PublishTime.Truncate(time.Millisecond).Add(time.Duration(n * 1009 % 1_000_000))
}

// store stores the points of a message, and returns which counter it belongs to. The error is an *inbound.Error if it
// can never be stored.
func (s *subscriber) store(ctx context.Context, m *pubsub.Message) (*atomic.Int64, error) {
	if len(m.Data) > s.o.payload {
		return nil, &inbound.Error{Reason: "its payload is too large", Err: fmt.Errorf("the payload has %d bytes; at most %d are allowed", len(m.Data), s.o.payload)}
	}
	in := inbound.Message{Names: map[string]string{}, Payload: m.Data, Arrived: arrival(m), Property: func(name string) []string {
		if name == idProperty {
			return []string{m.ID}
		}
		if v, ok := m.Attributes[name]; ok {
			return []string{v}
		}
		return nil
	}}
	for _, name := range s.o.attributes {
		if v, ok := m.Attributes[name]; ok {
			in.Names[name] = v
		}
	}
	id, err := s.route.Tenant(in, tenant.ID{})
	if err != nil {
		return nil, err
	}
	ctx = tenant.NewContext(ctx, id)
	events, err := s.route.Events(ctx, s.datasets, id, in)
	if err != nil {
		return nil, err
	}
	if s.route.Counts() {
		for _, e := range events {
			if out := s.sink.Count(ctx, id, s.route, e); out.Err != nil {
				return nil, out.Err
			}
		}
		return &s.counted, nil
	}
	state, err := s.enqueue(ctx, id, events)
	if err != nil {
		return nil, err
	}
	s.points.Add(int64(len(events)))
	if state == tsdb.Journaled {
		return &s.journaled, nil
	}
	return &s.stored, nil
}

// enqueue gives the points to the writer, and waits for their outcomes. A point that may still be stored decides: the
// message is tried again, and only then, if another point was refused, it is a dead letter.
func (s *subscriber) enqueue(ctx context.Context, id tenant.ID, events []inbound.Event) (state tsdb.State, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	all.Add(len(events))
	for _, e := range events {
		s.sink.Enqueue(ctx, id, e.Point, func(out tsdb.Outcome) {
			mu.Lock()
			defer mu.Unlock()
			state = out.State
			err = inbound.Graver(err, out.Err)
			all.Done()
		})
	}
	all.Wait()
	return state, err
}

// acknowledge acknowledges a message, and counts it. With exactly-once delivery Pub/Sub confirms that; if it does not,
// it sends the message again, and storing it again changes nothing.
func (s *subscriber) acknowledge(m *pubsub.Message, done *atomic.Int64) {
	done.Add(1)
	result := m.AckWithResult()
	if result == nil { // a message that does not come from a subscription
		return
	}
	if _, err := result.Get(s.work); err != nil {
		s.unacknowledged.Add(1)
		s.warn("an acknowledgement is not confirmed; the message may come again", "error", err, "id", m.ID)
	}
}

// wait returns false if the program stops meanwhile.
func (s *subscriber) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.stopping.Done():
		return false
	}
}

// retryWait grows from 50 ms to 5 s, and differs by up to a half, so that messages do not try all at once.
func retryWait(tries int) time.Duration {
	d := min(5*time.Second, 50*time.Millisecond<<min(tries-1, 7))
	return d/2 + rand.N(d/2)
}

// warn logs at most once a second: in an outage all messages fail.
func (s *subscriber) warn(text string, args ...any) {
	if now, last := time.Now().Unix(), s.warned.Load(); now != last && s.warned.CompareAndSwap(last, now) {
		s.log.Warn(text, args...)
	}
}

// print prints what became of the messages.
func (s *subscriber) print(w io.Writer) {
	fmt.Fprintf(w, "%9d messages received\n", s.received.Load())
	for _, line := range []struct {
		n    int64
		text string
	}{
		{s.stored.Load(), "stored"},
		{s.journaled.Load(), "journaled"},
		{s.counted.Load(), "counted"},
		{s.deadLetters.Load(), "published as dead letters"},
		{s.returned.Load(), "given back to Pub/Sub"},
		{s.unacknowledged.Load(), "of them without a confirmed acknowledgement"},
	} {
		if line.n > 0 {
			fmt.Fprintf(w, "%19d %s\n", line.n, line.text)
		}
	}
	if n := s.sink.Writer.Stats().Unchanged; n > 0 {
		fmt.Fprintf(w, "%9d of %d points left out, as nothing has changed\n", n, s.points.Load())
	}
	inbound.PrintLeftOut(w, s.datasets.LeftOut())
}
