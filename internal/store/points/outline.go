package points

import (
	"cmp"
	"slices"
	"sync"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// outlineBytes bounds the memory of an outline, for each entity that it may hold.
const outlineBytes = 128

// The most that an outline holds.
const (
	OutlineEntities = mostEntities
	OutlineBytes    = outlineBytes * mostEntities
)

// Outline remembers the entities of one tenant in one dataset that skip scans have found, in the order of their rows,
// so that the next scan can read the newest points of many in one request. It affects how a scan is made, never its
// result. It is safe for concurrent use.
type Outline struct {
	mu       sync.Mutex
	bound    int // of entities
	entities []rowkey.Known
}

// Outline returns the outline of the tenant's dataset.
func (r *Rows) Outline() *Outline {
	return &r.Recent.of(r.Tenant, r.D.Name).outline
}

// limit sets the bound of entities.
func (o *Outline) limit(bound int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bound = bound
}

// First returns the first n entities of a range whose keys fit into one request, and whether there are more.
func (o *Outline) First(rng rowkey.Range, n int) (known []rowkey.Known, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	from, to := o.span(rng)
	end, size := from, 0
	for end < to && end-from < n {
		if size += 2*len(o.entities[end].Prefix) + rangeBytes + rowkey.ReverseLen; size > maxRowSet {
			break
		}
		end++
	}
	return slices.Clone(o.entities[from:end]), end < to
}

// Replace replaces the entities of a range by others, in the order of their rows. It leaves out those that would exceed
// the outline's bounds.
func (o *Outline) Replace(rng rowkey.Range, found []rowkey.Known) {
	o.mu.Lock()
	defer o.mu.Unlock()
	from, to := o.span(rng)
	bytes := 0
	for i := range o.entities {
		if i < from || i >= to {
			bytes += len(o.entities[i].Prefix)
		}
	}
	n := 0
	for n < len(found) && len(o.entities)-(to-from)+n < o.bound {
		if bytes += len(found[n].Prefix); bytes > outlineBytes*o.bound {
			break
		}
		n++
	}
	o.entities = slices.Replace(o.entities, from, to, found[:n]...)
}

// span returns the indexes of the entities of a range.
func (o *Outline) span(rng rowkey.Range) (from, to int) {
	at := func(key string) int {
		i, _ := slices.BinarySearchFunc(o.entities, key, func(e rowkey.Known, key string) int { return cmp.Compare(e.Prefix, key) })
		return i
	}
	from = at(rng.Start)
	return from, max(from, at(rng.Limit))
}
