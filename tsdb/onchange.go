package tsdb

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/ingest/change"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// OnChange makes a sink store only points that say something new: see [Sink.OnChange]. The zero value leaves out points
// with the payload of the last one, and stores it again after five minutes.
type OnChange[T any] struct {
	// Same reports whether next says nothing new after last, the last stored value. With a dead band it compares
	// absolute differences. It must not change the values; many goroutines call it at once. It is not called if the
	// payloads are equal: these are always the same. Nil means that only these are.
	Same func(last, next T) bool
	// AtLeast is how long after the last stored point, by the points' times, the next one is stored in any case. Zero
	// is five minutes, or with Owner no limit. It is never more than half the time for which the dataset keeps points.
	AtLeast time.Duration
	// Owner declares that no other writer, and no Put, stores points of the sink's entities. Then what is left out is
	// exact, and AtLeast may be without limit. Nothing checks it.
	Owner bool
	// Fields returns the names of the fields that a value has, for entities whose points have different fields in turn.
	// A point is then compared with the last one that had exactly these fields, which is forgotten once a point with
	// only some of them is stored. Nil means that each point has all fields of its entity.
	Fields func(T) []string
}

// defaultAtLeast is how long a value is left out if nothing else is said.
const defaultAtLeast = 5 * time.Minute

// atLeast returns the time after which a value is stored again in a dataset, which is in the tenant's class; 0 for
// none.
func (o *OnChange[T]) atLeast(d *dataset.Dataset) time.Duration {
	least := o.AtLeast
	if !o.Owner {
		least = cmp.Or(least, defaultAtLeast)
	}
	if c := d.Classes[0]; c.Bounded && (least == 0 || least > c.Age/2) {
		return c.Age / 2
	}
	return least
}

func (o *OnChange[T]) check(d *dataset.Dataset) error {
	if d.Identity {
		return invalid.New(ErrInvalid, "OnChange", "a schema with Identity", "a schema without: each of its points is an event")
	}
	return invalid.Range(ErrInvalid, "AtLeast", o.AtLeast, 0, 0, "0 for the default, or more")
}

// OnChange returns a sink that leaves out points that say nothing new after the last stored point of their entity. They
// end as [Unchanged], without an error.
//
// The newest point that was left out is held in memory. It is stored before the next different or older point, so that
// a step stays a step, before a pause of AtLeast, and by Writer.Close; not by Flush. Readers see an unchanged value
// when it was last stored, up to AtLeast ago. For averages over time use window.Measure.Hold with MaxGap set to AtLeast
// and one interval of the source.
//
// Only a stored point counts as the last one: a rejected or unknown point, a restart, a deletion, an erasure and a new
// retention class of the tenant forget it. Points that follow a point without an outcome wait for it, and are stored if
// it is not. If another writer stores points of the entity, or Put does, a value may be missing for up to AtLeast: send
// all points of an entity through one writer. Its other sinks may store points too.
//
// The writer remembers entities in up to BufferBytes of memory, besides its buffer: some 60,000 with small values. Then
// the tenant that uses most forgets the entity that it wrote longest ago, and stores what is held of it, unless its
// share of the buffer is full. A crash loses what is held.
//
// The cost is a comparison for each point, after it is encoded, and less writes; with Same also the decoding of the
// last stored value. Admit and limits count all points.
func (s *Sink[T]) OnChange(o OnChange[T]) *Sink[T] {
	if s == nil {
		return nil // each call reports it
	}
	return &Sink[T]{repo: s.repo, writer: s.writer, change: &o}
}

// offer gives a point to the writer if it says something new, with all that is to be stored before it.
func (s *Sink[T]) offer(ctx context.Context, point Point[T], try bool, done func(Outcome)) error {
	p := &change.Point{Time: point.Time}
	var synced chan Outcome
	if done != nil {
		p.Done = caller(done).Ended
	}
	if err := s.propose(ctx, point, p); err != nil {
		return rejected(err).refusal(done)
	}
	if done == nil && s.writer.journal != nil { // wait until it is on disk
		synced = make(chan Outcome, 1)
		p.Done = func(o bt.Outcome) { synced <- outcomeOf(o) }
	}
	out := s.give(ctx, point.Value, p, try)
	switch {
	case out.Err != nil:
		return out.refusal(done)
	case out.State == Unchanged && done != nil:
		done(out)
	case out.State != Unchanged && synced != nil:
		return awaitOutcome(ctx, synced).err()
	}
	return nil
}

// awaitOutcome waits for an outcome until ctx ends.
func awaitOutcome(ctx context.Context, ended chan Outcome) Outcome {
	select {
	case out := <-ended:
		return out
	case <-ctx.Done():
		return Outcome{State: Unknown, Err: ctxerr.Of(ctx)}
	}
}

// propose checks and encodes a point that is to be compared.
func (s *Sink[T]) propose(ctx context.Context, point Point[T], p *change.Point) (err error) {
	if p.Pending, err = s.prepare(ctx, point, p); err != nil {
		return err
	}
	d := s.repo.rows.D
	if err := s.change.check(d); err != nil {
		return err
	}
	if f := s.change.Fields; f != nil {
		p.Fields = slices.Clone(f(point.Value))
		slices.Sort(p.Fields)
	}
	p.Time = d.Precision.Time(p.Pending.Write.Units)
	p.Dataset = s.repo.datasetForCheck()
	p.Memory = s.writer.changes.open()
	return nil
}

// give compares a point, and gives it to the writer unless it says nothing new. The outcome has no error if the writer
// has taken it, or left it out; its State is Unchanged if it is certain that it is left out.
func (s *Sink[T]) give(ctx context.Context, v T, p *change.Point, try bool) Outcome {
	w, m := s.writer, p.Memory
	rule := change.Rule{AtLeast: s.change.atLeast(p.Dataset)}
	if same := s.change.Same; same != nil {
		rule.Same = func(payload []byte) bool {
			last, err := s.repo.schema.codec.Decode(payload)
			return err == nil && same(last, v)
		}
	}
	verdict, ahead := m.Offer(p, w.store.core.Erased.Generation(p.Pending), rule)
	w.changes.storeAhead(ctx, ahead.Others, try, s.repo.rows.Tenant)
	if verdict != change.Store {
		return Outcome{State: unchangedIf(verdict == change.Unchanged)}
	}
	if own := ahead.Own; own != nil {
		if out := w.changes.takeHeld(ctx, own, try); out.Err != nil {
			if !m.Undo(p, own) {
				w.changes.lose(own, out)
			}
			p.Refused()
			return out
		}
	}
	out := w.changes.take(ctx, p, try)
	if out.Err != nil {
		p.Refused()
	}
	return out
}

func unchangedIf(certain bool) State {
	if certain {
		return Unchanged
	}
	return 0
}
