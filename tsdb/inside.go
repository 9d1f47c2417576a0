package tsdb

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/below"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
)

// insider is every *Repository[T], for packages of this module that are built on tsdb.
type insider interface {
	inside() (inside.Repository, error)
	asUnlimited(route inside.Route) any
	tapped(payload func(tag int, payload []byte), values bool) any
	below(ctx context.Context, p Prefix, in Interval, opts []ReadOption, bare bool) (inside.BelowRead, error)
	beginMany(ctx context.Context, name telemetry.Name, n int, batched bool) (context.Context, *telemetry.Op)
}

// described is every *Schema[T], for those that only the catalogue describes.
type described interface {
	describe(d *dataset.Dataset, of any)
	setRollups(of map[string]any)
}

// describe implements inside.FromCatalog.
func (s *Schema[T]) describe(d *dataset.Dataset, of any) {
	s.d, s.codec, s.d.ReadOnly = *d, of.(codec.Codec[T]), true
	readers := codec.Readers(s.codec)
	for _, r := range readers {
		s.decoders = append(s.decoders, r.Decode)
	}
	s.numbers, _ = numbersOf(readers, &s.d)
	s.listed = make([]Rollup, len(d.Rollups)) // their Go values are not known
}

// setRollups implements inside.SetRollups.
func (s *Schema[T]) setRollups(of map[string]any) {
	for i := range s.listed {
		s.listed[i], _ = of[s.d.Rollups[i].Name].(Rollup)
	}
}

func init() {
	inside.OfRepository = func(repo any) (inside.Repository, error) { return repo.(insider).inside() }
	inside.OfDataset = func(of any) (*dataset.Dataset, error) {
		if d, _ := of.(Dataset); d != nil && d.shape() != nil {
			return d.shape(), nil
		}
		return nil, invalid.New(ErrInvalid, "dataset", "the zero value", "a schema from Define")
	}
	inside.Begin = func(ctx context.Context, repo any, name telemetry.Name, n int, batched bool) (context.Context, *telemetry.Op) {
		return repo.(insider).beginMany(ctx, name, n, batched)
	}
	inside.Add = func(ctx context.Context, writer any, ev inside.Event, done any) error {
		f, _ := done.(func(Outcome))
		return writer.(*Writer).add(ctx, ev, f)
	}
	inside.FromCatalog = func(schema any, d *dataset.Dataset, of any) { schema.(described).describe(d, of) }
	inside.SetRollups = func(schema any, rollups map[string]any) { schema.(described).setRollups(rollups) }
	inside.Below = func(ctx context.Context, repo, prefix, in, opts any, bare bool) (inside.BelowRead, error) {
		return repo.(insider).below(ctx, prefix.(Prefix), in.(Interval), opts.([]ReadOption), bare)
	}
	inside.Tap = func(repo any, payload func(int, []byte), values bool) any {
		return repo.(insider).tapped(payload, values)
	}
	inside.SetUnlimited(func(repo any, route inside.Route) any { return repo.(insider).asUnlimited(route) })
}

type (
	storeGate = inside.Gate[storeCore]
	storeCore struct{ *Store }
)

func (storeCore) Of(s *Store) storeCore { return storeCore{s} }

// Internals returns the internals of the store. On a closed store the error is ErrClosed.
func (c storeCore) Internals() (inside.Store, error) {
	if err := c.admit(); err != nil {
		return inside.Store{}, err
	}
	return inside.Store{Table: c.core, Admin: c.adminClient, Ensure: c.ensureDescribed}, nil
}

// Watch returns the probe of the store, or nil if it has none.
func (c storeCore) Watch() *telemetry.Probe {
	if c.Store == nil || c.core == nil {
		return nil
	}
	return c.core.Watch
}

type (
	entityGate = inside.Gate[entityCore]
	entityCore string
	prefixGate = inside.Gate[prefixCore]
	prefixCore string

	intervalGate = inside.Gate[intervalCore]
	intervalCore struct{}
)

func (entityCore) Of(e Entity) entityCore { return entityCore(e.path) }

// At returns the entity at a path of package rowkey.
func (entityCore) At(path string) Entity { return Entity{path: path} }

// Path returns the entity's path of package rowkey.
func (c entityCore) Path() string { return string(c) }

func (prefixCore) Of(p Prefix) prefixCore { return prefixCore(p.path) }

// Path returns the prefix's path of package rowkey.
func (c prefixCore) Path() string { return string(c) }

func (intervalCore) Of(Interval) intervalCore { return intervalCore{} }

// ReadOptions resolves the options of a call that reads the buckets of an interval. It refuses a Limit. Concurrency is 0 for the default.
func (intervalCore) ReadOptions(opts []ReadOption) (order Order, concurrency int, err error) {
	o, err := readOptionsOf(orderOption, opts)
	return o.order, o.Width, err
}

// adminClient returns an admin client and the function that closes it.
func (s *Store) adminClient(ctx context.Context) (*bigtable.AdminClient, func(), error) {
	if s.admin == nil {
		return nil, nil, ErrNoAdmin
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

func (r *Repository[T]) inside() (inside.Repository, error) {
	ctx := context.Background()
	if r != nil {
		ctx = tenant.NewContext(ctx, r.rows.Tenant) // Allow of the result checks each call's own context
	}
	if err := r.admit(ctx); err != nil {
		return inside.Repository{}, err
	}
	d := &r.schema.d
	in := inside.Repository{Rows: &r.rows, Allow: r.admit, Rollups: make([]inside.Rollup, len(d.Rollups)), Numbers: r.schema.numbers}
	for i := range d.Rollups {
		u := &d.Rollups[i]
		in.Rollups[i] = inside.Rollup{Rollup: u.Rollup, Definition: r.schema.listed[i], Rows: r.rows.Space.Kind(rowkey.RollupKind + u.Name), Families: u.Families, Age: u.Class.Age, Bounded: u.Class.Bounded}
		if u.Kind == catalog.Derived {
			in.Rollups[i].Marks = r.rows.Space.Kind(rowkey.MarkKind + u.Name)
		}
	}
	return in, nil
}

// tapped implements inside.Tap.
func (r *Repository[T]) tapped(payload func(tag int, payload []byte), values bool) any {
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

func (r *Repository[T]) asUnlimited(route inside.Route) any {
	if r == nil {
		return r // inside reports it
	}
	free := *r
	free.rows.Unlimited = true
	if route != nil && r.rows.View != nil {
		free.rows.View = route(r.rows.View)
	}
	return &free
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

// below implements inside.Below.
func (r *Repository[T]) below(ctx context.Context, p Prefix, in Interval, opts []ReadOption, bare bool) (inside.BelowRead, error) {
	if err := r.admitPrefix(ctx, p); err != nil {
		return inside.BelowRead{}, err
	}
	takes := orderOption | limitOption
	if bare {
		takes = 0
	}
	o, err := readOptionsOf(takes, opts)
	if err == nil {
		err = in.Check()
	}
	if err != nil {
		return inside.BelowRead{}, err
	}
	if o.Width == 0 {
		o.Width = defaultConcurrency
	}
	oldest, newest, ok := in.units(r.schema.d.Precision)
	if !ok {
		oldest, newest = 1, 0
	}
	if !bare {
		if err := r.admitSpan(in); err != nil {
			return inside.BelowRead{}, err
		}
	}
	done, err := r.rows.BeginWideRead(&o.Options)
	if err != nil {
		return inside.BelowRead{}, err
	}
	read := &below.Read{Rows: &r.rows, Prefix: p.path, Oldest: oldest, Newest: newest, Reverse: o.order == OldestFirst, Options: o.Options}
	limit := -1
	if o.limited {
		limit, read.Most = o.limit, o.limit
	}
	scope := r.rows.Scope(0, p.path)
	scope.Oldest, scope.Newest, scope.Reverse = oldest, newest, read.Reverse
	return inside.BelowRead{Read: read, Limit: limit, Decode: r.decode, Done: done, Cursors: r.rows.Cursors, Scope: scope}, nil
}
