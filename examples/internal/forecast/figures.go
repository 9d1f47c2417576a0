package forecast

import (
	"maps"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// bands are the limits of the age bands.
var bands = []time.Duration{
	0, time.Hour, 6 * time.Hour, day, 2 * day, 3 * day, 7 * day, 14 * day, 30 * day, 60 * day, 90 * day, 180 * day, 365 * day, 730 * day, 0,
}

// forecast computes the figures.
func (s *sample) forecast() *Forecast {
	holdings := map[rowkey.Group][]string{} // the classes of each group
	for _, g := range s.groups {
		holdings[g] = s.rate(g)
	}
	f := &Forecast{
		Version: 1, Table: s.store.Name, At: s.now, Basis: s.basis, Cost: s.cost, Classes: []ClassFigures{}, Holdings: []Holding{}, sample: s,
	}
	f.Whole = s.figures(s.cost.Read, func(*observed) bool { return true }, s.whole)
	classes := map[string]bool{}
	for _, g := range s.groups {
		for _, class := range holdings[g] {
			classes[class] = true
			f.Holdings = append(f.Holdings, Holding{
				Tenant: g.Tenant, Dataset: g.Dataset, Kind: g.Kind, Class: class,
				Figures: s.figures(len(s.strata.pieces[g]), inClass(class), func(m measure) sum { return s.group(g, m) }),
			})
		}
	}
	for class := range s.kept.classes() {
		classes[class] = true
	}
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		c := ClassFigures{Class: class, Figures: s.figures(s.cost.Read, inClass(class), s.whole)}
		if p := s.kept.policy(class); p != nil {
			c.Policy = p.String()
		}
		f.Classes = append(f.Classes, c)
	}
	f.Unmet = s.unmet().estimate(s.spread)
	return f
}

// each calls visit for the observed cells of a group.
func (s *sample) each(g rowkey.Group, visit func(*observed)) {
	for _, c := range s.strata.pieces[g] {
		for i := range c.seen {
			visit(&c.seen[i])
		}
	}
}

// rate sets how many cells a day each cell of a group represents, and returns the group's classes.
func (s *sample) rate(g rowkey.Group) []string {
	oldest := map[string]int64{}
	s.each(g, func(o *observed) {
		was, known := oldest[o.class]
		if grows := o.versions == 0 && !o.removed(0); grows || !known {
			oldest[o.class] = max(was, o.age)
		}
	})
	s.each(g, func(o *observed) {
		window := min(s.opts.Window.Milliseconds(), max(oldest[o.class], time.Hour.Milliseconds()))
		if o.bounded {
			window = min(window, o.keeping.age.Milliseconds())
		}
		if o.versions == 0 && o.age >= 0 && o.age < window && !o.removed(0) { // the day of a cell in the future is unknown
			o.perDay = float32(day.Milliseconds()) / float32(window)
		}
	})
	return slices.Sorted(maps.Keys(oldest))
}

func inClass(class string) func(*observed) bool {
	return func(o *observed) bool { return o.class == class }
}

func bytesOf(o *observed) float64 { return float64(o.bytes) }

// kept returns the bytes that cells like this one hold after a time: what remains, and what was added since.
func (o *observed) kept(later time.Duration) float64 {
	if o.versions > 0 {
		later = 0 // as new cells arrive, the oldest expire
	}
	bytes := 0.0
	if !o.removed(later) {
		bytes = float64(o.bytes)
	}
	lasts := later
	if o.bounded {
		lasts = min(lasts, o.keeping.age)
	}
	return bytes + float64(o.perDay)*float64(o.bytes)*lasts.Hours()/24
}

// steady returns the bytes at which cells like this one stop growing. It reports false if they grow without end.
func (o *observed) steady() (float64, bool) {
	switch {
	case o.versions > 0 || o.perDay == 0 && !o.bounded:
		return o.kept(0), true
	case !o.bounded:
		return 0, false
	}
	return float64(o.perDay) * float64(o.bytes) * o.keeping.age.Hours() / 24, true
}

// partOf returns the estimate of a part of all, from a number of looks. Even if no look or each look found the part,
// other places may differ, so the error is not 0.
func (e Estimate) partOf(all Estimate, looks int) Estimate {
	if all.Error > 0 {
		e.Error = max(e.Error, all.Value/float64(looks+2))
	}
	return e
}

// figures computes the figures of the cells that mine selects, from a number of looks.
func (s *sample) figures(looks int, mine func(*observed) bool, over func(measure) sum) Figures {
	of := func(m measure) Estimate {
		return over(func(o *observed) float64 {
			if !mine(o) {
				return 0
			}
			return m(o)
		}).estimate(s.spread)
	}
	// both returns the bytes and the cells of a selection.
	both := func(some func(*observed) float64) (bytes, cells Estimate) {
		return of(func(o *observed) float64 { return some(o) * float64(o.bytes) }), of(some)
	}
	var f Figures
	f.Bytes, f.Cells = both(func(*observed) float64 { return 1 })
	part := func(some func(*observed) float64) (bytes, cells Estimate) {
		bytes, cells = both(some)
		return bytes.partOf(f.Bytes, looks), cells.partOf(f.Cells, looks)
	}
	f.ExpiredBytes, f.ExpiredCells = part(func(o *observed) float64 { return one(o.removed(0)) })
	f.DayBytes, f.DayCells = both(func(o *observed) float64 { return float64(o.perDay) })
	for w := range s.opts.Weeks {
		f.Weeks = append(f.Weeks, of(func(o *observed) float64 { return o.kept(time.Duration(w+1) * 7 * day) }))
	}
	endless := false
	steady := of(func(o *observed) float64 {
		y, ends := o.steady()
		endless = endless || !ends
		return y
	})
	if !endless {
		f.Steady = &steady
	}
	for i := range len(bands) - 1 {
		from, to := bands[i], bands[i+1]
		b := Band{From: from, To: to}
		b.Bytes, b.Cells = part(func(o *observed) float64 {
			age := time.Duration(o.age) * time.Millisecond
			return one((age >= from || i == 0) && (age < to || to == 0))
		})
		f.Ages = append(f.Ages, b)
	}
	return f
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// drops computes what another policy of a class would remove.
func (s *sample) drops(class string, policy gc.Policy) Drop {
	would := func(o *observed) float64 {
		age := time.Duration(o.age) * time.Millisecond
		return one(o.class == class && !o.removed(0) && o.under(policy).Removes(age, int(o.newer)))
	}
	bytes := func(o *observed) float64 { return would(o) * float64(o.bytes) }
	in := func(o *observed) float64 { return one(o.class == class) }
	inBytes := func(o *observed) float64 { return in(o) * float64(o.bytes) }
	of := func(looks int, over func(measure) sum) (b, c Estimate) {
		b, c = over(bytes).estimate(s.spread), over(would).estimate(s.spread)
		return b.partOf(over(inBytes).estimate(s.spread), looks), c.partOf(over(in).estimate(s.spread), looks)
	}
	d := Drop{Class: class, Policy: policy.String(), From: []DropFrom{}}
	d.Bytes, d.Cells = of(s.cost.Read, s.whole)
	for _, g := range s.groups {
		from := DropFrom{Tenant: g.Tenant, Dataset: g.Dataset, Kind: g.Kind}
		from.Bytes, from.Cells = of(len(s.strata.pieces[g]), func(m measure) sum { return s.group(g, m) })
		if from.Cells.Value > 0 {
			d.From = append(d.From, from)
		}
	}
	return d
}
