package tablets

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// MaxEntities bounds the entities of Keys.
const MaxEntities = 20_000_000

// mostFronts is how many fronts Keys has at most. More are joined with their neighbours: some of many more fronts than there are
// tablets have too little load to change where tablets are split.
const mostFronts = 1 << 17

// Keys describe the row keys of one dataset, as far as it matters where writes arrive.
type Keys struct {
	// Entities is how many there are, from 1 to 20 million.
	Entities int
	// Prefix has the parts of a key before its time, in the order of the key: each returns, for an entity, a number from 0 to below
	// 2^31 that rises as the part does in the order of keys. Entities with the same prefix have one front. Without parts, all have: keys begin with the time.
	Prefix []func(entity int) int
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

// Fronts are the fronts of a dataset, and which entities have which.
type Fronts struct {
	// List is in the order of the keys.
	List []Front
	// Joined is how many neighbouring prefixes share a front, because there are very many. It is usually 1.
	Joined int

	order []int32 // the entities, by front
	start []int32 // by front: where its entities begin in order; one more than fronts
	of    []int32 // by entity: its front
}

// Fronts returns the fronts. Time and memory are proportional to the number of entities: about 16 bytes for each, and 40 for each front. It
// fails with ErrInvalid.
func (k Keys) Fronts() (*Fronts, error) {
	if err := invalid.Range(ErrInvalid, "Entities", k.Entities, 1, MaxEntities, "1 to 20000000"); err != nil {
		return nil, err
	}
	f := &Fronts{Joined: 1, order: make([]int32, k.Entities)}
	for i := range f.order {
		f.order[i] = int32(i)
	}
	// Sorting by the last part first, and keeping the order of equals, sorts by all.
	for p := len(k.Prefix) - 1; p >= 0; p-- {
		if err := f.sortBy(p, k.Prefix[p]); err != nil {
			return nil, err
		}
	}
	same := func(a, b int32) bool {
		for _, part := range k.Prefix {
			if part(int(a)) != part(int(b)) {
				return false
			}
		}
		return true
	}
	for i, entity := range f.order {
		if i == 0 || !same(f.order[i-1], entity) {
			f.start = append(f.start, int32(i))
		}
	}
	if f.Joined = (len(f.start) + mostFronts - 1) / mostFronts; f.Joined > 1 {
		kept := f.start[:0]
		for i := 0; i < len(f.start); i += f.Joined {
			kept = append(kept, f.start[i])
		}
		f.start = kept
	}
	f.start = append(f.start, int32(k.Entities))
	return f, f.fill(k)
}

// fill computes the fronts when their entities are known.
func (f *Fronts) fill(k Keys) error {
	f.List = make([]Front, len(f.start)-1)
	f.of = make([]int32, k.Entities)
	total := 0.0
	shares := make([]float64, len(f.List))
	for i := range f.List {
		for _, entity := range f.order[f.start[i]:f.start[i+1]] {
			f.of[entity] = int32(i)
			share := 1.0
			if k.Share != nil {
				if share = k.Share(int(entity)); !(share >= 0 && share <= math.MaxFloat64/MaxEntities) {
					return invalid.New(ErrInvalid, fmt.Sprintf("Share of entity %d", entity), fmt.Sprint(share), "a number that is not negative")
				}
			}
			shares[i] += share
		}
		total += shares[i]
	}
	if total == 0 && (k.Writes > 0 || k.Stored > 0) {
		return invalid.New(ErrInvalid, "Share", "0 for all entities", "more for one at least")
	}
	for i := range f.List {
		share := shares[i] / max(total, math.SmallestNonzeroFloat64)
		f.List[i] = Front{Writes: k.Writes * share, Stored: k.Stored * share, RowBytes: k.RowBytes, Curve: k.Curve, Moves: k.Moves}
	}
	return nil
}

// sortBy sorts the entities by a part, and keeps the order of those that are equal.
func (f *Fronts) sortBy(p int, part func(entity int) int) error {
	most, sorted, before := 0, true, 0
	for _, entity := range f.order {
		v := part(int(entity))
		if v < 0 || v > math.MaxInt32 {
			return invalid.New(ErrInvalid, fmt.Sprintf("Prefix[%d] of entity %d", p, entity), fmt.Sprint(v), "0 to 2147483647")
		}
		sorted = sorted && v >= before
		most, before = max(most, v), v
	}
	if sorted {
		return nil
	}
	const digit = 1 << 16 // at most two passes
	next := make([]int32, len(f.order))
	for low := 1; low <= most; low *= digit {
		var count [digit + 1]int32
		for _, entity := range f.order {
			count[part(int(entity))/low%digit+1]++
		}
		for i := range digit {
			count[i+1] += count[i]
		}
		for _, entity := range f.order {
			d := part(int(entity)) / low % digit
			next[count[d]] = entity
			count[d]++
		}
		f.order, next = next, f.order
	}
	return nil
}

// Of returns the front of an entity.
func (f *Fronts) Of(entity int) int { return int(f.of[entity]) }

// Entities returns how many entities a front has.
func (f *Fronts) Entities(front int) int { return int(f.start[front+1] - f.start[front]) }

// Any returns an entity of a front, each with the same chance.
func (f *Fronts) Any(front int, rnd *rand.Rand) int {
	return int(f.order[int(f.start[front])+rnd.IntN(f.Entities(front))])
}
