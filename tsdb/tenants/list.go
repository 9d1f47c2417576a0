package tenants

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/catalog"
	"github.com/tidemark-go/tidemark/internal/cause"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Tenant is one tenant of a table.
type Tenant struct {
	ID tenant.ID `json:"tenant"`
	// Profile is nil where the tenant was never onboarded.
	Profile *Profile `json:"profile,omitempty"`
	// Rows says whether there are any rows of the tenant in datasets of the catalogue, those of expired points included.
	Rows bool `json:"rows"`
	// Erased is how far the tenant's erasure is; empty for a tenant that is not erased.
	Erased State `json:"erased,omitempty"`
}

// ListOptions are what a listing may decide. The zero value lists all tenants.
type ListOptions struct {
	// After continues behind that tenant, in the order of List.
	After tenant.ID
	// ProfilesOnly lists the tenants with a profile or an erasure mark, one request for many of them, and does not look for
	// rows: Rows is false.
	ProfilesOnly bool
}

// List returns the tenants of a table in the order of their names' bytes: those that have rows, a profile, or an erasure mark.
// There is no index of them: it finds the first row of each and goes on behind its last, so it costs one small request a
// tenant, however much each has stored, and one for every 1,000 profiles and marks. Rows of other programs are passed over.
//
// Tenants that come and go while it runs may or may not show. An error is the last pair; it is tsdb.ErrTenantMismatch where
// ctx carries a tenant: what there is beside it is not its to see. It is bounded by ctx, and each
// request by the timeout of reads.
func List(ctx context.Context, store *tsdb.Store, opts ListOptions) iter.Seq2[Tenant, error] {
	return func(yield func(Tenant, error) bool) {
		var err error
		rows := 0
		ctx, op := store.Watch(inside.Key{}).Begin(ctx, telemetry.TenantList, telemetry.Subject{})
		defer func() {
			op.Returned(rows)
			op.End(err)
		}()
		r, err := enterForAll(ctx, store)
		if err != nil {
			yield(Tenant{}, err)
			return
		}
		l := listing{room: r, after: opts.After, profiles: own{prefix: rowkey.ProfileRows}, marks: own{prefix: rowkey.MarkRows}}
		l.profiles.last, l.marks.last = opts.After.String(), opts.After.String()
		if l.over = opts.ProfilesOnly; !l.over {
			if l.datasets, err = catalog.All(ctx, r.Table); err != nil {
				yield(Tenant{}, r.Explain(err))
				return
			}
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
	datasets []catalog.Dataset
	profiles own
	marks    own

	after tenant.ID // the last tenant whose rows were looked for
	found tenant.ID // one with rows that was not listed yet; zero for none
	over  bool      // there are no more tenants with rows
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

// step is next that gives tenants too of which nothing is left but that they were erased once.
func (l *listing) step(ctx context.Context) (t Tenant, ok bool, err error) {
	if err := cause.Of(ctx); err != nil {
		return t, false, err
	}
	if l.found.IsZero() && !l.over {
		if l.found, err = l.nextWithRows(ctx); err != nil {
			return t, false, err
		}
		l.after, l.over = l.found, l.found.IsZero()
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
		m := mark{doc: erased.doc}
		if err := json.Unmarshal(erased.doc.JSON, &m.rec); err != nil {
			return t, false, fmt.Errorf("tenants: the erasure mark of %s does not decode: %w", t.ID, err)
		}
		if m.inForce(l.Earliest()) {
			t.Erased = m.rec.State
		}
	}
	return t, true, nil
}

// aside is how many keys of other programs are passed over at once.
const aside = 1000

// nextWithRows returns the next tenant with rows; zero for none.
func (l *listing) nextWithRows(ctx context.Context) (tenant.ID, error) {
	rng, most := rowkey.TenantsAfter(l.after), int64(1)
	for !rng.Empty() {
		keys, err := l.page(ctx, rng, most)
		if err != nil || len(keys) == 0 {
			return tenant.ID{}, err
		}
		var id tenant.ID
		for _, key := range keys {
			var ok bool
			if id, ok = rowkey.TenantOf(key); !ok {
				continue
			}
			mine, err := l.isTenant(ctx, id, key)
			if err != nil || mine {
				return id, err
			}
			break
		}
		rng, most = rng.After(keys[len(keys)-1]), aside
		if !id.IsZero() { // what looks like a tenant's are rows of another program
			rng, most = rowkey.TenantsAfter(id), 1
		}
	}
	return tenant.ID{}, nil
}

// isTenant reports whether one of the rows that start like a tenant's is of a dataset in the catalogue. The first one of
// them nearly always is; else one request looks for any.
func (l *listing) isTenant(ctx context.Context, id tenant.ID, first string) (bool, error) {
	dataset, _, ok := rowkey.KindOf(first)
	if ok && slices.ContainsFunc(l.datasets, func(d catalog.Dataset) bool { return d.Name == dataset }) {
		return true, nil
	}
	var set bigtable.RowRangeList
	var ranges []rowkey.Range
	for _, d := range l.datasets {
		space, err := spaceOf(id, d)
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
	found, foreign := false, false
	err := l.Table.Read(ctx, bt.Scan{Rows: set, Filter: keysOnly(), Limit: 1}, func(row bigtable.Row) bool {
		found = slices.ContainsFunc(ranges, func(rng rowkey.Range) bool { return row.Key() >= rng.Start && row.Key() < rng.Limit })
		foreign = !found
		return false
	})
	if foreign {
		return false, fmt.Errorf("%w: %s", tsdb.ErrForeignRow, l.Name)
	}
	return found, l.Explain(err)
}

// own reads the documents of tenants that the store keeps, page by page.
type own struct {
	prefix string
	last   string // the name of the last that was read
	page   []owned
	over   bool
}

type owned struct {
	id  tenant.ID
	doc catalog.Document
}

// ownPage is how many of the store's own rows are read at once.
const ownPage = 1000

// peek returns the next document; of a zero tenant where there is none.
func (o *own) peek(ctx context.Context, r room) (owned, error) {
	for len(o.page) == 0 && !o.over {
		rows := 0
		rng := rowkey.OwnAfter(o.prefix, o.last)
		err := r.rows(ctx, rng, ownFilter(), ownPage, func(row bigtable.Row) {
			rows++
			o.last = strings.TrimPrefix(row.Key(), o.prefix)
			id, err := tenant.Parse(o.last) // a mark of an entity is none of a tenant
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

func ownFilter() bigtable.Filter {
	return bigtable.ChainFilters(bigtable.FamilyFilter(catalog.Family), bigtable.LatestNFilter(1))
}
