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

// maxDatasets bounds how many datasets this program defines, tenantDatasets how many of those that no -key names one tenant may
// use: else one tenant could leave none to the others. The store's catalogue holds twice as many.
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

// otherTags, as the last of a measurement's key tags, stands for all tags that are not named before it.
const otherTags = "*"

// tagPrefix is what the names of the fields start with that hold tags.
const tagPrefix = "tag:"

// dataset is where the points of a measurement go.
type dataset struct {
	name string
	tags []string // that are the key fields, in order
	rest bool     // whether one more key field holds all other tags
	// unnamed says that no -key names the measurement: it counts against the tenants that use it.
	unnamed bool
	// schema merges: lines of one series and time add up, whichever request they come in. A tag that is not part of the key
	// is a field that cannot change, so that two series which differ in nothing else are an error and not one point.
	schema *tsdb.Schema[codec.Record]
}

// newDataset defines a dataset with what all of them share.
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

// keys says which tags are the key of which measurement, as the command line gives it.
type keys map[string][]string

// anyMeasurement stands for the measurements that have no key of their own.
const anyMeasurement = "*"

// datasets finds the dataset of a measurement, and defines it where the command line allows that.
type datasets struct {
	store  *tsdb.Store
	log    *slog.Logger
	shared tsdb.SchemaOptions
	others []string // the key of measurements that are not named; nil where they are refused

	mu      sync.RWMutex
	known   map[string]*dataset
	pending int                         // that are being defined: they count towards maxDatasets
	tenants map[tenant.ID]*measurements // of the tokens' tenants, so there are not many
}

// measurements are those of one tenant that no -key names.
type measurements struct {
	defining chan struct{} // holds one value while one is defined: one at a time, and lines of known ones go on
	used     map[string]bool
	refused  map[string]refused
}

// refused is why a measurement cannot be stored, and until when that holds.
type refused struct {
	why   error
	until time.Time
}

var errMeasurement = errors.New("no -key names the measurement")

// newDatasets defines the measurements that have a key, and makes the table fit them.
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

// find returns the dataset of a measurement for a tenant. Its error is a *lineError where no line of that measurement can be
// stored, and another where the store could not be asked.
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

// define defines the dataset of a measurement that no -key names.
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
	if known := ds.lookup(name); known != nil { // meanwhile
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

// ensure makes the table fit a dataset. Its error is a *lineError where asking again would not help.
func (ds *datasets) ensure(ctx context.Context, id tenant.ID, d *dataset) error {
	// With the tenant, so that the dataset counts against the tenant's limit of datasets, if the limits file names one.
	err := ds.store.Ensure(tenant.NewContext(ctx, id), d.schema)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, limit.ErrExceeded):
		return &lineError{"too many measurements", err}
	case errors.Is(err, tsdb.ErrSchemaConflict):
		// The error shows how the dataset is stored, and another tenant may have brought it about.
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

// of returns a tenant's measurements that no -key names.
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

// admit counts a measurement that no -key names among those that a tenant uses, and refuses it where they are too many.
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
