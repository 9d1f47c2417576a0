package tsdb

import (
	"time"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
)

// A generation says what was known of erasure marks when a write was taken: how many changes of marks there were, plus 1. Where
// a mark is lifted, the number of that change is kept, and writes of lesser generations are not stored any more: they are of
// before the erasure. A store that knows of the lift gives later ones.
type generation uint64

const (
	// unknownGeneration is that of a write that was taken where the marks could not be read. It counts whatever was lifted: most
	// lifts are older than the write.
	unknownGeneration generation = 0
	// firstGeneration is that of a write of before all marks.
	firstGeneration generation = 1
)

func (g generation) before(lifted uint64) bool { return g != unknownGeneration && uint64(g) <= lifted }

// written is a point or an event on its way to the table.
type written interface {
	Tenant() string
	Dataset() string
	// Path returns the path of its entity, false where it has none that can be told.
	Path() (string, bool)
}

// generation returns that of a write that is being taken.
func (e *erasures) generation(w written) generation {
	m := e.known.Load()
	if m == nil {
		return unknownGeneration
	}
	n, now := m.Number, e.clock()
	if d := m.tenants[catalog.DeletedDataset(w.Dataset())]; d != nil {
		if d.coversAll(now) {
			return firstGeneration
		}
		n = max(n, d.lifted)
	}
	if t := m.tenants[w.Tenant()]; t != nil {
		if t.coversAll(now) {
			return firstGeneration
		}
		n = max(n, t.lifted)
		if dataset, path, ok := t.entityOf(w); ok {
			if t.coversEntity(dataset, path, now) {
				return firstGeneration
			}
			n = max(n, t.liftOf(dataset, path))
		}
	}
	return generation(n) + 1
}

// coversWrite reports whether a point or an event on its way is one of an erased tenant or entity, or of a dataset that is deleted,
// or was taken before such an erasure or deletion that has been lifted.
func (m *marks) coversWrite(w written, taken generation, now time.Time) bool {
	if len(m.tenants) == 0 {
		return false
	}
	if d := m.tenants[catalog.DeletedDataset(w.Dataset())]; d != nil && (d.coversAll(now) || taken.before(d.lifted)) {
		return true
	}
	t := m.tenants[w.Tenant()]
	if t == nil {
		return false
	}
	if t.coversAll(now) || taken.before(t.lifted) {
		return true
	}
	dataset, path, ok := t.entityOf(w)
	return ok && (t.coversEntity(dataset, path, now) || taken.before(t.liftOf(dataset, path)))
}

// entityOf returns which entity a write is of, where there are marks of entities, or were.
func (t *tenantMarks) entityOf(w written) (dataset, path string, ok bool) {
	if len(t.entities) == 0 && len(t.liftedEntities) == 0 {
		return "", "", false
	}
	path, ok = w.Path()
	return w.Dataset(), path, ok
}

// liftOf returns the generation of the first writes of an entity that count; 0 for all.
func (t *tenantMarks) liftOf(dataset, path string) uint64 {
	if len(t.liftedEntities) == 0 {
		return 0
	}
	return t.liftedEntities[catalog.HashEntity(dataset, path)]
}
