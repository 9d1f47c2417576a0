package catalog

import (
	"context"
	"maps"
	"slices"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/gate"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// A longer policy does not bring back what was collected under a shorter one. So a dataset's entry records, by
// retention class, from which time on the class's data is complete.

// complete is a part of an entry that schemas do not declare.
type complete struct {
	CompleteFrom map[string]int64 `json:"complete_from_ms,omitempty"` // by class; missing if its policy was never lengthened
}

// CompleteFrom returns a time in milliseconds. Data of the class from that time on has not expired under its stored
// policy or an earlier, shorter one. It returns 0 if the entry does not name the class and the class keeps everything.
func (e *Entry) CompleteFrom(class string, now time.Time) int64 {
	from := e.complete.CompleteFrom[class]
	policies := slices.Clone(e.Classes)
	for i := range e.Rollups {
		policies = append(policies, e.Rollups[i].Class)
	}
	for _, c := range policies {
		if c.Name != class {
			continue
		}
		policy, err := gc.Parse(c.Policy)
		if err != nil {
			continue // written by a newer program; this one's schemas cannot declare it
		}
		if cutoff, bounded, err := gate.Of(policy).Cutoff(now); err == nil && bounded {
			from = max(from, cutoff.UnixMilli())
		}
	}
	return from
}

// PointsCompleteFrom returns the latest CompleteFrom of all classes of points.
func (e *Entry) PointsCompleteFrom(now time.Time) (from int64) {
	for _, c := range e.Classes {
		from = max(from, e.CompleteFrom(c.Name, now))
	}
	return from
}

// WriteComplete records that classes of a dataset are complete from later times, in milliseconds, if the catalogue
// still holds old. It returns false, and changes nothing, if another process changed the entry first.
func WriteComplete(ctx context.Context, t *bt.Table, old Entry, from map[string]int64) (bool, error) {
	all := maps.Clone(old.complete.CompleteFrom)
	if all == nil {
		all = map[string]int64{}
	}
	for class, ms := range from {
		all[class] = max(all[class], ms)
	}
	doc, err := merged(old.document, complete{all})
	if err != nil {
		return false, err
	}
	return write(ctx, t, old, old.Name, doc, tenant.ID{})
}

// write stores the document of a dataset if the catalogue still holds old. by is the tenant that a new dataset is
// created for.
func write(ctx context.Context, t *bt.Table, old Entry, name string, doc []byte, by tenant.ID) (bool, error) {
	ok, out := writeRow(ctx, t, rowkey.DatasetRows+name, old.generation, max(old.generation+1, old.first), doc, func(mut *bigtable.Mutation) {
		if !by.IsZero() {
			mut.Set(Family, columnCreatedFor, 0, []byte(by.String()))
		}
	})
	return ok, out.Err
}
