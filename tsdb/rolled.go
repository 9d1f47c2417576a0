package tsdb

import (
	"fmt"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
)

// describedRollups returns the rollups that a schema lists, as the catalogue is to know them.
func describedRollups(rollups []Rollup) ([]catalog.Rollup, error) {
	var out []catalog.Rollup
	for i, r := range rollups {
		what, e := "nil", catalog.Rollup{}
		if r != nil {
			what = "zero"
			ok := false
			if inside.Describe != nil {
				e, ok = inside.Describe(r)
			}
			if !ok {
				what = fmt.Sprintf("of type %T", r)
			}
		}
		if e.Name == "" {
			return nil, invalid.New(ErrInvalid, "rollup "+strconv.Itoa(i), what, "one from rollup.Define")
		}
		out = append(out, e)
	}
	return out, nil
}
