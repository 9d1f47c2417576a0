package dynamic

import (
	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
)

// Rollups returns the rollups of a dataset of tsdb.Store.Datasets by name, and the schema with which they are read:
//
//	rollups, schema, err := dynamic.Rollups(d, dynamic.Options{})
//	hours := rollup.For(rollups["hours"], schema.For(store, acme))
//	for b, err := range hours.Buckets(ctx, roof, tsdb.Between(from, to)) { … }
//
// window.Aggregator.Read reads them too. Buckets of a derived rollup that are open, or that changed since a
// rollup.Worker stored them, are computed from points:
//
//   - A measure that is declared by a field (rollup.Measure.Field) has the same numbers as in the program that defines
//     the rollup. Options say how protobuf payloads are read.
//   - A measure that is a function is only known to that program. So is one whose field is in payloads with a tag that
//     Options do not decode. Such a bucket is incomplete: window.Bucket.Incomplete has what is stored of it and when it
//     changed, and the measure has all its aggregates in window.Summary.Missing. If no measure is known, its Points are
//     0. The same holds for a rollup without measures.
//
// So no number of Bucket.Values is ever an old one. Rollups that events are added to are always read in full.
//
// Rollups that this program cannot define are left out, such as those in a time zone that this machine does not know.
// Calls that write fail with tsdb.ErrInvalid. The error is that of Schema for nil, the zero Schema and Options that
// contradict themselves. Rollups does no I/O.
func Rollups(d tsdb.Dataset, opts Options) (map[string]*rollup.Rollup[struct{}], *tsdb.Schema[struct{}], error) {
	t, err := opts.tags()
	if err != nil {
		return nil, nil, err
	}
	of, err := inside.Of(d).Shape()
	if err != nil {
		return nil, nil, err
	}
	known := true // the fields of all payloads
	numbers := inside.ReadNumbers(of.Tags, func(tag string) func(string) func([]byte) (codec.Value, error) {
		if t.decoder(tag) == nil {
			known = false
			return nil
		}
		return func(name string) func([]byte) (codec.Value, error) { return t.number(tag, name) }
	})
	rollups, definitions := map[string]*rollup.Rollup[struct{}]{}, map[string]tsdb.Rollup{}
	for i := range of.Rollups {
		entry := &of.Rollups[i].Rollup
		if entry.Kind == catalog.Derived && entry.From != "" && rollups[entry.From] == nil {
			continue
		}
		if r, err := inside.Of[*rollup.Reader[struct{}]](nil).Rollup(*entry, known); err == nil {
			rollups[entry.Name], definitions[entry.Name] = r, r
		}
	}
	return rollups, inside.Of[*tsdb.Repository[struct{}]](nil).Schema(of, numbers, definitions), nil
}
