package inbound

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

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
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for _, f := range fields {
		ds.left[LeftOut{d.name, f.why}]++
		field := leftOutField{d.name, f.name}
		if ds.named[field] || !ds.names.Take(id, 1) {
			continue
		}
		ds.named[field] = true
		ds.log.Warn("a field is left out", "tenant", id.String(), "dataset", d.name, "field", f.name, "reason", f.why)
	}
}

// LeftOut returns how many fields are left out so far. Those of a message that is sent again count again.
func (ds *Datasets) LeftOut() map[LeftOut]uint64 {
	ds.mu.RLock()
	defer ds.mu.RUnlock()
	return maps.Clone(ds.left)
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
