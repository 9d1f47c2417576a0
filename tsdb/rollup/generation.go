package rollup

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
)

// generation is the version of a row: how often its buckets were replaced, and the growth of the rollup as the last
// program knew it. Programs that do not know growth refuse a row that has one.
type generation struct {
	value  string // as stored; empty if the row has none
	n      uint64
	growth int
}

// generation returns the generation of a row.
func (l *layout) generation(row *bt.Row) (g generation, err error) {
	for _, item := range row.Family(l.control) {
		if item.Column != l.control+":"+columnGeneration {
			continue
		}
		g.value = string(item.Value)
		growth, number, grown := strings.Cut(g.value, ":")
		if !grown {
			growth, number = "0", growth
		}
		g.n, err = strconv.ParseUint(number, 10, 64)
		if err == nil {
			g.growth, err = strconv.Atoi(growth)
		}
		if err != nil || g.n == 0 || g.growth < 0 || grown && g.growth == 0 {
			return g, fmt.Errorf("rollup: row %q has generation %q, want a number above 0", row.Key(), item.Value)
		}
		if g.growth > l.growth {
			return g, fmt.Errorf("rollup: row %q was stored by a program that declares more aggregates of the rollup; this program reads it, but must not replace it", row.Key())
		}
		return g, nil
	}
	return g, nil
}

// next returns the value of the generation after g.
func (l *layout) next(g generation) []byte {
	n := strconv.AppendUint(nil, g.n+1, 10)
	if l.growth == 0 {
		return n
	}
	return append(strconv.AppendInt(nil, int64(l.growth), 10), ":"+string(n)...)
}

// isGeneration returns a filter that passes a cell if the row has a generation, or, if value is empty, any generation.
func (l *layout) isGeneration(value string) bigtable.Filter {
	filters := []bigtable.Filter{
		bigtable.FamilyFilter(regexp.QuoteMeta(l.control)),
		bigtable.ColumnFilter(columnGeneration),
		bigtable.LatestNFilter(1),
	}
	if value != "" {
		filters = append(filters, bigtable.ValueFilter(regexp.QuoteMeta(value)))
	}
	return bigtable.ChainFilters(filters...)
}
