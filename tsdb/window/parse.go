package window

import (
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Parse returns a grid in UTC. The width s is a duration in the syntax of time.ParseDuration ("15m", "1h30m"), or a
// whole number of days ("1d"), weeks that start on Monday ("2w") or calendar months ("3mo"). The error matches
// tsdb.ErrInvalid.
func Parse(s string) (Grid, error) {
	g, ok := parse(s)
	if !ok {
		return Grid{}, invalid.New(tsdb.ErrInvalid, "width", invalid.Quote(s), "a duration, or a number with d, w or mo: 15m, 1h, 1d, 1w, 1mo")
	}
	return g, g.Check()
}

func parse(s string) (Grid, bool) {
	for _, u := range [...]unit{days, weeks, months} {
		digits, ok := strings.CutSuffix(s, u.suffix())
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || strings.HasPrefix(digits, "+") {
			return Grid{}, false
		}
		g := Grid{unit: u, n: n}
		if u == weeks {
			g.first = time.Monday
		}
		return g, true
	}
	d, err := time.ParseDuration(s)
	return Every(d), err == nil
}
