package tsdb_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestExpiredOnArrival: a point that is already expired is rejected with ErrExpired by every way of writing, before
// anything is sent. A point one millisecond younger is stored.
func TestExpiredOnArrival(t *testing.T) {
	h1 := gc.Class{Name: "h1", Policy: gc.MaxAge(time.Hour)}
	for name, opts := range map[string]tsdb.SchemaOptions{
		"plain":      {},
		"first wins": {FirstWins: true},
		"merge":      {Merge: true},
		"heads":      {Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2}},
		"only heads": {Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2, Only: true}},
	} {
		opts.Retention, opts.FormerClasses = h1, []gc.Class{d90} // the class of the write decides, not one that keeps longer
		s := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.Records(), opts)
		c := testkit.NewClock(start)
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
		repo := s.For(store, acme)
		value := rec("x", 1)
		plain := must[*tsdb.Writer](t)(store.NewWriter(tsdb.WriterOptions{Linger: -1}))
		kept := writer(t, store, journaled(t))
		enqueue := func(in *tsdb.Sink[codec.Record], w *tsdb.Writer, at time.Time) error {
			var out tsdb.Outcome
			err := in.EnqueueFunc(t.Context(), roof, at, value, func(o tsdb.Outcome) { out = o })
			if err == nil {
				if err = w.Flush(t.Context()); err == nil && out.State == tsdb.Rejected {
					err = out.Err
				}
			}
			return err
		}
		ways := map[string]func(at time.Time) error{
			"Put": func(at time.Time) error { return repo.Put(t.Context(), roof, at, value) },
			"PutIfAbsent": func(at time.Time) error {
				_, err := repo.PutIfAbsent(t.Context(), roof, at, value)
				return err
			},
			"PutMany": func(at time.Time) error {
				outcomes, err := repo.PutMany(t.Context(), []tsdb.Point[codec.Record]{{Entity: roof, Time: at, Value: value}})
				if (err == nil) != (outcomes[0].State == tsdb.Stored) {
					t.Errorf("PutMany = %v, outcomes %+v", err, outcomes)
				}
				return outcomes[0].Err
			},
			"Writer":  func(at time.Time) error { return enqueue(repo.Via(plain), plain, at) },
			"journal": func(at time.Time) error { return enqueue(repo.Via(kept), kept, at) },
			"Writer.PutMany": func(at time.Time) error {
				outcomes, _ := repo.Via(plain).EnqueueMany(t.Context(), []tsdb.Point[codec.Record]{{Entity: roof, Time: at, Value: value}})
				return outcomes[0].Err
			},
		}
		for way, put := range ways {
			conn.Reset()
			if err := put(start.Add(-time.Hour - time.Millisecond)); !errors.Is(err, tsdb.ErrExpired) {
				t.Errorf("%s: %s of an expired point: %v, want ErrExpired", name, way, err)
			}
			if calls := conn.Counts().Calls; len(calls) > 0 {
				t.Errorf("%s: %s of an expired point sends %v", name, way, calls)
			}
			if err := put(start.Add(-time.Hour)); err != nil {
				t.Errorf("%s: %s of a point that has not expired yet: %v, want nil", name, way, err)
			}
		}
		if err := plain.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// TestExpiredWhileItWaited: a point that was accepted in time but expires before its delivery is reported as rejected,
// or becomes a dead letter with the reason. It is not stored silently where no read shows it.
func TestExpiredWhileItWaited(t *testing.T) {
	h1 := gc.Class{Name: "h1", Policy: gc.MaxAge(time.Hour)}
	for _, withJournal := range []bool{false, true} {
		longBubble(t, func(t *testing.T) {
			s := readings(t, tsdb.SchemaOptions{Retention: h1})
			var ahead atomic.Int64
			now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: now}}, s)
			opts := tsdb.WriterOptions{}
			end := func() {}
			if withJournal {
				opts = journaled(t)
				end = conn.Outage()
			}
			w := writer(t, store, opts)
			in := s.For(store, acme).Via(w)
			var outs []tsdb.Outcome
			old, young := time.Now().Add(-59*time.Minute), time.Now()
			for _, at := range []time.Time{old, young} {
				if err := in.EnqueueFunc(t.Context(), roof, at, reading{1}, func(o tsdb.Outcome) { outs = append(outs, o) }); err != nil {
					t.Fatal(err)
				}
			}
			if withJournal {
				time.Sleep(time.Minute)
			}
			ahead.Add(int64(2 * time.Minute))
			end()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := w.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			var letters []tsdb.DeadLetter
			if withJournal {
				for l, err := range w.DeadLetters(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					letters = append(letters, l)
				}
				if len(letters) != 1 || !letters[0].Time.Equal(old) || !strings.Contains(letters[0].Reason, "retention") {
					t.Errorf("dead letters: %+v", letters)
				}
			} else {
				rejected := 0
				for _, o := range outs {
					if o.State == tsdb.Rejected && errors.Is(o.Err, tsdb.ErrExpired) {
						rejected++
					}
				}
				if len(outs) != 2 || rejected != 1 {
					t.Errorf("outcomes after a point expired in the buffer: %+v", outs)
				}
			}
			if n := len(rows(t, table)); n != 1 {
				t.Errorf("%d rows are stored, want 1, the visible one", n)
			}
		})
	}
}
