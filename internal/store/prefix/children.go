package prefix

import (
	"context"
	"strings"

	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/skipscan"
)

// Children yields the paths with one part more than the prefix that an entity with a visible point has, in order and
// each once, until visit returns false.
func (r *Read) Children(ctx context.Context, visit func(path string) bool) error {
	q := skipscan.Query{Prefix: r.Prefix, Options: r.Options}
	n := rowkey.CountParts(r.Prefix) + 1
	if n < len(r.Rows.D.Fields) {
		q.Parts = n
	}
	last := ""
	return skipscan.Scan(ctx, r.Rows, q, func(h dataset.Hit) bool {
		path := rowkey.FirstParts(h.Path, n)
		if path == last { // from another salt, or another part of the scan
			return true
		}
		last = strings.Clone(path)
		return visit(last)
	})
}
