package inspect

import (
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
)

// WithRollups returns View.Repository with the derived rollups of the dataset, so that rollup.ReadWindows and the lines of package
// chart can read them. number returns the number that a measure of a rollup has in a payload, and false if it has none. It must be the
// one that the program's own function returns: buckets that no worker has stored yet are computed with it.
//
// A rollup that this program cannot define is left out, such as one in a time zone that this machine does not know. WithRollups
// does no I/O. It fails with ErrInvalid if number is nil.
func (v *View) WithRollups(number func(measure string, p Payload) (float64, bool)) (*tsdb.Repository[Payload], error) {
	if err := v.check(); err != nil {
		return nil, err
	}
	if number == nil {
		return nil, invalid.New(ErrInvalid, "number", "nil", "a function that returns the number of a measure")
	}
	known := map[string]any{}
	for _, entry := range v.dataset.Rollups {
		if entry.Kind != catalog.Derived || entry.From != "" && known[entry.From] == nil {
			continue
		}
		r := new(rollup.Rollup[Payload])
		if inside.RollupFromCatalog(r, entry, number) == nil {
			known[entry.Name] = r
		}
	}
	return v.repository(known), nil
}
