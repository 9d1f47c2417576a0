package tenants

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Tenant is one tenant of a table.
type Tenant struct {
	ID tenant.ID `json:"tenant"`
	// Profile is nil if the tenant was never onboarded.
	Profile *Profile `json:"profile,omitempty"`
	// Rows says whether the tenant has rows in datasets of the catalogue. Rows of expired points count until they are
	// collected.
	Rows bool `json:"rows"`
	// Erased is the state of the tenant's erasure, or empty if the tenant is not erased.
	Erased State `json:"erased,omitempty"`
}

// ListOptions configure a listing. The zero value lists all tenants.
type ListOptions struct {
	// After starts the list after this tenant, in the order of List.
	After tenant.ID
	// ProfilesOnly lists the tenants with a profile or an erasure mark. One request reads many of them. It does not
	// search for rows, and Rows is false.
	ProfilesOnly bool
}

// List returns the tenants of a table that have rows, a profile, or an erasure mark, sorted by the bytes of their
// names. The table has no index of tenants: List finds the first row of each tenant and continues after its last row.
// So it costs one or two small requests per tenant, however much the tenant has stored, and one for every 1,000
// profiles and marks. After the first 16 tenants it searches up to 16 parts of the table at once. It skips rows of
// other programs.
//
// Tenants that appear or disappear during the call may or may not be listed. An error is the last pair. It matches
// tsdb.ErrTenantMismatch if ctx carries a tenant, because a tenant must not see others. List is bounded by ctx, and
// each request by the read timeout.
func List(ctx context.Context, store *tsdb.Store, opts ListOptions) iter.Seq2[Tenant, error] {
	return func(yield func(Tenant, error) bool) {
		rows := 0
		ctx, r, op, err := enterForAll(ctx, store, telemetry.TenantList, tenant.ID{})
		defer func() {
			op.Returned(rows)
			op.End(err)
		}()
		if err != nil {
			yield(Tenant{}, err)
			return
		}
		l := listing{room: r, profiles: own{prefix: rowkey.ProfileRows}, marks: own{prefix: rowkey.MarkRows, only: "[^#]*"}}
		l.profiles.last, l.marks.last = opts.After.String(), opts.After.String()
		if !opts.ProfilesOnly {
			l.rows = newDiscovery(r, "", opts.After)
		}
		for {
			var t Tenant
			var ok bool
			if t, ok, err = l.next(ctx); err != nil {
				yield(Tenant{}, err)
				return
			}
			if !ok {
				return
			}
			rows++
			if !yield(t, nil) {
				return
			}
		}
	}
}

// listing is one walk over a table's tenants.
type listing struct {
	room
	profiles own
	marks    own
	rows     *discovery // nil if rows are not searched for
	found    tenant.ID  // a tenant with rows that was not listed yet; zero for none
}

// next returns the next tenant.
func (l *listing) next(ctx context.Context) (t Tenant, ok bool, err error) {
	for {
		t, ok, err = l.step(ctx)
		if err != nil || !ok || t.Rows || t.Profile != nil || t.Erased != "" {
			return t, ok, err
		}
	}
}

// step is next, but also returns tenants of which only an ended erasure is left.
func (l *listing) step(ctx context.Context) (t Tenant, ok bool, err error) {
	if err := ctxerr.Of(ctx); err != nil {
		return t, false, err
	}
	if l.found.IsZero() && l.rows != nil {
		if l.found, err = l.rows.next(ctx); err != nil {
			return t, false, err
		}
	}
	profile, err := l.profiles.peek(ctx, l.room)
	if err != nil {
		return t, false, err
	}
	erased, err := l.marks.peek(ctx, l.room)
	if err != nil {
		return t, false, err
	}
	for _, id := range []tenant.ID{l.found, profile.id, erased.id} {
		if t.ID.IsZero() || !id.IsZero() && id.String() < t.ID.String() {
			t.ID = id
		}
	}
	if t.ID.IsZero() {
		return t, false, nil
	}
	if l.found == t.ID {
		t.Rows, l.found = true, tenant.ID{}
	}
	if profile.id == t.ID {
		l.profiles.take()
		p, err := readProfile(t.ID, profile.doc)
		if err != nil {
			return t, false, err
		}
		t.Profile = &p
	}
	if erased.id == t.ID {
		l.marks.take()
		var rec record
		if err := json.Unmarshal(erased.doc.JSON, &rec); err != nil {
			return t, false, fmt.Errorf("tenants: the erasure mark of %s does not decode: %w", t.ID, err)
		}
		if rec.inForce(erased.doc, l.Time.Earliest()) {
			t.Erased = rec.State
		}
	}
	return t, true, nil
}

// own reads the store's own documents of tenants, page by page.
type own struct {
	prefix string
	only   string // a pattern of the names to read; empty for all
	last   string // the last name read
	page   []owned
	over   bool
}

type owned struct {
	id  tenant.ID
	doc catalog.Document
}

// ownPage is how many of the store's own rows one request reads.
const ownPage = 1000

// peek returns the next document, or one with a zero tenant at the end.
func (o *own) peek(ctx context.Context, r room) (owned, error) {
	for len(o.page) == 0 && !o.over {
		rows := 0
		rng := rowkey.OwnAfter(o.prefix, o.last)
		err := r.rows(ctx, rng, o.filter(), ownPage, func(row *bt.Row) {
			rows++
			o.last = strings.TrimPrefix(row.Key(), o.prefix)
			id, err := tenant.Parse(o.last)
			if err != nil {
				return
			}
			if doc, err := catalog.ParseDocument(row); err == nil {
				o.page = append(o.page, owned{id, doc})
			}
		})
		if err != nil {
			return owned{}, err
		}
		o.over = rows < ownPage
	}
	if len(o.page) == 0 {
		return owned{}, nil
	}
	return o.page[0], nil
}

func (o *own) take() { o.page = o.page[1:] }

func (o *own) filter() bigtable.Filter {
	filter := bigtable.ChainFilters(bigtable.FamilyFilter(catalog.Family), bigtable.LatestNFilter(1))
	if o.only != "" { // skips the marks of entities, which may be many
		filter = bigtable.ChainFilters(bigtable.RowKeyFilter(regexp.QuoteMeta(o.prefix)+o.only), filter)
	}
	return filter
}
