package tsdb

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// LatestResult is what LatestMany has to say of one entity: what Latest would have returned.
type LatestResult[T any] struct {
	// Point is the newest visible point. Its Entity is always the one that was asked for; the rest is zero where Err is not
	// nil, but for the Time of a point that does not decode.
	Point Point[T]
	// Err is nil, ErrNotFound where there is no such point, a *PointError where its payload does not decode, or why the
	// entity could not be read.
	Err error
}

// History is what LatestManyN has to say of one entity: what LatestN would have returned.
type History[T any] struct {
	Entity Entity
	// Points are the newest visible points, newest first; none where there are none.
	Points []Point[T]
	// Err is nil, PointErrors where some of the points do not decode, or why the entity could not be read.
	Err error
}

// LatestMany returns the newest visible point of each entity, in the order in which they are asked for. That one has none
// is an answer, ErrNotFound, and no error of the call. Where some could not be read or do not decode, the error is a
// *ReadError that lists them, and the other answers stand: on the deadline too, where those that were not finished match the
// context's error. Any other error is about the call as a whole, and there are no answers.
//
// It costs one request for one row an entity, and in a schema with heads one for all of them, or for each 500 KB of row keys;
// with a bounded number of them at once (Concurrency). Entities whose newest points the store has read before take one request
// together: it remembers the times, of up to 4,096 entities of a tenant in a dataset, and asks for what was written since. An
// entity that is asked for more than once is read once, and what its value points to is then shared by its answers. With a
// MaxStale the store's last-value cache may answer, and what it does not know is read by one request an entity. The timeout of
// reads bounds each request, that of scans the whole call.
func (r *Repository[T]) LatestMany(ctx context.Context, entities []Entity, opts ...ReadOption) (answers []LatestResult[T], err error) {
	ctx, op := r.begin(ctx, telemetry.LatestMany)
	defer func() { op.End(err) }()
	histories, err := r.latestMany(ctx, entities, 1, opts)
	if err != nil {
		return nil, err
	}
	answers = make([]LatestResult[T], len(histories))
	for i, h := range histories {
		op.Returned(len(h.Points))
		answers[i] = h.newest()
	}
	return answers, readError(entities, func(i int) error {
		if errors.Is(answers[i].Err, ErrNotFound) {
			return nil
		}
		return answers[i].Err
	})
}

// newest returns the answer that a history of one point is.
func (h History[T]) newest() LatestResult[T] {
	a := LatestResult[T]{Point: Point[T]{Entity: h.Entity}, Err: h.Err}
	if len(h.Points) > 0 {
		a.Point = h.Points[0]
	} else if h.Err == nil {
		a.Err = ErrNotFound
	}
	if bad, ok := h.Err.(PointErrors); ok {
		a.Err = bad[0]
	}
	return a
}

// LatestManyN returns the n newest visible points of each entity, newest first, in the order in which the entities are
// asked for; fewer where there are fewer, and none without an error. Errors and costs are those of LatestMany, for n rows an
// entity, and memory for all of the points.
func (r *Repository[T]) LatestManyN(ctx context.Context, entities []Entity, n int, opts ...ReadOption) (histories []History[T], err error) {
	ctx, op := r.begin(ctx, telemetry.LatestManyN)
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

// latestMany returns one history an entity, in order. An error is about the call as a whole.
func (r *Repository[T]) latestMany(ctx context.Context, entities []Entity, n int, opts []ReadOption) ([]History[T], error) {
	if err := r.admit(ctx); err != nil {
		return nil, err
	}
	o, err := wideOptionsOf(opts)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, invalid.New(ErrInvalid, "n", strconv.Itoa(n), "0 or more")
	}
	done, err := r.rows.BeginWideRead(&o)
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := r.rows.View.Bound(ctx, true)
	defer cancel()
	histories := make([]History[T], len(entities))
	asked := make(map[Entity]int, len(entities)) // where the answer of an entity is among those that are read
	at := make([]int, len(entities))             // the same by index; -1 for none
	var read []Entity
	for i, e := range entities {
		histories[i].Entity = e
		if at[i] = -1; n == 0 {
			continue
		}
		j, ok := asked[e]
		if !ok {
			if err := r.rows.Space.CheckPath(e.path); err != nil {
				histories[i].Err = err
				continue
			}
			j = len(read)
			asked[e] = j
			read = append(read, e)
		}
		at[i] = j
	}
	found := r.newestOf(ctx, read, n, o)
	given := make([]bool, len(found))
	for i, j := range at {
		if j < 0 {
			continue
		}
		histories[i] = found[j]
		if given[j] { // each answer has a slice of its own
			histories[i].Points = slices.Clone(found[j].Points)
		}
		given[j] = true
	}
	return histories, nil
}

// newestOf returns the n newest visible points of each entity, in order. The entities have been checked, and no two are the
// same.
func (r *Repository[T]) newestOf(ctx context.Context, entities []Entity, n int, o points.Options) []History[T] {
	if r.rows.Cached(o, n) {
		return r.recalled(ctx, entities, o)
	}
	out, paths := make([]History[T], len(entities)), make([]string, len(entities))
	for i, e := range entities {
		paths[i] = e.path
	}
	r.rows.Newest(ctx, paths, n, o, func(i int, hits []dataset.Hit, err error) { out[i] = r.history(entities[i], hits, err) })
	return out
}

// history returns the points that were found of an entity, or why none were.
func (r *Repository[T]) history(e Entity, hits []dataset.Hit, err error) History[T] {
	h := History[T]{Entity: e, Err: err}
	if err != nil {
		return h
	}
	if len(hits) > 0 {
		h.Points = make([]Point[T], len(hits))
	}
	var bad PointErrors
	for i := range hits {
		var err *PointError
		if h.Points[i], err = r.decode(hits[i]); err != nil {
			bad = append(bad, err)
		}
	}
	if bad != nil {
		h.Err = bad
	}
	return h
}
