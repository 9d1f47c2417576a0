package tenancy

import (
	"time"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
)

// Generation says which erasure marks were known when a write was taken: the number of changes of marks, plus 1. When a
// mark is lifted, the number of that change is stored, and writes with smaller generations are refused: they are from
// before the erasure. A store that knows of the lift assigns greater ones.
type Generation uint64

const (
	// unknownGeneration is for a write that was taken while the marks could not be read. No lift refuses it, because
	// most lifts are older than the write.
	unknownGeneration Generation = 0
	// FirstGeneration is for a write from before all marks.
	FirstGeneration Generation = 1
)

func (g Generation) before(lifted uint64) bool { return g != unknownGeneration && uint64(g) <= lifted }

// Write is a point or an event that is to be written.
type Write interface {
	Tenant() string
	Dataset() string
	// Path returns the path of its entity.
	Path() string
}

// Generation returns the generation of a write that is being taken.
func (e *Erasures) Generation(w Write) Generation {
	m := e.Last()
	if m == nil {
		return unknownGeneration
	}
	n := m.Number
	if len(m.Tenants) == 0 { // the usual case reads no clock
		return Generation(n) + 1
	}
	now := e.Clock()
	if d := m.Tenants[catalog.DeletedDataset(w.Dataset())]; d != nil {
		if d.coversAll(now) {
			return FirstGeneration
		}
		n = max(n, d.lifted)
	}
	if t := m.Tenants[w.Tenant()]; t != nil {
		if t.coversAll(now) {
			return FirstGeneration
		}
		n = max(n, t.lifted)
		if dataset, path, ok := t.entityOf(w); ok {
			if t.coversEntity(dataset, path, now) {
				return FirstGeneration
			}
			n = max(n, t.refusedUpTo(dataset, path))
		}
	}
	return Generation(n) + 1
}

// CoversWrite reports whether a write belongs to an erased tenant or entity or to a deleted dataset, or was taken
// before such an erasure or deletion that was lifted since.
func (m *Marks) CoversWrite(w Write, taken Generation, now time.Time) bool {
	if len(m.Tenants) == 0 {
		return false
	}
	if d := m.Tenants[catalog.DeletedDataset(w.Dataset())]; d != nil && (d.coversAll(now) || taken.before(d.lifted)) {
		return true
	}
	t := m.Tenants[w.Tenant()]
	if t == nil {
		return false
	}
	if t.coversAll(now) || taken.before(t.lifted) {
		return true
	}
	dataset, path, ok := t.entityOf(w)
	return ok && (t.coversEntity(dataset, path, now) || taken.before(t.refusedUpTo(dataset, path)))
}

// entityOf returns the entity of a write, if there are or were marks of entities.
func (t *tenantMarks) entityOf(w Write) (dataset, path string, ok bool) {
	if len(t.entities) == 0 && len(t.liftedEntities) == 0 {
		return "", "", false
	}
	return w.Dataset(), w.Path(), true
}

// refusedUpTo returns the last generation of an entity's writes that is refused; 0 means none.
func (t *tenantMarks) refusedUpTo(dataset, path string) uint64 {
	if len(t.liftedEntities) == 0 {
		return 0
	}
	return t.liftedEntities[catalog.HashEntity(dataset, path)]
}
