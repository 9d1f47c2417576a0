package tsdb

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// History is the newest points of one entity, as LatestMany and PrefixReader.LatestN return them.
type History[T any] struct {
	Entity Entity
	// Points are the newest visible points, newest first. They may be empty.
	Points []Point[T]
	// Err is nil, PointErrors if some points do not decode, or the error of the read.
	Err error
}

// LatestMany returns the n newest visible points of each entity, newest first, in the order of entities. An entity may
// have fewer points or none, without an error. With n = 0 it reads nothing; a negative n is refused with ErrInvalid. If
// some entities could not be read or decoded, the error is a *ReadError that lists them, and the other results are
// valid. If the time runs out, the entities that were not read have errors that match the context's error. For any
// other error there are no results. It holds all points in memory.
//
// It costs one request of n rows per entity, but less in two cases. In a schema with heads of at least n points it
// costs one request for all entities, or one per 500 KB of row keys. With n = 1, four or more entities whose newest
// points the store has read before (it remembers the times of up to 4,096 entities of a tenant in a dataset) share
// requests of up to 250 entities and 500 KB of ranges. Of these, an entity costs one more request if it has written
// much since, if its last point is gone, or if its shared request failed temporarily. A store of package embedded
// shares requests also for entities that it has not read before.
//
// Concurrency limits the requests under way. An entity that is listed more than once is read once; its results then
// share what the value points to. With MaxStale and n = 1 the store's last-value cache may answer, and each entity that
// the cache does not know costs one request. The read timeout bounds each request, the scan timeout the whole call.
func (r *Repository[T]) LatestMany(ctx context.Context, entities []Entity, n int, opts ...ReadOption) (histories []History[T], err error) {
	ctx, op := r.part().begin(ctx, telemetry.LatestMany)
	defer func() { op.End(err) }()
	histories, err = r.latestMany(ctx, entities, n, opts)
	if err != nil {
		return nil, err
	}
	for i := range histories {
		op.Returned(len(histories[i].Points))
	}
	return histories, readError(entities, func(i int) error { return histories[i].Err })
}

// latestMany returns one history per entity, in order. An error means that the whole call failed.
func (r *Repository[T]) latestMany(ctx context.Context, entities []Entity, n int, opts []ReadOption) ([]History[T], error) {
	o, done, err := r.part().beginWide(ctx, opts, checkNumber(n))
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := r.rows.View.Bound(ctx, true)
	defer cancel()
	list := r.distinct(entities)
	histories := make([]History[T], len(entities))
	for i, e := range entities {
		histories[i] = History[T]{Entity: e, Err: list.refused[i]}
	}
	if n == 0 {
		return histories, nil
	}
	found := r.newestOf(ctx, list.read, n, o)
	given := make([]bool, len(found))
	for i, j := range list.at {
		if j < 0 {
			continue
		}
		histories[i] = found[j]
		if given[j] { // results do not share slices
			histories[i].Points = slices.Clone(found[j].Points)
		}
		given[j] = true
	}
	return histories, nil
}

// checkNumber checks how many points of an entity a call asks for.
func checkNumber(n int) error {
	if n < 0 {
		return invalid.New(ErrInvalid, "n", strconv.Itoa(n), "0 or more")
	}
	return nil
}

// beginWide begins a read of many entities. Errors of the repository, the context and the options come before refused,
// the error of the call's other arguments.
func (a *access) beginWide(ctx context.Context, opts []ReadOption, refused error) (o points.Options, done func(), err error) {
	if err = a.admit(ctx); err == nil {
		o, err = wideOptionsOf(opts)
	}
	if err = cmp.Or(err, refused); err == nil {
		done, err = a.rows.BeginWideRead(&o)
	}
	return o, done, err
}

// listing says which entities a call reads for those that its caller lists.
type listing struct {
	read    []Entity      // valid and distinct
	at      []int         // index in read of each listed entity; -1 for an invalid one
	refused map[int]error // of invalid entities, by their index in the list; nil if there are none
}

// distinct checks the entities that a caller lists, and leaves out repeated ones.
func (a *access) distinct(entities []Entity) listing {
	l := listing{at: make([]int, len(entities))}
	asked := make(map[Entity]int, len(entities)) // index in read of each entity
	for i, e := range entities {
		j, ok := asked[e]
		if !ok {
			if err := a.rows.Space.CheckPath(e.path); err != nil {
				if l.refused == nil {
					l.refused = map[int]error{}
				}
				l.at[i], l.refused[i] = -1, err
				continue
			}
			j = len(l.read)
			asked[e] = j
			l.read = append(l.read, e)
		}
		l.at[i] = j
	}
	return l
}

// newestOf returns one history per entity, in order. The entities are valid and distinct.
func (r *Repository[T]) newestOf(ctx context.Context, entities []Entity, n int, o points.Options) []History[T] {
	if r.rows.Cached(o, n) {
		return r.newestCached(ctx, entities, o)
	}
	out, paths := make([]History[T], len(entities)), make([]string, len(entities))
	for i, e := range entities {
		paths[i] = e.path
	}
	var singles []Point[T] // one for each entity
	if n == 1 {
		singles = make([]Point[T], len(entities))
	}
	r.rows.Newest(ctx, paths, n, o, func(i int, hits []dataset.Hit, err error) {
		h := &out[i]
		h.Entity, h.Err = entities[i], err
		switch {
		case err != nil || len(hits) == 0:
			return
		case n == 1:
			h.Points = singles[i : i : i+1]
		default:
			h.Points = make([]Point[T], 0, len(hits))
		}
		for k := range hits {
			r.add(h, hits[k])
		}
	})
	return out
}

// add decodes a point and appends it to a history.
func (r *Repository[T]) add(h *History[T], hit dataset.Hit) {
	p, err := r.decode(hit)
	h.Points = append(h.Points, p)
	if bad, ok := err.(*PointError); ok {
		all, _ := h.Err.(PointErrors)
		h.Err = append(all, bad)
	}
}
