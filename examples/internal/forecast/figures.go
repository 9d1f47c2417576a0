package forecast

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// forecast computes the figures.
func (s *sample) forecast() *Forecast {
	f := &Forecast{
		Version: 2, Table: s.store.Name, At: s.now, Basis: s.basis, Cost: s.cost, Classes: []ClassFigures{}, Holdings: []Holding{}, sample: s,
	}
	byClass, byHolding := map[string][]*observed{}, map[rowkey.Group]map[string][]*observed{}
	all := make([]*observed, len(s.cells))
	for i := range s.cells {
		o := &s.cells[i]
		all[i] = o
		byClass[o.class] = append(byClass[o.class], o)
		if byHolding[*o.group] == nil {
			byHolding[*o.group] = map[string][]*observed{}
		}
		byHolding[*o.group][o.class] = append(byHolding[*o.group][o.class], o)
	}
	for _, g := range inOrder(byHolding) {
		for _, class := range slices.Sorted(maps.Keys(byHolding[g])) {
			s.rate(byHolding[g][class])
			f.Holdings = append(f.Holdings, Holding{Tenant: g.Tenant, Dataset: g.Dataset, Kind: g.Kind, Class: class, Figures: s.figures(byHolding[g][class])})
		}
	}
	for class := range s.kept.classes() {
		byClass[class] = append(byClass[class], nil...)
	}
	for _, class := range slices.Sorted(maps.Keys(byClass)) {
		c := ClassFigures{Class: class, Figures: s.figures(byClass[class])}
		if p := s.kept.policy(class); p != nil {
			c.Policy = p.String()
		}
		f.Classes = append(f.Classes, c)
	}
	f.Whole = s.figures(all)
	return f
}

func inOrder[V any](of map[rowkey.Group]V) []rowkey.Group {
	return slices.SortedFunc(maps.Keys(of), func(a, b rowkey.Group) int {
		return cmp.Or(strings.Compare(a.Tenant.String(), b.Tenant.String()), strings.Compare(a.Dataset, b.Dataset), strings.Compare(a.Kind, b.Kind))
	})
}

// rateWindow is the time before now from which the rate of writes is computed. It is shorter if data is kept for less,
// or is not that old yet.
const rateWindow = 7 * day

// rate sets how many cells a day each cell of a holding represents.
func (s *sample) rate(cells []*observed) {
	window := time.Hour.Milliseconds()
	for _, o := range cells {
		if o.versions == 0 && !o.removed(0) {
			window = max(window, o.age)
		}
	}
	window = min(window, rateWindow.Milliseconds())
	for _, o := range cells {
		mine := window
		if o.bounded {
			mine = min(mine, o.keeping.age.Milliseconds())
		}
		if o.versions == 0 && o.age >= 0 && o.age < mine && !o.removed(0) { // the day of a cell in the future is unknown
			o.perDay = float64(day.Milliseconds()) / float64(mine)
		}
	}
}

// removed reports whether the cell is expired after the time later.
func (o *observed) removed(later time.Duration) bool {
	return inside.Of(o.policy).Removes(o.after(later), int(o.newer))
}

// after returns the age after the time later.
func (o *observed) after(later time.Duration) time.Duration {
	const most = time.Duration(1<<63 - 1)
	age := time.Duration(o.age) * time.Millisecond
	if later > 0 && age > most-later {
		return most
	}
	return age + later
}

// kept returns the bytes that cells like this one hold after a time: what remains, and what was added since.
func (o *observed) kept(later time.Duration) float64 {
	if o.versions > 0 {
		later = 0 // as new cells arrive, the oldest expire
	}
	bytes := 0.0
	if !o.removed(later) {
		bytes = o.bytes
	}
	lasts := later
	if o.bounded {
		lasts = min(lasts, o.keeping.age)
	}
	return bytes + o.perDay*o.bytes*lasts.Hours()/24
}

// steady returns the bytes at which cells like this one stop growing. It reports false if they grow without end.
func (o *observed) steady() (float64, bool) {
	switch {
	case o.versions > 0 || o.perDay == 0 && !o.bounded:
		return o.kept(0), true
	case !o.bounded:
		return 0, false
	}
	return o.perDay * o.bytes * o.keeping.age.Hours() / 24, true
}

// figures adds up cells, each by what it stands for.
func (s *sample) figures(cells []*observed) Figures {
	f := Figures{Weeks: make([]float64, s.opts.Weeks), Steady: new(float64)}
	for _, o := range cells {
		f.Cells += o.stands
		f.Bytes += o.stands * o.bytes
		if o.removed(0) {
			f.ExpiredCells += o.stands
			f.ExpiredBytes += o.stands * o.bytes
		}
		f.DayCells += o.stands * o.perDay
		f.DayBytes += o.stands * o.perDay * o.bytes
		for w := range f.Weeks {
			f.Weeks[w] += o.stands * o.kept(time.Duration(w+1)*7*day)
		}
		if y, ends := o.steady(); !ends {
			f.Steady = nil
		} else if f.Steady != nil {
			*f.Steady += o.stands * y
		}
	}
	return f
}

// drops computes what another policy of a class would remove.
func (s *sample) drops(class string, policy gc.Policy) Drop {
	d := Drop{Class: class, Policy: policy.String(), Basis: s.basis, From: []DropFrom{}}
	from := map[rowkey.Group]*DropFrom{}
	for i := range s.cells {
		o := &s.cells[i]
		if o.class != class || o.removed(0) || !inside.Of(o.under(policy)).Removes(o.after(0), int(o.newer)) {
			continue
		}
		g := *o.group
		if from[g] == nil {
			from[g] = &DropFrom{Tenant: g.Tenant, Dataset: g.Dataset, Kind: g.Kind}
		}
		d.Cells += o.stands
		d.Bytes += o.stands * o.bytes
		from[g].Cells += o.stands
		from[g].Bytes += o.stands * o.bytes
	}
	for _, g := range inOrder(from) {
		d.From = append(d.From, *from[g])
	}
	return d
}
