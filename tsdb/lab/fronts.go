package lab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/tablets"
)

// fronts are a plan's load with the keys of a candidate, at full scale, as the model of tablets takes it.
type fronts struct {
	l      *load
	c      *candidate
	load   tablets.Load
	ranges []frontRange // in the order of their fronts
	stored float64      // bytes that the table has once the oldest points expire

	squares []float64 // by dataset: the sum of the squares of the entities' shares of the writes
}

// frontRange is the part of the key space that one kind of rows of a dataset has.
type frontRange struct {
	*tablets.Fronts
	of    int // the dataset
	first int // its first front in the load
	kind  string
}

// The rows that a dataset has.
const (
	pointRows  = ""
	headRows   = "head"
	rollupRows = "lab" // the name of the rollup
)

const (
	mostFrontReads = 200  // of a query that reads a different number of rows of each front
	oldScan        = 1e9  // bytes of a scan beyond which its rows are on many tablets
	mostScanned    = 1e9  // rows of a request
	pointOfHead    = 20.0 // bytes of a point in a head, besides its payload
)

// fronts returns the load of a candidate, on a new table.
func (p *Plan) fronts(c *candidate) (*fronts, error) {
	entities := 0
	for _, d := range p.datasets {
		entities += d.entities
	}
	if entities > tablets.MaxEntities { // each takes memory
		return nil, invalid.New(ErrInvalid, "entities", fmt.Sprintf("%d in all datasets", entities), fmt.Sprintf("up to %d for a simulation", tablets.MaxEntities))
	}
	f := &fronts{l: p.scaled(1), c: c}
	for i, d := range f.l.datasets {
		f.load.Curves = append(f.load.Curves, func(at time.Duration) float64 { return d.rate(p.starts, at) / d.average() })
		if err := f.addDataset(i, d); err != nil {
			return nil, err
		}
	}
	for _, q := range p.queries {
		f.addQuery(q)
	}
	return f, nil
}

// average returns how many points a second all entities write, if the time of the day and bursts are left out.
func (d *dataset) average() float64 { return float64(d.entities) / d.every.Seconds() }

// addDataset adds the fronts of a dataset's points, and of its heads and rollups.
func (f *fronts) addDataset(of int, d *sized) error {
	shares, squares := d.shares()
	f.squares = append(f.squares, squares)
	keys := tablets.Keys{
		Entities: d.n, Prefix: f.prefix(of, f.c.keys[of].beforeTime()), Moves: f.moves(of), Curve: of + 1,
		Share:  func(entity int) float64 { return shares[entity] },
		Writes: d.average(), RowBytes: float64(d.bytes + perRow), Stored: d.average() * d.keep.Seconds() * float64(d.bytes+perRow),
	}
	if err := f.add(of, pointRows, keys); err != nil {
		return err
	}
	entities := keys
	entities.Moves = false
	if f.c.native() && f.c.heads > 0 {
		head := entities // a row of each entity, which each point writes
		head.Stored = float64(d.n*f.c.heads) * (float64(d.bytes) + pointOfHead)
		if err := f.add(of, headRows, head); err != nil {
			return err
		}
	}
	if f.c.native() && f.c.rollup > 0 {
		// Each point writes a mark, and each window of an entity a bucket, of which a worker reads the points.
		buckets := float64(d.n) * min(1/f.c.rollup.Seconds(), 1/d.every.Seconds())
		marks := entities
		marks.Writes, marks.RowBytes, marks.Stored = d.average()+buckets, perRow, buckets*d.keep.Seconds()*perRow
		if err := f.add(of, rollupRows, marks); err != nil {
			return err
		}
		n := f.of(of, pointRows)
		f.read(n.first, n.first+len(n.List), tablets.Read{Rate: buckets, Rows: max(d.average()/buckets, 1)}, d)
	}
	return nil
}

func (f *fronts) add(of int, kind string, keys tablets.Keys) error {
	f.stored += keys.Stored
	keys.Stored = 0
	made, err := keys.Fronts()
	if err != nil {
		return fmt.Errorf("fronts of dataset %s: %w", f.l.datasets[of].name, err)
	}
	f.ranges = append(f.ranges, frontRange{made, of, len(f.load.Fronts), kind})
	f.load.Fronts = append(f.load.Fronts, made.List...)
	return nil
}

// of returns the fronts of a kind of rows of a dataset, or those of its points if there are none.
func (f *fronts) of(of int, kind string) *frontRange {
	i := slices.IndexFunc(f.ranges, func(r frontRange) bool { return r.of == of && r.kind == kind })
	if i < 0 {
		return f.of(of, pointRows)
	}
	return &f.ranges[i]
}

// moves reports whether later points have later keys.
func (f *fronts) moves(of int) bool {
	return slices.ContainsFunc(f.c.keys[of].elements, func(e element) bool { return e.kind == timeElement })
}

// shares returns the share of the writes of each entity, and the sum of their squares.
func (s *sized) shares() (shares []float64, squares float64) {
	shares = make([]float64, s.n)
	all := integral(float64(s.n+1), s.skew)
	for rank, before := 0, 0.0; rank < s.n; rank++ {
		next := integral(float64(rank+2), s.skew) / all
		shares[s.at(rank)] = next - before
		squares += (next - before) * (next - before)
		before = next
	}
	return shares, squares
}

// beforeTime returns the elements before the time.
func (l layout) beforeTime() []element {
	return l.elements[:slices.IndexFunc(l.elements, element.isTime)]
}

// prefix returns the parts of a key, as numbers in their order.
func (f *fronts) prefix(of int, before []element) (parts []func(entity int) int) {
	s, key := f.l.datasets[of], f.c.keys[of]
	for _, e := range before {
		switch e.kind {
		case tenantElement:
			tenants := make([]int32, s.n)
			for t, first := range s.tenants {
				for i := first; i < s.n && (t+1 == len(s.tenants) || i < s.tenants[t+1]); i++ {
					tenants[i] = int32(t)
				}
			}
			parts = append(parts, func(entity int) int { return int(tenants[entity]) })
		case fieldElement:
			shared := s.fields[e.n].shared
			parts = append(parts, func(entity int) int { return entity / shared })
		case saltElement:
			salts := make([]uint8, s.n)
			for i := range salts {
				salts[i] = uint8(key.salt(i))
			}
			parts = append(parts, func(entity int) int { return int(salts[entity]) })
		}
	}
	return parts
}

// addQuery adds what a query reads, with the fewest rows that its candidate's driver needs.
func (f *fronts) addQuery(q *query) {
	of := slices.Index(f.l.Plan.datasets, q.of)
	d := f.l.datasets[of]
	points := f.of(of, pointRows)
	perEntity := d.average() * f.squares[of] // rows a second of an entity that is asked, which is asked as often as it writes
	whole := f.whole(of)
	switch q.kind {
	case latest, latestMany:
		rate := q.rate
		if q.kind == latestMany {
			rate *= float64(q.entities)
		}
		if whole { // heads are rows, too: one row, by its key
			r := f.of(of, headRows)
			f.read(r.first, r.first+len(r.List), tablets.Read{Rate: rate}, d)
			return
		}
		newer := 0.5 // of the rows that the others write between two of the entity, on average
		if d.skew > 0 {
			newer = 1
		}
		f.readFronts(points, d, rate, func(front int) float64 { return max(newer*float64(points.Entities(front)), 1) })
	case ranged, aggregate:
		seconds := q.last.Seconds()
		if q.kind == aggregate && f.c.native() && f.c.rollup > 0 {
			r := f.of(of, rollupRows)
			f.read(r.first, r.first+len(r.List), tablets.Read{Rate: q.rate, Rows: max(seconds/f.c.rollup.Seconds(), 1), RowBytes: perRow}, d)
			return
		}
		if whole {
			f.read(points.first, points.first+len(points.List), tablets.Read{Rate: q.rate, Rows: max(perEntity*seconds, 1)}, d)
			return
		}
		f.readFronts(points, d, q.rate, func(front int) float64 { return max(points.List[front].Writes*seconds, 1) })
	case under:
		f.addUnder(q, of, d, points, whole)
	}
}

// addUnder adds a query for the newest point of each entity under a prefix.
func (f *fronts) addUnder(q *query, of int, d *sized, points *frontRange, whole bool) {
	below := float64(d.n) / float64(len(d.tenants))
	if q.fields > 0 {
		below = min(below, float64(d.fields[q.fields-1].shared))
	}
	switch heads := f.of(of, headRows); {
	case heads.kind == headRows: // heads are next to each other
		f.read(heads.first, heads.first+len(heads.List), tablets.Read{Rate: q.rate, Rows: below}, d)
	case f.c.native(): // a request seeks each entity
		f.read(points.first, points.first+len(points.List), tablets.Read{Rate: q.rate * below}, d)
	case whole: // all that is stored below the prefix
		rows := below * d.average() / float64(d.n) * d.keep.Seconds()
		f.read(points.first, points.first+len(points.List), tablets.Read{Rate: q.rate, Rows: rows}, d)
	default:
		f.readFronts(points, d, q.rate*float64(f.salts(of)), func(front int) float64 { return max(points.List[front].Writes*2*d.every.Seconds(), 1) })
	}
}

// salts is how many ranges a query reads that knows only a part of an entity.
func (f *fronts) salts(of int) int {
	if before := f.c.keys[of].beforeTime(); slices.ContainsFunc(before, func(e element) bool { return e.kind == saltElement }) {
		return f.c.keys[of].salts
	}
	return 1
}

// whole reports whether all of an entity's key fields come before the time, so that its rows are next to each other.
func (f *fronts) whole(of int) bool {
	n := 0
	for _, e := range f.c.keys[of].beforeTime() {
		if e.kind == fieldElement {
			n++
		}
	}
	return n == len(f.l.datasets[of].fields)
}

// readFronts adds reads of fronts whose requests look at different numbers of rows. A front is asked as often as it is written.
func (f *fronts) readFronts(r *frontRange, d *sized, rate float64, rows func(front int) float64) {
	total, mean := 0.0, 0.0
	for i := range r.List {
		total += r.List[i].Writes
		mean += r.List[i].Writes * rows(i)
	}
	if len(r.List) > mostFrontReads {
		f.read(r.first, r.first+len(r.List), tablets.Read{Rate: rate, Rows: mean / total, ByWrites: true}, d)
		return
	}
	for i := range r.List {
		f.read(r.first+i, r.first+i+1, tablets.Read{Rate: rate * r.List[i].Writes / total, Rows: rows(i)}, d)
	}
}

// read adds a read of fronts.
func (f *fronts) read(first, last int, r tablets.Read, d *sized) {
	r.First, r.Last = first, last
	r.ByWrites = r.ByWrites || d.skew > 0
	if r.RowBytes == 0 {
		r.RowBytes = float64(d.bytes + perRow)
	}
	r.Rows = min(r.Rows, mostScanned)
	r.Old = r.Rows*r.RowBytes > oldScan
	f.load.Reads = append(f.load.Reads, r)
}

// key returns the row key of a request of a front at a time.
func (f *fronts) key(front int, at time.Duration, rnd *rand.Rand) []byte {
	i, ok := slices.BinarySearchFunc(f.ranges, front, func(r frontRange, front int) int { return r.first - front })
	if !ok {
		i--
	}
	r := f.ranges[i]
	entity := r.Any(front-r.first, rnd)
	d := rawDriver{l: f.l, keys: f.c.keys}
	now := epoch.Add(f.l.starts + at)
	if !f.c.native() {
		return []byte(d.key(op{of: r.of, entity: entity, time: now}))
	}
	s := f.l.datasets[r.of]
	name := s.name
	if r.kind != pointRows {
		name += "!" + r.kind
	}
	parts := []string{f.l.tenantName(s.tenant(entity)), name}
	if key := f.c.keys[r.of]; key.salts > 0 {
		parts = append(parts, saltText(key.salt(entity)))
	}
	parts = append(parts, s.parts(entity)...)
	if r.kind != headRows {
		parts = append(parts, fmt.Sprintf("%019d", math.MaxInt64-now.UnixMilli()))
	}
	return []byte(strings.Join(parts, "#"))
}
