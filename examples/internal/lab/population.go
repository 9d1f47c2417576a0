package lab

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/tablets"
)

// population is what the candidates' loads have in common, so that it is computed once and is in memory once: up to 8
// bytes for each entity, and up to 4 bytes for each entity and each different beginning of keys.
type population struct {
	l       *load
	first   []int // by dataset: the number of its first entity among those of all datasets
	shares  [][]float64
	squares []float64
	orders  map[string]*tablets.Order
}

func newPopulation(p *Plan) *population {
	pop := &population{l: p.scaled(1), orders: map[string]*tablets.Order{}}
	n := 0
	for _, d := range pop.l.datasets {
		shares, squares := d.shares()
		pop.shares, pop.squares = append(pop.shares, shares), append(pop.squares, squares)
		pop.first = append(pop.first, n)
		n += d.n
	}
	return pop
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

// datasetOf returns the dataset of an entity of all datasets.
func (pop *population) datasetOf(entity int) int {
	i := len(pop.first) - 1
	for entity < pop.first[i] {
		i--
	}
	return i
}

// order returns the order of a candidate's keys for some datasets, up to the time.
func (pop *population) order(c *candidate, of []int) (*tablets.Order, error) {
	id := fmt.Sprint(of)
	var places []int // of the elements that tell entities apart
	before := c.keys[of[0]].beforeTime()
	for i, e := range before {
		if e.kind != datasetElement {
			places = append(places, i)
			id += fmt.Sprint(e)
		}
	}
	if o := pop.orders[id]; o != nil {
		return o, nil
	}
	var parts []func(entity int) int
	for _, i := range places {
		parts = append(parts, pop.part(c, of, i))
	}
	entities := 0
	for _, i := range of {
		entities += pop.l.datasets[i].n
	}
	o, err := tablets.NewOrder(entities, parts)
	pop.orders[id] = o
	return o, err
}

// part returns an element of the keys of some datasets, as a number that rises as its text does.
func (pop *population) part(c *candidate, of []int, place int) func(entity int) int {
	if len(of) == 1 {
		part, _, _ := pop.partOf(c, of[0], place)
		return part
	}
	type class struct {
		name         string
		first, count int
	}
	parts, classes := make([]func(int) int, len(of)), make([]*class, len(of))
	var list []*class
	for i := range of { // all datasets: see together
		part, name, count := pop.partOf(c, i, place)
		at := slices.IndexFunc(list, func(c *class) bool { return c.name == name })
		if at < 0 {
			at = len(list)
			list = append(list, &class{name: name})
		}
		parts[i], classes[i] = part, list[at]
		classes[i].count = max(classes[i].count, count)
	}
	slices.SortFunc(list, func(a, b *class) int { return cmp.Compare(a.name, b.name) })
	for i := 1; i < len(list); i++ {
		list[i].first = list[i-1].first + list[i-1].count
	}
	return func(entity int) int {
		i := pop.datasetOf(entity)
		return classes[i].first + parts[i](entity-pop.first[i])
	}
}

// partOf returns an element of the keys of a dataset, as a number below count. Elements of two datasets whose names are
// equal have the same texts for the same numbers.
func (pop *population) partOf(c *candidate, of, place int) (part func(entity int) int, name string, count int) {
	s, key := pop.l.datasets[of], c.keys[of]
	switch e := key.elements[place]; e.kind {
	case tenantElement:
		tenants := make([]int32, s.n)
		for t, first := range s.tenants {
			for i := first; i < s.n && (t+1 == len(s.tenants) || i < s.tenants[t+1]); i++ {
				tenants[i] = int32(t)
			}
		}
		return func(entity int) int { return int(tenants[entity]) }, "", len(s.tenants)
	case fieldElement:
		shared := s.fields[e.n].shared
		return func(entity int) int { return entity / shared }, fmt.Sprintf("%s-%03d", s.fields[e.n].name, s.width), (s.n-1)/shared + 1
	default: // a salt
		salts := make([]uint8, s.n)
		for i := range salts {
			salts[i] = uint8(key.salt(i))
		}
		return func(entity int) int { return int(salts[entity]) }, "", key.salts
	}
}

// asked returns how many entities a query for several asks for, on average: tenants may have fewer.
func (l *load) asked(q *query) float64 {
	d := l.datasets[slices.Index(l.Plan.datasets, q.of)]
	sum := 0.0
	for t, first := range d.tenants {
		last := d.n
		if t+1 < len(d.tenants) {
			last = d.tenants[t+1]
		}
		sum += float64(last-first) * float64(min(q.entities, last-first))
	}
	return sum / float64(d.n)
}

// key returns the row key of a request of a front at a time.
func (f *fronts) key(front int, at time.Duration, rnd *rand.Rand) []byte {
	i, ok := slices.BinarySearchFunc(f.ranges, front, func(r frontRange, front int) int { return r.first - front })
	if !ok {
		i--
	}
	r := &f.ranges[i]
	of, entity := f.any(r, front-r.first, rnd)
	d := rawDriver{l: f.l, keys: f.c.keys}
	now := epoch.Add(f.l.starts + at)
	if !f.c.native() {
		return []byte(d.key(op{of: of, entity: entity, time: now}))
	}
	s := f.l.datasets[of]
	name := s.name
	if r.kind != pointRows {
		name += "!" + r.kind
	}
	parts := []string{f.l.tenantName(s.tenant(entity)), name}
	if key := f.c.keys[of]; key.salts > 0 {
		parts = append(parts, saltText(key.salt(entity)))
	}
	parts = append(parts, s.parts(entity)...)
	if r.kind != headRows {
		parts = append(parts, fmt.Sprintf("%019d", math.MaxInt64-now.UnixMilli()))
	}
	return []byte(strings.Join(parts, "#"))
}

// any returns an entity that writes to a front, and its dataset.
func (f *fronts) any(r *frontRange, front int, rnd *rand.Rand) (of, entity int) {
	wanted := rnd.Float64() * f.crowd(r, r.of[0]) // datasets are chosen by their rates
	first := 0
	for _, i := range r.of {
		n := f.l.datasets[i].n
		if wanted -= f.l.datasets[i].average() / f.l.datasets[r.of[0]].average(); wanted < 0 || i == r.of[len(r.of)-1] {
			entity = r.Any(front, first, first+n, rnd)
			break
		}
		first += n
	}
	for _, i := range r.of { // the front may have no entity of that dataset
		if of = i; entity < f.l.datasets[i].n {
			break
		}
		entity -= f.l.datasets[i].n
	}
	return of, entity
}
