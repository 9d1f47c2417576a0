package tsdb

import (
	"cmp"
	"context"
	"iter"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// LatestFields returns the newest value of each field of an entity's points, for senders that do not send all fields
// each time. Points are looked at newest first, in the order of Range; the first that has a field gives its value. The
// error is ErrNotFound if there is no visible point, and PointErrors if points that were looked at do not decode: the
// result then has the fields of the others.
//
// Fields are those of codec.JSON, codec.Proto and codec.Records, also if they are compressed, converted, tagged or part
// of a codec.Fallback. A struct of JSON has the fields that package json decodes: fields of nested structs are fields
// of their own; a list, a map, an interface and a type that encodes itself are one each. A scalar of protobuf without
// presence is in each message, with its default if the sender did not set it. Other payloads are one field. A null of
// JSON is no value, unless the schema has NullClears, and an empty object has no fields. If one payload has a value
// where another one has an object, or another field of a oneof, the newer counts. Fields that the type does not have
// are left out. At most 1,024 fields are found.
//
// It looks at MaxPoints points at most; Fields.Back says how far it looked. It stops where all fields of the type are
// found, and before a point in another format (another codec.Proto or JSON type), whose fields cannot be joined.
//
// In a schema with Head.Fields, and without AsOf, it reads the entity's head and looks at no points: MaxPoints does not
// limit it. It looks at points if the head does not know a field, after a deletion (see Head), or if a field does not
// decode.
//
// It costs one request for one row if the head answers. Otherwise it costs one request for 16 rows, and a second one
// for up to MaxPoints - 15 rows if these do not have all fields of the type; without fixed fields, as of maps and
// records, one request for up to MaxPoints + 1 rows. It ignores MaxStale.
func (r *Repository[T]) LatestFields(ctx context.Context, e Entity, options FieldOptions, opts ...ReadOption) (f Fields[T], err error) {
	ctx, op := r.part().begin(ctx, telemetry.LatestFields)
	defer func() {
		op.Returned(f.Times.Len())
		op.End(err)
	}()
	o, err := r.part().readOptions(ctx, e, 0, opts)
	if err == nil {
		err = options.check()
	}
	if err != nil {
		return Fields[T]{}, err
	}
	done, err := r.rows.BeginRead()
	if err != nil {
		return Fields[T]{}, err
	}
	defer done()
	s := r.fieldSource().newFieldScan(e, options)
	if err := s.fromHeads(ctx, []*fieldScan{s}, options, points.Options{Hedge: o.Hedge, Width: 1})[0]; err != nil {
		return Fields[T]{}, err
	}
	if err := s.rest(ctx, o.Hedge); err != nil {
		return Fields[T]{}, err
	}
	if s.seen == 0 {
		return Fields[T]{}, ErrNotFound
	}
	f = r.fieldsOf(s)
	return f, f.Err
}

// LatestFieldsMany is LatestFields of each entity, in the order of entities. An entity without points has no fields and
// no error. If some entities could not be read, or have points that do not decode, the error is a *ReadError that lists
// them, and the other results are valid. For any other error there are no results.
//
// With Head.Fields it costs one request for all entities whose heads answer, or one per 500 KB of row keys. Otherwise
// it costs the requests of LatestFields for each entity, of which Concurrency limits those under way. An entity that is
// listed more than once is read once; its results then share what the value points to. The read timeout bounds each
// request, the scan timeout the whole call.
func (r *Repository[T]) LatestFieldsMany(ctx context.Context, entities []Entity, options FieldOptions, opts ...ReadOption) (all []Fields[T], err error) {
	ctx, op := r.part().begin(ctx, telemetry.LatestFieldsMany)
	defer func() { op.End(err) }()
	all, err = r.latestFieldsMany(ctx, entities, options, opts)
	if err != nil {
		return nil, err
	}
	for i := range all {
		op.Returned(all[i].Times.Len())
	}
	return all, readError(entities, func(i int) error { return all[i].Err })
}

func (r *Repository[T]) latestFieldsMany(ctx context.Context, entities []Entity, options FieldOptions, opts []ReadOption) ([]Fields[T], error) {
	o, done, err := r.part().beginWide(ctx, opts, options.check())
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := r.rows.View.Bound(ctx, true)
	defer cancel()
	list := r.distinct(entities)
	found := make([]Fields[T], len(list.read))
	r.fieldSource().scanEach(ctx, list.read, options, o, func(k int, s *fieldScan, err error) {
		if err != nil {
			found[k] = Fields[T]{Entity: list.read[k], Err: err}
		} else {
			found[k] = r.fieldsOf(s)
		}
	})
	all := make([]Fields[T], len(entities))
	for i, j := range list.at {
		if j < 0 {
			all[i] = Fields[T]{Entity: entities[i], Err: list.refused[i]}
		} else {
			all[i] = found[j]
		}
	}
	return all, nil
}

// scanEach calls visit with the scan of each entity, or its error. Several goroutines call it at once.
func (f *fieldSource) scanEach(ctx context.Context, entities []Entity, options FieldOptions, o points.Options, visit func(k int, s *fieldScan, err error)) {
	scans := make([]*fieldScan, len(entities))
	for k, e := range entities {
		scans[k] = f.newFieldScan(e, options)
	}
	errs := f.fromHeads(ctx, scans, options, o)
	bt.AtOnce(o.Width, len(scans), func(k int) {
		if errs[k] == nil {
			errs[k] = scans[k].rest(ctx, o.Hedge)
		}
		visit(k, scans[k], errs[k])
	})
}

// LatestFields is Repository.LatestFields of every entity as a sequence in the order of Entity.Compare. Entities
// without a point that was looked at are left out. Each iteration over the sequence sends new requests, and leaving the
// loop ends them.
//
// It finds the entities at the cost of Latest. With Head.Fields and without AsOf it reads the heads of up to 250
// entities in one request. Otherwise, without AsOf, and for types with fixed fields or if MaxPoints is 15 at most, it
// finds them at the cost of LatestN of 16 points, or of MaxPoints + 1. Then it reads the entities of which these points
// do not have all fields, at the cost of LatestFields, up to 250 at once, at most Concurrency requests at a time. It
// holds the fields of 250 entities in memory.
//
// If points that were looked at do not decode, the error of the pair is Fields.Err, and the sequence continues. Any
// other error is the last pair. The scan timeout bounds the iteration, including the time that the loop body takes.
func (u PrefixReader[T]) LatestFields(ctx context.Context, options FieldOptions, opts ...ReadOption) iter.Seq2[Fields[T], error] {
	return sequence(ctx, u.part(), telemetry.UnderLatestFields, AllTime(), 0, opts, func(ctx context.Context, c *inside.PrefixRead, emit emit[Fields[T]]) error {
		if err := options.check(); err != nil {
			return err
		}
		c.Slots = make(chan struct{}, c.Options.Width)
		w := fieldWalk{PrefixRead: c, ctx: ctx, source: u.repo.fieldSource(), options: options, want: 16, n: 1}
		w.emit = func(s *fieldScan) bool {
			f := u.repo.fieldsOf(s)
			return emit(1, f, f.Err)
		}
		return w.run()
	})
}

// fieldWalk is one iteration below a prefix.
type fieldWalk struct {
	*inside.PrefixRead
	ctx     context.Context
	source  *fieldSource
	options FieldOptions
	emit    func(*fieldScan) bool
	n       int  // points of each entity that are read first
	values  bool // with their payloads

	current *fieldScan   // gets points
	group   []*fieldScan // are read next
	want    int          // how many of them together
	stopped bool
	err     error
}

// run reads the first points of each entity with their payloads if they probably have all fields. It never does so in a
// schema with Head.Only: a scan of a head cannot go on after a point.
func (w *fieldWalk) run() error {
	o := w.options
	if n := min(firstFields, o.maxPoints()+1); o.AsOf.IsZero() && !w.source.headsHave(o) && !w.Rows.D.Head.Only && (w.source.fixedFields() || n > o.maxPoints()) {
		w.n, w.values = n, true
	}
	err := w.NewestOfEach(w.ctx, w.n, w.values, w.add)
	if err == nil && !w.ended() {
		w.next()
		w.flush()
	}
	return cmp.Or(w.err, err)
}

func (w *fieldWalk) ended() bool { return w.stopped || w.err != nil }

// add takes one of the first points of an entity, and reports whether the iteration goes on.
func (w *fieldWalk) add(h dataset.Hit) bool {
	if w.current == nil || w.current.entity.path != h.Path {
		w.next()
		w.current = w.source.newFieldScan(Entity{path: h.Path}, w.options)
	}
	if w.values {
		w.current.add(h)
	}
	return !w.ended()
}

// next ends the entity that got points.
func (w *fieldWalk) next() {
	if w.current == nil {
		return
	}
	if w.values && w.current.seen < w.n { // it has no more points
		w.current.done = true
	}
	w.group, w.current = append(w.group, w.current), nil
	if len(w.group) >= w.want {
		w.flush()
	}
}

// flush reads the rest of the group and emits it.
func (w *fieldWalk) flush() {
	group := w.group
	errs := w.source.fromHeads(w.ctx, group, w.options, w.Options)
	bt.AtOnce(w.Options.Width, len(group), func(i int) {
		if group[i].done || errs[i] != nil {
			return
		}
		select {
		case w.Slots <- struct{}{}:
			errs[i] = group[i].rest(w.ctx, w.Options.Hedge)
			<-w.Slots
		case <-w.ctx.Done():
			errs[i] = w.Rows.Explain(ctxerr.Of(w.ctx))
		}
	})
	for i, s := range group {
		if w.err = errs[i]; w.ended() {
			break
		}
		if s.seen > 0 {
			w.stopped = !w.emit(s)
		}
	}
	w.group, w.want = nil, min(points.MostRanges, 2*w.want)
}
