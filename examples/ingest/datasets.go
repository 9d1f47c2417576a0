package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
)

// maxDatasets bounds how many datasets lines can bring about.
const maxDatasets = 1000

// otherTags, as the last of a measurement's key tags, stands for all tags that are not named before it.
const otherTags = "*"

// tagPrefix is what the names of the fields start with that hold tags.
const tagPrefix = "tag:"

// dataset is where the points of a measurement go.
type dataset struct {
	name string
	tags []string // that are the key fields, in order
	rest bool     // whether one more key field holds all other tags
	// schema merges: lines of one series and time add up, whichever request they come in. A tag that is not part of the key
	// is a field that cannot change, so that two series which differ in nothing else are an error and not one point.
	schema *tsdb.Schema[codec.Record]
}

func newDataset(name string, key []string, retention gc.Class) (*dataset, error) {
	d := &dataset{name: name, tags: key}
	if last := len(key) - 1; last >= 0 && key[last] == otherTags {
		d.tags, d.rest = key[:last], true
	}
	var err error
	d.schema, err = tsdb.Define(name, tsdb.Key(key...), codec.Records(), tsdb.SchemaOptions{
		Retention: retention,
		Merge:     true,
		Fixed:     tagPrefix,
	})
	return d, err
}

// keys says which tags are the key of which measurement, as the command line gives it.
type keys map[string][]string

// anyMeasurement stands for the measurements that have no key of their own.
const anyMeasurement = "*"

// datasets finds the dataset of a measurement, and defines it where the command line allows that.
type datasets struct {
	store     *tsdb.Store
	retention gc.Class
	others    []string // the key of measurements that are not named; nil where they are refused

	defining sync.Mutex // one at a time, while lines of known measurements go on
	mu       sync.RWMutex
	known    map[string]*dataset
}

var errMeasurement = errors.New("no -key names the measurement")

// newDatasets defines the measurements that have a key, and makes the table fit them.
func newDatasets(ctx context.Context, store *tsdb.Store, ks keys, retention gc.Class) (*datasets, error) {
	ds := &datasets{store: store, retention: retention, known: map[string]*dataset{}, others: ks[anyMeasurement]}
	var all []tsdb.Dataset
	for name, key := range ks {
		if name == anyMeasurement {
			continue
		}
		d, err := newDataset(name, key, retention)
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

// find returns the dataset of a measurement. Its error is a *lineError where no line of that measurement can be stored, and
// another where the store could not be asked.
func (ds *datasets) find(ctx context.Context, measurement []byte) (*dataset, error) {
	if d := ds.lookup(string(measurement)); d != nil {
		return d, nil
	}
	if ds.others == nil {
		return nil, &lineError{"the measurement has no -key", fmt.Errorf("%w %.64q", errMeasurement, measurement)}
	}
	ds.defining.Lock()
	defer ds.defining.Unlock()
	name := string(measurement)
	if d := ds.lookup(name); d != nil {
		return d, nil
	}
	if len(ds.known) >= maxDatasets {
		return nil, &lineError{"too many measurements", fmt.Errorf("%.64q would be measurement %d, and %d is the most", name, maxDatasets+1, maxDatasets)}
	}
	d, err := newDataset(name, ds.others, ds.retention)
	if err != nil {
		return nil, &lineError{"the measurement cannot be a dataset", err}
	}
	if err := ds.store.Ensure(ctx, d.schema); errors.Is(err, tsdb.ErrSchemaConflict) {
		return nil, &lineError{"the measurement cannot be a dataset", err}
	} else if err != nil {
		return nil, fmt.Errorf("prepare the table for %s: %w", name, err)
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.known[name] = d
	return d, nil
}

func (ds *datasets) lookup(name string) *dataset {
	ds.mu.RLock()
	defer ds.mu.RUnlock()
	return ds.known[name]
}
