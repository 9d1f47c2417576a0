package tsdb

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/fields"
	"github.com/tidemark-go/tidemark/internal/layout"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
)

// fieldLayout says how payloads with a tag are split.
type fieldLayout struct {
	layout.Fields
	tag   int
	shape *fields.Shape // nil if each payload has its own fields
}

// setLayouts sets the layouts of the codec's readers, and how values are decoded after their fields are joined.
func (s *Schema[T]) setLayouts(readers []codec.Reader[T]) {
	known := layout.ByTag[T](s.codec)
	for i, r := range readers {
		of := known[r.Tag]
		if of.Decode == nil {
			of.Decode = r.Decode
		}
		s.joined = append(s.joined, of.Decode)
		s.layouts = append(s.layouts, layoutOf(i, of.Fields))
	}
}

func layoutOf(tag int, of layout.Fields) fieldLayout {
	l := fieldLayout{Fields: of, tag: tag}
	switch {
	case l.Format == "":
		l.shape = fields.Whole()
	case l.Message != nil:
		l.shape = fields.OfMessage(l.Message)
	case l.JSON != nil:
		l.shape = fields.OfJSON(l.JSON)
	}
	return l
}

// split calls visit for each field of a payload.
func (l *fieldLayout) split(payload []byte, nulls bool, visit func(path string, raw []byte)) (err error) {
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

// fieldSource is what scans of one call have in common.
type fieldSource struct {
	*access
	layouts []fieldLayout             // by tag
	valid   func(dataset.Hit) error   // a *PointError for a point that does not decode
	joined  func([]byte) (any, error) // decodes the fields of a head
}

func (r *Repository[T]) fieldSource() *fieldSource {
	return &fieldSource{access: &r.access, layouts: r.schema.layouts, valid: r.valid, joined: func(payload []byte) (any, error) {
		return r.schema.joined[0](payload)
	}}
}

func (r *Repository[T]) valid(h dataset.Hit) error {
	_, err := r.decode(h)
	return err
}

// fieldScan collects the fields of an entity from its points, newest first.
type fieldScan struct {
	*fieldSource
	entity  Entity
	options FieldOptions

	newest *fields.Newest // nil before the first point that decodes
	of     *fieldLayout   // of that point, and of others with the same fields
	seen   int            // points that were looked at
	last   dataset.Hit    // the last of them, without its payload
	done   bool           // no more points are wanted
	more   bool           // there are more points, and they may have other fields
	bad    PointErrors
	value  any // of the fields of a head; nil for those of points
}

func (f *fieldSource) newFieldScan(e Entity, options FieldOptions) *fieldScan {
	return &fieldScan{fieldSource: f, entity: e, options: options}
}

// add looks at a point, and reports whether more are wanted.
func (s *fieldScan) add(h dataset.Hit) bool {
	of := &s.layouts[h.Tag]
	err := s.valid(h)
	if s.done || s.seen == s.options.maxPoints() || err == nil && s.of != nil && !s.of.Same(&of.Fields) {
		s.more, s.done = s.more || !s.done, true
		return false
	}
	if err == nil {
		if s.of = of; s.newest == nil {
			s.newest = fields.NewNewest(of.shape, 0)
		}
		err = of.split(h.Payload, s.rows.D.NullClears, func(path string, raw []byte) { s.newest.Add(path, bytes.Clone(raw), h.Units) })
	}
	if bad, ok := err.(*PointError); ok {
		s.bad = append(s.bad, bad)
	} else if err != nil {
		s.bad = append(s.bad, &PointError{Entity: s.entity, Time: s.rows.D.Precision.Time(h.Units), ID: h.ID, Err: err})
	}
	s.seen++
	s.last = dataset.Hit{Units: h.Units, ID: h.ID}
	if s.newest != nil {
		s.more = s.newest.Full()
		s.done = s.more || s.newest.Complete()
	}
	return !s.done
}

// fieldsOf returns what a scan has found.
func (r *Repository[T]) fieldsOf(s *fieldScan) Fields[T] {
	f := Fields[T]{Entity: s.entity}
	payload, found, err := s.result(&f.Times, &f.Missing, &f.Back)
	if v, ok := s.value.(T); ok {
		f.Value = v
	} else if found && err == nil {
		f.Value, err = r.schema.joined[s.of.tag](payload)
	}
	if err != nil {
		s.bad = append(s.bad, &PointError{Entity: s.entity, Time: f.Times.Newest(), Err: err})
	}
	if s.bad != nil {
		f.Err = s.bad
	}
	return f
}

// result sets all of a Fields but its value, and returns the payload of the value; ok is false if no field was found,
// or if the value is there.
func (s *fieldScan) result(times *FieldTimes, missing *[]string, back *time.Time) (payload []byte, ok bool, err error) {
	p := s.rows.D.Precision
	if s.more {
		*back = p.Time(s.last.Units)
	}
	if s.newest == nil {
		of := s.layouts[0].shape
		*missing = of.Missing(fields.NewNewest(of, 0))
		return nil, false, nil
	}
	found := s.newest.Times()
	*missing = s.of.shape.Missing(s.newest)
	times.list = make([]fieldTime, len(found))
	for i, t := range found {
		times.list[i] = fieldTime{t.Name, p.Time(t.Units)}
		times.whole = t.Path == ""
	}
	if len(found) == 0 || s.value != nil {
		return nil, false, nil
	}
	payload, err = s.newest.Join(s.of.Format)
	return payload, true, err
}

// clone returns a copy that shares nothing that changes.
func (s *fieldScan) clone() *fieldScan {
	out := *s
	out.newest, out.bad = s.newest.Clone(), slices.Clone(s.bad)
	return &out
}

// firstFields is how many points are read first if they probably have all fields.
const firstFields = 16

// fixedFields reports whether the fields of all payloads are known from their types.
func (f *fieldSource) fixedFields() bool {
	return !slices.ContainsFunc(f.layouts, func(l fieldLayout) bool { return l.shape == nil })
}

// rest reads the points that a scan still needs.
func (s *fieldScan) rest(ctx context.Context, h points.Hedge) error {
	newest, ok := s.options.newest(s.rows.D.Precision)
	if !ok {
		s.done = true
	}
	span := points.Span{Path: s.entity.path, Newest: newest, Limit: s.options.maxPoints() + 1 - s.seen}
	if s.seen == 0 && s.fixedFields() && !s.rows.D.Head.Only {
		span.Limit = min(firstFields, span.Limit)
	}
	for !s.done {
		if s.seen > 0 {
			span.After = s.rows.Key(s.entity.path, s.last.Units, s.last.ID)
		}
		from := *s
		got, err := hedged(ctx, &s.rows, h, func(ctx context.Context) (*fieldScan, error) {
			own := from.clone()
			err := s.rows.Scan(ctx, span, func(f *points.Found) bool { return own.add(f.Hit) })
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
