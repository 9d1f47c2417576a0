package tenants

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// discovery finds the tenants that have rows in a range of the table, in order. After it has found tenants, it cuts
// the range into parts and searches several parts at once.
type discovery struct {
	room
	only         string          // search only for tenants of this dataset; empty for all in the catalogue
	mu           sync.Mutex      // guards known and names
	known        map[string]bool // whether the catalogue has a dataset
	names        []string        // of all datasets, read when first needed
	parts        []part          // in order
	found, empty int             // searched parts with and without a tenant
}

// part is a range to search, or a tenant that was found.
type part struct {
	rng  rowkey.Range
	id   tenant.ID // zero for a range
	last string    // of a range: the tenant before it, or empty
	// asked, next and err are of a range that was just searched: the first tenant in it, zero for none.
	asked bool
	next  tenant.ID
	err   error
	stem  string // common prefix of the last two tenants' names before the range, without trailing digits
}

const (
	// cutAfter is how many consecutive tenants are found before the range is cut: a short list costs no extra
	// request.
	cutAfter = 16
	// atOnce is how many parts are searched at once.
	atOnce = 16
	// mostFound is how many tenants are held in memory that were found after a part that is not searched yet.
	mostFound = 1000
)

func newDiscovery(r room, only string, behind tenant.ID) *discovery {
	return &discovery{room: r, only: only, known: map[string]bool{}, parts: []part{{rng: rowkey.TenantsAfter(behind)}}}
}

// next returns the next tenant; zero for none.
func (d *discovery) next(ctx context.Context) (tenant.ID, error) {
	for len(d.parts) > 0 {
		if id := d.parts[0].id; !id.IsZero() {
			d.parts = d.parts[1:]
			return id, nil
		}
		if err := ctxerr.Of(ctx); err != nil {
			return tenant.ID{}, err
		}
		if err := d.look(ctx); err != nil {
			return tenant.ID{}, err
		}
	}
	return tenant.ID{}, nil
}

// look finds the first tenant of each of the next parts.
func (d *discovery) look(ctx context.Context) error {
	if d.found >= cutAfter {
		d.cut()
	}
	var all sync.WaitGroup
	asked, known := 0, 0
	for i := 0; i < len(d.parts) && asked < atOnce && known < mostFound; i++ {
		p := &d.parts[i]
		if !p.id.IsZero() {
			known++
			continue
		}
		asked++
		p.asked = true
		all.Go(func() { p.next, p.err = d.first(ctx, p.rng) })
	}
	all.Wait()
	parts := make([]part, 0, len(d.parts)+asked)
	for _, p := range d.parts {
		switch {
		case !p.asked:
			parts = append(parts, p)
		case p.err != nil:
			return p.err
		case p.next.IsZero():
			d.empty++
		default:
			d.found++
			parts = append(parts, part{id: p.next})
			if rest := (rowkey.Range{Start: rowkey.TenantsAfter(p.next).Start, Limit: p.rng.Limit}); !rest.Empty() {
				parts = append(parts, part{rng: rest, last: p.next.String(), stem: stem(p.last, p.next.String())})
			}
		}
	}
	d.parts = parts
	return nil
}

// cut halves parts until there are enough to search at once. It cuts none while more than half of the parts are
// empty.
func (d *discovery) cut() {
	ranges := 0
	for _, p := range d.parts {
		if p.id.IsZero() {
			ranges++
		}
	}
	parts := make([]part, 0, len(d.parts)+atOnce)
	for _, p := range d.parts {
		if p.id.IsZero() && ranges < atOnce && d.empty <= d.found {
			if mid, ok := p.middle(); ok {
				low := p
				low.rng.Limit = mid
				parts = append(parts, low)
				p = part{rng: rowkey.Range{Start: mid, Limit: p.rng.Limit}}
				ranges++
			}
		}
		parts = append(parts, p)
	}
	d.parts = parts
}

// middle returns a key that divides a range between the rows of two tenants. It prefers the end of the names with the
// same stem as the last tenants; else it takes the middle of the range.
func (p part) middle() (string, bool) {
	if p.stem != "" && !strings.HasPrefix(p.rng.Limit, p.stem) {
		return p.stem + rowkey.TenantsAfter(tenant.ID{}).Limit, true
	}
	mid, _, _ := strings.Cut(rowkey.Between(p.rng.Start, p.rng.Limit, 0.5), "#") // the part before # sorts before all rows of that tenant
	return mid, mid > p.rng.Start && mid < p.rng.Limit
}

// stem returns the common prefix of two names, without trailing digits, decimal or hexadecimal.
func stem(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return strings.TrimRight(a[:n], "0123456789abcdef")
}

// aside is how many keys of other programs are skipped with one request.
const aside = 1000

// first returns the first tenant with rows in a range; zero for none.
func (d *discovery) first(ctx context.Context, rng rowkey.Range) (tenant.ID, error) {
	for most := int64(1); !rng.Empty(); {
		keys, err := d.page(ctx, rng, most)
		if err != nil || len(keys) == 0 {
			return tenant.ID{}, err
		}
		var id tenant.ID
		for _, key := range keys {
			var ok bool
			if id, ok = rowkey.TenantOf(key); !ok {
				continue
			}
			mine, err := d.isTenant(ctx, id, key)
			if err != nil || mine {
				return id, err
			}
			break
		}
		rng, most = rng.After(keys[len(keys)-1]), aside
		if !id.IsZero() { // the rows belong to another program
			rng.Start, most = rowkey.TenantsAfter(id).Start, 1
		}
	}
	return tenant.ID{}, nil
}

// isTenant reports whether a row with the tenant's prefix is of a dataset that counts. Usually the first row is.
// Otherwise isTenant sends more requests to search for one.
func (d *discovery) isTenant(ctx context.Context, id tenant.ID, first string) (bool, error) {
	if dataset, _, ok := rowkey.KindOf(first); ok {
		if mine, err := d.counts(ctx, dataset); mine || err != nil {
			return mine, err
		}
	}
	if d.only != "" {
		return d.any(ctx, id, []string{d.only})
	}
	names, err := d.datasets(ctx, id)
	if err != nil {
		return false, err
	}
	for some := range slices.Chunk(names, anyOf) {
		if found, err := d.any(ctx, id, some); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// datasets returns the names of all datasets. It reads them once.
func (d *discovery) datasets(ctx context.Context, id tenant.ID) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names != nil {
		return d.names, nil
	}
	names := []string{}
	for e, err := range catalog.Each(ctx, d.Whole) {
		if err != nil {
			return nil, d.Explain(err)
		}
		if _, _, _, err := spaceOf(id, e.Dataset); err != nil {
			return nil, err
		}
		names = append(names, e.Name)
	}
	d.names = names
	return names, nil
}

// mostKnown bounds how many dataset names are remembered.
const mostKnown = 10_000

// counts reports whether a tenant with rows of this dataset counts as found.
func (d *discovery) counts(ctx context.Context, dataset string) (bool, error) {
	if d.only != "" {
		return dataset == d.only, nil
	}
	d.mu.Lock()
	mine, ok := d.known[dataset]
	d.mu.Unlock()
	if ok {
		return mine, nil
	}
	st, err := catalog.Load(ctx, d.Whole, []string{dataset})
	if err != nil {
		return false, d.Explain(err)
	}
	_, mine = st.Datasets[dataset]
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= mostKnown {
		clear(d.known)
	}
	d.known[dataset] = mine
	return mine, nil
}

// anyOf is how many datasets one request searches for: the service accepts row sets of up to 512 KB.
const anyOf = 1000

// any reports whether a tenant has a row of any of the named datasets.
func (d *discovery) any(ctx context.Context, id tenant.ID, names []string) (found bool, err error) {
	var set bigtable.RowRangeList
	var ranges []rowkey.Range
	for _, name := range names {
		space, err := rowkey.NewSpace(id, name, nil, 0)
		if err != nil {
			return false, err
		}
		for _, rng := range space.Starts() {
			ranges = append(ranges, rng)
			set = append(set, bigtable.NewRange(rng.Start, rng.Limit))
		}
	}
	if len(set) == 0 {
		return false, nil
	}
	for row, err := range d.Whole.Rows(ctx, bt.Scan{Rows: set, Filter: bt.KeysOnly(), Limit: 1}) {
		switch {
		case err != nil:
			return false, d.Explain(err)
		case !slices.ContainsFunc(ranges, func(rng rowkey.Range) bool { return row.Key() >= rng.Start && row.Key() < rng.Limit }):
			return false, fmt.Errorf("%w: %s", tsdb.ErrForeignRow, d.Name)
		}
		return true, nil
	}
	return false, nil
}
