package tsdb_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/calls"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// noisy is the only tenant with limits.
var noisy = tenant.MustParse("ab")

// place is an entity of a dataset of a tenant.
type place struct {
	id      tenant.ID
	dataset string
	entity  tsdb.Entity
}

// attack is one call for a tenant, with its own context or another tenant's.
type attack struct {
	place
	ctx  context.Context
	at   time.Time
	in   *tsdb.Schema[string]
	repo *tsdb.Repository[string]
}

// walls is one store with hostile tenants, and the model of each tenant's data.
type walls struct {
	*rand.Rand
	t       *testing.T
	clock   *clock
	store   *tsdb.Store
	table   *bigtable.Table
	writer  *tsdb.Writer
	schemas []*tsdb.Schema[string]
	views   bool

	points  map[place]map[time.Time]string
	erased  map[tenant.ID]bool
	cursors map[string]place
	files   []exported
	n       int
}

// exported is an export, and what its tenant had stored at that time.
type exported struct {
	id     tenant.ID
	bytes  []byte
	points map[place]map[time.Time]string
}

var wallRounds = flag.Int("walls.rounds", 8, "how often each attack of a hostile tenant is made")

// TestHostileTenants runs random calls of tenants whose names are prefixes of one another on one store: every call of a
// repository, a sink, a store and the packages built on it, with contexts, cursors and exports of others, while some of
// the tenants are erased. After each call no row of another tenant has changed, and no value of another tenant was
// returned.
func TestHostileTenants(t *testing.T) {
	unexercised(t)
	for _, mode := range []struct {
		name  string
		opts  tsdb.SchemaOptions
		views bool
		keys  [][]byte
	}{
		{name: "table", opts: tsdb.SchemaOptions{}},
		{name: "views", opts: tsdb.SchemaOptions{Salts: 3}, views: true, keys: secrets(1)},
	} {
		t.Run(mode.name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			h := newWalls(t, seed, mode.opts, mode.views, mode.keys)
			rounds := *wallRounds
			if testing.Short() || sampling() {
				rounds = min(rounds, 4)
			}
			for range rounds {
				names := slices.Sorted(maps.Keys(attacks))
				h.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
				for _, name := range names {
					h.step(name)
					if t.Failed() {
						return
					}
				}
			}
			if err := h.writer.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func newWalls(t *testing.T, seed uint64, opts tsdb.SchemaOptions, views bool, keys [][]byte) *walls {
	h := &walls{
		Rand: rand.New(rand.NewPCG(seed, 0)), t: t, clock: testkit.NewClock(start.Add(time.Hour)), views: views,
		points: map[place]map[time.Time]string{}, erased: map[tenant.ID]bool{}, cursors: map[string]place{},
	}
	l := must[*limit.Limiter](t)(limit.New(limit.Table{Overrides: map[tenant.ID]limit.Limits{
		noisy: {PointsPerSecond: 1, PointsBurst: 20, Entities: 5, PointBytes: 1000, FanOut: 2, ConcurrentReads: 4},
	}}, limit.Options{Clock: h.clock.Now}))
	var datasets []tsdb.Dataset
	for i, name := range []string{"r", "r.", "acme"} {
		o := opts
		o.Retention = d90
		if i == 2 {
			o.Precision, o.Head = tsdb.Milliseconds, tsdb.Head{Points: 2}
		}
		s := must[*tsdb.Schema[string]](t)(tsdb.Define(name, tsdb.Key("site", "device"), codec.String(), o))
		h.schemas, datasets = append(h.schemas, s), append(datasets, s)
	}
	o := tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: h.clock.Now, Cache: cached.Cache, Limits: l, CursorKeys: keys}}
	if views {
		o.ViewsFor = hostileViews()
	}
	h.store, _, h.table = tsdbtest.OpenTable(t, o, datasets...)
	h.writer = must[*tsdb.Writer](t)(h.store.NewWriter(tsdb.WriterOptions{Linger: -1, OnFailure: func(u tsdb.Undelivered) {
		t.Errorf("undelivered point: %+v", u)
	}}))
	t.Cleanup(func() { _ = h.writer.Close(context.Background()) })
	return h
}

// pick returns a random element.
func pick[V any](r *rand.Rand, of []V) V { return of[r.IntN(len(of))] }

// random returns a call that some tenant could make.
func (h *walls) random() attack {
	s := pick(h.Rand, h.schemas)
	a := attack{in: s, at: start.Add(time.Duration(h.IntN(4)) * time.Minute)}
	a.place = place{tenant.MustParse(pick(h.Rand, hostileTenants)), s.Name(), tsdb.NewEntity(pick(h.Rand, hostileEntities)...)}
	a.ctx, a.repo = h.t.Context(), s.For(h.store, a.id)
	return a
}

// step makes one call, and compares all rows before and after it.
func (h *walls) step(name string) {
	t := h.t
	a := h.random()
	if name == "tenants.Readmit" && len(h.erased) > 0 { // otherwise all tenants would be erased in the end
		a.id = slices.SortedFunc(maps.Keys(h.erased), func(a, b tenant.ID) int { return strings.Compare(a.String(), b.String()) })[0]
		a.repo = a.in.For(h.store, a.id)
	}
	other := tenant.MustParse(pick(h.Rand, hostileTenants))
	foreign := h.IntN(4) == 0 && other != a.id
	switch {
	case foreign:
		a.ctx = tenant.NewContext(a.ctx, other)
	case h.IntN(2) == 0 && !ofAllTenants(name):
		a.ctx = tenant.NewContext(a.ctx, a.id)
	}
	if !foreign && h.IntN(2) == 0 { // stores a point that an attack could destroy
		h.write(a)
	}
	before, erased := allRows(t, h.table), h.erased[a.id]
	what := fmt.Sprintf("%s of %s/%s/%q", name, a.id, a.dataset, a.entity)
	err := attacks[name](h, a)
	if e := h.writer.Flush(t.Context()); e != nil {
		t.Fatal(e)
	}
	mine := func(key string) bool {
		own := a.id.String()
		return strings.HasPrefix(key, own+"#") || key == rowkey.ProfileRows+own || key == rowkey.MarksRow ||
			key == rowkey.MarkRows+own || strings.Contains(strings.TrimPrefix(key, rowkey.MarkRows), "#") && strings.HasPrefix(key, rowkey.MarkRows)
	}
	var over *limit.Error
	switch {
	case foreign:
		what += " in the context of " + other.String()
		if mine = noRow; !errors.Is(err, tsdb.ErrTenantMismatch) {
			t.Errorf("%s: %v, want ErrTenantMismatch", what, err)
		}
	case erased && !strings.HasPrefix(name, "tenants."):
		if mine = noRow; !errors.Is(err, tsdb.ErrErased) {
			t.Errorf("%s, which is erased: %v, want ErrErased", what, err)
		}
	case errors.As(err, &over):
		if a.id != noisy || over.Tenant != noisy {
			t.Errorf("%s: %v, want an error of its own limit", what, err)
		}
	case err != nil:
		t.Errorf("%s: %v", what, err)
	}
	compareOthers(t, what, before, allRows(t, h.table), mine)
}

// ofAllTenants reports whether a call is refused if the context has a tenant.
func ofAllTenants(name string) bool {
	return slices.ContainsFunc(calls.Of(name), func(c calls.Call) bool { return c.Tenants == calls.All && c.Name() == name })
}

func noRow(string) bool { return false }

// allRows returns all rows of a table, including the store's own.
func allRows(t testing.TB, table *bigtable.Table) map[string]bigtable.Row {
	t.Helper()
	out := map[string]bigtable.Row{}
	if err := table.ReadRows(context.Background(), bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		out[r.Key()] = r
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// value returns a value that names its owner.
func (h *walls) value(a attack) string {
	h.n++
	return fmt.Sprintf("of:%s;%s %d", a.id, a.dataset, h.n)
}

// put records that a point is stored.
func (h *walls) put(p place, at time.Time, v string) {
	if h.points[p] == nil {
		h.points[p] = map[time.Time]string{}
	}
	h.points[p][at] = v
}

// write stores a point of the tenant, if it may.
func (h *walls) write(a attack) {
	v := h.value(a)
	err := a.repo.Put(a.ctx, a.entity, a.at, v)
	switch {
	case err == nil:
		h.put(a.place, a.at, v)
	case errors.Is(err, tsdb.ErrErased) && h.erased[a.id], a.id == noisy && errors.Is(err, limit.ErrExceeded):
	default:
		h.t.Errorf("Put of %s: %v", a.id, err)
	}
}

// drop records that points are deleted.
func (h *walls) drop(gone func(p place, at time.Time) bool) {
	for p, points := range h.points {
		maps.DeleteFunc(points, func(at time.Time, _ string) bool { return gone(p, at) })
		if len(points) == 0 {
			delete(h.points, p)
		}
	}
}

// want returns the values of an entity up to the time last, newest first.
func (h *walls) want(p place, last time.Time) (out []string) {
	times := slices.SortedFunc(maps.Keys(h.points[p]), func(a, b time.Time) int { return b.Compare(a) })
	for _, at := range times {
		if !at.After(last) {
			out = append(out, h.points[p][at])
		}
	}
	return out
}

// of returns the places of a tenant's dataset with points, below a first key field; "" for all.
func (h *walls) of(id tenant.ID, dataset, part string) (out []place) {
	for p := range h.points {
		if p.id == id && p.dataset == dataset && (part == "" || p.entity.Parts()[0] == part) {
			out = append(out, p)
		}
	}
	return out
}

func (h *walls) same(what string, got, want []string) {
	h.t.Helper()
	if !slices.Equal(got, want) {
		h.t.Errorf("%s = %q, want %q", what, got, want)
	}
}

// unexercised fails the test for each call without an attack: a new call must be shown to respect the tenant's
// boundary.
func unexercised(t *testing.T) {
	t.Helper()
	for _, prefix := range []string{"Repository.", "Sink.", "Store.", "tenants.", "transfer.", "PrefixReader.", "Follower.", "window.Aggregator.ReadGroups"} {
		found := calls.Of(prefix)
		if len(found) == 0 {
			t.Errorf("no call begins with %q: it has another name now", prefix)
		}
		for _, c := range found {
			if c.Tenants != calls.None && attacks[c.Name()] == nil {
				t.Errorf("%s is not tested: add it to attacks", c.Name())
			}
		}
	}
}
