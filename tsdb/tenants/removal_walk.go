package tenants

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// removable is a row with data to remove.
type removable struct {
	key     string
	columns []string // family and qualifier, for a class or a tag
	visible bool     // it has data that has not expired
}

// walk visits pages of the rows to remove, in key order, starting at a key. A page may have rows of several tenants.
// next is the key from which to continue.
func (rm *removal) walk(ctx context.Context, from string, most int, visit func(page []removable, next string) error) error {
	var page []removable
	add := func(rng rowkey.Range) error {
		for !rng.Empty() {
			n := most - len(page)
			keys, err := rm.read(ctx, rng, n, &page)
			if err != nil {
				return err
			}
			rng = after(rng, keys, n)
			if len(page) == most {
				if err := visit(page, page[most-1].key+"\x00"); err != nil {
					return err
				}
				page = page[:0]
			}
		}
		return nil
	}
	var id tenant.ID
	if rm.part.Dataset == "" {
		all := rowkey.TenantsAfter(id)
		all.Start = max(all.Start, from)
		if err := add(all); err != nil {
			return err
		}
		return rm.last(page, visit)
	}
	if begun, ok := rowkey.TenantOf(from); ok {
		id = begun
		ranges, err := rm.ranges(id)
		if err != nil {
			return err
		}
		for _, rng := range ranges {
			rng.Start = max(rng.Start, from)
			if err := add(rng); err != nil {
				return err
			}
		}
	}
	d := newDiscovery(rm.room, rm.part.Dataset, id)
	for {
		var err error
		if id, err = d.next(ctx); err != nil {
			return err
		}
		if id.IsZero() {
			return rm.last(page, visit)
		}
		ranges, err := rm.ranges(id)
		if err != nil {
			return err
		}
		for _, rng := range ranges {
			if err := add(rng); err != nil {
				return err
			}
		}
	}
}

func (rm *removal) last(page []removable, visit func([]removable, string) error) error {
	if len(page) == 0 {
		return nil
	}
	return visit(page, page[len(page)-1].key+"\x00")
}

// ranges returns the ranges of a tenant's rows to remove, in order.
func (rm *removal) ranges(id tenant.ID) ([]rowkey.Range, error) {
	space, err := rowkey.NewSpace(id, rm.part.Dataset, nil, 0)
	if err != nil {
		return nil, err
	}
	if name := rm.part.Rollup; name != "" {
		return []rowkey.Range{space.Kind(rowkey.MarkKind + name).All(), space.Kind(rowkey.RollupKind + name).All()}, nil
	}
	starts := space.Starts()
	return starts[:], nil
}

// read appends the first rows of a range that have data to remove to a page, and returns the keys of the rows read.
func (rm *removal) read(ctx context.Context, rng rowkey.Range, most int, page *[]removable) (keys []string, err error) {
	err = rm.rows(ctx, rng, rm.filter, int64(most), func(row *bt.Row) {
		r := removable{key: row.Key()}
		for family, cells := range row.Families() {
			for _, c := range cells {
				if !slices.Contains(r.columns, c.Column) && rm.cells() {
					r.columns = append(r.columns, c.Column)
				}
				r.visible = r.visible || rm.visible(family, c.Timestamp)
			}
		}
		keys = append(keys, r.key)
		*page = append(*page, r)
	})
	return keys, err
}

// cells reports whether the removal deletes cells instead of whole rows.
func (rm *removal) cells() bool { return rm.part.Class != "" || rm.part.Tag != "" }

// aim determines which cells of a row to read, and which of them are visible.
func (rm *removal) aim(ctx context.Context, entry *catalog.Entry) error {
	rm.filter = keysOnly()
	if rm.part.whole() {
		return nil
	}
	families, column := "", ".*"
	policies := map[string]string{} // by family
	switch class := regexp.QuoteMeta(rm.part.Class); {
	case rm.part.Dataset == "":
		families = class + `(\.(h[0-9]+|s|n|x|c))?`
		policies = nil // its contents are unknown
	case rm.part.Class != "":
		families = class + `(\.h[0-9]+)?`
	case rm.part.Tag != "":
		families, column = `[^.]*(\.h[0-9]+)?`, "p:"+regexp.QuoteMeta(rm.part.Tag)
	default:
		families = "[^.]*[.][snxc]|" + dataset.MarkFamily
	}
	rm.filter = bigtable.ChainFilters(bigtable.FamilyFilter(families), bigtable.ColumnFilter(column), bigtable.StripValueFilter())
	now, err := rm.Service.Confirmed(ctx)
	if err != nil {
		return err
	}
	if policies != nil {
		for _, c := range entry.Classes {
			policies[c.Name] = c.Policy
		}
		for _, r := range entry.Rollups {
			if r.Name == rm.part.Rollup {
				policies[r.Class.Name] = r.Class.Policy
			}
		}
	}
	rm.cutoffs = map[string]bigtable.Timestamp{}
	for class, text := range policies {
		if policy, err := gc.Parse(text); err == nil {
			if cutoff, bounded, err := policy.Cutoff(now); err == nil && bounded {
				rm.cutoffs[class] = bigtable.Time(cutoff)
			}
		}
	}
	return nil
}

// visible reports whether a cell of a family has not expired. A rollup's control cells are not data.
func (rm *removal) visible(family string, at bigtable.Timestamp) bool {
	if rm.part.whole() || family == dataset.MarkFamily {
		return false
	}
	class, kind, _ := strings.Cut(family, ".")
	return (rm.part.Rollup == "" || kind != "c") && at >= rm.cutoffs[class]
}

// deletions returns the deletions of rows, or of their cells. Unless all cells must go, it keeps cells that have not
// expired, even if they were written after the count.
func (rm *removal) deletions(page []removable) []bt.Entry {
	entries := make([]bt.Entry, 0, len(page))
	for _, r := range page {
		m, n := bigtable.NewMutation(), 0
		if !rm.cells() {
			m.DeleteRow()
			n++
		}
		for _, column := range r.columns {
			family, qualifier, _ := strings.Cut(column, ":")
			class, _, _ := strings.Cut(family, ".")
			switch cutoff, bounded := rm.cutoffs[class]; {
			case rm.rec.Unexpired:
				m.DeleteCellsInColumn(family, qualifier)
			case bounded:
				m.DeleteTimestampRange(family, qualifier, 0, cutoff)
			default:
				continue
			}
			n++
		}
		if n > 0 {
			entries = append(entries, bt.Entry{Key: r.key, Mutation: m, Mutations: n})
		}
	}
	return entries
}

// mostTenants is how many tenants a report names.
const mostTenants = 1000

// count adds a page to the report.
func (r *removalRecord) count(page []removable) {
	for _, row := range page {
		r.Rows++
		if row.visible {
			r.Visible++
		}
		dataset, kind, _ := rowkey.KindOf(row.key)
		i, found := slices.BinarySearchFunc(r.Kinds, Counted{Dataset: dataset, Kind: kind}, func(a, b Counted) int {
			return cmp.Or(strings.Compare(a.Dataset, b.Dataset), strings.Compare(a.Kind, b.Kind))
		})
		if !found && len(r.Kinds) < mostKinds {
			r.Kinds = slices.Insert(r.Kinds, i, Counted{Dataset: dataset, Kind: kind})
			found = true
		}
		if found {
			r.Kinds[i].Rows++
		}
		r.countTenant(row.key)
	}
}

// countTenant counts a row of a tenant. Rows of one tenant are consecutive.
func (r *removalRecord) countTenant(key string) {
	id, ok := rowkey.TenantOf(key)
	n := len(r.Tenants)
	switch {
	case !ok:
	case r.Last != id.String():
		r.Last = id.String()
		if n == mostTenants {
			r.OtherTenants++
			return
		}
		r.Tenants = append(r.Tenants, TenantRows{id, 1})
	case r.Tenants[n-1].Tenant == id:
		r.Tenants[n-1].Rows++
	}
}
