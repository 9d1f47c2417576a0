package tsdb

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// Latest returns the newest visible point of every entity as a sequence in the order of Entity.Compare. Each iteration
// over the sequence sends new requests, and leaving the loop ends them.
//
// The cost grows with the number of entities, not with their histories:
//
//   - Entities with short histories share requests. Expired points that Bigtable has not removed count as history.
//   - Long histories are skipped. For m entities that is at most m requests, plus one per salt, and about 16 rows per
//     entity. An entity costs one more request if its newest points expired in one retention class while older ones in
//     another class did not.
//   - The store remembers up to 4,096 entities with long histories of a tenant in a dataset. The next call reads them
//     in shared requests, 250 in each, and about one row per entity. An entity with more than 8 points since the last
//     call ends its request; one whose newest point is gone costs two more requests.
//   - A scan that needs more than 32 requests is split into up to 8 parts, which are read in parallel. A part for which
//     the loop waits through 64 more requests is split again. A split costs up to 9 requests. Salts are always read in
//     parallel.
//   - In a schema with heads it reads one row per entity, 1,000 per request.
//
// Concurrency limits the requests under way. Latest reads ahead some thousand entities, or some megabytes per part.
//
// Expiry and errors are as in Repository.Range: a point whose payload does not decode is yielded with a *PointError,
// and the sequence continues; any other error is the last pair. The read timeout bounds each request; the scan timeout
// bounds the iteration, including the time that the loop body takes.
func (u PrefixReader[T]) Latest(ctx context.Context, opts ...ReadOption) iter.Seq2[Point[T], error] {
	return sequence(ctx, u.part(), telemetry.UnderLatest, AllTime(), 0, opts, func(ctx context.Context, c *inside.PrefixRead, emit emit[Point[T]]) error {
		return c.NewestOfEach(ctx, 1, true, func(h dataset.Hit) bool {
			p, err := u.repo.decode(h)
			return emit(1, p, err)
		})
	})
}

// LatestN returns the n newest visible points of each entity, newest first, as a sequence in the order of
// Entity.Compare. n is 1 to 10,000. An entity may have fewer points, and has at least one. Each iteration over the
// sequence sends new requests, and leaving the loop ends them.
//
// It costs as many requests as Latest, and n - 1 rows more per entity. In a schema with heads of at least n
// points it reads one row per entity, 1,000 per request. Memory: up to 4 MiB of payloads for each part
// that is read in parallel, plus the n points of one entity.
//
// If some of an entity's points do not decode, they have a zero value, the history's Err is PointErrors, and the error
// of the pair is the same; the sequence continues. Any other error is the last pair.
func (u PrefixReader[T]) LatestN(ctx context.Context, n int, opts ...ReadOption) iter.Seq2[History[T], error] {
	return sequence(ctx, u.part(), telemetry.UnderLatestN, AllTime(), 0, opts, func(ctx context.Context, c *inside.PrefixRead, emit emit[History[T]]) error {
		if err := checkCount(n); err != nil {
			return err
		}
		var h History[T]
		stopped := false
		err := c.NewestOfEach(ctx, n, true, func(hit dataset.Hit) bool {
			if len(h.Points) > 0 && h.Entity.path != hit.Path {
				if stopped = !emit(len(h.Points), h, h.Err); stopped {
					return false
				}
				h = History[T]{}
			}
			h.Entity = Entity{path: hit.Path}
			u.repo.add(&h, hit)
			return true
		})
		if err == nil && !stopped && len(h.Points) > 0 {
			emit(len(h.Points), h, h.Err)
		}
		return err
	})
}

// maxCount is how many points of each entity, or silent entities, a call returns.
const maxCount = 10_000

func checkCount(n int) error {
	return invalid.Range(ErrInvalid, "n", n, 1, maxCount, "1 to "+strconv.Itoa(maxCount))
}

// Silence is an entity that has sent nothing for some time.
type Silence struct {
	Entity Entity `json:"entity"`
	// Last is the time of its newest visible point, in UTC.
	Last time.Time `json:"last"`
}

// MarshalJSON implements json.Marshaler.
func (s Silence) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Entity Entity       `json:"entity"`
		Last   instant.Time `json:"last"`
	}{s.Entity, instant.Time{Time: s.Last}})
}

// Silent returns the entities whose newest visible point is before a time, the one that has been silent for longest
// first. It returns at most n of them, 1 to 10,000. Entities that are silent since the same time are in the order of
// Entity.Compare.
//
// An entity that never sent a point is not known to the store, nor is one whose points have all expired or were
// deleted. To find those, compare with your own list of entities. A point in the future counts as sent.
//
// It costs as much as Entities of all time, whatever n is: it looks at every entity under the prefix, and the service
// sends no payloads. It holds n entities in memory. The scan timeout bounds the call.
func (u PrefixReader[T]) Silent(ctx context.Context, since time.Time, n int, opts ...ReadOption) ([]Silence, error) {
	return u.part().silent(ctx, since, n, opts)
}

func (u under) silent(ctx context.Context, since time.Time, n int, opts []ReadOption) (silent []Silence, err error) {
	ctx, c, err := u.beginRead(ctx, telemetry.UnderSilent, AllTime(), 0, opts)
	defer func() {
		c.Op.Returned(len(silent))
		c.End(err)
	}()
	if err == nil {
		err = checkCount(n)
	}
	if err != nil {
		return nil, err
	}
	precision := c.Rows.D.Precision
	var found longest
	err = c.NewestOfEach(ctx, 1, false, func(h dataset.Hit) bool {
		switch {
		case !precision.Time(h.Units).Before(since):
		case len(found) < n:
			heap.Push(&found, h)
		case compareSilence(h, found[0]) < 0:
			found[0] = h
			heap.Fix(&found, 0)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, compareSilence)
	silent = make([]Silence, len(found))
	for i, h := range found {
		silent[i] = Silence{Entity: Entity{path: h.Path}, Last: precision.Time(h.Units)}
	}
	return silent, nil
}

// longest is a heap of the points of the entities that have been silent for longest; the newest of them is its root.
type longest []dataset.Hit

func (l longest) Len() int           { return len(l) }
func (l longest) Less(i, j int) bool { return compareSilence(l[j], l[i]) < 0 }
func (l longest) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *longest) Push(h any)        { *l = append(*l, h.(dataset.Hit)) }

// Pop completes heap.Interface; a heap that only replaces its root does not call it.
func (l *longest) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

func compareSilence(a, b dataset.Hit) int {
	return cmp.Or(cmp.Compare(a.Units, b.Units), strings.Compare(a.Path, b.Path))
}
