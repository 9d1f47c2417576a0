package inbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
)

// MaxDatasets bounds the datasets that one Datasets creates. TenantDatasets bounds those without a rule that one tenant
// may use, so that others can create theirs. The store's catalogue holds twice as many.
const (
	MaxDatasets    = 5000
	TenantDatasets = 100
)

// A tenant's datasets that the store refused are remembered for refusedFor, so that each of their records does not ask
// the store again. While tenantRefused of them are remembered, the tenant's new datasets are refused without asking.
const (
	refusedFor    = time.Minute
	tenantRefused = 100
)

// Options are for NewDatasets.
type Options struct {
	// Schema is what all datasets share, such as their retention. NewDatasets sets Merge and Immutable.
	Schema tsdb.SchemaOptions
	// Schemas are datasets that the program has defined itself, such as those with rollups. A rule names each, with its
	// key fields. A Batch does not merge their records.
	Schemas []*tsdb.Schema[codec.Record]
	// Mapping says where lines of line protocol are stored. Nil means that each is stored in the dataset of its
	// measurement. Keys has its datasets, too.
	Mapping *Mapping
	// Times are the times of points that are accepted.
	Times Bounds
	// Noun is the input's word for what is stored in one dataset, for texts of errors. The default is "dataset".
	Noun string
	// Log gets details that clients must not see. The default discards them.
	Log *slog.Logger
}

// Datasets finds the dataset of a name, and creates it if the rules allow that. It is safe for concurrent use.
type Datasets struct {
	store  *tsdb.Store
	log    *slog.Logger
	noun   string
	shared tsdb.SchemaOptions
	bounds Bounds
	lines  Mapping
	others []string // the key of datasets without a rule; nil if they are refused

	left leftOuts

	mu      sync.RWMutex
	known   map[string]*Dataset
	pending int                    // being created: they count towards MaxDatasets
	tenants map[tenant.ID]*unnamed // of the services' tenants, so there are few
}

// unnamed holds the datasets of one tenant without a rule.
type unnamed struct {
	defining chan struct{} // holds one value while one is created: one at a time. Records of known datasets continue
	used     map[string]bool
	refused  map[string]refused
}

// refused holds why a dataset cannot be stored, and how long that is remembered.
type refused struct {
	why   error
	until time.Time
}

// NewDatasets creates the datasets that rules name, and prepares the table for them.
func NewDatasets(ctx context.Context, store *tsdb.Store, ks Keys, opts Options) (*Datasets, error) {
	ds := &Datasets{
		store: store, log: opts.Log, noun: cmp.Or(opts.Noun, "dataset"), shared: opts.Schema, bounds: opts.Times.withDefaults(), others: ks[AnyDataset],
		known: map[string]*Dataset{}, tenants: map[tenant.ID]*unnamed{},
		left: leftOuts{counts: map[LeftOut]uint64{}, named: map[leftOutField]bool{}, names: edge.NewShares(maxNamed)},
	}
	if opts.Mapping != nil {
		ds.lines = *opts.Mapping
	}
	if ds.log == nil {
		ds.log = slog.New(slog.DiscardHandler)
	}
	var all []tsdb.Dataset
	for name, key := range ks {
		if name == AnyDataset {
			continue
		}
		d, err := newDataset(name, key, opts.Schema, &ds.bounds)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(opts.Schemas, func(s *tsdb.Schema[codec.Record]) bool { return s.Name() == name }); i >= 0 {
			d.merge = false
			if d.schema = opts.Schemas[i]; !slices.Equal(d.schema.KeyFields(), keyNames(key)) {
				return nil, fmt.Errorf("the key of %s is %v, and its schema has %v", name, keyNames(key), d.schema.KeyFields())
			}
		}
		ds.known[name] = d
		all = append(all, d.schema)
	}
	if len(all) == 0 {
		return ds, nil
	}
	if err := store.Ensure(ctx, all...); err != nil {
		return nil, fmt.Errorf("prepare the table: %w", err)
	}
	return ds, nil
}

// Find returns the dataset of a name for a tenant, and creates it if the rules allow that. The error is an *Error if no
// record of the dataset can be stored, and another error if the store could not be reached.
func (ds *Datasets) Find(ctx context.Context, id tenant.ID, name string) (*Dataset, error) {
	d := ds.lookup(name)
	switch {
	case d == nil && ds.others == nil:
		return nil, &Error{"the " + ds.noun + " has no -key", fmt.Errorf("no -key names the %s %.64q", ds.noun, name)}
	case d == nil:
		return ds.define(ctx, id, name)
	case d.unnamed:
		return d, ds.admit(id, d.name)
	}
	return d, nil
}

// define creates a dataset without a rule.
func (ds *Datasets) define(ctx context.Context, id tenant.ID, name string) (*Dataset, error) {
	d, err := newDataset(name, ds.others, ds.shared, &ds.bounds)
	if err != nil {
		return nil, &Error{"the " + ds.noun + " cannot be a dataset", err}
	}
	d.unnamed = true
	ms := ds.of(id)
	select {
	case ms.defining <- struct{}{}:
		defer func() { <-ms.defining }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if known := ds.lookup(name); known != nil { // created meanwhile
		return known, ds.admit(id, name)
	}
	if err := ds.refusal(ms, name); err != nil {
		return nil, err
	}
	over := ds.admit(id, name)
	if over == nil {
		err = ds.ensure(ctx, id, d)
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.pending--
	if over != nil {
		return nil, over
	}
	if known := ds.known[name]; known != nil { // another tenant was faster
		return known, nil
	}
	if err != nil {
		delete(ms.used, name)
		if _, final := errors.AsType[*Error](err); final {
			ms.refused[name] = refused{err, time.Now().Add(refusedFor)}
		}
		return nil, err
	}
	ds.known[name] = d
	return d, nil
}

// ensure prepares the table for a dataset. The error is a *Error if a retry would not help.
func (ds *Datasets) ensure(ctx context.Context, id tenant.ID, d *Dataset) error {
	// The context has the tenant, so that the dataset counts towards the tenant's limit of datasets, if it has one.
	err := ds.store.Ensure(tenant.NewContext(ctx, id), d.schema)
	conflict, conflicts := errors.AsType[*tsdb.ConflictError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, limit.ErrExceeded):
		return &Error{"too many " + ds.noun + "s", err}
	case conflicts:
		// The error shows how the dataset is stored, and another tenant may have created it.
		ds.log.Warn("a "+ds.noun+" conflicts with a dataset that is stored", "tenant", id.String(), "dataset", d.name, "differences", conflict.Differences)
		return &Error{"the " + ds.noun + " cannot be a dataset", fmt.Errorf("the %s %.64q cannot be stored under its tags; give it another name", ds.noun, d.name)}
	case errors.Is(err, tsdb.ErrErased):
		return &Error{"the " + ds.noun + " cannot be a dataset", err}
	}
	return fmt.Errorf("prepare the table for %s: %w", d.name, err)
}

func (ds *Datasets) lookup(name string) *Dataset {
	ds.mu.RLock()
	defer ds.mu.RUnlock()
	return ds.known[name]
}

// of returns a tenant's datasets without a rule.
func (ds *Datasets) of(id tenant.ID) *unnamed {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ms := ds.tenants[id]
	if ms == nil {
		ms = &unnamed{defining: make(chan struct{}, 1), used: map[string]bool{}, refused: map[string]refused{}}
		ds.tenants[id] = ms
	}
	return ms
}

// refusal returns why a dataset is refused without asking the store. If it is nil, the dataset counts as pending.
func (ds *Datasets) refusal(ms *unnamed, name string) error {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(ms.refused, func(_ string, r refused) bool { return !now.Before(r.until) })
	if r, ok := ms.refused[name]; ok {
		return r.why
	}
	if len(ds.known)+ds.pending >= MaxDatasets {
		return &Error{"too many " + ds.noun + "s", fmt.Errorf("%.64q would be %s %d, and %d is the most", name, ds.noun, MaxDatasets+1, MaxDatasets)}
	}
	if len(ms.refused) >= tenantRefused {
		return &Error{"too many " + ds.noun + "s", fmt.Errorf("%d new %ss of this tenant were refused; send %.64q again in a minute", tenantRefused, ds.noun, name)}
	}
	ds.pending++
	return nil
}

// admit counts a dataset without a rule for a tenant, and refuses it if there are too many.
func (ds *Datasets) admit(id tenant.ID, name string) error {
	ds.mu.RLock()
	ms := ds.tenants[id]
	counted := ms != nil && ms.used[name]
	ds.mu.RUnlock()
	if counted {
		return nil
	}
	ms = ds.of(id)
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if len(ms.used) >= TenantDatasets && !ms.used[name] {
		return &Error{"too many " + ds.noun + "s", fmt.Errorf("%.64q would be %s %d of this tenant, and %d is the most", name, ds.noun, TenantDatasets+1, TenantDatasets)}
	}
	ms.used[name] = true
	return nil
}
