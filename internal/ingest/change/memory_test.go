package change

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/delivery"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is a memory and a writer that stores everything, or what a test lets it.
type world struct {
	t      *testing.T
	memory *Memory
	d      *dataset.Dataset
	table  map[place]map[time.Time]string
	open   []sent // given to the writer, without an outcome
	offers int
	seldom bool // check only some times
}

type sent struct {
	p  *Point
	at place
}

func newWorld(t *testing.T, bytes int) *world {
	w := &world{t: t, d: &dataset.Dataset{Name: "d"}, table: map[place]map[time.Time]string{}}
	w.memory = New(Options{Bytes: bytes, Put: w.take, Erased: func(tenancy.Write, tenancy.Generation) bool { return false }})
	return w
}

// take takes a point as the writer does.
func (w *world) take(p *Point) {
	w.open = append(w.open, sent{p, p.place()})
	p.Pending = nil
}

// end gives all points their outcomes, of which a share is not stored.
func (w *world) end(failing float64) {
	for len(w.open) > 0 {
		one := w.open[0]
		w.open = w.open[1:]
		if rand.Float64() < failing {
			one.p.Ended(bt.Outcome{State: bt.Rejected})
			continue
		}
		if w.table[one.at] == nil {
			w.table[one.at] = map[time.Time]string{}
		}
		w.table[one.at][one.p.Time] = string(one.p.payload)
		one.p.Ended(bt.Outcome{State: bt.Stored})
	}
}

// offer offers a point and gives it to the writer, if it is to be stored.
func (w *world) offer(name, path string, sec int, payload string, done func(bt.Outcome), r Rule) Verdict {
	id := tenant.MustParse(name)
	space, err := rowkey.NewSpace(id, "d", []string{"a"}, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	pending := delivery.NewPoint(id, points.Write{D: w.d, Entity: space.ID(path), Payload: []byte(payload)}, nil)
	p := &Point{Pending: pending, Time: start.Add(time.Duration(sec) * time.Second), Dataset: w.d, Memory: w.memory, Done: done}
	v, ahead := w.memory.Offer(p, 1, r)
	for _, o := range ahead.Others {
		w.take(o)
	}
	if ahead.Own != nil {
		w.take(ahead.Own)
	}
	if v == Store {
		w.take(p)
	}
	if w.offers++; !w.seldom || w.offers%500 == 0 {
		w.check()
	}
	return v
}

// check compares the memory's counts with its contents.
func (w *world) check() {
	w.t.Helper()
	m, sum := w.memory, 0
	for name, sh := range m.shares {
		bytes := 0
		for _, e := range sh.entities {
			bytes += e.size()
			if len(e.streams) == 0 || e.share != sh {
				w.t.Fatal("an entity without streams, or of another share")
			}
			for _, s := range e.streams {
				bytes += s.bytes
				if h := s.held; h != nil && (h.state != leftOut || h.Pending == nil || !h.Time.After(s.last.Time)) {
					w.t.Fatalf("a held point in state %d, pending %v, at %v after %v", h.state, h.Pending != nil, h.Time, s.last.Time)
				}
			}
		}
		if bytes != sh.bytes || sh.used.Len() != len(sh.entities) || m.largest[sh.at] != sh || sh.tenant != name {
			w.t.Fatalf("%s has %d bytes and counts %d", name, bytes, sh.bytes)
		}
		sum += bytes
	}
	if sum != m.bytes || sum > m.opts.Bytes || len(m.largest) != len(m.shares) {
		w.t.Fatalf("%d bytes, counted as %d, of %d", sum, m.bytes, m.opts.Bytes)
	}
	waiting := 0
	for name, n := range m.waiting {
		if name != "" {
			waiting += n
		}
	}
	if waiting != m.waiting[""] || waiting > m.opts.Bytes/2 {
		w.t.Fatalf("%d bytes wait, counted as %d", waiting, m.waiting[""])
	}
}

// TestBound: a flood of entities uses no more than the bound, takes nothing from a tenant that uses less, and nothing
// that is held is lost.
func TestBound(t *testing.T) {
	w := newWorld(t, 1<<20)
	w.seldom = true
	r := Rule{AtLeast: time.Hour}
	for i := range 100 {
		w.offer("quiet", fmt.Sprint(i), 0, "20", nil, r)
	}
	w.end(0)
	for i := range 20_000 {
		w.offer("loud", fmt.Sprint(i), 0, "20", nil, r)
		w.offer("loud", fmt.Sprint(i), 1, "20", nil, r)
		w.end(0)
	}
	for i := range 100 {
		if v := w.offer("quiet", fmt.Sprint(i), 10, "20", nil, r); v != Unchanged {
			t.Fatalf("entity %d of the quiet tenant is forgotten: %v", i, v)
		}
	}
	if v := w.offer("loud", "0", 20, "20", nil, r); v != Store {
		t.Errorf("the flood's first entity is still known: %v", v)
	}
	for _, p := range w.memory.Close() {
		w.take(p)
	}
	w.end(0)
	for i := range 20_000 {
		if n := len(w.table[place{"loud", "d", fmt.Sprint(i)}]); n < 2 {
			t.Fatalf("entity %d of the flood has %d points, want both", i, n)
		}
	}
	if w.check(); w.memory.bytes != 0 {
		t.Errorf("%d bytes after Close", w.memory.bytes)
	}
}

// TestWaitingIsBounded: points that wait for the outcome of another use no more than their bound; then they are stored.
func TestWaitingIsBounded(t *testing.T) {
	w := newWorld(t, 1<<20)
	ended, waits := 0, 0
	for sec := range 10_000 {
		if w.offer("acme", "e", sec, "20", func(bt.Outcome) { ended++ }, Rule{AtLeast: 24 * time.Hour}) == Waits {
			waits++
		}
	}
	if waits < 50 || waits > 1000 {
		t.Errorf("%d points wait", waits)
	}
	if w.end(0); ended != 10_000 || w.memory.waiting[""] != 0 {
		t.Errorf("%d of 10000 have ended, and %d bytes wait", ended, w.memory.waiting[""])
	}
}

// TestRandom: whatever fails, each point has one outcome; a point that is stored is in the table; and one that is
// unchanged is there, too, or the same as the newest one before it, which is less than AtLeast older.
func TestRandom(t *testing.T) {
	for seed := range 500 {
		draw := rand.New(rand.NewPCG(uint64(seed), 1))
		w := newWorld(t, []int{3000, 1 << 20}[seed%2])
		type offered struct {
			at      place
			sec     int
			payload string
			state   bt.State
		}
		var all []*offered
		late := seed%3 == 0
		r := Rule{AtLeast: 20 * time.Second}
		for sec := range 200 {
			o := &offered{place{[]string{"a", "b"}[draw.IntN(2)], "d", fmt.Sprint(draw.IntN(3))}, sec, fmt.Sprint(draw.IntN(8) / 7), 0}
			if late && draw.IntN(5) == 0 {
				o.sec -= draw.IntN(30)
			}
			all = append(all, o)
			done := func(out bt.Outcome) {
				if o.state != 0 {
					t.Fatalf("seed %d: a point has two outcomes", seed)
				}
				o.state = out.State
			}
			if w.offer(o.at.tenant, o.at.path, o.sec, o.payload, done, r) == Unchanged {
				done(bt.Outcome{State: bt.Unchanged})
			}
			if draw.IntN(3) == 0 {
				w.end(float64(draw.IntN(2)) / 3)
			}
			if draw.IntN(50) == 0 {
				for _, p := range w.memory.Touch(o.at.tenant, "d", o.at.path) {
					w.take(p)
				}
			}
		}
		for _, p := range w.memory.Close() {
			w.take(p)
		}
		w.end(0)
		for _, o := range all {
			table, at := w.table[o.at], start.Add(time.Duration(o.sec)*time.Second)
			_, there := table[at]
			switch {
			case o.state == 0:
				t.Fatalf("seed %d: the point at %d s has no outcome", seed, o.sec)
			case o.state == bt.Stored && !there:
				t.Fatalf("seed %d: the point at %d s is not stored", seed, o.sec)
			case o.state == bt.Unchanged && !there && !late:
				newest := time.Time{}
				for other := range table {
					if other.Before(at) && other.After(newest) {
						newest = other
					}
				}
				if table[newest] != o.payload || at.Sub(newest) >= r.AtLeast {
					t.Fatalf("seed %d: %v at %d s is unchanged, but %s was stored %v before", seed, o, o.sec, table[newest], at.Sub(newest))
				}
			}
		}
	}
}

// TestUndo: if the writer refuses the held point ahead of a step, the step is refused, and the point is held again.
func TestUndo(t *testing.T) {
	w := newWorld(t, 1<<20)
	r := Rule{AtLeast: time.Hour}
	w.offer("acme", "e", 0, "20", nil, r)
	w.offer("acme", "e", 10, "20", nil, r)
	w.end(0)
	space, _ := rowkey.NewSpace(tenant.MustParse("acme"), "d", []string{"a"}, 0)
	step := &Point{
		Pending: delivery.NewPoint(tenant.MustParse("acme"), points.Write{D: w.d, Entity: space.ID("e"), Payload: []byte("25")}, nil),
		Time:    start.Add(20 * time.Second), Dataset: w.d, Memory: w.memory,
	}
	v, ahead := w.memory.Offer(step, 1, r)
	if v != Store || ahead.Own == nil || !w.memory.Undo(step, ahead.Own) {
		t.Fatalf("%v, %v", v, ahead.Own)
	}
	step.Refused()
	w.check()
	if v := w.offer("acme", "e", 30, "25", nil, r); v != Store {
		t.Errorf("the step again: %v", v)
	}
	if w.end(0); len(w.table[place{"acme", "d", "e"}]) != 3 {
		t.Errorf("stored are %v, want also the point before the step", w.table)
	}
}
