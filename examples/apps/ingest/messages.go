package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// A request has at most manyMessages messages of JSON. One has at most maxLine bytes, so that decoding it takes little
// memory.
const manyMessages = 10_000

// countWidth is how many messages are counted at once, of at most countBatch that wait.
const (
	countWidth = 8
	countBatch = 256
)

// message is one of the messages of a request.
type message struct {
	number    int // in the request, from 1
	waiting   int // points without an outcome
	journaled bool
	err       error // nil if all points are stored
}

func (m *message) String() string { return fmt.Sprintf("message %d", m.number) }

// outcome adds the outcome of a point. One that may still be stored counts more than one that is refused.
func (m *message) outcome(out tsdb.Outcome) {
	m.waiting--
	m.journaled = m.journaled || out.State == tsdb.Journaled
	m.err = inbound.Graver(m.err, out.Err)
}

// place is where the messages of a request are stored.
type place struct {
	id    tenant.ID
	route *inbound.Route
	names map[string]string // that the route captures
	// signed are the signatures of which one must match the body; none if a token says the tenant.
	signed signatures
}

// countedEvent is an event of a message that a route counts.
type countedEvent struct {
	message *message
	event   inbound.Event
}

// messenger stores the messages of one request.
type messenger struct {
	in     *ingester
	to     place
	now    time.Time // of the next message
	rep    report
	all    []*message
	batch  *inbound.Batch[*message]
	counts []countedEvent
}

// messages stores messages, and reports on each. A message that cannot be stored does not affect the others. The error
// is errUndelivered. parts says that the messages are parts of a body.
func (in *ingester) messages(ctx context.Context, to place, texts [][]byte, parts bool) (report, error) {
	x := &messenger{in: in, to: to, now: time.Now(), batch: &inbound.Batch[*message]{}}
	err := x.addAll(ctx, texts, parts)
	if err == nil {
		err = x.flush(ctx)
	}
	x.settle()
	return x.rep, err
}

// addAll adds messages. Each point has another time of arrival, or those of one device would be one.
func (x *messenger) addAll(ctx context.Context, texts [][]byte, parts bool) error {
	for i, text := range texts {
		if err := pause(ctx, i); err != nil {
			return err
		}
		if err := x.add(ctx, text, parts); err != nil {
			return err
		}
		if x.batch.Full() || len(x.counts) >= countBatch {
			if err := x.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds the points of a message to the batch.
func (x *messenger) add(ctx context.Context, text []byte, part bool) error {
	m := &message{number: len(x.all) + 1}
	x.all = append(x.all, m)
	events, err := x.read(ctx, text, part)
	x.now = x.now.Add(time.Duration(max(1, len(events))))
	for _, e := range events {
		if x.to.route.Counts() {
			x.counts = append(x.counts, countedEvent{m, e})
			m.waiting++
			continue
		}
		var replaced bool
		if replaced, err = x.batch.Add(e.Point, m, len(text)/len(events)); err != nil {
			break
		}
		m.waiting++
		if replaced {
			x.rep.replaced++
		}
	}
	if !inbound.IsFinal(err) {
		return fmt.Errorf("%w: %w", errUndelivered, err)
	}
	if m.err = err; err == nil && len(events) == 0 {
		m.err = inbound.ErrBlank
	}
	return nil
}

// read returns the points of a message.
func (x *messenger) read(ctx context.Context, text []byte, part bool) ([]inbound.Event, error) {
	bad := ""
	switch {
	case text == nil:
		bad = "the array does not end"
	case len(text) > maxLine:
		bad = fmt.Sprintf("the message has %d bytes; want at most %d", len(text), maxLine)
	case part && !json.Valid(text):
		bad = "the message is not JSON"
	}
	if bad != "" {
		return nil, &inbound.Error{Reason: inbound.ReasonSyntax, Err: errors.New(bad)}
	}
	return x.to.route.Events(ctx, x.in.datasets, x.to.id, inbound.Message{Names: x.to.names, Payload: text, Arrived: x.now})
}

// flush stores the batch, or counts the events.
func (x *messenger) flush(ctx context.Context) error {
	if x.to.route.Counts() {
		return x.count(ctx)
	}
	b := x.batch
	x.batch = &inbound.Batch[*message]{}
	return storePoints(ctx, x.in, b, x.to.id, &x.rep, func(origins []*message, out tsdb.Outcome) {
		for _, m := range origins {
			m.outcome(out)
		}
		if out.Err == nil {
			x.rep.points++
			x.rep.merged += len(origins) - 1
		}
	})
}

// count counts events, some at once.
func (x *messenger) count(ctx context.Context) error {
	outcomes := make([]tsdb.Outcome, len(x.counts))
	var counting errgroup.Group
	counting.SetLimit(countWidth)
	for i, c := range x.counts {
		counting.Go(func() error {
			outcomes[i] = x.in.sink.Count(ctx, x.to.id, x.to.route, c.event)
			return nil
		})
	}
	_ = counting.Wait()
	var failed error
	for i, c := range x.counts {
		x.rep.sent++
		x.rep.bytes += x.to.route.EventBytes()
		c.message.outcome(outcomes[i])
		if outcomes[i].Err == nil {
			x.rep.points++
		} else if failed == nil && !inbound.IsFinal(outcomes[i].Err) {
			failed = fmt.Errorf("%w: %w", errUndelivered, outcomes[i].Err)
		}
	}
	x.counts = x.counts[:0]
	return failed
}

// settle counts the messages by their outcomes.
func (x *messenger) settle() {
	for _, m := range x.all {
		if m.err == inbound.ErrBlank {
			x.rep.blank++
			continue
		}
		x.rep.lines++
		switch {
		case !inbound.IsFinal(m.err):
			x.rep.undelivered++
		case m.waiting > 0: // the request ended early
		case m.err != nil:
			x.rep.refuse(m.number, m, m.err)
		default:
			x.rep.stored++
			if m.journaled {
				x.rep.journaled++
			}
		}
	}
}
