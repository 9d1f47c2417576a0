package dataset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/fields"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/readrows"
)

// A field of a head is two columns, which both keep their newest cell. The value has the time of its point. The trace
// is written with each value and stays when the value is removed: it is the newest time at which a point had the field.
// So a value that is older than the trace may not be the newest of the points, and is not used. The column of all
// fields has a trace for each of them.
const (
	valueSlot   = "f:"
	allSlot     = "fa:"
	traceSlot   = "ft:"
	afterFields = "fu"
)

// MaxHeadCells is how many cells of fields a read of a head returns at most. A head with more is not used.
const MaxHeadCells = 20_000

// maxFieldRow bounds the payloads of a dataset by its number of fields: each may be in the head with the largest value.
const maxFieldRow = 10 * MaxPayload

// withFields checks Head.Fields and sets the families of fields.
func (d *Dataset) withFields() (err error) {
	if !d.Head.Fields {
		return nil
	}
	if err := d.checkFields(); err != nil {
		return err
	}
	d.fields, err = d.headClasses(1)
	if d.Shape != nil {
		d.leafPaths = make([]string, len(d.Shape.Leaves))
		for i := range d.Shape.Leaves {
			d.leafPaths[i] = d.Shape.Leaves[i].Path
		}
		slices.Sort(d.leafPaths)
	}
	d.former = new(atomic.Pointer[[]string])
	return err
}

// checkFields refuses a dataset whose heads could show a field that no point has.
func (d *Dataset) checkFields() error {
	refuse := func(field, value, limit string) error { return invalid.New(ErrInvalid, field, value, limit) }
	switch {
	case d.FirstWins:
		return refuse("Head.Fields", "true", "false with FirstWins, as a head would show fields of writes that were refused")
	case d.Head.Only:
		return refuse("Head.Fields", "true", "false with Head.Only, as a deleted field is found again in the points")
	case len(d.Tags) != 1:
		return refuse("Head.Fields", fmt.Sprintf("true with %d codec tags", len(d.Tags)), "one tag, as the fields of a head have no tag of their own")
	case !fields.Several(d.Tags[0]):
		return refuse("Head.Fields", "true with a codec that writes "+invalid.Quote(d.Tags[0]), "a codec of fields: "+fields.Codecs)
	case d.Shape != nil && len(d.Shape.Leaves) == 0:
		return refuse("Head.Fields", "true with a type without fields", "a type with at least one")
	case d.Merge == (d.Shape != nil):
		return refuse("Head.Fields", "true", "Merge with codec.Records, or a codec whose fields are known (codec.JSON of a struct, codec.Proto): "+
			"otherwise a point that is written again with fewer fields would leave some in the head")
	}
	return nil
}

// cleared returns the paths of all fields that a point may have had before it is written again: those of the payloads,
// and of those of other programs. It returns nil in a dataset with Merge, whose points do not lose fields.
func (d *Dataset) cleared() []string {
	if d.former == nil {
		return nil
	}
	if others := d.former.Load(); others != nil {
		return slices.Concat(d.leafPaths, *others)
	}
	return d.leafPaths
}

// AlsoClear makes writes clear fields of other programs, too.
func (d *Dataset) AlsoClear(paths []string) {
	if d.former == nil {
		return
	}
	for {
		have := d.former.Load()
		var others []string
		if have != nil {
			others = slices.Clone(*have)
		}
		for _, path := range paths {
			if _, own := slices.BinarySearch(d.leafPaths, path); !own && !slices.Contains(others, path) {
				others = append(others, path)
			}
		}
		if d.former.CompareAndSwap(have, &others) {
			return
		}
	}
}

// HasField reports whether payloads of this program can have a field.
func (d *Dataset) HasField(path string) bool {
	_, own := slices.BinarySearch(d.leafPaths, path)
	return own || d.Shape == nil
}

// FieldsOf calls visit for each field of a payload. A payload that cannot be read has none.
func (d *Dataset) FieldsOf(payload []byte, visit func(path string, raw []byte)) {
	_ = fields.Split(d.Tags[0], d.Shape, payload, func(path string, raw []byte) {
		if d.NullClears || !fields.IsNull(d.Tags[0], raw) {
			visit(path, raw)
		}
	})
}

// fieldsOf returns the fields of a payload by path.
func (d *Dataset) fieldsOf(payload []byte) map[string][]byte {
	out := map[string][]byte{}
	d.FieldsOf(payload, func(path string, raw []byte) { out[path] = raw })
	return out
}

// FieldPoint is a point whose fields are to be written to a head.
type FieldPoint struct {
	D       *Dataset // writes in the class of the point
	Cell    bigtable.Timestamp
	Payload []byte
}

// SetFields writes the fields of points, newest first, each time once. It writes the newest value of each field. It
// clears fields that the points do not have at their times, because the points may replace others.
func (m *HeadMutation) SetFields(points []FieldPoint) {
	oldest := points[len(points)-1].Cell
	todo := slices.Clone(points[0].D.cleared())
	for _, p := range points {
		if len(todo) == 0 {
			return
		}
		have := p.D.fieldsOf(p.Payload)
		todo = slices.DeleteFunc(todo, func(path string) bool {
			raw, ok := have[path]
			if ok {
				m.setField(p.D, 0, path, oldest, p.Cell, raw)
			} else {
				m.clearField(p.D, path, p.Cell, After(p.Cell))
			}
			return ok
		})
	}
}

// setField writes a field in a class. It clears what other points had there from one time up to that of the value.
func (m *HeadMutation) setField(d *Dataset, class int, path string, from, cell bigtable.Timestamp, raw []byte) {
	for i := range d.fields {
		to := After(cell)
		if i == class {
			to = cell
		}
		if from != to {
			m.clearIn(d, i, valueSlot+path, from, to)
		}
	}
	m.SetValue(d, class, path, cell, raw)
}

// SetValue writes a field in a class.
func (m *HeadMutation) SetValue(d *Dataset, class int, path string, cell bigtable.Timestamp, raw []byte) {
	m.Set(d.fields[class].Name, valueSlot+path, cell, raw)
	m.Count++
	m.Bytes += len(raw) + len(path)
	m.SetTrace(d, class, path, cell)
}

// SetTrace records that a point of a time had a field.
func (m *HeadMutation) SetTrace(d *Dataset, class int, path string, cell bigtable.Timestamp) {
	m.Set(d.fields[class].Name, traceSlot+path, cell, nil)
	m.Count++
	m.Bytes += len(path)
}

// SetTraceOfAll records that points up to a time may have had any fields.
func (m *HeadMutation) SetTraceOfAll(d *Dataset, cell bigtable.Timestamp) {
	for i := range d.fields {
		if cell > 0 {
			m.clearIn(d, i, allSlot, 0, cell)
		}
		m.Set(d.fields[i].Name, allSlot, cell, nil)
	}
	m.Count += len(d.fields)
}

// ClearTraceOfAll removes what SetTraceOfAll has written with a time.
func (m *HeadMutation) ClearTraceOfAll(d *Dataset, cell bigtable.Timestamp) {
	for i := range d.fields {
		m.clearIn(d, i, allSlot, cell, After(cell))
	}
}

// clearField removes a field in all classes from one time up to, but not including, another.
func (m *HeadMutation) clearField(d *Dataset, path string, from, to bigtable.Timestamp) {
	for i := range d.fields {
		m.clearIn(d, i, valueSlot+path, from, to)
	}
}

// ClearValue removes a field in a class.
func (m *HeadMutation) ClearValue(d *Dataset, class int, path string, from, to bigtable.Timestamp) {
	m.clearIn(d, class, valueSlot+path, from, to)
}

// ClearTrace removes the traces of a field in a class.
func (m *HeadMutation) ClearTrace(d *Dataset, class int, path string, from, to bigtable.Timestamp) {
	m.clearIn(d, class, traceSlot+path, from, to)
}

// KeepTrace writes a trace of a field in a class and removes the older ones.
func (m *HeadMutation) KeepTrace(d *Dataset, class int, path string, cell bigtable.Timestamp) {
	if cell > 0 {
		m.ClearTrace(d, class, path, 0, cell)
	}
	m.SetTrace(d, class, path, cell)
}

// DropFields deletes the families of fields, and makes all fields unknown up to a time.
func (m *HeadMutation) DropFields(d *Dataset, upTo bigtable.Timestamp) {
	for i := range d.fields {
		m.DeleteCellsInFamily(d.fields[i].Name)
	}
	m.Count += len(d.fields)
	m.SetTraceOfAll(d, upTo)
}

func (m *HeadMutation) clearIn(d *Dataset, class int, column string, from, to bigtable.Timestamp) {
	m.DeleteTimestampRange(d.fields[class].Name, column, from, to)
	m.Count++
	m.Bytes += len(column)
}

// FieldsHad returns the paths of all fields that a stored point has, or had when it was copied before.
func (d *Dataset) FieldsHad(p Stored) []string {
	_, have := d.StoredFields(p)
	return slices.AppendSeq(slices.Clone(p.Had), maps.Keys(have))
}

// HeadFamilies returns the families of heads, each once.
func (d *Dataset) HeadFamilies() []Class {
	if d.Head.Points == 1 {
		return d.HeadClasses // fields are in the same
	}
	return slices.Concat(d.HeadClasses, d.fields)
}

// copyFields makes a head hold the fields of a stored point, and no others that it had when it was copied before.
func (m *HeadMutation) copyFields(d *Dataset, p Stored) {
	gone := slices.Concat(d.cleared(), p.Had)
	if class, have := d.StoredFields(p); have != nil {
		for path, raw := range have {
			m.setField(d, class, path, p.Cell, p.Cell, raw)
		}
		gone = slices.DeleteFunc(gone, func(path string) bool { _, ok := have[path]; return ok })
	}
	for _, path := range gone {
		m.clearField(d, path, p.Cell, After(p.Cell))
	}
}

// StoredFields returns the class and the fields of a stored point; nil if it does not exist, and without Head.Fields.
func (d *Dataset) StoredFields(p Stored) (class int, have map[string][]byte) {
	for _, c := range p.Cells {
		if d.Head.Fields && c.qualifier == slot+d.Tags[0] {
			return c.Class, d.fieldsOf(c.value)
		}
	}
	return 0, nil
}

// FieldMutations returns the largest number of mutations of the fields of one point in a head.
func (d *Dataset) FieldMutations() int { return len(d.cleared()) * (len(d.fields) + 2) }

// FieldBytes returns about how many bytes the fields of one point add to a mutation of its head.
func (d *Dataset) FieldBytes(payload int) int {
	if !d.Head.Fields {
		return 0
	}
	const mutation = 40
	n := payload
	for _, path := range d.cleared() {
		n += (len(path) + mutation) * (len(d.fields) + 2)
	}
	return n
}

// FieldFilter passes the newest visible cell of each column of fields in a head row.
func (h Visibility) FieldFilter() bigtable.Filter {
	all := AnyOf(len(h.D.fields), func(i int) bigtable.Filter {
		cells := bigtable.ColumnRangeFilter(h.D.fields[i].Name, valueSlot, afterFields)
		if from := h.Cutoff(i); from > 0 {
			return bigtable.ChainFilters(cells, bigtable.TimestampRangeFilterMicros(from, 0), bigtable.LatestNFilter(1))
		}
		return bigtable.ChainFilters(cells, bigtable.LatestNFilter(1))
	})
	return bigtable.ChainFilters(all, bigtable.CellsPerRowLimitFilter(MaxHeadCells))
}

// HeadField is a field of a head in one class.
type HeadField struct {
	Class int
	Path  string
	Cell  bigtable.Timestamp // the time of the value; below Trace if the newest value was removed
	Raw   []byte
	Trace bigtable.Timestamp // the newest time at which a point had the field
	Found bool               // there is a value
}

// Units returns the time of the value in milliseconds.
func (f *HeadField) Units() int64 { return unitsOf(f.Cell) }

// sure reports whether no removed value is newer than the one in the head.
func (f *HeadField) sure() bool { return f.Found && f.Cell >= f.Trace }

// Kept reports whether the head still has the newest value after the removal of those between two times.
func (f *HeadField) Kept(from, to bigtable.Timestamp) bool {
	return f.sure() && (f.Cell < from || to > 0 && f.Cell >= to)
}

// HeadFields are the fields in a head row.
type HeadFields struct {
	Fields []HeadField        // in the order of paths, then of classes
	All    bigtable.Timestamp // the trace of all fields; negative for none
	Cut    bool               // the head has too many fields to be used
}

// WithoutFields returns h for copies of points to a head that leave its fields alone.
func (h Visibility) WithoutFields() Visibility {
	d := *h.D
	d.Head.Fields = false
	h.D = &d
	return h
}

// HeadFields returns the fields that FieldFilter has passed.
func (h Visibility) HeadFields(row *readrows.Row) HeadFields {
	out, cells := HeadFields{All: -1}, 0
	for class := range h.D.fields {
		family := h.D.fields[class].Name
		items := row.Family(family)
		cells += len(items)
		out.Fields = slices.Grow(out.Fields, (len(items)+1)/2) // most have a value and a trace
		from, values, cutoff := len(out.Fields), len(out.Fields), h.Cutoff(class)
		for i := range items {
			name, at := items[i].Column[len(family)+1:], items[i].Timestamp
			if at < cutoff {
				continue
			}
			if path, ok := strings.CutPrefix(name, valueSlot); ok {
				out.Fields = append(out.Fields, HeadField{Class: class, Path: path, Cell: at, Raw: items[i].Value, Found: true})
				values = len(out.Fields)
			} else if path, ok := strings.CutPrefix(name, traceSlot); ok {
				from = out.addTrace(class, path, at, from, values)
			} else if name == allSlot {
				out.All = max(out.All, at)
			}
		}
	}
	out.Cut = cells >= MaxHeadCells
	slices.SortFunc(out.Fields, func(a, b HeadField) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Class, b.Class))
	})
	return out
}

// addTrace adds a trace to the value of its path, which is among those from one index to another, or else alone. Values
// and traces are in the order of paths: it returns the index at which the next one is searched.
func (f *HeadFields) addTrace(class int, path string, at bigtable.Timestamp, from, values int) int {
	for from < values && f.Fields[from].Path < path {
		from++
	}
	if from < values && f.Fields[from].Path == path {
		f.Fields[from].Trace = at
		return from + 1
	}
	f.Fields = append(f.Fields, HeadField{Class: class, Path: path, Trace: at})
	return from
}

// Unsure returns the fields of which points may have newer values than the head, in each class.
func (f *HeadFields) Unsure() (out []HeadField) {
	for i := range f.Fields {
		if !f.Fields[i].sure() {
			out = append(out, f.Fields[i])
		}
	}
	return out
}

// Newest returns the newest value of each field over all classes, in the order of paths. It returns false if a point
// may have a newer value of any field.
func (h Visibility) Newest(f *HeadFields) (out []HeadField, sure bool) {
	sure = !f.Cut
	for i := 0; i < len(f.Fields); {
		best, n := f.Fields[i], 1
		for ; i+n < len(f.Fields) && f.Fields[i+n].Path == best.Path; n++ {
			o := f.Fields[i+n]
			o.Trace = max(o.Trace, best.Trace)
			if o.Found && (!best.Found || o.Cell > best.Cell) {
				best = o
			}
			best.Trace = o.Trace
		}
		i += n
		if !h.D.HasField(best.Path) {
			continue // of another program
		}
		best.Trace = max(best.Trace, f.All)
		sure = sure && best.sure()
		if best.Found {
			out = append(out, best)
		}
	}
	return out, sure && (f.All < 0 || h.D.Shape != nil && len(out) == len(h.D.leafPaths))
}
