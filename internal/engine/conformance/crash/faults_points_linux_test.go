package crash

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/engine/inproc"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

var (
	acme  = tenant.MustParse("acme")
	start = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

	merged    = tsdb.MustDefine("merged", tsdb.Key("round"), codec.Records(), tsdb.SchemaOptions{Merge: true})
	first     = tsdb.MustDefine("first", tsdb.Key("round"), codec.Float64(), tsdb.SchemaOptions{FirstWins: true})
	absent    = tsdb.MustDefine("absent", tsdb.Key("round"), codec.Float64(), tsdb.SchemaOptions{})
	journaled = tsdb.MustDefine("journaled", tsdb.Key("round"), codec.Float64(), tsdb.SchemaOptions{})

	daily = rollup.MustDefine("day", window.Days(1), []rollup.Measure[float64]{
		{Name: "n", Of: func(v float64) (float64, bool) { return v, true }, Max: 1 << 40},
	}, rollup.Options{Mode: rollup.ByStream})
	events = tsdb.MustDefine("events", tsdb.Key("round"), codec.Float64(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{daily}})
)

// pointStore opens a store on an engine, and creates its datasets.
func pointStore(ctx context.Context, eng *engine.Engine, timeout time.Duration) (*tsdb.Store, error) {
	conn, err := inproc.Dial(eng, tsdb.DialOptions()...)
	if err != nil {
		return nil, err
	}
	client, admin, err := local.Clients(ctx, conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	store, err := tsdb.New(client, "points", tsdb.Options{
		StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Read: timeout, Write: timeout}},
		Admin:        admin,
		OnClose:      client.Close,
	})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if err := store.Ensure(ctx, merged, first, absent, journaled, events); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

func pointWriter(root string, store *tsdb.Store) (*tsdb.Writer, error) {
	return store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: filepath.Join(root, journalPart)}})
}

func at(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }

// writeWithFaults writes rows and points until the disk has failed permanently, and reports the acknowledged writes.
func writeWithFaults(root string, eng *engine.Engine, round uint64, report func(string, ...any)) {
	ctx := context.Background()
	var wg sync.WaitGroup
	if tbl, _, err := connect(ctx, eng); err == nil {
		wg.Go(func() { _ = write(ctx, tbl, round*10_000_000, report) }) // ends when the disk fails
	}
	store, err := pointStore(ctx, eng, 300*time.Millisecond)
	if err != nil {
		return
	}
	entity := tsdb.NewEntity(fmt.Sprint(round))
	// Two writers of each kind write the same points. Each retries failed writes, as callers do, and accepts a point
	// that it finds as its own.
	for g := range 2 {
		repeat := func(kind string, put func(n int) error) {
			wg.Go(func() {
				for n, failed := 0, 0; failed < 5; n++ {
					for try := range 4 {
						if err := put(n); err == nil {
							report("point %s %d %d %d", kind, round, n, g)
							break
						} else if errors.Is(err, tsdb.ErrExists) {
							report("point %s %d %d -1", kind, round, n)
							break
						} else if try == 3 {
							failed++
						}
					}
				}
			})
		}
		repeat("merged", func(n int) error {
			return merged.For(store, acme).Put(ctx, entity, at(n), codec.NewRecord(codec.Field{Name: fmt.Sprint("g", g), Value: codec.Int(int64(n))}))
		})
		repeat("first", func(n int) error { return first.For(store, acme).Put(ctx, entity, at(n), float64(g)) })
		repeat("absent", func(n int) error {
			stored, err := absent.For(store, acme).PutIfAbsent(ctx, entity, at(n), float64(g))
			if err == nil && !stored {
				return tsdb.ErrExists
			}
			return err
		})
	}
	if w, err := pointWriter(root, store); err == nil {
		batches := func(kind string, put func([]tsdb.Point[float64]) ([]tsdb.Outcome, error)) {
			wg.Go(func() {
				for n := 0; ; n += 20 {
					var pts []tsdb.Point[float64]
					for i := range 20 {
						pts = append(pts, tsdb.Point[float64]{Entity: entity, Time: at(n + i), Value: float64(n + i)})
					}
					outcomes, err := put(pts)
					for i, o := range outcomes {
						if o.State == tsdb.Journaled {
							report("point %s %d %d 0", kind, round, n+i)
						}
					}
					if err != nil {
						return // it may be unknown whether the other points are on disk
					}
				}
			})
		}
		batches("journaled", func(p []tsdb.Point[float64]) ([]tsdb.Outcome, error) {
			return journaled.For(store, acme).Via(w).EnqueueMany(ctx, p)
		})
		batches("events", func(p []tsdb.Point[float64]) ([]tsdb.Outcome, error) {
			for i := range p {
				p[i].Time = start
			}
			return rollup.NewAdder(daily, events.For(store, acme), w).AddMany(ctx, p)
		})
	}
	wg.Wait()
}

// point is a point of a round. by is its writer, or -1 if any writer's point is right.
type point struct {
	round uint64
	n, by int
}

// pointLedger holds the acknowledged points, by kind.
type pointLedger struct{ acked map[string][]point }

func newPointLedger() *pointLedger { return &pointLedger{map[string][]point{}} }

func (l *pointLedger) enter(line string) error {
	var kind string
	var p point
	if _, err := fmt.Sscanf(line, "point %s %d %d %d", &kind, &p.round, &p.n, &p.by); err != nil {
		return fmt.Errorf("invalid report line %q: %w", line, err)
	}
	l.acked[kind] = append(l.acked[kind], p)
	return nil
}

// verifyFaulty opens the store and the journal, and compares them with the ledgers.
func verifyFaulty(t *testing.T, root string, rows *ledger, points *pointLedger, f faults) {
	t.Helper()
	eng, err := engine.Open(faultyOptions(root))
	if err != nil {
		t.Fatalf("opening the store after %+v: %v", f, err)
	}
	defer func() {
		if err := eng.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}()
	tbl, disconnect, err := connect(t.Context(), eng)
	if err != nil {
		t.Fatal(err)
	}
	defer disconnect()
	rows.check(t, t.Context(), tbl)
	store, err := pointStore(t.Context(), eng, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	w, err := pointWriter(root, store)
	if err != nil {
		t.Fatalf("opening the journal after %+v: %v", f, err)
	}
	if dead := w.Stats().Journal.DeadLetters; dead > 0 {
		t.Errorf("got %d dead letters, want 0", dead)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatalf("delivering the journal: %v", err)
	}
	points.check(t, store)
}

// check checks that every acknowledged point is stored.
func (l *pointLedger) check(t *testing.T, store *tsdb.Store) {
	t.Helper()
	there := map[string]map[point]bool{}
	for kind := range l.acked {
		there[kind] = map[point]bool{}
	}
	for kind, s := range map[string]*tsdb.Schema[float64]{"first": first, "absent": absent, "journaled": journaled} {
		l.each(kind, func(round uint64) {
			for p, err := range s.For(store, acme).Range(t.Context(), tsdb.NewEntity(fmt.Sprint(round)), tsdb.AllTime()) {
				if err != nil {
					t.Fatal(err)
				}
				n := int(p.Time.Sub(start) / time.Second)
				by := int(p.Value)
				if kind == "journaled" {
					by = 0
				}
				there[kind][point{round, n, by}], there[kind][point{round, n, -1}] = true, true
			}
		})
	}
	l.each("merged", func(round uint64) {
		for p, err := range merged.For(store, acme).Range(t.Context(), tsdb.NewEntity(fmt.Sprint(round)), tsdb.AllTime()) {
			if err != nil {
				t.Fatal(err)
			}
			for field := range p.Value.All() {
				var g int
				if _, err := fmt.Sscanf(field, "g%d", &g); err != nil {
					t.Fatal(err)
				}
				there["merged"][point{round, int(p.Time.Sub(start) / time.Second), g}] = true
			}
		}
	})
	l.each("events", func(round uint64) {
		b, err := rollup.For(daily, events.For(store, acme)).Total(t.Context(), tsdb.NewEntity(fmt.Sprint(round)), tsdb.Between(start.AddDate(0, 0, -1), start.AddDate(0, 0, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if b.Points > 0 {
			l.checkEvents(t, round, int(b.Points), int(b.Values[0].Sum))
		} else if len(l.acked["events"]) > 0 {
			t.Errorf("round %d: no event counts", round)
		}
	})
	for kind, acked := range l.acked {
		if kind == "events" {
			continue
		}
		lost := 0
		for _, p := range acked {
			if !there[kind][p] {
				if lost++; lost < 4 {
					t.Errorf("%s point %d of round %d, by %d, was acknowledged and is missing", kind, p.n, p.round, p.by)
				}
			}
		}
		if lost > 0 {
			t.Errorf("%s: %d of %d acknowledged points are missing", kind, lost, len(acked))
		}
	}
}

// checkEvents checks that each acknowledged event of a round counts once. The events are 0, 1, 2 and so on, in batches of 20. Each batch
// waits for the one before it, and the first batch with a failure is the last one. So all events of the batches before the last one must
// count, and of the last one any events that include the acknowledged ones.
func (l *pointLedger) checkEvents(t *testing.T, round uint64, stored, sum int) {
	t.Helper()
	acked, last := map[int]bool{}, 0
	for _, p := range l.acked["events"] {
		if p.round == round {
			acked[p.n], last = true, max(last, p.n)
		}
	}
	// After a whole batch, a batch that nobody acknowledged may count.
	begin := last / 20 * 20
	if len(acked) == begin+20 {
		begin += 20
	}
	for n := range begin {
		if !acked[n] {
			t.Errorf("round %d: event %d is not acknowledged, but event %d of a later batch is", round, n, last)
		}
		stored, sum = stored-1, sum-n
	}
	var others []int // of the last batch, each at most once
	for n := begin; n < begin+20; n++ {
		if acked[n] {
			stored, sum = stored-1, sum-n
		} else {
			others = append(others, n)
		}
	}
	if stored < 0 || stored > len(others) {
		t.Errorf("round %d: %d more events count than were acknowledged, want 0 to %d", round, stored, len(others))
		return
	}
	least, most := 0, 0
	for i := range stored {
		least, most = least+others[i], most+others[len(others)-1-i]
	}
	if sum < least || sum > most {
		t.Errorf("round %d: the sum of %d events that were not acknowledged is %d, want %d to %d: some count twice or are missing", round, stored, sum, least, most)
	}
}

// each calls visit for the rounds with acknowledged points of a kind.
func (l *pointLedger) each(kind string, visit func(round uint64)) {
	seen := map[uint64]bool{}
	for _, p := range l.acked[kind] {
		if !seen[p.round] {
			seen[p.round] = true
			visit(p.round)
		}
	}
}
