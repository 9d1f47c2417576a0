package dynamic

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/fields"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/fieldlist"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// KnownField is a field that points of a dataset have.
type KnownField struct {
	// Name is the names of the objects that the field is in and its own, joined by dots, as in [Schema]; "" for a
	// payload that is a single value.
	Name string `json:"name"`
	// Kinds are the kinds of its values, in ascending order; none where the payloads' type does not say it.
	Kinds []codec.Kind `json:"-"`
	// First and Last are the first and the last UTC day of points with the field, by the points' times. They are zero
	// for a field that the payloads' type declares.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
}

// FieldList is the fields of a tenant's dataset. The zero FieldList is that of a dataset without points.
type FieldList struct {
	// Fields are in the order of their names: up to 1,000.
	Fields []KnownField
	// LeftOut is how many more fields were seen, at least: those above 1,000, and names that are longer than 255 bytes
	// or not UTF-8. Each process counts up to 1,000.
	LeftOut int
}

// FieldsOf returns the fields of a tenant's points in a dataset, of [tsdb.Store.Datasets] or any schema. It costs one
// read of one row, which writers keep in the background (a field is in it some seconds after its first point), or none
// if payloads are single values, or if d is a schema of codec.JSON of a struct or of codec.Proto, whose fields are
// those of the type.
//
// A field stays as long as points of its last day can be visible, also if they were deleted. The list lacks points that
// were written before programs kept it, until RecordFields is called, and points of codecs of your own. Where points
// expire, First may be later than the first point, but no later than the first visible one.
//
// Errors match tsdb.ErrInvalid, tsdb.ErrTenantMismatch if ctx carries another tenant, and tsdb.ErrErased.
func FieldsOf(ctx context.Context, store *tsdb.Store, id tenant.ID, d tsdb.Dataset) (FieldList, error) {
	in, of, space, err := openFields(ctx, store, id, d)
	if err != nil {
		return FieldList{}, err
	}
	var list fieldlist.List
	switch {
	case !slices.ContainsFunc(of.Tags, func(tag string) bool { return formats[tag].single == codec.KindInvalid }):
	case of.Shape != nil:
		return declared(of.Shape), nil
	default:
		list, err = in.Fields.Read(ctx, in.Rows(id), space.ID(""), of, in.Clock())
	}
	return listOf(list, of.Tags), in.Explain(err)
}

// openFields returns what a list of fields is read and written with.
func openFields(ctx context.Context, store *tsdb.Store, id tenant.ID, d tsdb.Dataset) (in inside.Store, of *dataset.Dataset, space rowkey.Space, err error) {
	if err = ctxerr.Of(ctxerr.Given(ctx)); err != nil {
		return in, nil, space, err
	}
	if of, err = inside.Of(d).Shape(); err != nil {
		return in, nil, space, err
	}
	if store == nil {
		return in, nil, space, invalid.New(tsdb.ErrInvalid, "store", "nil", "an open store")
	}
	if in, err = inside.Of(store).Internals(); err != nil {
		return in, nil, space, err
	}
	if space, err = of.Space(id); err == nil {
		err = in.Admit(ctx, id)
	}
	return in, of, space, err
}

// The rates of RecordFields, in points per second.
const (
	defaultRecordRate = 10_000
	leastRecordRate   = 100
)

// RecordFields reads all visible points of a tenant in a dataset, and adds their fields to the list of [FieldsOf]: for
// points that were written before programs kept it, or whose tags need opts. It returns how many points it read. It may
// be repeated, and after an error it begins again.
//
// It reads at most perSecond points per second; zero means 10,000, and at least 100 are needed. It costs the requests
// of an export, and some writes. Errors are those of FieldsOf. Points that cannot be decoded are skipped.
func RecordFields(ctx context.Context, store *tsdb.Store, id tenant.ID, d tsdb.Dataset, opts Options, perSecond int) (n int64, err error) {
	if err := ctxerr.Of(ctxerr.Given(ctx)); err != nil {
		return 0, err
	}
	if perSecond == 0 {
		perSecond = defaultRecordRate
	}
	if perSecond < leastRecordRate {
		return 0, invalid.New(tsdb.ErrInvalid, "perSecond", strconv.Itoa(perSecond), "at least 100, or 0 for 10,000")
	}
	decoder, err := NewDecoder(opts)
	if err != nil {
		return 0, err
	}
	in, of, space, err := openFields(ctx, store, id, d)
	if err != nil {
		return 0, err
	}
	families := map[string]string{}
	for i, f := range of.ListFamilies() {
		families[of.Classes[i].Name] = f
	}
	raw, err := in.Raw(ctx, of.ToCatalog(), id)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	err = raw.Read(ctx, points.Selection{Newest: of.Precision.Max()}, func(p points.RawPoint) error {
		n++
		if fields, err := decoder.Decode(p.Tag, p.Payload); err == nil && p.Unread == nil {
			in.Fields.NoteFields(space.ID(""), families[p.Class], bigtable.Timestamp(of.Precision.CellMicros(p.Units)), fields)
		}
		return pace(ctx, began, n, perSecond)
	})
	if err == nil {
		err = in.Fields.Flush(ctx)
	}
	return n, in.Explain(err)
}

// pace waits until n points at a rate take as long as has passed.
func pace(ctx context.Context, began time.Time, n int64, perSecond int) error {
	const every = 100 // points between two waits
	if n%every != 0 {
		return nil
	}
	timer := time.NewTimer(time.Until(began.Add(time.Duration(float64(n) / float64(perSecond) * float64(time.Second)))))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// declared returns the fields of a type.
func declared(s *fields.Shape) (out FieldList) {
	for i := range s.Leaves {
		f := KnownField{Name: s.Leaves[i].Name}
		if k := s.Leaves[i].KindOf(); k != codec.KindInvalid {
			f.Kinds = []codec.Kind{k}
		}
		out.Fields = append(out.Fields, f)
	}
	slices.SortFunc(out.Fields, func(a, b KnownField) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// listOf returns a list with the values of single payloads.
func listOf(list fieldlist.List, tags []string) FieldList {
	out := FieldList{LeftOut: list.Omitted}
	for _, tag := range tags {
		if k := formats[tag].single; k != codec.KindInvalid {
			out.Fields = append(out.Fields, KnownField{})[:1]
			out.Fields[0].Kinds = append(out.Fields[0].Kinds, k)
		}
	}
	for _, f := range list.Fields {
		if f.Name == "" && len(out.Fields) > 0 {
			out.Fields[0].Kinds = append(out.Fields[0].Kinds, f.Kinds...)
			continue
		}
		out.Fields = append(out.Fields, KnownField(f))
	}
	if len(out.Fields) > 0 { // the first one may have kinds of several tags
		kinds := out.Fields[0].Kinds
		slices.Sort(kinds)
		out.Fields[0].Kinds = slices.Compact(kinds)
	}
	return out
}
