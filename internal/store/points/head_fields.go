package points

import (
	"context"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

const (
	fieldSearch = 1000 // points that a deletion reads to find older values of the fields that it removed
	fieldRounds = 10   // how often it starts again, because points that it found have changed
)

// readFields returns the fields in an entity's head.
func (r *Rows) readFields(ctx context.Context, path string) (dataset.HeadFields, error) {
	h := r.Visibility()
	row, err := r.View.Row(ctx, r.headKey(path), h.FieldFilter())
	return h.HeadFields(row), err
}

// clearFields adds to m the removal of the fields that a head has of points between two times, after the points' rows
// are deleted. It writes traces that no other deletion has read: until this one has found older values, the head does
// not count for these fields.
func (r *Rows) clearFields(ctx context.Context, path string, m *dataset.HeadMutation, oldest, newest int64) error {
	if !r.D.Head.Fields {
		return nil
	}
	f, err := r.readFields(ctx, path)
	if err != nil {
		return r.Explain(err)
	}
	from, to := r.cellOf(oldest), dataset.After(r.cellOf(newest))
	last := bigtable.Time(r.Clock()).TruncateToMilliseconds()
	for i := range f.Fields {
		p := &f.Fields[i]
		if newest := max(p.Trace, p.Cell); newest >= from {
			m.ClearValue(r.D, p.Class, p.Path, from, to)
			if after := dataset.After(newest); after > 0 && !p.Kept(from, to) {
				m.KeepTrace(r.D, p.Class, p.Path, after)
			}
			last = max(last, newest)
		}
	}
	if f.Cut {
		m.DropFields(r.D, last)
	}
	return nil
}

// markFields makes all fields in an entity's head unknown up to its newest point, after the head was deleted. It does
// nothing without fields.
func (r *Rows) markFields(ctx context.Context, path string) error {
	if !r.D.Head.Fields {
		return nil
	}
	var at bigtable.Timestamp
	m := dataset.NewHeadMutation()
	err := r.Scan(ctx, Span{Path: path, Newest: r.D.Precision.Max(), Limit: 1}, func(f *Found) bool {
		at = r.cellOf(f.Units)
		m.SetTraceOfAll(r.D, at)
		return true
	})
	if err != nil || m.Count == 0 {
		return err
	}
	return r.Explained(r.View.Apply(ctx, r.headKey(path), m.Mutation)).Err
}

// repairFields finds older values of the fields that were removed from an entity's head. It copies them, reads their
// points again, and only then removes the traces of newer ones. So the head never shows a value whose point was deleted
// meanwhile. Fields without a value in the newest points keep their traces: reads then look for them in the points.
func (r *Rows) repairFields(ctx context.Context, path string, gone bigtable.Timestamp) error {
	for range fieldRounds {
		f, err := r.readFields(ctx, path)
		if err != nil {
			return r.Explain(err)
		}
		s := fieldsSearch{rows: r, h: r.Visibility(), head: &f, gone: gone, todo: map[fieldKey]bigtable.Timestamp{}}
		if !s.begin() {
			return nil
		}
		again, err := s.repair(ctx, path)
		if err != nil || !again {
			return err
		}
	}
	return nil
}

// noPoint is before all points.
const noPoint = bigtable.Timestamp(-1000)

// fieldKey is a field in a class.
type fieldKey struct {
	class int
	path  string
}

// fieldsSearch searches the points of one entity for fields that its head lacks.
type fieldsSearch struct {
	rows  *Rows
	h     dataset.Visibility
	head  *dataset.HeadFields
	gone  bigtable.Timestamp              // of the point that was deleted; noPoint if there may be several
	todo  map[fieldKey]bigtable.Timestamp // the traces of fields that are not found yet
	found []foundFields
	whole bool // all older points were read
}

// foundFields are the fields that are copied from one point.
type foundFields struct {
	point dataset.Stored
	class int
	raw   map[string][]byte
	trace map[string]bigtable.Timestamp
}

// begin sets the fields to search. It returns false if there are none. Fields that only other programs have keep their
// traces, as this one cannot find them; and so does the trace of all fields in a dataset where there may be such.
func (s *fieldsSearch) begin() bool {
	for _, f := range s.head.Unsure() {
		if s.h.D.HasField(f.Path) {
			s.todo[fieldKey{f.Class, f.Path}] = f.Trace
		}
	}
	if s.h.D.Shape != nil {
		s.head.All = -1
	}
	return len(s.todo) > 0 || s.head.All >= 0
}

// repair makes one attempt. It returns true if points changed meanwhile.
func (s *fieldsSearch) repair(ctx context.Context, path string) (again bool, err error) {
	if err := s.search(ctx, path); err != nil {
		return false, err
	}
	r, copies := s.rows, dataset.NewHeadMutation()
	points := make([]dataset.Stored, len(s.found))
	for i, f := range s.found {
		points[i] = f.point
		for path, raw := range f.raw {
			copies.SetValue(r.D, f.class, path, f.point.Cell, raw)
			if trace := f.trace[path]; trace > f.point.Cell { // another deletion may have removed it
				copies.SetTrace(r.D, f.class, path, trace)
			}
		}
	}
	if err := s.apply(ctx, path, copies); err != nil {
		return false, err
	}
	stale, err := changed(ctx, r.View, s.h, points)
	if err != nil {
		return false, r.Explain(err)
	}
	undo := dataset.NewHeadMutation()
	for _, p := range stale {
		for _, f := range s.found {
			for path := range f.raw {
				if f.point.Cell == p.Cell {
					undo.ClearValue(r.D, f.class, path, p.Cell, dataset.After(p.Cell))
				}
			}
		}
	}
	if undo.Count > 0 {
		return true, s.apply(ctx, path, undo)
	}
	return false, s.apply(ctx, path, s.traces())
}

// apply writes a mutation of the head, if it is not empty.
func (s *fieldsSearch) apply(ctx context.Context, path string, m dataset.HeadMutation) error {
	if m.Count == 0 {
		return nil
	}
	return s.rows.Explained(s.rows.View.Apply(ctx, s.rows.headKey(path), m.Mutation)).Err
}

// traces removes the traces that were read, of the fields that were found and of those that no point has. Others stay:
// they are of other deletions, and of later writes, which the search may have missed.
func (s *fieldsSearch) traces() dataset.HeadMutation {
	m, d := dataset.NewHeadMutation(), s.rows.D
	for _, f := range s.found {
		for path, trace := range f.trace {
			if trace > f.point.Cell {
				if s.settle(&m, fieldKey{f.class, path}, f.point.Cell, trace) {
					m.SetTrace(d, f.class, path, f.point.Cell) // Bigtable may have collected that of the copy
				}
			}
		}
	}
	if !s.whole {
		return m
	}
	for key, trace := range s.todo {
		s.settle(&m, key, noPoint, trace)
	}
	if s.head.All >= 0 {
		m.ClearTraceOfAll(d, s.head.All)
	}
	return m
}

// settle removes the trace of a field above the point that has it; noPoint if none has. If the head has a value between
// the two, it removes that and leaves the trace: another repair has copied the value and not read its point again, or
// a write of it is under way. The repair may also copy the point that is deleted here after the head was read.
func (s *fieldsSearch) settle(m *dataset.HeadMutation, key fieldKey, point, trace bigtable.Timestamp) bool {
	d := s.rows.D
	if s.gone > point && dataset.After(s.gone) < trace {
		m.ClearValue(d, key.class, key.path, s.gone, dataset.After(s.gone))
	}
	for i := range s.head.Fields {
		if f := &s.head.Fields[i]; f.Class == key.class && f.Path == key.path && f.Found && f.Cell > point {
			m.ClearValue(d, key.class, key.path, f.Cell, dataset.After(f.Cell))
			return false
		}
	}
	m.ClearTrace(d, key.class, key.path, trace, dataset.After(trace))
	return true
}

// search reads the newest points that may have the fields.
func (s *fieldsSearch) search(ctx context.Context, path string) error {
	newest := s.head.All
	for _, trace := range s.todo {
		newest = max(newest, trace)
	}
	n := 0
	span := Span{Path: path, Newest: int64(newest) / 1000, Limit: fieldSearch, Long: true}
	err := s.rows.Scan(ctx, span, func(f *Found) bool {
		n++
		s.take(s.h.Stored(f.row, s.h.D.Classes, f.row.Key(), s.rows.cellOf(f.Units)))
		return len(s.todo) > 0 || s.head.All >= 0
	})
	s.whole = n < fieldSearch
	return err
}

// take takes the fields of a point that are not found yet.
func (s *fieldsSearch) take(p dataset.Stored) {
	class, have := s.h.D.StoredFields(p)
	f := foundFields{point: p, class: class, raw: map[string][]byte{}, trace: map[string]bigtable.Timestamp{}}
	for path, raw := range have {
		key := fieldKey{class, path}
		trace, unsure := s.todo[key]
		if unsure && trace >= p.Cell || s.head.All >= p.Cell && !s.has(key, p.Cell) {
			f.raw[path], f.trace[path] = raw, trace
			delete(s.todo, key)
		}
	}
	if len(f.raw) > 0 {
		s.found = append(s.found, f)
	}
}

// has reports whether the head has a value of a field that is not older than a point, or will have.
func (s *fieldsSearch) has(key fieldKey, cell bigtable.Timestamp) bool {
	for i := range s.head.Fields {
		if f := &s.head.Fields[i]; f.Class == key.class && f.Path == key.path && f.Found {
			return f.Cell >= cell
		}
	}
	for _, f := range s.found {
		if _, ok := f.raw[key.path]; ok && f.class == key.class {
			return true
		}
	}
	return false
}

// headFieldsOf is the result of a request for the fields of heads.
type headFieldsOf struct {
	arrived bool
	fields  []dataset.HeadField
	sure    bool
}

// NewestFields reads the newest fields of entities from their heads, in one request for as many as fit into it. It
// calls visit once for each index, from several goroutines at once. If sure is false, the points may have newer values.
// The paths have been checked and are all different.
func (r *Rows) NewestFields(ctx context.Context, paths []string, o Options, visit func(i int, fields []dataset.HeadField, sure bool, err error)) {
	keys := r.headKeys(paths)
	ends := requestEnds(keys)
	r.Hedges.Earn(o.Hedge, len(ends))
	bt.AtOnce(o.Width, len(ends), func(part int) {
		from := 0
		if part > 0 {
			from = ends[part-1]
		}
		got, err := r.requestFields(ctx, keys[from:ends[part]], o)
		for i := from; i < ends[part]; i++ {
			switch {
			case got != nil && got[i-from].arrived:
				visit(i, got[i-from].fields, got[i-from].sure, nil)
			case err != nil:
				visit(i, nil, false, err)
			default:
				visit(i, nil, true, nil)
			}
		}
	})
}

// requestFields reads the fields of heads in one request.
func (r *Rows) requestFields(ctx context.Context, keys []string, o Options) ([]headFieldsOf, error) {
	h := r.Visibility()
	index := make(map[string]int, len(keys))
	for i, key := range keys {
		index[key] = i
	}
	return Once(ctx, r.Table, o.Hedge, func(ctx context.Context) ([]headFieldsOf, error) {
		out, foreign := make([]headFieldsOf, len(keys)), false
		err := r.View.Read(ctx, bt.Scan{Rows: bigtable.RowList(keys), Filter: h.FieldFilter()}, func(row *bt.Row) bool {
			i, ok := index[row.Key()]
			if foreign = !ok; foreign {
				return false
			}
			f := h.HeadFields(row)
			out[i].arrived = true
			out[i].fields, out[i].sure = h.Newest(&f)
			return true
		})
		if foreign {
			return nil, ForeignRow(r.D)
		}
		return out, r.Explain(err)
	})
}
