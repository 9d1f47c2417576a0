// Package inspect reads and writes single points without a Go schema, using only the table's catalogue. It is for
// operators and their tools. Payloads are bytes with their codec's tag. Programs use the repositories of package
// tsdb.
package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// ErrInvalid is tsdb.ErrInvalid: invalid argument. A *tsdb.InvalidError names the field, the value and what is
// allowed.
var ErrInvalid = tsdb.ErrInvalid

// Description is the catalogue's description of a dataset.
type Description struct {
	Name string   `json:"name"`
	Key  []string `json:"key"` // the names of the key fields
	// Tags are the tags of the payloads' codecs; the first one is written by default.
	Tags []string `json:"tags"`
	// Classes are the retention classes of points; the first one is the default. Offered are those that a tenant's
	// profile may name.
	Classes []string `json:"classes"`
	Offered []string `json:"offered"`
	// Identity says that points have an ID in addition to their time.
	Identity bool `json:"identity,omitempty"`
	// Precision is the unit of the points' times.
	Precision tsdb.Precision `json:"precision"`
}

// View is a tenant's points of one dataset. It is safe for concurrent use. All calls on the zero View and nil fail
// with ErrInvalid.
type View struct {
	store   *tsdb.Store
	tenant  tenant.ID
	dataset catalog.Dataset
	kinds   []rowkey.FieldKind
	unit    rowkey.Precision

	identity bool // its points have an ID
	points   *points.Raw
}

// Open returns a tenant's points of a dataset. The error matches ErrInvalid if the catalogue does not have the
// dataset, tsdb.ErrTenantMismatch if ctx carries another tenant, and tsdb.ErrErased if the tenant is erased. Open
// reads the dataset's entry of the catalogue.
func Open(ctx context.Context, store *tsdb.Store, id tenant.ID, dataset string) (*View, error) {
	if store == nil {
		return nil, invalid.New(ErrInvalid, "store", "nil", "an open store")
	}
	if id.IsZero() {
		return nil, invalid.New(tenant.ErrInvalid, "tenant", "empty", "a tenant from tenant.Parse")
	}
	in, err := inside.Of(store).Internals()
	if err != nil {
		return nil, err
	}
	if err := rowkey.CheckDataset(dataset); err != nil {
		return nil, err
	}
	st, err := catalog.Load(ctx, in.Whole, []string{dataset})
	if err != nil {
		return nil, in.Explain(err)
	}
	entry, ok := st.Datasets[dataset]
	if !ok {
		return nil, invalid.New(ErrInvalid, "dataset", invalid.Quote(dataset), "a dataset of the catalogue")
	}
	v := &View{store: store, tenant: id, dataset: entry.Dataset}
	if v.kinds, err = v.dataset.FieldKinds(); err != nil {
		return nil, fmt.Errorf("inspect: dataset %s of the catalogue: %w", dataset, err)
	}
	if v.unit, v.identity, err = rowkey.ParseTimeName(v.dataset.Precision); err != nil {
		return nil, fmt.Errorf("inspect: dataset %s of the catalogue: %w", dataset, err)
	}
	v.points, err = in.Raw(ctx, v.dataset, id)
	return v, err
}

// Describe returns the catalogue's description of the dataset. It does no I/O.
func (v *View) Describe() Description {
	if v == nil {
		return Description{}
	}
	d := Description{Name: v.dataset.Name, Key: slices.Clone(v.dataset.Key), Tags: slices.Clone(v.dataset.Tags), Identity: v.identity, Precision: tsdb.Precision(v.unit)}
	for _, c := range v.dataset.Classes {
		d.Classes = append(d.Classes, c.Name)
	}
	if len(v.dataset.Classes) > 0 {
		d.Offered = v.dataset.Offers()
	}
	return d
}

// Entity returns the entity with the given values of the key fields, by name. Values are text, also for numbers and
// UUIDs. If the names are wrong, the error matches ErrInvalid and lists the key fields. Entity does no I/O.
func (v *View) Entity(values map[string]string) (tsdb.Entity, error) {
	if err := v.check(); err != nil {
		return tsdb.Entity{}, err
	}
	parts := make([]string, len(v.dataset.Key))
	for i, name := range v.dataset.Key {
		text, ok := values[name]
		if !ok {
			return tsdb.Entity{}, invalid.New(ErrInvalid, "key field "+name, "missing", "a value for each of "+strings.Join(v.dataset.Key, ", "))
		}
		var err error
		if parts[i], err = v.kinds[i].Part(name, text); err != nil {
			return tsdb.Entity{}, err
		}
	}
	for name := range values {
		if !slices.Contains(v.dataset.Key, name) {
			return tsdb.Entity{}, invalid.New(ErrInvalid, "key field", invalid.Quote(name), "one of "+strings.Join(v.dataset.Key, ", "))
		}
	}
	return tsdb.NewEntity(parts...), nil
}

// Values returns the values of an entity's key fields as text, in the order of the fields. A part that does not fit
// its field is returned as it is stored. Values does no I/O.
func (v *View) Values(e tsdb.Entity) []string {
	parts := e.Parts()
	if v == nil || len(parts) != len(v.kinds) {
		return parts
	}
	for i, part := range parts {
		var text string
		if v.kinds[i].Scan(v.dataset.Key[i], part, &text) == nil {
			parts[i] = text
		}
	}
	return parts
}

func (v *View) check() error {
	if v == nil || v.points == nil {
		return invalid.New(ErrInvalid, "view", "the zero value", "a view from Open")
	}
	return nil
}
