package tenants_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// manyMarks writes n marks of single entities of a tenant, numbered from first, as erasures leave them.
func manyMarks(t testing.TB, table *bigtable.Table, name string, first, n int) {
	t.Helper()
	keys, muts := make([]string, n), make([]*bigtable.Mutation, n)
	for i := range n {
		keys[i] = fmt.Sprintf("!erased#%s#%032x", name, first+i)
		muts[i] = newOwn("m", "")
		muts[i].Set("_sys", "e", 0, fmt.Appendf(nil, "%016x", first+i))
		muts[i].Set("_sys", "gen", 0, []byte("1"))
		muts[i].Set("_sys", "json", 0, []byte(`{"tenant":"`+name+`","state":"erased"}`))
	}
	errs, err := table.ApplyBulk(t.Context(), keys, muts)
	if err != nil || errs != nil {
		t.Fatal(err, errs)
	}
	if err := table.Apply(t.Context(), "!erased", newOwn("gen", "one")); err != nil {
		t.Fatal(err)
	}
}

var site0 = map[string]string{"site": "site#0", "device": "dev 0"}

// TestAnErasureIsOneMarkToRead: a store that knows thousands of marks reads only the changed one, also when a mark
// ends, and drops only that tenant's points from its cache.
func TestAnErasureIsOneMarkToRead(t *testing.T) {
	testkit.Plain(t)
	bubble(t, func(t *testing.T) {
		f, store, conn, table := open(t, tsdbtest.Options{})
		other := second(t, conn, tsdb.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 100, MaxAge: 24 * time.Hour}}})
		manyMarks(t, table, "acme", 0, 2000)
		e, e1 := tsdb.NewEntity("site#0", "dev 0"), tsdb.NewEntity("site#0", "dev 1")
		put := func(id tenant.ID, e tsdb.Entity) error {
			return f.readings.For(other, id).Put(t.Context(), e, start, "v")
		}
		ab := tenant.MustParse("ab")
		for _, id := range []tenant.ID{acme, ab} {
			if err := put(id, e); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.readings.For(other, ab).Latest(t.Context(), e, tsdb.MaxStale(24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		step := func(what string, most int64, change func() error) {
			t.Helper()
			if err := change(); err != nil {
				t.Fatal(what, err)
			}
			conn.Reset()
			time.Sleep(tenancy.ErasedWithin + time.Second)
			_ = put(acme, e1)
			if n := conn.Counts().UpkeepRows; n == 0 || n > most {
				t.Errorf("%s: %d rows read, want at most %d", what, n, most)
			}
		}
		step("erase", 5, func() error {
			_, err := tenants.EraseEntity(t.Context(), store, acme, "", site0, quick)
			return err
		})
		if err := put(acme, e); !errors.Is(err, tsdb.ErrErased) {
			t.Errorf("Put to the erased entity: %v, want ErrErased", err)
		}
		reads := conn.Counts().Calls[tsdbtest.ReadRows]
		if _, err := f.readings.For(other, ab).Latest(t.Context(), e, tsdb.MaxStale(24*time.Hour)); err != nil || conn.Counts().Calls[tsdbtest.ReadRows] != reads {
			t.Errorf("the cache dropped points of another tenant: %v", err)
		}
		step("readmit", 5, func() error { return tenants.ReadmitEntity(t.Context(), store, acme, "", site0) })
		if err := put(acme, e); err != nil {
			t.Errorf("Put to the readmitted entity: %v", err)
		}
		// A program that does not write the log, and then one that does.
		step("an epoch of another program", 3000, func() error { return table.Apply(t.Context(), "!erased", newOwn("gen", "two")) })
		m := newOwn("m", "")
		if err := table.Apply(t.Context(), "!erased#ab", m); err != nil {
			t.Fatal(err)
		}
		step("an epoch of another program before a log", 3000, func() error {
			if err := table.Apply(t.Context(), "!erased", newOwn("gen", "three")); err != nil {
				return err
			}
			_, err := tenants.EraseEntity(t.Context(), store, acme, "", site0, quick)
			return err
		})
		for id, e := range map[tenant.ID]tsdb.Entity{ab: e1, acme: e} {
			if err := put(id, e); !errors.Is(err, tsdb.ErrErased) {
				t.Errorf("Put of %s: %v", id, err)
			}
		}
		step("more changes than the log holds", 3000, func() error {
			for range 100 {
				if err := tenants.ReadmitEntity(t.Context(), store, acme, "", site0); err != nil {
					return err
				}
				if _, err := tenants.EraseEntity(t.Context(), store, acme, "", site0, quick); err != nil {
					return err
				}
			}
			return tenants.ReadmitEntity(t.Context(), store, acme, "", site0)
		})
		if err := put(acme, e); err != nil {
			t.Errorf("Put after all changes: %v", err)
		}
	})
}

// TestReadmitEntity: only a mark whose erasure has ended is removed, for the named datasets. The call may be repeated.
func TestReadmitEntity(t *testing.T) {
	f, store, _, table := open(t, tsdbtest.Options{})
	f.fill(t, store, acme)
	readmit := func(dataset string) error { return tenants.ReadmitEntity(t.Context(), store, acme, dataset, site0) }
	put := func(s *tsdb.Schema[string]) error {
		return s.For(store, acme).Put(t.Context(), tsdb.NewEntity("site#0", "dev 0"), start, "v")
	}
	if err := readmit(""); !errors.Is(err, tsdb.ErrNotFound) {
		t.Errorf("readmit an entity that was never erased: %v", err)
	}
	if err := tenants.ReadmitEntity(t.Context(), store, acme, "", map[string]string{"no": "such"}); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("readmit an entity of no dataset: %v", err)
	}
	for _, dataset := range []string{"readings", "salted"} {
		if _, err := tenants.EraseEntity(t.Context(), store, acme, dataset, site0, quick); err != nil {
			t.Fatal(err)
		}
	}
	if err := readmit("readings"); err != nil {
		t.Fatal(err)
	}
	if err := put(f.readings); err != nil {
		t.Errorf("Put after a readmission to readings: %v", err)
	}
	if err := put(f.salted); !errors.Is(err, tsdb.ErrErased) {
		t.Errorf("Put without a readmission to salted: %v, want ErrErased", err)
	}
	for range 2 { // of all datasets: each of the marks
		if err := readmit(""); err != nil && !errors.Is(err, tsdb.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if err := put(f.salted); err != nil {
		t.Errorf("readmit to all datasets: %v", err)
	}
	if _, err := tenants.EraseEntity(t.Context(), store, acme, "", site0, quick); err != nil {
		t.Fatal(err)
	}
	if err := readmit("salted"); !errors.Is(err, tsdb.ErrInvalid) || put(f.salted) == nil {
		t.Errorf("readmit to one dataset of a mark for several: %v, want ErrInvalid", err)
	}
	for range 2 {
		if err := readmit(""); err != nil {
			t.Errorf("repeated readmission: %v", err)
		}
	}
	if err := put(f.salted); err != nil {
		t.Error(err)
	}
	for key := range dump(t, table, ofTenant("!erased#acme")) { // an erasure that is running
		doc := newOwn("json", `{"tenant":"acme","state":"deleting"}`)
		if err := table.Apply(t.Context(), key, doc); err != nil {
			t.Fatal(err)
		}
	}
	if err := readmit(""); !errors.Is(err, errtype.ErrErasing) {
		t.Errorf("readmit during an erasure: %v", err)
	}
}

// TestMarksAreBounded: the number of marks is bounded for all tenants and for each tenant, so that no tenant uses up
// the space of others. An expired mark makes room.
func TestMarksAreBounded(t *testing.T) {
	tenants.LowerMarks(t, 5, 3)
	f, store, conn, table := open(t, tsdbtest.Options{})
	for _, name := range []string{"acme", "ab"} {
		f.fill(t, store, tenant.MustParse(name))
	}
	manyMarks(t, table, "acme", 0, 3)
	conn.Reset()
	erase := func(name string) error {
		_, err := tenants.EraseEntity(t.Context(), store, tenant.MustParse(name), "", site0, quick)
		return err
	}
	if _, err := tenants.Erasure(t.Context(), store, acme); !errors.Is(err, tsdb.ErrNotFound) {
		t.Fatal(err)
	}
	if err := erase("acme"); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("a fourth mark of one tenant: %v", err)
	}
	if err := erase("ab"); err != nil {
		t.Errorf("the first mark of another tenant: %v", err)
	}
	manyMarks(t, table, "abc", 0, 1)
	if err := erase("abcd"); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("a sixth mark of all tenants: %v", err)
	}
	past := newOwn("m", "1700000000")
	past.Set("_sys", "json", 0, []byte(`{"tenant":"abc","state":"erased","until":"2023-11-14T22:13:20Z"}`))
	if err := table.Apply(t.Context(), "!erased#abc#"+fmt.Sprintf("%032x", 0), past); err != nil {
		t.Fatal(err)
	}
	if err := table.Apply(t.Context(), "!erased", newOwn("gen", "two")); err != nil {
		t.Fatal(err)
	}
	if err := erase("abcd"); err != nil {
		t.Errorf("after one mark has expired: %v", err)
	}
}
