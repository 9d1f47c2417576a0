package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestEachCallStaysInItsTenantWithHeads is TestEachCallStaysInItsTenant for datasets with heads: a call may touch the
// rows of its own entity and its own head, and no others.
func TestEachCallStaysInItsTenantWithHeads(t *testing.T) {
	testkit.Plain(t)
	for _, only := range []bool{false, true} {
		salts := 3
		if only {
			salts = 0
		}
		var schemas []*tsdb.Schema[string]
		var datasets []tsdb.Dataset
		for _, name := range hostileDatasets {
			s, err := tsdb.Define(name, tsdb.Key("site", "device"), codec.String(),
				tsdb.SchemaOptions{Salts: salts, Retention: d90, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: kept, Only: only}})
			if err != nil {
				t.Fatal(err)
			}
			schemas, datasets = append(schemas, s), append(datasets, s)
		}
		c := testkit.NewClock(start.Add(time.Hour))
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, datasets...)
		fill(t, store, schemas)
		before := rows(t, table)
		for name, op := range operations {
			for _, s := range schemas[:2] {
				for _, id := range []string{"a", "acme"} {
					for _, parts := range hostileEntities[2:3] {
						group := slices.Contains(groups, name)
						points, head := ownRows(id, s.Name(), parts, group, salts), ownRows(id, s.Name()+"!head", parts, group, salts)
						mine := func(key string) bool { return points(key) || head(key) }
						seen, err := op(context.Background(), s.For(store, tenant.MustParse(id)), tsdb.NewEntity(parts...), start)
						if err != nil {
							t.Fatalf("%s of %s/%s/%q: %v", name, id, s.Name(), parts, err)
						}
						for _, v := range seen {
							if v != label(id, s.Name(), parts) {
								t.Fatalf("%s of %s/%s/%q returned %q, a point of another tenant", name, id, s.Name(), parts, v)
							}
						}
						after := rows(t, table)
						compareOthers(t, fmt.Sprintf("%s of %s/%s, only %v", name, id, s.Name(), only), before, after, mine)
						putBack(t, table, before, after)
					}
				}
			}
		}
	}
}

// putBack restores the rows that a call changed, to the cell.
func putBack(t *testing.T, table *bigtable.Table, before, after map[string]bigtable.Row) {
	t.Helper()
	changed := map[string]bool{}
	for key := range before {
		changed[key] = !reflect.DeepEqual(before[key], after[key])
	}
	for key := range after {
		changed[key] = !reflect.DeepEqual(before[key], after[key])
	}
	for key, is := range changed {
		if !is {
			continue
		}
		m := bigtable.NewMutation()
		m.DeleteRow()
		for family, items := range before[key] {
			for _, item := range items {
				m.Set(family, strings.TrimPrefix(item.Column, family+":"), item.Timestamp, item.Value)
			}
		}
		apply(t, table, key, m)
	}
}

// TestHeadsOfAnotherRangeAreRefused: if the service returns another entity's head, no call decodes or copies it.
func TestHeadsOfAnotherRangeAreRefused(t *testing.T) {
	for _, only := range []bool{false, true} {
		s := headSchema(t, only, tsdb.SchemaOptions{})
		var lie atomic.Pointer[string]
		store := through(t, tsdb.Timeouts{}, []tsdb.Dataset{s}, onStream("ReadRows", func(m any) error {
			if key := lie.Load(); key != nil {
				for _, c := range m.(*btpb.ReadRowsResponse).Chunks {
					if strings.Contains(string(c.RowKey), "!head#") {
						c.RowKey = []byte(*key)
					}
				}
			}
			return nil
		}))
		repo := s.For(store, acme)
		for i := range kept + 1 {
			if err := repo.Put(t.Context(), roof, start.Add(time.Duration(i)*time.Second), reading{1}); err != nil {
				t.Fatal(err)
			}
		}
		for _, key := range []string{"acme2#readings!head#berlin#roof-7#", "acme#readings2!head#berlin#roof-7#", "acme#readings!head#berlin#roof-8#"} {
			lie.Store(&key)
			calls := map[string]func() error{
				"LatestMany": func() error {
					answers, err := latestMany(t.Context(), repo, []tsdb.Entity{roof, tsdb.NewEntity("berlin", "other")})
					for _, a := range answers {
						if a.Point.Value != (reading{}) || !errors.Is(a.Err, tsdb.ErrForeignRow) {
							t.Errorf("LatestMany returns %+v", a)
						}
					}
					return err
				},
				"Delete": func() error { return repo.Delete(t.Context(), roof, start) },
			}
			if only {
				delete(calls, "Delete") // it reads nothing
				calls["LatestN"] = func() error {
					points, err := repo.LatestN(t.Context(), roof, 2)
					if points != nil {
						t.Errorf("LatestN returns %v", points)
					}
					return err
				}
				calls["Get"] = func() error { _, err := repo.Get(t.Context(), roof, start); return err }
				calls["AsOf"] = func() error { _, err := repo.AsOf(t.Context(), roof, start); return err }
				calls["Latest"] = func() error { _, err := repo.Latest(t.Context(), roof); return err }
				calls["DeleteRange"] = func() error { _, err := repo.DeleteRange(t.Context(), roof, tsdb.Since(start)); return err }
				calls["Range"] = func() error {
					for p, err := range repo.Range(t.Context(), roof, tsdb.AllTime()) {
						if err != nil {
							return err
						}
						t.Errorf("Range yields %v", p)
					}
					return nil
				}
			}
			if !strings.Contains(key, "acme#readings!") {
				calls["Under.Latest"] = func() error {
					for p, err := range repo.Under(tsdb.NewPrefix("berlin")).Latest(t.Context()) {
						if err != nil {
							return err
						}
						t.Errorf("Under.Latest yields %v", p)
					}
					return nil
				}
				calls["Entities"] = func() error {
					for e, err := range repo.Under(tsdb.AllEntities()).Entities(t.Context(), tsdb.AllTime()) {
						if err != nil {
							return err
						}
						t.Errorf("Entities yields %v", e)
					}
					return nil
				}
			}
			if only && !strings.Contains(key, "acme#readings!") {
				calls["DeletePrefix"] = func() error {
					_, err := repo.DeletePrefix(t.Context(), tsdb.NewPrefix("berlin"))
					return err
				}
			}
			for name, call := range calls {
				if err := call(); !errors.Is(err, tsdb.ErrForeignRow) {
					t.Errorf("%s whose response contains the head %q: %v, want ErrForeignRow", name, key, err)
				}
			}
		}
		lie.Store(nil)
		if points, err := ofHead(repo, roof, 2); err != nil || len(points) == 0 {
			t.Errorf("the head shows %v, %v", points, err)
		}
	}
}
