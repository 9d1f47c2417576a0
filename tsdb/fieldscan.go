package tsdb

import (
	"bytes"
	"context"
	"slices"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/fields"
	"github.com/tidemark-go/tidemark/internal/layout"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// fieldLayout says how payloads with a tag are split and joined.
type fieldLayout[T any] struct {
	layout.Of[T]
	shape *fields.Shape // nil if each payload has its own fields
}

// layoutsOf returns the layouts of a codec's readers.
func layoutsOf[T any](c codec.Codec[T], readers []codec.Reader[T]) []fieldLayout[T] {
	known, out := layout.ByTag[T](c), make([]fieldLayout[T], len(readers))
	for i, r := range readers {
		l := &out[i]
		l.Of = known[r.Tag]
		if l.Decode == nil {
			l.Decode = r.Decode
		}
		switch {
		case l.Format == "":
			l.shape = fields.Whole()
		case l.Message != nil:
			l.shape = fields.OfMessage(l.Message)
		case l.JSON != nil:
			l.shape = fields.OfJSON(l.JSON)
		}
	}
	return out
}

// unpack returns a function that returns a payload before it was compressed, and the format of that; nil if payloads
// are not compressed.
func (l *fieldLayout[T]) unpack() func(payload []byte) (format string, plain []byte) {
	if l.Unpack == nil {
		return nil
	}
	return func(payload []byte) (string, []byte) {
		plain, err := l.Unpack(payload)
		if err != nil {
			return "", nil
		}
		return l.Format, plain
	}
}

// split calls visit for each field of a payload.
func (l *fieldLayout[T]) split(payload []byte, nulls bool, visit func(path string, raw []byte)) (err error) {
	if l.Has != nil && !l.Has(payload) {
		return nil
	}
	if l.Unpack != nil {
		if payload, err = l.Unpack(payload); err != nil {
			return err
		}
	}
	return fields.Split(l.Format, l.shape, payload, func(path string, raw []byte) {
		if nulls || !fields.IsNull(l.Format, raw) {
			visit(path, raw)
		}
	})
}

// merge sets what was found of an entity. It is the same for fields of points and of heads.
func (l *fieldLayout[T]) merge(f *Fields[T], p Precision, found *fields.Newest) error {
	times := found.Times()
	f.Missing = l.shape.Missing(found)
	f.Times.list = make([]fieldTime, len(times))
	for i, t := range times {
		f.Times.list[i] = fieldTime{t.Name, rowkey.Precision(p).Time(t.Units)}
	}
	if len(times) == 0 {
		return nil
	}
	payload, err := found.Join(l.Format)
	if err == nil {
		f.Value, err = l.Decode(payload)
	}
	return err
}

// fieldScan collects the fields of an entity from its points, newest first.
type fieldScan[T any] struct {
	repo    *Repository[T]
	entity  Entity
	options FieldOptions

	newest *fields.Newest  // nil before the first point that decodes
	of     *fieldLayout[T] // of that point, and of others with the same fields
	seen   int             // points that were looked at
	last   dataset.Hit     // the last of them, without its payload
	done   bool            // no more points are wanted
	more   bool            // there are more points, and they may have other fields
	bad    PointErrors
}

func (r *Repository[T]) newFieldScan(e Entity, options FieldOptions) *fieldScan[T] {
	return &fieldScan[T]{repo: r, entity: e, options: options}
}

// add looks at a point, and reports whether more are wanted.
func (s *fieldScan[T]) add(h dataset.Hit) bool {
	of := &s.repo.schema.layouts[h.Tag]
	p, err := s.repo.decode(h)
	if s.done || s.seen == s.options.maxPoints() || err == nil && s.of != nil && !s.of.Same(of.Of) {
		s.more, s.done = s.more || !s.done, true
		return false
	}
	if err == nil {
		if s.of = of; s.newest == nil {
			s.newest = fields.NewNewest(of.shape, 0)
		}
		err = of.split(h.Payload, s.repo.schema.nulls, func(path string, raw []byte) { s.newest.Add(path, bytes.Clone(raw), h.Units) })
	}
	if bad, ok := err.(*PointError); ok {
		s.bad = append(s.bad, bad)
	} else if err != nil {
		s.bad = append(s.bad, &PointError{Entity: p.Entity, Time: p.Time, ID: p.ID, Err: err})
	}
	s.seen++
	s.last = dataset.Hit{Units: h.Units, ID: h.ID}
	if s.newest != nil {
		s.more = s.newest.Full()
		s.done = s.more || s.newest.Complete()
	}
	return !s.done
}

// result returns what was found.
func (s *fieldScan[T]) result() Fields[T] {
	f := Fields[T]{Entity: s.entity}
	p := s.repo.schema.d.Precision
	if s.more {
		f.Back = p.Time(s.last.Units)
	}
	if s.newest != nil {
		if err := s.of.merge(&f, Precision(p), s.newest); err != nil {
			s.bad = append(s.bad, &PointError{Entity: s.entity, Time: f.Times.Newest(), Err: err})
		}
	}
	if s.bad != nil {
		f.Err = s.bad
	}
	return f
}

// clone returns a copy that shares nothing that changes.
func (s *fieldScan[T]) clone() *fieldScan[T] {
	out := *s
	out.newest, out.bad = s.newest.Clone(), slices.Clone(s.bad)
	return &out
}

// firstFields is how many points are read first if they probably have all fields.
const firstFields = 16

// fixedFields reports whether the fields of all payloads are known from their types.
func (r *Repository[T]) fixedFields() bool {
	return !slices.ContainsFunc(r.schema.layouts, func(l fieldLayout[T]) bool { return l.shape == nil })
}

// rest reads the points that a scan still needs.
func (s *fieldScan[T]) rest(ctx context.Context, h points.Hedge) error {
	newest, ok := s.options.newest(s.repo.schema.d.Precision)
	if !ok {
		s.done = true
	}
	only := s.repo.schema.d.Head.Only
	if only && s.seen > 0 { // a head is read from its start
		*s = *s.repo.newFieldScan(s.entity, s.options)
	}
	span := points.Span{Path: s.entity.path, Newest: newest, Limit: s.options.maxPoints() + 1 - s.seen}
	if s.seen == 0 && s.repo.fixedFields() && !only {
		span.Limit = min(firstFields, span.Limit)
	}
	for !s.done {
		if s.seen > 0 {
			span.After = s.repo.rows.Key(s.entity.path, s.last.Units, s.last.ID)
		}
		from := *s
		got, err := hedged(ctx, s.repo, h, func(ctx context.Context) (*fieldScan[T], error) {
			own := from.clone()
			err := s.repo.rows.Scan(ctx, span, func(f *points.Found) bool { return own.add(f.Hit) })
			own.done = own.done || own.seen-from.seen < span.Limit
			return own, err
		})
		if err != nil {
			return err
		}
		*s = *got
		span.Limit = s.options.maxPoints() + 1 - s.seen
	}
	return nil
}
