package tenants

import (
	"context"
	"iter"
	"regexp"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// ranges returns the ranges of all tenants, or the rest of the table for a class alone.
func (rm *removal) ranges(ctx context.Context, from string) iter.Seq2[rowkey.Range, error] {
	return func(yield func(rowkey.Range, error) bool) {
		if rm.part.Dataset == "" {
			all := rowkey.TenantsAfter(tenant.ID{})
			all.Start = max(all.Start, from)
			yield(all, nil)
			return
		}
		id, begun := rowkey.TenantOf(from)
		if !begun {
			id = tenant.ID{}
		}
		for d := newDiscovery(rm.room, rm.part.Dataset, id); ; begun = false {
			var err error
			if !begun {
				id, err = d.next(ctx)
			}
			if err == nil && id.IsZero() {
				return
			}
			var ranges []rowkey.Range
			if err == nil {
				ranges, err = rm.ofTenant(id)
			}
			if err != nil {
				yield(rowkey.Range{}, err)
				return
			}
			for _, rng := range ranges {
				rng.Start = max(rng.Start, from)
				if !yield(rng, nil) {
					return
				}
			}
		}
	}
}

// ofTenant returns the ranges of a tenant's rows to remove, in order.
func (rm *removal) ofTenant(id tenant.ID) ([]rowkey.Range, error) {
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

// cells reports whether the removal deletes cells instead of whole rows.
func (rm *removal) cells() bool { return rm.part.Class != "" || rm.part.Tag != "" }

// aim determines which cells of a row to read, and which of them are visible.
func (rm *removal) aim(ctx context.Context) error {
	entry := rm.entry
	rm.filter = bt.KeysOnly()
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
	rm.cell = rm.found
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
			if cutoff, bounded, err := inside.Of(policy).Cutoff(now); err == nil && bounded {
				rm.cutoffs[class] = bigtable.Time(cutoff)
			}
		}
	}
	return nil
}

// found notes a cell of a row to remove. A cell of a rollup's marks or control data, or of a list of fields, is no
// data.
func (rm *removal) found(row *removable, family, column string, at bigtable.Timestamp) {
	if rm.cells() && !slices.Contains(row.columns, column) {
		row.columns = append(row.columns, column)
	}
	class, kind, _ := strings.Cut(family, ".")
	data := family != dataset.MarkFamily && (rm.part.Rollup == "" || kind != "c") && !rowkey.IsFieldsRow(row.key)
	row.visible = row.visible || data && at >= rm.cutoffs[class]
}

// remove deletes rows, or their cells. Unless all cells must go, it keeps cells that have not expired, even if they
// were written after the count.
func (rm *removal) remove(ctx context.Context, page []removable) (int, error) {
	if !rm.cells() {
		return rm.deleteRows(ctx, page)
	}
	entries := make([]bt.Entry, 0, len(page))
	for _, r := range page {
		m, n := bigtable.NewMutation(), 0
		for _, column := range r.columns {
			family, qualifier, _ := strings.Cut(column, ":")
			class, _, _ := strings.Cut(family, ".")
			switch cutoff, bounded := rm.cutoffs[class]; {
			case rm.rec.Unexpired, rowkey.IsFieldsRow(r.key): // some of its cells have a timestamp in the future
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
	return rm.applyAll(ctx, entries)
}

// mostTenants is how many tenants a report names.
const mostTenants = 1000

// count counts a row by its tenant, and whether it is visible. Rows of one tenant are consecutive.
func (r *removalRecord) count(row *removable) {
	if row.visible {
		r.Visible++
	}
	id, ok := rowkey.TenantOf(row.key)
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
