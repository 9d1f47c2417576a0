package main

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// span is the time for which series are listed: those that have a sample in it. It is in ms since 1970, from and to
// included. The zero span is all time.
type span struct{ from, to int64 }

// listStep is to what spans are rounded, outwards, so that the lists of requests that come one after the other are
// found in the cache.
const listStep = int64(5 * time.Minute / time.Millisecond)

// mostEnded is how many series a list may have for which the end of a span counts: each one with samples after the end
// costs a request. The start costs nothing more than the list.
const mostEnded = 1000

// noEnd is the end of a span that goes on: nothing is later.
const noEnd = math.MaxInt64

// spanOf returns the span from one time to another.
func spanOf(from, to, now time.Time) span {
	w := span{max(0, from.UnixMilli()/listStep*listStep), noEnd}
	if to.UnixMilli() < now.UnixMilli()/listStep*listStep {
		w.to = (max(0, to.UnixMilli())/listStep+1)*listStep - 1
	}
	if w == (span{0, noEnd}) {
		return span{}
	}
	return w
}

// String returns the span for the key of a cache.
func (w span) String() string {
	if w == (span{}) {
		return ""
	}
	return fmt.Sprintf("\x00%d-%d", w.from, w.to)
}

// ends reports whether the end of the span counts.
func (w span) ends() bool { return w != (span{}) && w.to != noEnd }

// of returns the span for a list of n series.
func (w span) of(n int) span {
	if w.ends() && n > mostEnded {
		w.to = noEnd
	}
	return w
}

// entitiesIn returns the entities under a prefix that have points in a span.
func entitiesIn[T any](ctx context.Context, repo *tsdb.Repository[T], p tsdb.Prefix, w span) iter.Seq2[tsdb.Entity, error] {
	switch {
	case w == (span{}):
		return repo.Under(p).Entities(ctx, tsdb.AllTime())
	case !w.ends():
		return repo.Under(p).Entities(ctx, tsdb.Since(time.UnixMilli(w.from)))
	}
	return repo.Under(p).Entities(ctx, tsdb.Between(time.UnixMilli(w.from), time.UnixMilli(w.to+1)))
}

// inSpan returns those of the series of a metric that have samples in a span.
func (p *promSource) inSpan(ctx context.Context, id tenant.ID, metric string, all []*series, when span) ([]*series, error) {
	when = when.of(len(all))
	if when == (span{}) {
		return all, nil
	}
	found, err := p.active.get(ctx, id, metric+when.String(), func(ctx context.Context) (map[tsdb.Entity]bool, int, error) {
		found := map[tsdb.Entity]bool{}
		for e, err := range entitiesIn(ctx, p.schema.For(p.store, id), tsdb.NewPrefix(samplesKind, metric), when) {
			if err != nil {
				return nil, 0, err
			}
			if found[e] = true; len(found) > mostCached {
				return nil, 0, tooManySeriesError{}
			}
		}
		return found, len(found), nil
	})
	if err != nil {
		return nil, err
	}
	var some []*series
	for _, s := range all {
		if found[s.entity] {
			some = append(some, s)
		}
	}
	return some, nil
}
