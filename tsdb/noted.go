package tsdb

import (
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/lastvalue"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// noted is a call that writes points, as the store's cache is told of it. Whoever makes one tells it of each point before
// its first request, and how each ended before anybody else is told.
type noted struct {
	cache *lastvalue.Cache // nil for none
	mark  *lastvalue.Mark
}

func (s *table) noted() noted {
	if s.cache == nil {
		return noted{}
	}
	return noted{cache: s.cache, mark: new(lastvalue.Mark)}
}

// begin is told of a write that is about to be sent.
func (n noted) begin(w *write) {
	if n.cache == nil || w.d.Identity { // of which it keeps no points
		return
	}
	if id, _, ok := rowkey.PointID(w.key, w.d.Salts, false); ok {
		n.cache.Begin(n.mark, id)
	}
}

// end is told how a write ended, or one attempt at it.
func (n noted) end(w *write, state bt.State) {
	if n.cache == nil || w.d.Identity { // of which it keeps no points
		return
	}
	id, units, ok := rowkey.PointID(w.key, w.d.Salts, false)
	switch {
	case !ok:
	case w.conditional(): // what is there may be another's
		n.cache.Changed(id, w.d.Layout, units)
	default:
		n.endAs(w, id, units, state)
	}
}

// inserted is told how a write that PutIfAbsent made ended.
func (n noted) inserted(w *write, found bt.Inserted, state bt.State) {
	if n.cache == nil || w.d.Identity { // of which it keeps no points
		return
	}
	id, units, ok := rowkey.PointID(w.key, w.d.Salts, false)
	switch {
	case !ok:
	case state == bt.Stored && found != bt.Fresh:
		n.cache.Changed(id, w.d.Layout, units)
	default:
		n.endAs(w, id, units, state)
	}
}

func (n noted) endAs(w *write, id rowkey.ID, units int64, state bt.State) {
	switch state {
	case bt.Rejected:
	case bt.Stored:
		n.cache.Stored(n.mark, id, lastvalue.Written{Layout: w.d.Layout, Units: units, Cell: w.cell, Column: w.d.FirstColumn, Payload: w.payload})
	default:
		n.cache.Changed(id, w.d.Layout, units)
	}
}

// attempted is how one attempt at a write of many ended.
func attempted(a bt.Answer) bt.State {
	switch {
	case a.Err == nil:
		return bt.Stored
	case a.Doubt:
		return bt.Unknown
	}
	return bt.Rejected
}
