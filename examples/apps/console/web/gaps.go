package web

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
)

const (
	// steps is how many points at a place of an interval show how often an entity sends, and places how many places are
	// looked at.
	steps  = 20
	places = 3
	// bridged is how many usual steps a line bridges.
	bridged = 5
)

// autoGap is the parameter gap, and its default, for the gap that gapOf finds.
const autoGap = "auto"

// gap reads the parameter gap: the longest time between two points that a line bridges, 0s for any, or auto.
func (p *params) gap() (gap time.Duration, auto bool) {
	text := p.text("gap", autoGap)
	if text == autoGap {
		return 0, true
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		p.refuse("gap", shown(text), "auto, or a duration of 0s or more")
	}
	return d, false
}

// gapOf returns the longest time between two points of an entity that a line of some columns bridges: five usual steps,
// and at least two columns. The step is the longest of those at several places, because an entity that now sends each
// second may have sent each minute before. Both are 0, so that the line has no gaps, where no place has enough points.
func gapOf(ctx context.Context, repo *tsdb.Repository[codec.Record], e tsdb.Entity, from, to time.Time, columns int) (gap, step time.Duration, err error) {
	for i := range places {
		at := from.Add(to.Sub(from) / places * time.Duration(i))
		var times []time.Time
		for p, err := range repo.Range(ctx, e, tsdb.Between(at, to), tsdb.OldestFirst, tsdb.Limit(steps+1)) {
			if errors.Is(err, limit.ErrExceeded) {
				break // a line from a rollup may be longer than what the tenant may read of points
			}
			if err != nil && !bad(err) {
				return 0, 0, err
			}
			times = append(times, p.Time)
		}
		step = max(step, usual(times))
	}
	if step == 0 {
		return 0, 0, nil
	}
	return max(bridged*step, 2*to.Sub(from)/time.Duration(columns)), step, nil
}

// usual returns the median time between points; 0 for fewer than three.
func usual(times []time.Time) time.Duration {
	if len(times) < 3 {
		return 0
	}
	var all []time.Duration
	for i := range times[1:] {
		all = append(all, times[i+1].Sub(times[i]))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
