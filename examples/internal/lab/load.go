package lab

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// epoch is the day of each load. It is fixed, so that the same file gives the same row keys.
var epoch = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)

// op is a point to write, or a query. Its entity belongs to dataset of.
type op struct {
	query  *query // nil for a write
	of     int
	at     time.Duration // from the beginning of the load; below 0 in the heavy part
	entity int
	time   time.Time // of the point, or of the query
	seed   uint64    // for what else the operation chooses
}

// load is a plan at a scale: what happens when.
type load struct {
	*Plan
	scale    float64
	datasets []*sized
	width    int // of the numbers of tenants
}

// sized is a dataset at a scale.
type sized struct {
	*dataset
	n       int   // entities
	step    int   // coprime with n: entities take turns in this order
	tenants []int // the first entity of each tenant
	width   int   // of the numbers in names, which does not depend on the scale
}

// scaled returns the load of a plan. Entities and rates of queries shrink with the scale; tenants do, too, once there
// are fewer entities.
func (p *Plan) scaled(scale float64) *load {
	l := &load{Plan: p, scale: scale, width: len(strconv.Itoa(p.tenants - 1))}
	for _, d := range p.datasets {
		n := max(int(math.Ceil(float64(d.entities)*scale)), 1)
		copied := *d
		copied.entities = n
		s := &sized{dataset: &copied, n: n, step: coprime(n, p.seed), width: len(strconv.Itoa(d.entities - 1))}
		for t := range min(p.tenants, n) {
			s.tenants = append(s.tenants, firstEntity(t, min(p.tenants, n), n, p.largest))
		}
		l.datasets = append(l.datasets, s)
	}
	return l
}

// firstEntity returns the first of n entities that belongs to a tenant. Tenant 0 has the share of the largest one.
func firstEntity(t, tenants, n int, largest float64) int {
	if t == 0 {
		return 0
	}
	if largest == 0 || tenants == 1 {
		return t * n / tenants
	}
	first := min(max(int(math.Round(float64(n)*largest)), 1), n-tenants+1)
	return first + (t-1)*(n-first)/(tenants-1)
}

// coprime returns a number that shares no factor with n, and is some way from 1 and from n.
func coprime(n int, seed uint64) int {
	for step := int(float64(n)*0.618) + int(seed%101) + 1; ; step++ {
		a, b := n, step
		for b != 0 {
			a, b = b, a%b
		}
		if a == 1 {
			return step % max(n, 2)
		}
	}
}

// at returns the entity of a rank or a turn. Neighbours of one are far from it in the key space.
func (s *sized) at(rank int) int { return int(uint64(rank) * uint64(s.step) % uint64(s.n)) }

// tenant returns the index of an entity's tenant.
func (s *sized) tenant(entity int) int {
	i, ok := slices.BinarySearch(s.tenants, entity)
	if !ok {
		i--
	}
	return i
}

func (l *load) tenantName(i int) string { return fmt.Sprintf("tenant-%0*d", l.width, i) }

// part returns the value of an entity's key field.
func (s *sized) part(entity, i int) string {
	f := s.fields[i]
	return fmt.Sprintf("%s-%0*d", f.name, s.width, entity/f.shared)
}

func (s *sized) parts(entity int) []string {
	parts := make([]string, len(s.fields))
	for i := range parts {
		parts[i] = s.part(entity, i)
	}
	return parts
}

// under returns the entities from one up to another that share the first fields with an entity, and its tenant.
func (s *sized) under(entity, fields int) (from, to int) {
	t := s.tenant(entity)
	from, to = s.tenants[t], s.n
	if t+1 < len(s.tenants) {
		to = s.tenants[t+1]
	}
	if fields > 0 {
		shared := s.fields[fields-1].shared
		from, to = max(from, entity/shared*shared), min(to, (entity/shared+1)*shared)
	}
	return from, to
}

// ticks are how the time is divided to make operations. Within a tick rates do not change.
const ticks = 3600

func (l *load) tick(total time.Duration) time.Duration {
	tick := max(total/ticks, 10*time.Millisecond)
	for _, d := range l.datasets {
		if d.bursts.lasts > 0 {
			tick = min(tick, max(d.bursts.lasts/4, total/1_000_000))
		}
	}
	return tick
}

// expected returns about how many points the load writes, and how many queries it asks.
func (l *load) expected() (points, queries float64) {
	tick := l.tick(l.duration)
	for _, d := range l.datasets {
		for at := time.Duration(0); at < l.duration; at += tick {
			points += d.rate(l.starts, at) * tick.Seconds()
		}
		points += d.peak() * l.heavy.Seconds()
	}
	for _, q := range l.queries {
		queries += q.rate * l.scale * l.duration.Seconds()
	}
	return points, queries
}

// heavyOps are the points of the heavy part: those of the highest rate, in the time before the load.
func (l *load) heavyOps() iter.Seq[op] {
	return l.ops(-l.heavy, 0, func(d *sized, _ time.Duration) float64 { return d.peak() }, nil)
}

// hourOps are the points and queries of the load, in the order of time.
func (l *load) hourOps() iter.Seq[op] {
	return l.ops(0, l.duration, func(d *sized, at time.Duration) float64 { return d.rate(l.starts, at) }, l.queries)
}

// ops makes operations. They follow from the seed alone.
func (l *load) ops(from, to time.Duration, rate func(*sized, time.Duration) float64, queries []*query) iter.Seq[op] {
	return func(yield func(op) bool) {
		rnd := rand.New(rand.NewPCG(l.seed, uint64(from)))
		tick := l.tick(l.duration)
		start := epoch.Add(l.starts)
		writes, asked := make([]float64, len(l.datasets)), make([]float64, len(queries)) // what is left over from the last tick
		turns := make([]int, len(l.datasets))
		var list []op
		for at := from; at < to; at += tick {
			list = list[:0]
			for i, d := range l.datasets {
				writes[i] += rate(d, at) * tick.Seconds()
				for ; writes[i] >= 1; writes[i]-- {
					o := op{of: i, at: at + time.Duration(rnd.Int64N(int64(tick))), seed: rnd.Uint64()}
					rank := turns[i]
					if turns[i]++; turns[i] == d.n {
						turns[i] = 0
					}
					if d.skew > 0 {
						rank = rankOf(rnd.Float64(), d.n, d.skew)
					}
					o.entity, o.time = d.at(rank), start.Add(o.at)
					if d.late > 0 && rnd.Float64() < d.late {
						o.time = o.time.Add(-time.Duration(rnd.Int64N(int64(d.lateBy))))
					}
					list = append(list, o)
				}
			}
			for i, q := range queries {
				asked[i] += q.rate * l.scale * tick.Seconds()
				for ; asked[i] >= 1; asked[i]-- {
					of := slices.Index(l.Plan.datasets, q.of)
					d := l.datasets[of]
					o := op{query: q, of: of, at: at + time.Duration(rnd.Int64N(int64(tick))), seed: rnd.Uint64()}
					o.entity, o.time = d.at(rankOf(rnd.Float64(), d.n, d.skew)), start.Add(o.at)
					list = append(list, o)
				}
			}
			slices.SortStableFunc(list, func(a, b op) int { return cmp.Compare(a.at, b.at) })
			for _, o := range list {
				if !yield(o) {
					return
				}
			}
		}
	}
}

// many returns the entities of a query for several: different ones of a tenant, or all if it has fewer.
func (l *load) many(o op) []int {
	d := l.datasets[o.of]
	rnd := rand.New(rand.NewPCG(o.seed, 1))
	from, to := d.under(o.entity, 0)
	n := to - from
	out, chosen := make([]int, 0, o.query.entities), map[int]bool{}
	for i := n - min(o.query.entities, n); i < n; i++ { // each of the first i+1, or the last of them where another turn has it
		e := rnd.IntN(i + 1)
		if chosen[e] {
			e = i
		}
		chosen[e] = true
		out = append(out, from+e)
	}
	return out
}

// batch returns how many points a request has: fewer of large ones.
func (l *load) batch() int {
	largest := 0
	for _, d := range l.datasets {
		largest = max(largest, d.bytes+perRow)
	}
	return min(mostBatch, max(maxRequest/max(largest, 1), 1))
}

// payload returns the bytes of a point.
func (s *sized) payload(o op) []byte {
	b := make([]byte, s.bytes)
	x := o.seed
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}
