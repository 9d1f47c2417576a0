package main

import (
	"fmt"
	"math"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/tidemark-go/tidemark/internal/instant"
)

// PromQL's engine takes times as nanoseconds since 1970, and distances between times as a time.Duration. It does not
// notice what 64 bits cannot hold: it would evaluate the expression at another time.

// evaluated reads a time for which an expression is evaluated.
func (p *params) evaluated(name string, unset time.Time) time.Time {
	t := p.time(name, unset)
	if first, last := time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64); t.Before(first) || t.After(last) {
		p.refuse(name, fmt.Errorf("%.40q is out of the range of PromQL, %s to %s", p.Get(name), instant.Text(first.UTC()), instant.Text(last.UTC())))
		return unset
	}
	return t
}

// checkDistances refuses an expression with a selector that reaches further away from the evaluation than a
// time.Duration does, by its @, offsets and ranges together.
func checkDistances(expr parser.Expr, start, end time.Time) error {
	at := func(stamp *int64, word parser.ItemType) float64 {
		switch {
		case word == parser.END:
			return instant.Seconds(start, end)
		case stamp != nil:
			return math.Abs(instant.Seconds(start, time.UnixMilli(*stamp)))
		}
		return 0
	}
	var far error
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		n, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		reach := at(n.Timestamp, n.StartOrEnd) + math.Abs(n.OriginalOffset.Seconds())
		for _, above := range path {
			switch above := above.(type) {
			case *parser.MatrixSelector:
				reach += above.Range.Seconds()
			case *parser.SubqueryExpr:
				reach += at(above.Timestamp, above.StartOrEnd) + math.Abs(above.OriginalOffset.Seconds()) + above.Range.Seconds()
			}
		}
		if reach >= time.Duration(math.MaxInt64).Seconds() {
			far = fmt.Errorf("a selector reaches %.0f years away from the time of the evaluation by its @, offsets and ranges; PromQL holds at most 292 years", reach/(365.25*24*3600))
		}
		return nil
	})
	return far
}
