package under

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Silence is an entity that has sent nothing for some time.
type Silence struct {
	Entity tsdb.Entity `json:"entity"`
	// Last is the time of its newest visible point, in UTC.
	Last time.Time `json:"last"`
}

// MarshalJSON implements json.Marshaler.
func (s Silence) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Entity tsdb.Entity  `json:"entity"`
		Last   instant.Time `json:"last"`
	}{s.Entity, instant.Time{Time: s.Last}})
}

// Silent returns the entities under a prefix whose newest visible point is before a time, the one that has been silent for
// longest first. It returns at most n of them, 1 to 10,000. Entities that are silent since the same time are in the order of
// Entity.Compare.
//
// An entity that never sent a point is not known to the store, nor is one whose points have all expired or were deleted. To find
// those, compare with your own list of entities. A point in the future counts as sent.
//
// It costs as much as Repository.Entities, whatever n is: it looks at every entity under the prefix, and the service sends no
// payloads. It holds n entities in memory. The scan timeout bounds the call.
func Silent[T any](ctx context.Context, repo *tsdb.Repository[T], p tsdb.Prefix, since time.Time, n int, opts ...tsdb.ReadOption) (silent []Silence, err error) {
	ctx, c, err := begin(ctx, repo, telemetry.UnderSilent, p, tsdb.AllTime(), opts, true)
	defer func() {
		c.op.Returned(len(silent))
		c.end(err)
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
		if !precision.Time(h.Units).Before(since) {
			return true
		}
		switch {
		case len(found) < n:
			heap.Push(&found, h)
		case before(h, found[0]):
			found[0] = h
			heap.Fix(&found, 0)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, compare)
	silent = make([]Silence, len(found))
	for i, h := range found {
		silent[i] = Silence{Entity: inside.Of(tsdb.Entity{}).At(h.Path), Last: precision.Time(h.Units)}
	}
	return silent, nil
}

// longest is a heap of the points of the entities that have been silent for longest; the newest of them is its root.
type longest []dataset.Hit

func (l longest) Len() int           { return len(l) }
func (l longest) Less(i, j int) bool { return before(l[j], l[i]) }
func (l longest) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *longest) Push(h any)        { *l = append(*l, h.(dataset.Hit)) }

// Pop completes heap.Interface; a heap that only replaces its root does not call it.
func (l *longest) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

func before(a, b dataset.Hit) bool { return compare(a, b) < 0 }

func compare(a, b dataset.Hit) int {
	return cmp.Or(cmp.Compare(a.Units, b.Units), strings.Compare(a.Path, b.Path))
}
