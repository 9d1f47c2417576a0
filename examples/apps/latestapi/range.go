package main

import (
	"context"
	"errors"
	"iter"
	"net/http"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// maxStreamed is the largest number of points that a client can name for an answer that is streamed.
const maxStreamed = 1_000_000

// rangeUnder answers GET: the points of the entities below the first fields of a key, or of all of them, between two
// times. As one JSON object they are a page, entity by entity. As lines or CSV they are all sent, also in the order of
// their times.
func (s *server) rangeUnder(w http.ResponseWriter, r request) error {
	p := r.params
	q := belowQuery{Prefix: p.prefix(r.dataset), In: p.bounded(), Order: p.order(tsdb.NewestFirst), ByTime: p.one("by", "entity", "time") == "time"}
	as, err := r.accepted(asJSON, asLines, asCSV)
	if as == asJSON && q.ByTime {
		p.refuse("by", "time", "entity in pages of JSON; time is for lines and csv")
	}
	size, cursor := p.size(as)
	if err := errors.Join(p.check(), err); err != nil {
		return err
	}
	if as != asJSON {
		return s.sendPoints(w, r, as, r.dataset.rangeUnder(r.Context(), r.tenant, q, size), size)
	}
	page, err := r.dataset.pageRange(r.Context(), r.tenant, q, size, cursor)
	if err != nil {
		return err
	}
	return writePage(w, r, page)
}

// size reads the size of a page and its cursor; for lines and CSV, how many points to send, where 0 stands for all.
func (p *params) size(as string) (size int, cursor string) {
	if as == asJSON {
		return p.integer("size", defaultPage, maxPage), p.cursor()
	}
	return p.integer("size", 0, maxStreamed), ""
}

// upTo returns the option of a read that shows whether there are more points than a number; 0 stands for all.
func upTo(n int, opts ...tsdb.ReadOption) []tsdb.ReadOption {
	if n > 0 {
		opts = append(opts, tsdb.Limit(n+1))
	}
	return opts
}

// belowQuery is the points below a prefix that a request asks for.
type belowQuery struct {
	Prefix tsdb.Prefix
	In     tsdb.Interval
	Order  tsdb.Order
	ByTime bool // and not by entity
}

func (s served[T]) pageRange(ctx context.Context, id tenant.ID, q belowQuery, size int, cursor string) (page, error) {
	return s.shown(s.schema.For(s.store, id).Under(q.Prefix).Page(ctx, q.In, size, cursor, q.Order))
}

func (s served[T]) rangeUnder(ctx context.Context, id tenant.ID, q belowQuery, size int) iter.Seq2[point, error] {
	all := s.schema.For(s.store, id).Under(q.Prefix)
	seq := all.Range
	if q.ByTime {
		seq = all.Merged
	}
	return s.points(seq(ctx, q.In, upTo(size, q.Order)...))
}

func (s served[T]) history(ctx context.Context, id tenant.ID, q selection, size int) iter.Seq2[point, error] {
	return s.points(s.schema.For(s.store, id).Range(ctx, q.Entity, q.In, upTo(size, q.Order)...))
}

// points returns points as clients see them.
func (s served[T]) points(seq iter.Seq2[tsdb.Point[T], error]) iter.Seq2[point, error] {
	return func(yield func(point, error) bool) {
		for p, err := range seq {
			if !yield(s.point(p), err) {
				return
			}
		}
	}
}
