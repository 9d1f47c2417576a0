package rowkey

import (
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/tenant"
)

// Group names the rows of one kind of one tenant's dataset, which stand side by side. The zero Group is rows of which
// that cannot be told: those of other programs.
type Group struct {
	Tenant        tenant.ID
	Dataset, Kind string // Kind is empty for points
}

// GroupOf returns the group of a key, and the range of all its rows. It reports false for keys that are in none.
func GroupOf(key string) (g Group, all Range, ok bool) {
	id, ok := TenantOf(key)
	if !ok {
		return Group{}, Range{}, false
	}
	dataset, kind, ok := KindOf(key)
	if !ok {
		return Group{}, Range{}, false
	}
	rest := key[len(id.String())+1:]
	prefix := key[:len(id.String())+1+strings.IndexByte(rest, delim)]
	return Group{Tenant: id, Dataset: dataset, Kind: kind}, Range{Start: prefix + string(rune(delim)), Limit: prefix + string(rune(afterDel))}, true
}

// Cuts returns the range of the rows of all tenants, cut at keys into ranges that follow on one another. Rows of other
// programs may be among them. Keys that are not within the range, and the second of two, cut nothing.
func Cuts(cuts []string) []Range {
	rest := TenantsAfter(tenant.ID{})
	var parts []Range
	for _, key := range slices.Sorted(slices.Values(cuts)) {
		if key > rest.Start && key < rest.Limit {
			parts = append(parts, Range{Start: rest.Start, Limit: key})
			rest.Start = key
		}
	}
	return append(parts, rest)
}
