package main

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// longer reads the parameter longer, which is required: how long a silence must be to count as an outage.
func (p *params) longer() time.Duration {
	d := p.duration("longer")
	if d == 0 {
		p.refuse("longer", "missing or 0s", "a duration above 0s: a longer silence is an outage")
	}
	return d
}

// outages answers GET: the times in which an entity sent nothing for longer than a duration.
func (s *server) outages(w http.ResponseWriter, r request) error {
	p := r.params
	q := selection{Entity: p.entity(r.dataset), In: p.bounded(), Order: p.order(tsdb.NewestFirst)}
	longer := p.longer()
	as, err := r.accepted(asJSON, asCSV)
	limit := 0
	if as == asJSON {
		limit = p.integer("limit", maxPage, maxPage)
	} else {
		limit = p.integer("limit", 0, maxStreamed)
	}
	if err := errors.Join(p.check(), err); err != nil {
		return err
	}
	found := r.dataset.outages(r.Context(), r.tenant, q, longer)
	if as == asCSV {
		return s.sendCSV(w, r, aggregate.OutageHeader, func(yield func([]string, error) bool) {
			sent := 0
			for o, err := range found {
				if limit > 0 && sent == limit || !yield(aggregate.OutageRow(o), err) {
					return
				}
				sent++
			}
		})
	}
	answer := struct {
		Outages []window.Outage `json:"outages"`
		More    bool            `json:"more"`
	}{Outages: []window.Outage{}}
	for o, err := range found {
		if err != nil {
			return err
		}
		if answer.More = len(answer.Outages) == limit; answer.More {
			break
		}
		answer.Outages = append(answer.Outages, o)
	}
	return write(w, answer)
}

// uptime answers GET: how long an entity was reporting in each window of time.
func (s *server) uptime(w http.ResponseWriter, r request) error {
	p := r.params
	q := selection{Entity: p.entity(r.dataset), In: p.bounded(), Order: p.order(tsdb.OldestFirst)}
	longer, grid := p.longer(), p.grid()
	as, err := r.accepted(asJSON, asCSV)
	if err := errors.Join(p.check(), err); err != nil {
		return err
	}
	found := r.dataset.uptime(r.Context(), r.tenant, q, grid, longer)
	if as == asCSV {
		return s.sendCSV(w, r, aggregate.UptimeHeader, rowsOf(found, aggregate.UptimeRow))
	}
	buckets, err := collected(found)
	if err != nil {
		return err
	}
	return write(w, struct {
		Buckets []window.Uptime `json:"buckets"`
	}{buckets})
}

func (s served[T]) outages(ctx context.Context, id tenant.ID, q selection, longer time.Duration) iter.Seq2[window.Outage, error] {
	return window.Outages(ctx, s.schema.For(s.store, id), q.Entity, q.In, longer, q.Order)
}

func (s served[T]) uptime(ctx context.Context, id tenant.ID, q selection, grid window.Grid, longer time.Duration) iter.Seq2[window.Uptime, error] {
	return window.ReadUptime(ctx, grid, s.schema.For(s.store, id), q.Entity, q.In, longer, q.Order)
}
