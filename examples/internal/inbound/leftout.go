package inbound

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tenant"
)

// LeftOut is a dataset and a reason why fields are left out of its points.
type LeftOut struct{ Dataset, Reason string }

// leftOutField is a field of a dataset that the log has named.
type leftOutField struct{ dataset, name string }

// maxNamed bounds the fields that are remembered because the log has named them. Tenants share them.
const maxNamed = 1000

// leaveOut counts fields, and logs each the first time.
func (ds *Datasets) leaveOut(id tenant.ID, d *Dataset, fields []leftOut) {
	if len(fields) == 0 {
		return
	}
	for _, f := range ds.left.add(id, d, fields) {
		ds.log.Warn("a field is left out", "tenant", id.String(), "dataset", d.name, "field", f.name, "reason", f.why)
	}
}

// leftOuts are the fields that are left out so far. They have a lock of their own, so that they do not
// delay the search for datasets.
type leftOuts struct {
	mu     sync.Mutex
	counts map[LeftOut]uint64
	named  map[leftOutField]bool // fields that the log has named
	names  *edge.Shares          // one for each of them
}

// add counts fields, and returns those that the log has not named yet.
func (l *leftOuts) add(id tenant.ID, d *Dataset, fields []leftOut) (unnamed []leftOut) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range fields {
		l.counts[LeftOut{d.name, f.why}]++
		field := leftOutField{d.name, f.name}
		if !l.named[field] && l.names.Take(id, 1) {
			l.named[field] = true
			unnamed = append(unnamed, f)
		}
	}
	return unnamed
}

// LeftOut returns how many fields are left out so far. Those of a message that is sent again count again.
func (ds *Datasets) LeftOut() map[LeftOut]uint64 {
	ds.left.mu.Lock()
	defer ds.left.mu.Unlock()
	return maps.Clone(ds.left.counts)
}

// PrintLeftOut prints how many fields are left out, by dataset and reason.
func PrintLeftOut(w io.Writer, left map[LeftOut]uint64) {
	order := func(a, b LeftOut) int {
		return cmp.Or(cmp.Compare(a.Dataset, b.Dataset), cmp.Compare(a.Reason, b.Reason))
	}
	for _, l := range slices.SortedFunc(maps.Keys(left), order) {
		fmt.Fprintf(w, "%9d fields of %s left out: %s\n", left[l], l.Dataset, l.Reason)
	}
}
