package lab

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/tablets"
	"github.com/tidemark-go/tidemark/internal/invalid"
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

// frontRange is the part of the key space that one kind of rows has.
type frontRange struct {
	*tablets.Order
	list     []tablets.Front
	of       []int // the datasets: several if their keys differ only after the time
	kind     string
	first    int // its first front in the load
	rowBytes float64
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

// fronts returns the load of each candidate, on a new table. It fails with ErrInvalid if the model cannot compute it.
func (p *Plan) fronts(chosen []*candidate) ([]*fronts, error) {
	entities := 0
	for _, d := range p.datasets {
		entities += d.entities
	}
	if entities > tablets.MaxEntities { // each takes memory
		return nil, invalid.New(ErrInvalid, "entities", fmt.Sprintf("%d in all datasets", entities), fmt.Sprintf("up to %d for a simulation", tablets.MaxEntities))
	}
	pop := newPopulation(p)
	var out []*fronts
	for _, c := range chosen {
		f := &fronts{l: pop.l, c: c, squares: pop.squares}
		for _, d := range f.l.datasets {
			f.load.Curves = append(f.load.Curves, func(at time.Duration) float64 { return d.rate(p.starts, at) / d.average() })
		}
		err := f.addDatasets(pop)
		for _, q := range p.queries {
			if err == nil {
				f.addQuery(q)
			}
		}
		if err == nil {
			err = f.load.Check()
		}
		if err != nil {
			return nil, fmt.Errorf("the model cannot compute candidate %s: %w", c.name, err)
		}
		out = append(out, f)
	}
	return out, nil
}

// average returns how many points a second all entities write, if the time of the day and bursts are left out.
func (d *dataset) average() float64 { return float64(d.entities) / d.every.Seconds() }

// rowBytes is the size of a row of a point.
func (d *dataset) rowBytes() float64 { return float64(d.bytes + perRow) }

// addDatasets adds the fronts of all datasets: each has its own, unless their keys differ only after the time.
func (f *fronts) addDatasets(pop *population) error {
	if f.together() {
		return f.addTogether(pop)
	}
	for of, d := range f.l.datasets {
		if err := f.addDataset(pop, of, d); err != nil {
			return fmt.Errorf("dataset %s: %w", d.name, err)
		}
	}
	return nil
}

// together reports whether nothing before the time tells the datasets apart, so that their rows arrive at the same
// places.
func (f *fronts) together() bool {
	return len(f.l.datasets) > 1 && !f.c.native() && !slices.Contains(f.c.keys[0].beforeTime(), element{kind: datasetElement})
}

// addTogether adds fronts that all datasets share. Their rows have the mean size, and their rate follows the sum of the
// datasets' curves.
func (f *fronts) addTogether(pop *population) error {
	keys := tablets.Keys{Moves: f.moves(0), Curve: len(f.load.Curves) + 1}
	of := make([]int, len(f.l.datasets))
	for i, d := range f.l.datasets {
		of[i] = i
		keys.Writes += d.average()
		keys.RowBytes += d.average() * d.rowBytes()
		keys.Stored += d.average() * d.rowBytes() * d.keep.Seconds()
	}
	keys.RowBytes /= keys.Writes
	f.load.Curves = append(f.load.Curves, func(at time.Duration) float64 {
		rate := 0.0
		for _, d := range f.l.datasets {
			rate += d.rate(f.l.starts, at)
		}
		return rate / keys.Writes
	})
	keys.Share = func(entity int) float64 {
		i := pop.datasetOf(entity)
		return pop.shares[i][entity-pop.first[i]] * f.l.datasets[i].average()
	}
	var err error
	if keys.Order, err = pop.order(f.c, of); err != nil {
		return err
	}
	return f.add(of, pointRows, keys)
}

// addDataset adds the fronts of a dataset's points, and of its heads and rollups.
func (f *fronts) addDataset(pop *population, of int, d *sized) error {
	order, err := pop.order(f.c, []int{of})
	if err != nil {
		return err
	}
	keys := tablets.Keys{
		Order: order, Moves: f.moves(of), Curve: of + 1, Share: func(entity int) float64 { return pop.shares[of][entity] },
		Writes: d.average(), RowBytes: d.rowBytes(), Stored: d.average() * d.keep.Seconds() * d.rowBytes(),
	}
	if err := f.add([]int{of}, pointRows, keys); err != nil {
		return err
	}
	entities := keys
	entities.Moves = false
	if f.c.native() && f.c.heads > 0 {
		head := entities // a row of each entity, which each point writes
		head.Stored = float64(d.n*f.c.heads) * (float64(d.bytes) + pointOfHead)
		if err := f.add([]int{of}, headRows, head); err != nil {
			return err
		}
	}
	if f.c.native() && f.c.rollup > 0 {
		// Each point writes a mark, and each window of an entity a bucket, of which a worker reads the points.
		buckets := float64(d.n) * min(1/f.c.rollup.Seconds(), 1/d.every.Seconds())
		marks := entities
		marks.Writes, marks.RowBytes, marks.Stored = d.average()+buckets, perRow, buckets*d.keep.Seconds()*perRow
		if err := f.add([]int{of}, rollupRows, marks); err != nil {
			return err
		}
		f.read(f.of(of, pointRows), tablets.Read{Rate: buckets, Rows: max(d.average()/buckets, 1)}, d)
	}
	return nil
}

func (f *fronts) add(of []int, kind string, keys tablets.Keys) error {
	f.stored += keys.Stored
	keys.Stored = 0
	list, err := keys.Fronts()
	if err != nil {
		return err
	}
	f.ranges = append(f.ranges, frontRange{keys.Order, list, of, kind, len(f.load.Fronts), keys.RowBytes})
	f.load.Fronts = append(f.load.Fronts, list...)
	return nil
}

// of returns the fronts of a kind of rows of a dataset, or those of its points if there are none.
func (f *fronts) of(of int, kind string) *frontRange {
	i := slices.IndexFunc(f.ranges, func(r frontRange) bool { return slices.Contains(r.of, of) && r.kind == kind })
	if i < 0 {
		return f.of(of, pointRows)
	}
	return &f.ranges[i]
}

// crowd is how many rows arrive at the places of a dataset for each row of its own.
func (f *fronts) crowd(r *frontRange, of int) float64 {
	all := 0.0
	for _, i := range r.of {
		all += f.l.datasets[i].average()
	}
	return all / f.l.datasets[of].average()
}

// moves reports whether later points have later keys.
func (f *fronts) moves(of int) bool {
	return slices.ContainsFunc(f.c.keys[of].elements, func(e element) bool { return e.kind == timeElement })
}

// beforeTime returns the elements before the time.
func (l layout) beforeTime() []element {
	return l.elements[:slices.IndexFunc(l.elements, element.isTime)]
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
			rate *= f.l.asked(q)
		}
		if whole { // heads are rows, too: one row, by its key
			r := f.of(of, headRows)
			f.read(r, tablets.Read{Rate: rate, Rows: f.crowd(r, of)}, d)
			return
		}
		newer := 0.5 // of the rows that the others write between two of the entity, on average
		if d.skew > 0 {
			newer = 1
		}
		f.readFronts(points, d, rate, func(front int) float64 {
			if len(points.of) > 1 {
				return max(newer*points.list[front].Writes*d.every.Seconds(), 1)
			}
			return max(newer*float64(points.Entities(front)), 1)
		})
	case ranged, aggregate:
		seconds := q.last.Seconds()
		if q.kind == aggregate && f.c.native() && f.c.rollup > 0 {
			r := f.of(of, rollupRows)
			f.read(r, tablets.Read{Rate: q.rate, Rows: max(seconds/f.c.rollup.Seconds(), 1)}, d)
			return
		}
		if whole {
			f.read(points, tablets.Read{Rate: q.rate, Rows: max(perEntity*seconds*f.crowd(points, of), 1)}, d)
			return
		}
		f.readFronts(points, d, q.rate, func(front int) float64 { return max(points.list[front].Writes*seconds, 1) })
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
		f.read(heads, tablets.Read{Rate: q.rate, Rows: below}, d)
	case f.c.native(): // a request seeks each entity
		f.read(points, tablets.Read{Rate: q.rate * below}, d)
	case whole: // all that is stored below the prefix
		rows := below * d.average() / float64(d.n) * d.keep.Seconds() * f.crowd(points, of)
		f.read(points, tablets.Read{Rate: q.rate, Rows: rows}, d)
	default:
		f.readFronts(points, d, q.rate*float64(f.salts(of)), func(front int) float64 { return max(points.list[front].Writes*2*d.every.Seconds(), 1) })
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

// readFronts adds reads of fronts whose requests look at different numbers of rows. A front is asked as often as it is
// written.
func (f *fronts) readFronts(r *frontRange, d *sized, rate float64, rows func(front int) float64) {
	total, mean := 0.0, 0.0
	for i := range r.list {
		total += r.list[i].Writes
		mean += r.list[i].Writes * rows(i)
	}
	if len(r.list) > mostFrontReads {
		f.read(r, tablets.Read{Rate: rate, Rows: mean / total, ByWrites: true}, d)
		return
	}
	for i := range r.list {
		one := *r
		one.first, one.list = r.first+i, r.list[i:i+1]
		f.read(&one, tablets.Read{Rate: rate * r.list[i].Writes / total, Rows: rows(i)}, d)
	}
}

// read adds a read of fronts.
func (f *fronts) read(of *frontRange, r tablets.Read, d *sized) {
	r.First, r.Last, r.RowBytes = of.first, of.first+len(of.list), of.rowBytes
	r.ByWrites = r.ByWrites || d.skew > 0
	r.Rows = min(r.Rows, mostScanned)
	r.Old = r.Rows*r.RowBytes > oldScan
	f.load.Reads = append(f.load.Reads, r)
}
