package tablets

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"sort"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// MaxEntities bounds the entities of an Order.
const MaxEntities = 20_000_000

// mostFronts is how many fronts an Order has at most. More are joined with their neighbours: some of many more fronts
// than there are tablets have too little load to change where tablets are split.
const mostFronts = 1 << 17

// Order says which entities share a beginning of their row keys, and in which order the beginnings are. It never
// changes, so all Keys whose beginnings are the same can share it.
type Order struct {
	// Joined is how many neighbouring beginnings share a front, because there are very many. It is usually 1.
	Joined int

	n     int
	order []int32 // the entities, by front; nil if that is their own order
	start []int32 // by front: where its entities begin in order; one more than fronts
}

// NewOrder returns the order of keys that have these parts before their time, in the order of the key: each returns,
// for an entity, a number from 0 to below 2^31 that rises as the part does in the order of keys. Entities with the same
// parts have one front. Without parts, all have: keys begin with the time.
//
// Time is proportional to the number of entities, from 1 to 20 million. The Order keeps up to 4 bytes for each, and
// none if the keys have the order of the entities; while it is made, it takes twice as many. It fails with ErrInvalid.
func NewOrder(entities int, parts []func(entity int) int) (*Order, error) {
	if err := invalid.Range(ErrInvalid, "Entities", entities, 1, MaxEntities, "1 to 20000000"); err != nil {
		return nil, err
	}
	o := &Order{n: entities}
	// Sorting by the last part first, and keeping the order of equals, sorts by all.
	for p := len(parts) - 1; p >= 0; p-- {
		if err := o.sortBy(p, parts[p]); err != nil {
			return nil, err
		}
	}
	same := func(a, b int) bool {
		for _, part := range parts {
			if part(a) != part(b) {
				return false
			}
		}
		return true
	}
	begins := func(i int) bool { return i == 0 || !same(o.at(i-1), o.at(i)) }
	all := 0
	for i := range entities {
		if begins(i) {
			all++
		}
	}
	o.Joined = (all + mostFronts - 1) / mostFronts
	o.start = make([]int32, 0, all/o.Joined+2)
	for i, seen := 0, 0; i < entities; i++ {
		if begins(i) {
			if seen%o.Joined == 0 {
				o.start = append(o.start, int32(i))
			}
			seen++
		}
	}
	o.start = append(o.start, int32(entities))
	return o, nil
}

// at returns the entity at an index of the order.
func (o *Order) at(i int) int {
	if o.order == nil {
		return i
	}
	return int(o.order[i])
}

// sortBy sorts the entities by a part, and keeps the order of those that are equal.
func (o *Order) sortBy(p int, part func(entity int) int) error {
	most, sorted, before := 0, true, 0
	for i := range o.n {
		entity := o.at(i)
		v := part(entity)
		if v < 0 || v > math.MaxInt32 {
			return invalid.New(ErrInvalid, fmt.Sprintf("part %d of entity %d", p, entity), fmt.Sprint(v), "0 to 2147483647")
		}
		sorted = sorted && v >= before
		most, before = max(most, v), v
	}
	if sorted {
		return nil
	}
	const digit = 1 << 16 // at most two passes
	next := make([]int32, o.n)
	for low := 1; low <= most; low *= digit {
		var count [digit + 1]int32
		for i := range o.n {
			count[part(o.at(i))/low%digit+1]++
		}
		for i := range digit {
			count[i+1] += count[i]
		}
		for i := range o.n {
			entity := o.at(i)
			d := part(entity) / low % digit
			next[count[d]] = int32(entity)
			count[d]++
		}
		spare := o.order
		if spare == nil && low*digit <= most {
			spare = make([]int32, o.n)
		}
		o.order, next = next, spare
	}
	return nil
}

// Len returns the number of fronts.
func (o *Order) Len() int { return len(o.start) - 1 }

// Entities returns how many entities a front has.
func (o *Order) Entities(front int) int { return int(o.start[front+1] - o.start[front]) }

// Each returns the entities of a front. Those with the same key parts are in their own order.
func (o *Order) Each(front int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := o.start[front]; i < o.start[front+1] && yield(o.at(int(i))); i++ {
		}
	}
}

// Any returns an entity of a front, each with the same chance: of those from first to below last, if the front has some
// of them. Those with the same key parts have to be in their own order, as they are where no fronts are joined.
func (o *Order) Any(front, first, last int, rnd *rand.Rand) int {
	from, n := int(o.start[front]), o.Entities(front)
	if o.Joined == 1 {
		low := sort.Search(n, func(i int) bool { return o.at(from+i) >= first })
		if high := sort.Search(n, func(i int) bool { return o.at(from+i) >= last }); low < high {
			from, n = from+low, high-low
		}
	}
	return o.at(from + rnd.IntN(n))
}

// Keys describe the row keys of one kind of rows, as far as it matters where writes arrive.
type Keys struct {
	Order *Order
	// Moves says that the time in the key rises, instead of falling (newest first).
	Moves bool
	// Share returns an entity's share of the writes, in any unit. Nil is the same for all.
	Share func(entity int) float64
	// Writes is how many rows a second all entities write, and Stored how many bytes they have stored before.
	Writes, Stored float64
	// RowBytes and Curve are those of a Front.
	RowBytes float64
	Curve    int
}

// Fronts returns the fronts in the order of the keys: about 40 bytes for each. It fails with ErrInvalid.
func (k Keys) Fronts() ([]Front, error) {
	list := make([]Front, k.Order.Len())
	total := 0.0
	shares := make([]float64, len(list))
	for i := range list {
		if k.Share == nil {
			shares[i] = float64(k.Order.Entities(i))
			total += shares[i]
			continue
		}
		for entity := range k.Order.Each(i) {
			share := k.Share(entity)
			if !(share >= 0 && share <= math.MaxFloat64/MaxEntities) {
				return nil, invalid.New(ErrInvalid, fmt.Sprintf("Share of entity %d", entity), fmt.Sprint(share), "a number that is not negative")
			}
			shares[i] += share
		}
		total += shares[i]
	}
	if total == 0 && (k.Writes > 0 || k.Stored > 0) {
		return nil, invalid.New(ErrInvalid, "Share", "0 for all entities", "more for one at least")
	}
	for i := range list {
		share := shares[i] / max(total, math.SmallestNonzeroFloat64)
		list[i] = Front{Writes: k.Writes * share, Stored: k.Stored * share, RowBytes: k.RowBytes, Curve: k.Curve, Moves: k.Moves}
	}
	return list, nil
}
