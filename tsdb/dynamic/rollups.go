package dynamic

import (
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
)

// Rollups returns the rollups of a dataset of tsdb.Store.Datasets by name, and the schema with which they are read. It needs neither the
// functions of their measures nor the format of the payloads, which the schema does not decode:
//
//	rollups, schema, err := dynamic.Rollups(d)
//	hours := rollup.For(rollups["hours"], schema.For(store, acme))
//	for b, err := range hours.Buckets(ctx, roof, tsdb.Between(from, to)) { … }
//
// The buckets are those that are stored. Buckets of a derived rollup that are open, or that changed since a rollup.Worker last stored
// them, are computed from points by the program that defines the rollup. Here they are incomplete: window.Bucket.Incomplete has what is
// stored of them and when they changed, and they have all their aggregates in window.Summary.Missing, and 0 points. So no number of
// Values is ever an old one. Rollups that events are added to are always read in full. rollup.ReadWindows reads these rollups too.
//
// Rollups that this program cannot define are left out, such as those in a time zone that this machine does not know. Calls that write
// fail with ErrInvalid. The error is that of Schema for nil and the zero Schema. Rollups does no I/O.
func Rollups(d tsdb.Dataset) (map[string]*rollup.Rollup[struct{}], *tsdb.Schema[struct{}], error) {
	schema, err := schemaOf(d, func(string) func([]byte) (struct{}, error) {
		return func([]byte) (struct{}, error) { return struct{}{}, nil }
	})
	if err != nil {
		return nil, nil, err
	}
	of, err := inside.OfDataset(d)
	if err != nil {
		return nil, nil, err
	}
	rollups, definitions := map[string]*rollup.Rollup[struct{}]{}, map[string]any{}
	for i := range of.Rollups {
		entry := &of.Rollups[i].Rollup
		if entry.Kind == catalog.Derived && entry.From != "" && rollups[entry.From] == nil {
			continue
		}
		r := new(rollup.Rollup[struct{}])
		if inside.RollupFromCatalog(r, *entry) == nil {
			rollups[entry.Name], definitions[entry.Name] = r, r
		}
	}
	inside.SetRollups(schema, definitions)
	return rollups, schema, nil
}
