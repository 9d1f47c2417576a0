package tsdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/proof/calls"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// Names that are prefixes of one another, or that look like each other's keys.
var (
	hostileTenants  = []string{"a", "ab", "a.", "a-", "acme", "acme2", "acme.readings", "0"}
	hostileDatasets = []string{"r", "r2", "r.", "readings", "acme"}
	hostileEntities = [][]string{
		{"berlin", "roof"},
		{"berlin", "roof-7"},
		{"berlin#roof", "x"},
		{"berlin", "roof#9223372036854775807"},
		{"9223372036854775807", "9223372036854775807"},
		{"ber", "lin"},
		{"b", "#"},
		{"#", "b"},
		{"\x00", "%00"},
		{"東", "京"},
	}
)

// operations are the calls of a repository on one entity, by method; those of a PrefixReader begin with "Under.".
// TestEachCallStaysInItsTenant fails if a method of one of the two is missing here: each new call must be shown to
// respect the tenant's boundary.
var operations = map[string]func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) (seen []string, err error){
	"Put": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) ([]string, error) {
		return nil, r.Put(ctx, e, at, "new")
	},
	"PutIfAbsent": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) ([]string, error) {
		_, err := r.PutIfAbsent(ctx, e, at.Add(time.Hour), "new")
		return nil, err
	},
	"PutMany": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) ([]string, error) {
		_, err := r.PutMany(ctx, []tsdb.Point[string]{{Entity: e, Time: at, Value: "new"}, {Entity: e, Time: at.Add(time.Hour), Value: "new"}})
		return nil, err
	},
	"Via": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) ([]string, error) {
		w, err := r.Store().NewWriter(tsdb.WriterOptions{Linger: -1})
		if err != nil {
			return nil, err
		}
		var errs []error
		for _, call := range sinkCalls {
			errs = append(errs, call(ctx, r.Via(w), e, at))
		}
		return nil, errors.Join(append(errs, w.Close(ctx))...)
	},
	"Get": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) ([]string, error) {
		return value(r.Get(ctx, e, at))
	},
	"Latest": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, _ time.Time) ([]string, error) {
		var seen []string
		for _, opts := range [][]tsdb.ReadOption{nil, {tsdb.MaxStale(1)}, {tsdb.MaxStale(time.Hour)}} { // the last read is from memory
			v, err := value(r.Latest(ctx, e, opts...))
			if err != nil {
				return seen, err
			}
			seen = append(seen, v...)
		}
		return seen, nil
	},
	"AsOf": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) ([]string, error) {
		return value(r.AsOf(ctx, e, at.Add(time.Minute)))
	},
	"LatestN": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, _ time.Time) ([]string, error) {
		points, err := r.LatestN(ctx, e, 1000)
		return values(points), err
	},
	"LatestMany": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, _ time.Time) (seen []string, err error) {
		for _, opts := range [][]tsdb.ReadOption{nil, {tsdb.MaxStale(1)}, {tsdb.MaxStale(time.Hour)}} {
			answers, err := latestMany(ctx, r, []tsdb.Entity{e, e}, opts...)
			if err != nil {
				return seen, err
			}
			for _, a := range answers {
				seen = append(seen, a.Point.Value)
			}
		}
		return seen, nil
	},
	"LatestMany of several": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, _ time.Time) (seen []string, err error) {
		histories, err := r.LatestMany(ctx, []tsdb.Entity{e, e}, 1000)
		for _, h := range histories {
			seen = append(seen, values(h.Points)...)
		}
		return seen, err
	},
	"LatestFields": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) (seen []string, err error) {
		for _, options := range []tsdb.FieldOptions{{}, {AsOf: at.Add(time.Minute)}} {
			f, err := r.LatestFields(ctx, e, options)
			if err != nil {
				return seen, err
			}
			seen = append(seen, f.Value)
		}
		return seen, nil
	},
	"LatestFieldsMany": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, _ time.Time) (seen []string, err error) {
		all, err := r.LatestFieldsMany(ctx, []tsdb.Entity{e, e}, tsdb.FieldOptions{})
		for _, f := range all {
			if f.Times.Len() > 0 {
				seen = append(seen, f.Value)
			}
		}
		return seen, err
	},
	"Under.LatestFields": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, _ time.Time) (seen []string, err error) {
		for f, err := range r.Under(tsdb.AllEntities()).LatestFields(ctx, tsdb.FieldOptions{}) {
			if err != nil {
				return seen, err
			}
			if f.Entity == e {
				seen = append(seen, f.Value)
			} else if own := label(r.Tenant().String(), r.Schema().Name(), f.Entity.Parts()); f.Value != own {
				return append(seen, f.Value), nil
			}
		}
		if len(seen) != 1 {
			return nil, fmt.Errorf("%v was seen %d times", e, len(seen))
		}
		return seen, nil
	},
	"Under.Latest": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, _ time.Time) (seen []string, err error) {
		for _, prefix := range []tsdb.Prefix{tsdb.NewPrefix(e.Parts()[0]), tsdb.AllEntities()} {
			for p, err := range r.Under(prefix).Latest(ctx) {
				if err != nil {
					return seen, err
				}
				if p.Entity == e {
					seen = append(seen, p.Value)
				} else if own := label(r.Tenant().String(), r.Schema().Name(), p.Entity.Parts()); p.Value != own {
					return append(seen, p.Value), nil
				}
			}
		}
		if len(seen) != 2 {
			return nil, fmt.Errorf("%v was seen %d times", e, len(seen))
		}
		return seen, nil
	},
	"Follow": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, _ time.Time) ([]string, error) {
		f, err := r.Follow(ctx, e, tsdb.FollowOptions{Since: start})
		if err != nil {
			return nil, err
		}
		defer f.Close()
		for p, err := range f.Points(ctx) {
			if err != nil {
				return nil, err
			}
			return []string{p.Value}, nil
		}
		return nil, nil
	},
	"Under.Entities": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, _ time.Time) ([]string, error) {
		var all, below []tsdb.Entity
		for e, err := range r.Under(tsdb.AllEntities()).Entities(ctx, tsdb.AllTime()) {
			if err != nil {
				return nil, err
			}
			all = append(all, e)
		}
		for found, err := range r.Under(tsdb.NewPrefix(e.Parts()[0])).Entities(ctx, tsdb.AllTime()) {
			if err != nil {
				return nil, err
			}
			if found.Parts()[0] != e.Parts()[0] {
				return []string{found.String()}, nil
			}
			below = append(below, found)
		}
		if len(all) != len(hostileEntities) || !slices.Contains(below, e) {
			return nil, fmt.Errorf("entities are %v, below the prefix %v", all, below)
		}
		return nil, nil
	},
	"Under.PageLatest": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, _ time.Time) (seen []string, err error) {
		for _, prefix := range []tsdb.Prefix{tsdb.NewPrefix(e.Parts()[0]), tsdb.AllEntities()} {
			for page, next := (tsdb.Page[string]{}), "-"; next != ""; next = page.Next {
				if page, err = r.Under(prefix).PageLatest(ctx, 1, strings.TrimPrefix(next, "-")); err != nil {
					return seen, err
				}
				for _, p := range page.Points {
					if p.Entity == e {
						seen = append(seen, p.Value)
					} else if own := label(r.Tenant().String(), r.Schema().Name(), p.Entity.Parts()); p.Value != own {
						return append(seen, p.Value), nil
					}
				}
			}
		}
		if len(seen) != 2 {
			return nil, fmt.Errorf("%v was seen %d times", e, len(seen))
		}
		return seen, nil
	},
	"Under.PageEntities": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, _ time.Time) ([]string, error) {
		all, err := r.Under(tsdb.AllEntities()).PageEntities(ctx, 1000, "")
		if err != nil {
			return nil, err
		}
		below, err := r.Under(tsdb.NewPrefix(e.Parts()[0])).PageEntities(ctx, 1000, "")
		if err != nil {
			return nil, err
		}
		for _, found := range below.Entities {
			if found.Parts()[0] != e.Parts()[0] {
				return []string{found.String()}, nil
			}
		}
		if len(all.Entities) != len(hostileEntities) || !slices.Contains(below.Entities, e) {
			return nil, fmt.Errorf("entities are %v, below the prefix %v", all, below)
		}
		return nil, nil
	},
	"Range": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, _ time.Time) (seen []string, err error) {
		for _, opts := range [][]tsdb.ReadOption{nil, {tsdb.OldestFirst}} {
			for p, err := range r.Range(ctx, e, tsdb.AllTime(), opts...) {
				if err != nil {
					return seen, err
				}
				seen = append(seen, p.Value)
			}
		}
		return seen, nil
	},
	"Page": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, _ time.Time) (seen []string, err error) {
		for _, order := range []tsdb.Order{tsdb.NewestFirst, tsdb.OldestFirst} {
			next := ""
			for more := true; more; more = next != "" {
				page, err := r.Page(ctx, e, tsdb.AllTime(), 1, next, order)
				if err != nil {
					return seen, err
				}
				seen, next = append(seen, values(page.Points)...), page.Next
			}
		}
		return seen, nil
	},
	"Delete": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) ([]string, error) {
		return nil, r.Delete(ctx, e, at)
	},
	"DeleteRange": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) ([]string, error) {
		_, err := r.DeleteRange(ctx, e, tsdb.Since(at))
		return nil, err
	},
	"DeleteRange of all": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, _ time.Time) ([]string, error) {
		_, err := r.DeleteRange(ctx, e, tsdb.AllTime())
		return nil, err
	},
	"DeletePrefix": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, _ time.Time) ([]string, error) {
		if _, err := r.DeletePrefix(ctx, tsdb.NewPrefix(e.Parts()[0])); err != nil {
			return nil, err
		}
		_, err := r.DeletePrefix(ctx, tsdb.AllEntities())
		return nil, err
	},
}

// groups are the methods that may change rows of other entities of the same tenant and dataset.
var groups = []string{"DeletePrefix"}

func value(p tsdb.Point[string], err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	return []string{p.Value}, nil
}

func values(points []tsdb.Point[string]) (out []string) {
	for _, p := range points {
		out = append(out, p.Value)
	}
	return out
}

// TestEachCallStaysInItsTenant runs each call for one tenant, dataset and entity in a table full of others whose names
// are prefixes of theirs. It compares every other row of the table byte for byte.
func TestEachCallStaysInItsTenant(t *testing.T) {
	for _, c := range calls.Of("Repository.", "PrefixReader.", "Sink.") {
		typ, name, _ := strings.Cut(c.Name(), ".")
		if typ == "PrefixReader" {
			name = "Under." + name
		}
		if c.Tenants != calls.None && (typ != "Sink" && operations[name] == nil || typ == "Sink" && sinkCalls[name] == nil) {
			t.Errorf("%s is not tested: add it to operations", c.Name())
		}
	}
	for _, tc := range []struct {
		salts int
		views []tenant.ID
	}{{salts: 0}, {salts: 3}, {salts: 3, views: hostileViews()}} {
		if testkit.Raced && tc.views == nil {
			continue // one table is enough
		}
		salts := tc.salts
		var schemas []*tsdb.Schema[string]
		var datasets []tsdb.Dataset
		for _, name := range hostileDatasets {
			s, err := tsdb.Define(name, tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{Salts: salts, Retention: d90})
			if err != nil {
				t.Fatal(err)
			}
			schemas, datasets = append(schemas, s), append(datasets, s)
		}
		c := testkit.NewClock(start.Add(time.Hour))
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now, Cache: cached.Cache}, ViewsFor: tc.views}, datasets...)
		ctx := context.Background()
		fill(t, store, schemas)
		before := rows(t, table)
		for name, op := range operations {
			for _, s := range schemas[:2] {
				for _, id := range []string{"a", "acme"} {
					for _, parts := range [][]string{hostileEntities[0], hostileEntities[2]} {
						own := ownRows(id, s.Name(), parts, slices.Contains(groups, name), salts)
						seen, err := op(ctx, s.For(store, tenant.MustParse(id)), tsdb.NewEntity(parts...), start)
						if err != nil {
							t.Fatalf("%s of %s/%s/%q: %v", name, id, s.Name(), parts, err)
						}
						for _, v := range seen {
							if v != label(id, s.Name(), parts) {
								t.Fatalf("%s of %s/%s/%q returned %q, a point of another entity", name, id, s.Name(), parts, v)
							}
						}
						after := rows(t, table)
						compareOthers(t, name+" of "+id+"/"+s.Name(), before, after, own)
						restore(t, table, before, after)
					}
				}
			}
		}
	}
}

func label(id, dataset string, parts []string) string {
	return id + "|" + dataset + "|" + strings.Join(parts, "|")
}

func fill(t *testing.T, store *tsdb.Store, schemas []*tsdb.Schema[string]) {
	t.Helper()
	for _, id := range hostileTenants {
		for _, s := range schemas {
			var points []tsdb.Point[string]
			for _, parts := range hostileEntities {
				for n := range 2 {
					points = append(points, tsdb.Point[string]{
						Entity: tsdb.NewEntity(parts...), Time: start.Add(-time.Duration(n) * time.Minute), Value: label(id, s.Name(), parts),
					})
				}
			}
			if _, err := s.For(store, tenant.MustParse(id)).PutMany(context.Background(), points); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// ownRows returns a function that reports whether a call on this entity may change a row.
func ownRows(id, dataset string, parts []string, group bool, salts int) func(key string) bool {
	prefix := id + "#" + dataset + "#"
	return func(key string) bool {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok || group {
			return ok
		}
		if salts > 0 {
			rest = rest[3:]
		}
		return strings.HasPrefix(rest, inside.Of(tsdb.NewEntity(parts...)).Path()+"#")
	}
}

func compareOthers(t *testing.T, call string, before, after map[string]bigtable.Row, own func(string) bool) {
	t.Helper()
	for key, row := range before {
		if !own(key) && !sameRow(row, after[key]) {
			t.Fatalf("%s changed the foreign row %q", call, key)
		}
	}
	for key := range after {
		if _, ok := before[key]; !ok && !own(key) {
			t.Fatalf("%s created the foreign row %q", call, key)
		}
	}
}

// sameRow reports whether two rows hold the same cells.
func sameRow(a, b bigtable.Row) bool {
	return maps.EqualFunc(a, b, func(x, y []bigtable.ReadItem) bool {
		return slices.EqualFunc(x, y, func(i, j bigtable.ReadItem) bool {
			return i.Column == j.Column && i.Timestamp == j.Timestamp && bytes.Equal(i.Value, j.Value)
		})
	})
}

// restore undoes the changes of a call.
func restore(t *testing.T, table *bigtable.Table, before, after map[string]bigtable.Row) {
	t.Helper()
	var keys []string
	var muts []*bigtable.Mutation
	for key := range maps.Keys(after) {
		if !sameRow(before[key], after[key]) {
			m := bigtable.NewMutation()
			m.DeleteRow()
			keys, muts = append(keys, key), append(muts, m)
		}
	}
	for key, row := range before {
		if sameRow(row, after[key]) {
			continue
		}
		m := bigtable.NewMutation()
		for family, items := range row {
			for _, item := range items {
				m.Set(family, strings.TrimPrefix(item.Column, family+":"), item.Timestamp, item.Value)
			}
		}
		if err := table.Apply(context.Background(), key, m); err != nil {
			t.Fatal(err)
		}
		if i := slices.Index(keys, key); i >= 0 {
			keys, muts = slices.Delete(keys, i, i+1), slices.Delete(muts, i, i+1)
		}
	}
	if len(keys) > 0 {
		if errs, err := table.ApplyBulk(context.Background(), keys, muts); err != nil || errs != nil {
			t.Fatal(errs, err)
		}
	}
}

func TestAnotherTenantInTheContextIsRefused(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	other, err := tsdb.Define("other", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	store, conn := tsdbtest.Open(t, cached, s, other)
	foreign := tenant.NewContext(context.Background(), tenant.MustParse("acme2"))
	for name, op := range operations {
		if _, err := op(foreign, other.For(store, acme), roof, start); !errors.Is(err, tsdb.ErrTenantMismatch) {
			t.Errorf("%s with another tenant's context: %v, want ErrTenantMismatch", name, err)
		}
		if _, err := op(tenant.NewContext(context.Background(), tenant.ID{}), other.For(store, acme), roof, start); !errors.Is(err, tsdb.ErrTenantMismatch) {
			t.Errorf("%s with the zero tenant in its context: %v, want ErrTenantMismatch", name, err)
		}
		if _, err := op(context.Background(), other.For(store, tenant.ID{}), roof, start); !errors.Is(err, tenant.ErrInvalid) {
			t.Errorf("%s for the zero tenant: %v, want tenant.ErrInvalid", name, err)
		}
		if _, err := op(context.Background(), other.For(nil, acme), roof, start); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s without a store: %v, want ErrInvalid", name, err)
		}
	}
	if calls := conn.Counts().Calls; len(calls) != 0 {
		t.Errorf("refused calls sent requests: %v", calls)
	}
	if _, err := s.FromContext(context.Background(), store); !errors.Is(err, tsdb.ErrNoTenant) {
		t.Errorf("FromContext without a tenant: %v, want ErrNoTenant", err)
	}
	if _, err := s.FromContext(tenant.NewContext(context.Background(), tenant.ID{}), store); !errors.Is(err, tenant.ErrInvalid) {
		t.Errorf("FromContext with the zero tenant: %v, want tenant.ErrInvalid", err)
	}
	repo, err := s.FromContext(foreign, store)
	if err != nil || repo.Tenant().String() != "acme2" {
		t.Fatalf("FromContext = %v, %v", repo, err)
	}
	if err := repo.Put(foreign, roof, start, reading{}); err != nil {
		t.Errorf("a call with its own tenant in the context: %v", err)
	}
}
