package points

import (
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/lastvalue"
)

// CacheWrite keeps the last-value cache correct during one call that writes points, and passes stored points to
// followers. The call reports each point before its first request, and its result before the call returns an outcome.
type CacheWrite struct {
	feed  *Feed
	cache *lastvalue.Cache // nil for none
	mark  *lastvalue.Mark
}

// NewCacheWrite begins a call that writes points.
func (s *Table) NewCacheWrite() CacheWrite {
	if s.Cache == nil {
		return CacheWrite{feed: &s.Feed}
	}
	return CacheWrite{feed: &s.Feed, cache: s.Cache, mark: new(lastvalue.Mark)}
}

// Begin records that a write is about to be sent.
func (n CacheWrite) Begin(w *Write) {
	if n.cache == nil || w.D.Identity { // the cache keeps no events
		return
	}
	n.cache.Begin(n.mark, w.Entity)
}

// End records the result of a write, or of one attempt at it.
func (n CacheWrite) End(w *Write, state bt.State) {
	if state == bt.Stored {
		n.feed.stored(w)
	}
	if n.cache == nil || w.D.Identity { // the cache keeps no events
		return
	}
	if w.Conditional() { // the row may hold another writer's point
		n.cache.Changed(w.Entity, w.D.Layout, w.Units)
		return
	}
	n.endAs(w, state)
}

// Inserted records the result of a write of PutIfAbsent.
func (n CacheWrite) Inserted(w *Write, found bt.Inserted, state bt.State) {
	if state == bt.Stored && found != bt.Other {
		n.feed.stored(w)
	}
	if n.cache == nil || w.D.Identity { // the cache keeps no events
		return
	}
	if state == bt.Stored && found != bt.Fresh {
		n.cache.Changed(w.Entity, w.D.Layout, w.Units)
		return
	}
	n.endAs(w, state)
}

func (n CacheWrite) endAs(w *Write, state bt.State) {
	switch state {
	case bt.Rejected:
	case bt.Stored:
		n.cache.Stored(n.mark, w.Entity, lastvalue.Written{Layout: w.D.Layout, Units: w.Units, Cell: w.Cell, Column: w.D.FirstColumn, Payload: w.Payload})
	default:
		n.cache.Changed(w.Entity, w.D.Layout, w.Units)
	}
}

// Attempted returns the state of a write after one attempt.
func Attempted(a bt.Answer) bt.State {
	switch {
	case a.Err == nil:
		return bt.Stored
	case a.MaybeApplied:
		return bt.Unknown
	}
	return bt.Rejected
}
