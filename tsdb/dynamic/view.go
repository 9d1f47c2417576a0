package dynamic

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

// View is a tenant's points of one dataset, as single points for operators and their tools: payloads are bytes with
// their codec's tag. [Describe] has the dataset of its Repository's schema as data. It is safe for concurrent use. All
// calls on the zero View and nil fail with tsdb.ErrInvalid.
type View struct {
	store   *tsdb.Store
	tenant  tenant.ID
	dataset catalog.Dataset
	kinds   []rowkey.FieldKind
	unit    rowkey.Precision

	points *points.Raw
}

// Open returns a tenant's points of a dataset. The error matches tsdb.ErrInvalid if the catalogue does not have the
// dataset, tsdb.ErrTenantMismatch if ctx carries another tenant, and tsdb.ErrErased if the tenant is erased. Open
// reads the dataset's entry of the catalogue.
func Open(ctx context.Context, store *tsdb.Store, id tenant.ID, dataset string) (*View, error) {
	if store == nil {
		return nil, invalid.New(tsdb.ErrInvalid, "store", "nil", "an open store")
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
		return nil, invalid.New(tsdb.ErrInvalid, "dataset", invalid.Quote(dataset), "a dataset of the catalogue")
	}
	v := &View{store: store, tenant: id, dataset: entry.Dataset}
	if v.kinds, err = v.dataset.FieldKinds(); err != nil {
		return nil, fmt.Errorf("dynamic: dataset %s of the catalogue: %w", dataset, err)
	}
	if v.unit, _, err = rowkey.ParseTimeName(v.dataset.Precision); err != nil {
		return nil, fmt.Errorf("dynamic: dataset %s of the catalogue: %w", dataset, err)
	}
	v.points, err = in.Raw(ctx, v.dataset, id)
	return v, err
}

// Entity returns the entity with the given values of the key fields, by name. Values are text, also for numbers and
// UUIDs. If the names are wrong, the error matches tsdb.ErrInvalid and lists the key fields. Entity does no I/O.
func (v *View) Entity(values map[string]string) (tsdb.Entity, error) {
	if err := v.check(); err != nil {
		return tsdb.Entity{}, err
	}
	parts := make([]string, len(v.dataset.Key))
	for i, name := range v.dataset.Key {
		text, ok := values[name]
		if !ok {
			return tsdb.Entity{}, invalid.New(tsdb.ErrInvalid, "key field "+name, "missing", "a value for each of "+strings.Join(v.dataset.Key, ", "))
		}
		var err error
		if parts[i], err = v.kinds[i].Part(name, text); err != nil {
			return tsdb.Entity{}, err
		}
	}
	for name := range values {
		if !slices.Contains(v.dataset.Key, name) {
			return tsdb.Entity{}, invalid.New(tsdb.ErrInvalid, "key field", invalid.Quote(name), "one of "+strings.Join(v.dataset.Key, ", "))
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
		return invalid.New(tsdb.ErrInvalid, "view", "the zero value", "a view from Open")
	}
	return nil
}
