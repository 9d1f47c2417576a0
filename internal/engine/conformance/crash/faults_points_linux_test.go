package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
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

	// Events come in batches of batchSize. The sum of bits says which events of a batch count, and how often.
	daily = rollup.MustDefine("day", window.Days(1), []rollup.Measure[float64]{
		{Name: "n", Of: func(v float64) (float64, bool) { return v, true }, Max: 1 << 40},
		{Name: "bit", Of: func(v float64) (float64, bool) { return float64(int(1) << (int(v) % batchSize)), true }, Max: 1 << batchSize},
	}, rollup.Options{Mode: rollup.ByStream})
	events = tsdb.MustDefine("events", tsdb.Key("round"), codec.Float64(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{daily}})
)

const batchSize = 20

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
				for n := 0; ; n += batchSize {
					var pts []tsdb.Point[float64]
					for i := range batchSize {
						pts = append(pts, tsdb.Point[float64]{Entity: entity, Time: at(n + i), Value: float64(n + i)})
					}
					outcomes, err := put(pts)
					for i, o := range outcomes {
						switch o.State {
						case tsdb.Journaled:
							report("point %s %d %d 0", kind, round, n+i)
						case tsdb.Rejected:
							report("point %s%s %d %d 0", rejected, kind, round, n+i)
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

// rejected begins the kinds of points whose caller learnt that they are not stored.
const rejected = "rejected-"

// pointLedger holds the acknowledged points and the rejected ones, by kind.
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

// check checks that every acknowledged point is stored, and no rejected one.
func (l *pointLedger) check(t *testing.T, store *tsdb.Store) {
	t.Helper()
	there := map[string]map[point]bool{}
	for kind := range l.acked {
		there[strings.TrimPrefix(kind, rejected)] = map[point]bool{}
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
	l.each("", func(round uint64) { // also of rounds without a known event
		b, err := rollup.For(daily, events.For(store, acme)).Total(t.Context(), tsdb.NewEntity(fmt.Sprint(round)), tsdb.Between(start.AddDate(0, 0, -1), start.AddDate(0, 0, 1)))
		if err != nil {
			t.Fatal(err)
		}
		got := counted{n: int(b.Points)}
		if got.n > 0 {
			got.sum, got.max, got.bits = int(b.Values[0].Sum), int(b.Values[0].Max), int(b.Values[1].Sum)
		}
		if err := l.eventsOf(round).check(got); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	})
	for kind, acked := range l.acked {
		of, refused := strings.CutPrefix(kind, rejected)
		if of == "events" {
			continue
		}
		wrong := 0
		for _, p := range acked {
			if there[of][p] == refused {
				if wrong++; wrong < 4 {
					t.Errorf("%s point %d of round %d, by %d: stored is %t", kind, p.n, p.round, p.by, refused)
				}
			}
		}
		if wrong > 0 {
			t.Errorf("%s: %d of %d points are missing, or stored although they were rejected", kind, wrong, len(acked))
		}
	}
}

// eventsOf returns the known events of a round.
func (l *pointLedger) eventsOf(round uint64) streamed {
	s := streamed{}
	for kind, journaled := range map[string]bool{"events": true, rejected + "events": false} {
		for _, p := range l.acked[kind] {
			if p.round == round {
				s[p.n] = journaled
			}
		}
	}
	return s
}

// streamed are the events of a round whose outcome is known: whether each was journaled, or else rejected. The events
// are 0, 1, 2 and so on, in batches. Each batch waits for the one before it, and the first one with a failure is the
// last one.
type streamed map[int]bool

// counted is what a rollup counts of the events of a round.
type counted struct{ n, sum, max, bits int }

// check returns an error unless each journaled event counts once, no rejected one does, and each other event of the
// last batch counts at most once.
func (s streamed) check(got counted) error {
	last := 0
	for n := range s {
		last = max(last, n)
	}
	begin := last / batchSize * batchSize
	whole := true
	for n := begin; n < begin+batchSize; n++ {
		whole = whole && s[n]
	}
	if whole { // a batch of which nothing is known may follow
		begin += batchSize
	}
	var want counted
	count := func(n int) {
		want.n, want.sum, want.max, want.bits = want.n+1, want.sum+n, max(want.max, n), want.bits+1<<(n%batchSize)
	}
	for n := range begin {
		if !s[n] {
			return fmt.Errorf("event %d was not journaled, but event %d of a later batch was sent", n, last)
		}
		count(n)
	}
	var unknown []int
	for n := begin; n < begin+batchSize; n++ {
		if journaled, known := s[n]; journaled {
			count(n)
		} else if !known {
			unknown = append(unknown, n)
		}
	}
	known := want.n
	rest := got.bits - want.bits
	for _, n := range unknown {
		if rest>>(n%batchSize)&1 == 1 { // if it counts once, and others not too often
			count(n)
		}
	}
	if got != want {
		return fmt.Errorf("the events that count are %+v, want %+v with %d known ones and some of %v", got, want, known, unknown)
	}
	return nil
}

// TestEventsAreChecked: the check of events finds each kind of fault.
func TestEventsAreChecked(t *testing.T) {
	known := streamed{}
	for n := range 2 * batchSize {
		known[n] = true
	}
	of := func(events ...int) (c counted) {
		for n := range 2 * batchSize {
			events = append(events, n)
		}
		for _, n := range events {
			c.n, c.sum, c.max, c.bits = c.n+1, c.sum+n, max(c.max, n), c.bits+1<<(n%batchSize)
		}
		return c
	}
	without := func(c counted, n int) counted { return counted{c.n - 1, c.sum - n, c.max, c.bits - 1<<(n%batchSize)} }
	part := maps.Clone(known) // of the third batch, 19 events are rejected and the last one is journaled
	for n := 40; n < 59; n++ {
		part[n] = false
	}
	part[59] = true
	cut := maps.Clone(known) // of the third batch, little is known
	cut[40], cut[41] = false, true
	gap := maps.Clone(part)
	gap[25] = false
	for name, tt := range map[string]struct {
		of   streamed
		got  counted
		want bool
	}{
		"nothing known":                         {streamed{}, counted{}, true},
		"nothing known, some count":             {streamed{}, counted{2, 4, 3, 1<<1 + 1<<3}, true},
		"nothing known, one of a later batch":   {streamed{}, counted{1, 20, 20, 1}, false},
		"all":                                   {known, of(), true},
		"one is missing":                        {known, without(of(), 7), false},
		"one counts twice":                      {known, of(7), false},
		"one counts for another":                {known, without(of(7), 8), false},
		"one counts for one of another batch":   {known, without(of(7), 27), false},
		"some of the next batch":                {known, of(40, 59), true},
		"one of the next batch twice":           {known, of(41, 41), false},
		"one of the next batch three times":     {known, of(41, 41, 41), false},
		"one of the batch after the next":       {known, of(60), false},
		"a batch that fails in part":            {part, of(59), true},
		"the last of it is missing":             {part, of(), false},
		"a rejected one counts":                 {part, of(59, 40), false},
		"a rejected one counts for the last":    {part, of(58), false},
		"the last of it twice":                  {part, of(59, 59), false},
		"after it, one of the next batch":       {part, of(59, 60), false},
		"a batch of which little is known":      {cut, of(41), true},
		"of it, others count":                   {cut, of(41, 42, 59), true},
		"of it, the rejected one counts":        {cut, of(40, 41), false},
		"of it, the rejected one counts for 41": {cut, of(40), false},
		"of it, the journaled one is missing":   {cut, of(42), false},
		"of it, one counts twice":               {cut, of(41, 42, 42), false},
		"a batch after a failed one":            {gap, of(59), false},
	} {
		if err := tt.of.check(tt.got); (err == nil) != tt.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// each calls visit for the rounds with known points of a kind, or of any kind if it is "".
func (l *pointLedger) each(kind string, visit func(round uint64)) {
	seen := map[uint64]bool{}
	for of, points := range l.acked {
		for _, p := range points {
			if (kind == "" || strings.TrimPrefix(of, rejected) == kind) && !seen[p.round] {
				seen[p.round] = true
				visit(p.round)
			}
		}
	}
}
