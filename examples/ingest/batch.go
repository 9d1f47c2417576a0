package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/errstatus"
)

// batch gathers points, and merges those of one series and time before they are sent.
type batch struct {
	groups []*group
	find   map[*dataset]*group
	lines  int
	bytes  int // of the lines
}

// A batch is stored when it has this many lines or bytes, so that memory does not grow with the input.
const (
	batchLines = 5000
	batchBytes = 4 << 20
)

// storeWidth is the number of datasets that are written in parallel.
const storeWidth = 4

func newBatch() *batch { return &batch{find: map[*dataset]*group{}} }

func (b *batch) full() bool { return b.lines >= batchLines || b.bytes >= batchBytes }

// group is a batch's points of one dataset.
type group struct {
	dataset *dataset
	points  []tsdb.Point[codec.Record]
	lines   [][]line // the lines of each point, without their text
	index   map[place]int
}

// place is where a point is stored: two lines with the same place are one point.
type place struct {
	entity tsdb.Entity
	time   int64
}

// add adds the point of a line. It refuses a line whose tags differ from those of an earlier line with the same place; the
// store refuses such lines of different batches. It reports whether the line changed a field of an earlier one.
func (b *batch) add(p point, l line) (replaced bool, err error) {
	g := b.group(p.dataset)
	at := place{p.entity, p.time.UnixNano()}
	i, ok := g.index[at]
	if !ok {
		g.index[at] = len(g.points)
		g.points = append(g.points, tsdb.Point[codec.Record]{Entity: p.entity, Time: p.time, Value: p.record})
		g.lines = append(g.lines, []line{l})
		b.lines++
		return false, nil
	}
	there := &g.points[i]
	for name, v := range p.record.All() {
		old, ok := there.Value.Lookup(name)
		if !ok || old == v {
			continue
		}
		if tag, isTag := strings.CutPrefix(name, tagPrefix); isTag {
			return false, &lineError{reasonSeries, fmt.Errorf("its tag %q is %s, and %s on %v with the same key and time: "+
				"name the tag in -key to keep the two series apart", tag, v, old, g.lines[i][0])}
		}
		replaced = true
	}
	there.Value = there.Value.Merge(p.record)
	g.lines[i] = append(g.lines[i], l)
	b.lines++
	return replaced, nil
}

func (b *batch) group(d *dataset) *group {
	g := b.find[d]
	if g == nil {
		g = &group{dataset: d, index: map[place]int{}}
		b.find[d] = g
		b.groups = append(b.groups, g)
	}
	return g
}

// store writes the batch for a tenant and adds its lines to the report. The error is nil if each line is stored or permanently
// refused.
func (b *batch) store(ctx context.Context, in *ingester, id tenant.ID, rep *report) error {
	outcomes := make([][]tsdb.Outcome, len(b.groups))
	var stores errgroup.Group // the writer makes batches of parallel writes
	stores.SetLimit(storeWidth)
	for n, g := range b.groups {
		stores.Go(func() error {
			outcomes[n], _ = g.dataset.schema.For(in.store, id).Via(in.writer).EnqueueMany(ctx, g.points) // each outcome has its error
			return nil
		})
	}
	_ = stores.Wait()
	var failed error
	for n, g := range b.groups {
		for i, out := range outcomes[n] {
			switch {
			case out.Err == nil:
				rep.points++
				rep.stored += len(g.lines[i])
				if out.State == tsdb.Journaled {
					rep.journaled += len(g.lines[i])
				}
				rep.merged += len(g.lines[i]) - 1
			case out.State == tsdb.Rejected && isFinal(out.Err):
				for _, l := range g.lines[i] {
					rep.refuse(l, refusal(out.Err))
				}
			default:
				rep.undelivered += len(g.lines[i])
				if failed == nil {
					failed = fmt.Errorf("%s of %s at %v is %v: %w", g.dataset.name, g.points[i].Entity, g.points[i].Time.UTC().Format(time.RFC3339Nano), out.State, out.Err)
				}
			}
		}
	}
	return failed
}

// The reasons why the store refuses points.
const (
	reasonSeries = "another series has its key and time"
	reasonTime   = "its time is not accepted"
	reasonValue  = "its values cannot be stored"
	reasonLimit  = "it is over a limit of the tenant"
)

// isFinal reports whether a refused point would be refused again: the fault is the client's, and if it is over a limit, waiting does
// not help, as with the number of entities.
func isFinal(err error) bool {
	r := errstatus.HTTP(err)
	switch r.Status {
	case http.StatusTooManyRequests:
		return r.RetryAfter == 0
	case errstatus.StatusClientClosedRequest:
		return false
	}
	return r.Status < http.StatusInternalServerError
}

func refusal(err error) error {
	switch {
	case errors.Is(err, limit.ErrExceeded):
		return &lineError{reasonLimit, err}
	case errors.Is(err, tsdb.ErrExists):
		return &lineError{reasonSeries, err}
	case errors.Is(err, tsdb.ErrExpired), errors.Is(err, tsdb.ErrLate), errors.Is(err, tsdb.ErrTooFarAhead):
		return &lineError{reasonTime, err}
	}
	if ie, ok := errors.AsType[*tsdb.InvalidError](err); ok && ie.Field == "time" {
		return &lineError{reasonTime, err}
	}
	return &lineError{reasonValue, err}
}
