package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
)

// maxDatasets bounds the datasets that this program creates. tenantDatasets bounds those without a -key that one tenant may use,
// so that others can create theirs. The store's catalogue holds twice as many.
const (
	maxDatasets    = 5000
	tenantDatasets = 100
)

// A tenant's measurements that the store refused are remembered for refusedFor, so that each of their lines does not ask the store again.
// While tenantRefused of them are remembered, the tenant's new measurements are refused without asking.
const (
	refusedFor    = time.Minute
	tenantRefused = 100
)

// otherTags, as the last of a measurement's key tags, means all other tags.
const otherTags = "*"

// tagPrefix begins the names of fields that hold tags.
const tagPrefix = "tag:"

// dataset is where the points of a measurement are stored.
type dataset struct {
	name string
	tags []string // the tags that are key fields, in order
	rest bool     // whether one more key field holds all other tags
	// unnamed is set if no -key names the measurement. It then counts towards its tenants' measurements.
	unnamed bool
	// schema merges: lines of one series and time become one point, in one request or several. A tag outside the key is a field
	// that cannot change. So two series that differ only in such a tag are an error, and not one point.
	schema *tsdb.Schema[codec.Record]
}

// newDataset creates a dataset with the common options.
func newDataset(name string, key []string, shared tsdb.SchemaOptions) (*dataset, error) {
	d := &dataset{name: name, tags: key}
	if last := len(key) - 1; last >= 0 && key[last] == otherTags {
		d.tags, d.rest = key[:last], true
	}
	var err error
	shared.Merge, shared.Immutable = true, tagPrefix
	d.schema, err = tsdb.Define(name, tsdb.Key(key...), codec.Records(), shared)
	return d, err
}

// keys holds the key tags of each measurement, from the command line.
type keys map[string][]string

// anyMeasurement stands for the measurements without a -key of their own.
const anyMeasurement = "*"

// datasets finds the dataset of a measurement, and creates it if the command line allows that.
type datasets struct {
	store  *tsdb.Store
	log    *slog.Logger
	shared tsdb.SchemaOptions
	others []string // the key of measurements without a -key; nil if they are refused

	mu      sync.RWMutex
	known   map[string]*dataset
	pending int                         // being created: they count towards maxDatasets
	tenants map[tenant.ID]*measurements // of the tokens' tenants, so there are few
}

// measurements are those of one tenant without a -key.
type measurements struct {
	defining chan struct{} // holds one value while one is created: one at a time. Lines of known measurements continue
	used     map[string]bool
	refused  map[string]refused
}

// refused holds why a measurement cannot be stored, and how long that is remembered.
type refused struct {
	why   error
	until time.Time
}

var errMeasurement = errors.New("no -key names the measurement")

// newDatasets creates the measurements with a -key, and prepares the table for them.
func newDatasets(ctx context.Context, store *tsdb.Store, ks keys, shared tsdb.SchemaOptions, log *slog.Logger) (*datasets, error) {
	ds := &datasets{
		store: store, log: log, shared: shared, others: ks[anyMeasurement],
		known: map[string]*dataset{}, tenants: map[tenant.ID]*measurements{},
	}
	var all []tsdb.Dataset
	for name, key := range ks {
		if name == anyMeasurement {
			continue
		}
		d, err := newDataset(name, key, shared)
		if err != nil {
			return nil, err
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

// find returns the dataset of a measurement for a tenant. The error is a *lineError if no line of the measurement can be stored,
// and another error if the store could not be reached.
func (ds *datasets) find(ctx context.Context, id tenant.ID, measurement []byte) (*dataset, error) {
	d := ds.lookup(string(measurement))
	switch {
	case d == nil && ds.others == nil:
		return nil, &lineError{"the measurement has no -key", fmt.Errorf("%w %.64q", errMeasurement, measurement)}
	case d == nil:
		return ds.define(ctx, id, string(measurement))
	case d.unnamed:
		return d, ds.admit(id, d.name)
	}
	return d, nil
}

// define creates the dataset of a measurement without a -key.
func (ds *datasets) define(ctx context.Context, id tenant.ID, name string) (*dataset, error) {
	d, err := newDataset(name, ds.others, ds.shared)
	if err != nil {
		return nil, &lineError{"the measurement cannot be a dataset", err}
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
		if _, final := errors.AsType[*lineError](err); final {
			ms.refused[name] = refused{err, time.Now().Add(refusedFor)}
		}
		return nil, err
	}
	ds.known[name] = d
	return d, nil
}

// ensure prepares the table for a dataset. The error is a *lineError if a retry would not help.
func (ds *datasets) ensure(ctx context.Context, id tenant.ID, d *dataset) error {
	// The context has the tenant, so that the dataset counts towards the tenant's limit of datasets, if it has one.
	err := ds.store.Ensure(tenant.NewContext(ctx, id), d.schema)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, limit.ErrExceeded):
		return &lineError{"too many measurements", err}
	case errors.Is(err, tsdb.ErrSchemaConflict):
		// The error shows how the dataset is stored, and another tenant may have created it.
		var differences []string
		if conflict, ok := errors.AsType[*tsdb.ConflictError](err); ok {
			differences = conflict.Differences
		}
		ds.log.Warn("a measurement conflicts with a dataset that is stored", "tenant", id.String(), "dataset", d.name, "differences", differences)
		return &lineError{"the measurement cannot be a dataset", fmt.Errorf("the measurement %.64q cannot be stored under its tags; give it another name", d.name)}
	case errors.Is(err, tsdb.ErrErased):
		return &lineError{"the measurement cannot be a dataset", err}
	}
	return fmt.Errorf("prepare the table for %s: %w", d.name, err)
}

func (ds *datasets) lookup(name string) *dataset {
	ds.mu.RLock()
	defer ds.mu.RUnlock()
	return ds.known[name]
}

// of returns a tenant's measurements without a -key.
func (ds *datasets) of(id tenant.ID) *measurements {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ms := ds.tenants[id]
	if ms == nil {
		ms = &measurements{defining: make(chan struct{}, 1), used: map[string]bool{}, refused: map[string]refused{}}
		ds.tenants[id] = ms
	}
	return ms
}

// refusal returns why a measurement is refused without asking the store. If it is nil, the measurement counts as pending.
func (ds *datasets) refusal(ms *measurements, name string) error {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(ms.refused, func(_ string, r refused) bool { return !now.Before(r.until) })
	if r, ok := ms.refused[name]; ok {
		return r.why
	}
	if len(ds.known)+ds.pending >= maxDatasets {
		return &lineError{"too many measurements", fmt.Errorf("%.64q would be measurement %d, and %d is the most", name, maxDatasets+1, maxDatasets)}
	}
	if len(ms.refused) >= tenantRefused {
		return &lineError{"too many measurements", fmt.Errorf("%d new measurements of this tenant were refused; send %.64q again in a minute", tenantRefused, name)}
	}
	ds.pending++
	return nil
}

// admit counts a measurement without a -key for a tenant, and refuses it if there are too many.
func (ds *datasets) admit(id tenant.ID, name string) error {
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
	if len(ms.used) >= tenantDatasets && !ms.used[name] {
		return &lineError{"too many measurements", fmt.Errorf("%.64q would be measurement %d of this tenant, and %d is the most", name, tenantDatasets+1, tenantDatasets)}
	}
	ms.used[name] = true
	return nil
}
