package adopt

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Source is a foreign table with its mapping. [Open] makes one. It only reads the table. It is safe for concurrent use.
// Calls on the zero Source and nil fail with ErrInvalid.
type Source struct {
	m *Mapping
	t *bt.Table
}

// The bounds of a request to the foreign table.
const (
	readTimeout = 30 * time.Second
	scanTimeout = 5 * time.Minute
)

// Open returns a foreign table. It does no I/O. Open the table with a client of its own: a client has one app profile,
// and reading a whole table belongs on one that does not disturb the programs that use it. With tsdb.ClientConfig and
// tsdb.DialOptions, copies divide the table by the service's samples of its keys; with another client they read it from
// one end to the other.
func Open(table bigtable.TableAPI, m *Mapping) (*Source, error) {
	if table == nil {
		return nil, invalid.New(ErrInvalid, "table", "nil", "an open table")
	}
	s := &Source{m: m, t: bt.New(table, table, table, bt.Timeouts{Read: readTimeout, Write: readTimeout, Scan: scanTimeout})}
	if err := s.check(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Source) check() error {
	if s == nil || s.t == nil || s.m == nil || len(s.m.parts) == 0 {
		return invalid.New(ErrInvalid, "mapping", "the zero value", "a mapping from Parse, and a source from Open")
	}
	return nil
}

// splits returns keys that divide the table, in ascending order.
func (s *Source) splits(ctx context.Context) ([]string, error) {
	samples, err := s.t.Samples(ctx)
	if errors.Is(err, bt.ErrUnguarded) {
		return nil, nil
	}
	var keys []string
	for _, sample := range samples {
		if sample.Key != "" {
			keys = append(keys, sample.Key)
		}
	}
	return slices.Compact(keys), err
}

// The bounds of what a worker holds in memory: whole rows, so one large row is more.
const (
	chunkRows  = 1000
	chunkCells = 10_000
	chunkBytes = 4 << 20
)

// chunk reads rows from a key on, up to the bounds and to most rows. It returns false if these were the last ones
// before the limit; an empty limit is the end of the table.
func (s *Source) chunk(ctx context.Context, start, limit string, filter bigtable.Filter, most int) (rows []*bt.Row, more bool, err error) {
	rng := bigtable.InfiniteRange(start)
	if limit != "" {
		if start >= limit {
			return nil, false, nil
		}
		rng = bigtable.NewRange(start, limit)
	}
	cells, bytes := 0, 0
	err = s.t.Read(ctx, bt.Scan{Rows: rng, Filter: filter, Limit: int64(most), Long: true}, func(row *bt.Row) bool {
		row = row.Clone()
		rows = append(rows, row)
		cells += len(row.Cells())
		for _, c := range row.Cells() {
			bytes += len(c.Value)
		}
		more = len(rows) == most || cells >= chunkCells || bytes >= chunkBytes
		return !more
	})
	return rows, more, err
}

// keysOnly passes one cell of each row, without its value.
func keysOnly() bigtable.Filter {
	return bigtable.ChainFilters(bigtable.CellsPerRowLimitFilter(1), bigtable.StripValueFilter())
}

// tenants visits the tenants of the table in the order of its rows, in one request for each and one for every 100 rows
// that are no points.
func (s *Source) tenants(ctx context.Context, p rowkey.Precision, visit func(tenant.ID) error) error {
	if !s.m.tenant.IsZero() {
		return visit(s.m.tenant)
	}
	start := ""
	for i := 0; s.m.parts[i].role == constantPart; i++ { // Parse allows nothing else before the tenant
		start += s.m.parts[i].text + s.m.sep
	}
	for {
		var last string
		var found tenant.ID
		n := 0
		err := s.t.Read(ctx, bt.Scan{Rows: bigtable.InfiniteRange(start), Filter: keysOnly(), Limit: 100}, func(row *bt.Row) bool {
			n++
			last = row.Key()
			if at, bad := s.m.split(last, p); bad == nil {
				found = at.tenant
			}
			return found.IsZero()
		})
		switch {
		case err != nil:
			return err
		case found.IsZero() && n < 100:
			return nil
		case found.IsZero():
			start = last + "\x00"
			continue
		}
		if err := visit(found); err != nil {
			return err
		}
		prefix, ok := s.m.prefix(found)
		if start = successor(prefix); start == "" || !ok {
			return nil
		}
	}
}

// target is the dataset that points are copied to.
type target struct {
	m         *Mapping
	in        inside.Store
	entry     catalog.Dataset
	shape     *dataset.Dataset
	precision rowkey.Precision
	class     string
	found     bool   // the store has the dataset
	from, at  string // the full names of the foreign table and of the store's; empty if not known

	mu      sync.Mutex
	tenants map[tenant.ID]*tenantTarget
}

// tenantTarget is a target for one tenant.
type tenantTarget struct {
	raw   *points.Raw
	space rowkey.Space
}

// maxTenants bounds the tenants that a target holds in memory.
const maxTenants = 10_000

// open returns the dataset of a mapping in a store, or what would be created.
func (s *Source) open(ctx context.Context, store *tsdb.Store) (*target, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	in, err := inside.Of(store).Internals()
	if err != nil {
		return nil, err
	}
	to := &target{m: s.m, in: in, entry: s.m.dataset, tenants: map[tenant.ID]*tenantTarget{}}
	if to.from, err = pathOf(ctx, s.t); err == nil {
		to.at, err = pathOf(ctx, in.Whole)
	}
	if err != nil {
		return nil, err
	}
	if to.from != "" && to.from == to.at {
		return nil, invalid.New(ErrInvalid, "table", invalid.Quote(to.from), "a table of another program: this one is the store's")
	}
	st, err := catalog.Load(ctx, in.Whole, []string{to.entry.Name})
	if err = in.Explain(err); err != nil && !errors.Is(err, tsdb.ErrNoTable) {
		return nil, err
	}
	if found, ok := st.Datasets[to.entry.Name]; ok {
		to.found, to.entry = true, found.Dataset
		if err := s.m.fits(&to.entry); err != nil {
			return nil, err
		}
	}
	if to.shape, err = dataset.FromCatalog(to.entry); err != nil {
		return nil, err
	}
	to.precision, to.class = to.shape.Precision, s.m.class
	if to.class == "" {
		to.class = to.entry.Classes[0].Name
	}
	return to, nil
}

// pathOf returns a table's full name, or "" if its client does not say it.
func pathOf(ctx context.Context, t *bt.Table) (string, error) {
	name, err := t.Path(ctx)
	if errors.Is(err, bt.ErrUnguarded) {
		return "", nil
	}
	return name, err
}

// create creates the dataset if the store does not have it.
func (to *target) create(ctx context.Context) error {
	if to.found {
		return nil
	}
	return to.in.Ensure(ctx, []catalog.Dataset{to.entry})
}

// fits returns an error if the store's dataset cannot hold the mapping's points.
func (m *Mapping) fits(d *catalog.Dataset) error {
	var diffs []string
	differ := func(what, have, want string) {
		if have != want {
			diffs = append(diffs, "dataset "+d.Name+": "+what+": the mapping has "+want+", the catalogue has "+have)
		}
	}
	differ("key fields", strings.Join(d.Key, ", "), strings.Join(m.dataset.Key, ", "))
	have, err := d.FieldKinds()
	if err != nil {
		return err
	}
	if !slices.Equal(have, m.kinds) {
		diffs = append(diffs, "dataset "+d.Name+": the kinds of the key fields differ from those of the mapping")
	}
	if _, ids, _ := rowkey.ParseTimeName(d.Precision); ids != m.ids {
		diffs = append(diffs, "dataset "+d.Name+": only one of mapping and catalogue has an ID in the keys of points")
	}
	if !slices.Contains(d.Tags, m.tag) {
		differ("codec tags", strings.Join(d.Tags, ", "), m.tag)
	}
	if m.class != "" && !slices.ContainsFunc(d.Classes, func(c catalog.Class) bool {
		return c == m.dataset.Classes[0] || c.Name == m.class && c.Policy == m.dataset.Classes[0].Policy
	}) {
		diffs = append(diffs, "dataset "+d.Name+": the catalogue has no class "+m.class+" with the policy "+m.dataset.Classes[0].Policy)
	}
	if d.Merge || d.Head != nil && d.Head.Only {
		diffs = append(diffs, "dataset "+d.Name+": it merges points or keeps only heads; a copy needs a dataset that keeps each point as it is written")
	}
	if len(diffs) > 0 {
		return &tsdb.ConflictError{Differences: diffs}
	}
	return nil
}

// of returns the target's points of a tenant.
func (to *target) of(ctx context.Context, id tenant.ID) (*tenantTarget, error) {
	to.mu.Lock()
	defer to.mu.Unlock()
	if t := to.tenants[id]; t != nil {
		return t, nil
	}
	raw, err := to.in.Raw(ctx, to.entry, id)
	if err != nil {
		return nil, err
	}
	space, err := to.shape.Space(id)
	if err != nil {
		return nil, err
	}
	if len(to.tenants) >= maxTenants {
		clear(to.tenants)
	}
	t := &tenantTarget{raw: raw, space: space}
	to.tenants[id] = t
	return t, nil
}

// write stores points of any tenants, or with dry only checks them, and reports those that the dataset refuses to
// wrong, by their index.
func (to *target) write(ctx context.Context, list []point, dry bool, wrong func(i int, u *Unfit) error) error {
	for len(list) > 0 {
		id := list[0].tenant
		seen := make(map[place]bool, len(list))
		n := 0
		for n < len(list) && list[n].tenant == id && !seen[list[n].place] {
			seen[list[n].place] = true
			n++
		}
		if err := to.writeSome(ctx, id, list[:n], dry, wrong); err != nil {
			return err
		}
		done := wrong
		list, wrong = list[n:], func(i int, u *Unfit) error { return done(i+n, u) }
	}
	return nil
}

// writeSome stores points of one tenant, no two of which are at one place.
func (to *target) writeSome(ctx context.Context, id tenant.ID, list []point, dry bool, wrong func(int, *Unfit) error) error {
	t, err := to.of(ctx, id)
	if errors.Is(err, tsdb.ErrErased) {
		for i, p := range list {
			if err := wrong(i, unfit(reasonErased, p.path, "tenant %s is erased", id)); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	raw := make([]points.RawPoint, len(list))
	for i, p := range list {
		raw[i] = points.RawPoint{Path: p.path, Units: p.units, ID: p.id, Class: to.class, Tag: to.m.tag, Payload: p.payload}
	}
	for i, out := range t.raw.Write(ctx, raw, dry) {
		if out.State == bt.Stored {
			continue
		}
		reason := ""
		refused, ok := errors.AsType[*invalid.Error](out.Err)
		switch {
		case out.State == bt.Unknown:
		case errors.Is(out.Err, tsdb.ErrExpired):
			reason = reasonExpired
		case errors.Is(out.Err, tsdb.ErrExists):
			reason = reasonExists
		case errors.Is(out.Err, tsdb.ErrErased):
			reason = reasonErased
		case ok && errors.Is(out.Err, ErrInvalid) && refused.Field == "payload":
			reason = reasonPayloads
		case ok && errors.Is(out.Err, ErrInvalid) && refused.Field == "time":
			reason = reasonTimes
		case ok && errors.Is(out.Err, ErrInvalid):
			reason = reasonEntities
		}
		if reason == "" {
			return &tsdb.WriteError{Outcome: tsdb.Outcome{State: tsdb.State(out.State), Attempts: out.Attempts, Err: out.Err}}
		}
		if err := wrong(i, unfit(reason, string(t.space.AppendEvent(nil, raw[i].Path, raw[i].Units, raw[i].ID)), "%v", out.Err)); err != nil {
			return err
		}
	}
	return nil
}

// refuses returns the reason for which the dataset can never hold a point, or "". It knows all reasons of write but
// those of time.
func (to *target) refuses(t *tenantTarget, p point) string {
	switch {
	case t.space.CheckPath(p.path) != nil, t.space.CheckID(p.id) != nil:
		return reasonEntities
	case len(p.payload) > to.shape.MaxPayload():
		return reasonPayloads
	case to.in.Erased.AdmitEntity(p.tenant, to.entry.Name, p.path) != nil:
		return reasonErased
	}
	return ""
}
