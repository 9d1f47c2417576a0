package tsdb

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/nest"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
)

type (
	storeGate = inside.Gate[storeCore]
	storeCore struct{ inside.Core[*Store] }
)

// Internals returns the internals of the store. On a closed store the error is ErrClosed.
func (c storeCore) Internals() (inside.Store, error) {
	s := c.Value()
	if err := s.admit(); err != nil {
		return inside.Store{}, err
	}
	return inside.Store{Table: s.core, Admin: s.adminClient, Ensure: s.ensureDescribed}, nil
}

// BackUp makes Backup of the store call f. Call it before the store is used.
func (c storeCore) BackUp(f func(ctx context.Context, dir string) (Backup, error)) {
	c.Value().backup = f
}

// Journals returns the journals of the store's open writers.
func (c storeCore) Journals() []*journal.Journal { return c.Value().journals.list() }

// Watch returns the probe of the store, or nil if it has none.
func (c storeCore) Watch() *telemetry.Probe {
	if s := c.Value(); s != nil && s.core != nil {
		return s.core.Watch
	}
	return nil
}

type (
	entityGate = inside.Gate[entityCore]
	entityCore struct{ inside.Core[Entity] }
	prefixGate = inside.Gate[prefixCore]
	prefixCore struct{ inside.Core[Prefix] }

	intervalGate = inside.Gate[intervalCore]
	intervalCore struct{ inside.Core[Interval] }

	datasetGate = inside.Gate[datasetCore]
	datasetFace = inside.Face[datasetCore]
	datasetCore struct{ inside.Core[Dataset] } // of the interface: a *Schema[T] is converted to it first

	rollupFace = inside.Face[*nest.Definition]

	writerGate = inside.Gate[writerCore]
	writerCore struct{ inside.Core[*Writer] }

	repositoryGate[T any] = inside.Gate[repositoryCore[T]]
	repositoryCore[T any] struct{ inside.Core[*Repository[T]] }

	prefixReaderGate[T any] = inside.Gate[prefixReaderCore[T]]
	prefixReaderCore[T any] struct{ inside.Core[PrefixReader[T]] }
)

// The types and the cores that inside.Of returns.
var (
	_ inside.Face[storeCore]           = Store{}.storeGate
	_ inside.Face[entityCore]          = Entity{}.entityGate
	_ inside.Face[prefixCore]          = Prefix{}.prefixGate
	_ inside.Face[intervalCore]        = Interval{}.intervalGate
	_ inside.Face[writerCore]          = Writer{}.writerGate
	_ inside.Face[repositoryCore[int]] = Repository[int]{}.repositoryGate

	_ inside.Face[prefixReaderCore[int]] = PrefixReader[int]{}.prefixReaderGate
)

// At returns the entity at a path of package rowkey.
func (entityCore) At(path string) Entity { return Entity{path: path} }

// Path returns the entity's path of package rowkey.
func (c entityCore) Path() string { return c.Value().path }

// Path returns the prefix's path of package rowkey.
func (c prefixCore) Path() string { return c.Value().path }

// ReadOptions resolves the options of a call that reads the buckets of an interval. It refuses a Limit. Concurrency is
// 0 for the default.
func (intervalCore) ReadOptions(opts []ReadOption) (order Order, concurrency int, err error) {
	o, err := readOptionsOf(orderOption, opts)
	return o.order, o.Width, err
}

// Check returns an error that matches ErrInvalid if the interval ends before it starts.
func (c intervalCore) Check() error { return c.Value().check() }

// Units returns the first and the last unit of p in the interval. The first is greater if it holds none.
func (c intervalCore) Units(p rowkey.Precision) (oldest, newest int64) { return c.Value().units(p) }

// Shape returns the shape of the dataset.
func (c datasetCore) Shape() (*dataset.Dataset, error) {
	if d := c.Value(); d != nil && d.shape() != nil {
		return d.shape(), nil
	}
	return nil, invalid.New(ErrInvalid, "dataset", "the zero value", "a schema from Define")
}

// Listed returns the rollups of a dataset that has a shape, in their order. Those whose definition is not known, as in
// a dataset of the catalogue, are nil.
func (c datasetCore) Listed() []Rollup { return c.Value().rollups() }

// Begin begins an operation on the repository's rows, of n events if it is batched.
func (c repositoryCore[T]) Begin(ctx context.Context, name telemetry.Name, n int, batched bool) (context.Context, *telemetry.Op) {
	return c.Value().part().beginMany(ctx, name, n, batched)
}

// Internals returns the internals of the repository. It does no I/O. Its error says why no call on the repository can
// work.
func (c repositoryCore[T]) Internals() (inside.Repository, error) {
	r := c.Value()
	if err := r.part().admitAny(); err != nil {
		return inside.Repository{}, err
	}
	return r.internals(r.schema.numbers, r.schema.listed), nil
}

// admitAny is admit for calls that check their own contexts.
func (a *access) admitAny() error {
	ctx := context.Background()
	if a != nil {
		ctx = tenant.NewContext(ctx, a.rows.Tenant)
	}
	return a.admit(ctx)
}

func (a *access) internals(numbers fieldNumbers, listed []Rollup) inside.Repository {
	d := a.rows.D
	in := inside.Repository{Rows: &a.rows, Allow: a.admit, Rollups: make([]inside.Rollup, len(d.Rollups)), Numbers: numbers}
	for i := range d.Rollups {
		u := &d.Rollups[i]
		in.Rollups[i] = inside.Rollup{Rollup: u.Rollup, Definition: listed[i], Rows: a.rows.Space.Kind(rowkey.RollupKind + u.Name), Families: u.Families, Age: u.Class.Age, Bounded: u.Class.Bounded}
		if u.Kind == catalog.Derived {
			in.Rollups[i].Marks = a.rows.Space.Kind(rowkey.MarkKind + u.Name)
		}
	}
	return in
}

// Schema returns the schema of a dataset of the catalogue, which refuses deletions. It needs no repository: nil is
// enough. The codec reads the tags of the dataset in their order, and its Append fails with codecerr.ErrReadOnly. The
// rollups are by name; others are not known.
func (repositoryCore[T]) Schema(d *dataset.Dataset, c codec.Codec[T], rollups map[string]Rollup) *Schema[T] {
	s := &Schema[T]{d: *d, codec: c, listed: make([]Rollup, len(d.Rollups))}
	s.d.ReadOnly = true
	readers := codec.Readers(c)
	for _, r := range readers {
		s.decoders = append(s.decoders, r.Decode)
	}
	s.setLayouts(readers)
	if d.Shape != nil && s.layouts[0].Format == d.Tags[0] {
		s.layouts[0].shape = d.Shape
	}
	s.numbers, _ = numbersOf(readers, &s.d)
	for i := range s.listed {
		s.listed[i] = rollups[d.Rollups[i].Name]
	}
	return s
}

// Tap returns a repository like this one. Before each point it calls payload with the point's payload and the index of
// its tag. Without values, it does not decode the payload, and the points have zero values.
func (c repositoryCore[T]) Tap(payload func(tag int, payload []byte), values bool) *Repository[T] {
	r := c.Value()
	tapped, schema := *r, *r.schema
	schema.decoders = make([]func([]byte) (T, error), len(r.schema.decoders))
	for tag, decode := range r.schema.decoders {
		schema.decoders[tag] = func(src []byte) (v T, err error) {
			payload(tag, src)
			if values {
				v, err = decode(src)
			}
			return v, err
		}
	}
	tapped.schema = &schema
	return &tapped
}

// Unlimited returns the repository without its tenant's limits, for background reads of this module's packages.
func (c repositoryCore[T]) Unlimited(route inside.Route) *Repository[T] {
	r := c.Value()
	if r == nil {
		return nil // each call reports it
	}
	free := *r
	free.rows.Unlimited = true
	if route != nil && r.rows.View != nil {
		free.rows.View = route(r.rows.View)
	}
	return &free
}

// Scope returns the repository and the prefix that the reader reads.
func (c prefixReaderCore[T]) Scope() (*Repository[T], Prefix) {
	u := c.Value()
	return u.repo, u.prefix
}

// Begin begins a read of the points of an interval, which takes an order.
func (c prefixReaderCore[T]) Begin(ctx context.Context, name telemetry.Name, in Interval, opts []ReadOption) (context.Context, inside.PrefixRead, error) {
	return c.Value().part().beginRead(ctx, name, in, orderOption, opts)
}

// adminClient returns an admin client and the function that closes it.
func (s *Store) adminClient(ctx context.Context) (*bigtable.AdminClient, func(), error) {
	if s.admin == nil {
		return nil, nil, tenancy.ErrNoAdmin
	}
	admin, err := s.admin(ctx)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("tsdb: admin client: %w", err)
	case s.keep:
		return admin, func() {}, nil
	}
	return admin, func() { _ = admin.Close() }, nil
}

// ensureDescribed is Ensure for catalogue entries.
func (s *Store) ensureDescribed(ctx context.Context, entries []catalog.Dataset) error {
	datasets := make([]Dataset, len(entries))
	for i, e := range entries {
		d, err := dataset.FromCatalog(e)
		if err != nil {
			return err
		}
		datasets[i] = &Schema[int]{d: *d}
	}
	return s.Ensure(ctx, datasets...)
}
