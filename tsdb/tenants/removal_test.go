package tenants_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// swift is a removal without waiting times and with small pages.
var swift = tenants.WithRemovalPages(tenants.RemoveOptions{Settle: 1, RowsPerSecond: -1}, 7)

var readings = tenants.Part{Dataset: "readings"}

// ofDataset selects the rows of a dataset, of all tenants and kinds.
func ofDataset(name string) func(string) bool {
	return func(key string) bool {
		_, rest, _ := strings.Cut(key, "#")
		return !strings.HasPrefix(key, "!") && (strings.HasPrefix(rest, name+"#") || strings.HasPrefix(rest, name+"!"))
	}
}

// besides selects what the deletion of a dataset must not change: everything except its rows, entry and marks.
func outsideDataset(name string) func(string) bool {
	return func(key string) bool {
		return !ofDataset(name)(key) && !strings.HasPrefix(key, "!erased") && key != "!dataset#"+name
	}
}

func plainRemoval(r tenants.Removal) string {
	r.Started, r.Ended = time.Time{}, time.Time{}
	text, _ := json.Marshal(r)
	return string(text)
}

// threeTenants fills all datasets for tenants whose names are prefixes of one another, with rows of rollups and of
// other programs.
func threeTenants(t testing.TB, f fleet, store *tsdb.Store, conn *tsdbtest.Conn) {
	t.Helper()
	client, _ := tsdbtest.Clients(t, conn)
	table := client.Open(tsdbtest.Table)
	for _, id := range []string{"acm", "acme", "acme-"} {
		f.fill(t, store, tenant.MustParse(id))
		for _, key := range []string{"#readings!rollup.hour#a#b#1", "#readings!mark.hour#a#b#1", "#readings!zzz#a", "#readings2#a#b#1", "#reading#a"} {
			if err := table.Apply(t.Context(), id+key, newCell()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := table.Apply(t.Context(), "other#program", newCell()); err != nil {
		t.Fatal(err)
	}
}

// TestDeleteDataset: one of four datasets is deleted for all tenants, with its rollups and marks. No byte of the others
// changes.
func TestDeleteDataset(t *testing.T) {
	for _, views := range [][]tenant.ID{nil, {acme, tenant.MustParse("acm"), tenant.MustParse("acme-")}} {
		f, store, conn, table := open(t, tsdbtest.Options{ViewsFor: views})
		threeTenants(t, f, store, conn)
		all := dump(t, table, func(string) bool { return true })
		before := dump(t, table, outsideDataset("readings"))
		dry := swift
		dry.DryRun = true
		plan, err := tenants.Remove(t.Context(), store, readings, dry)
		if err != nil || plan.Rows != 3*15 || len(plan.Tenants) != 3 || plan.Tenants[1].Rows != 15 || len(plan.Unused) != 0 || len(plan.Kinds) != 4 {
			t.Errorf("dry run: report %+v, error %v", plan, err)
		}
		equal(t, "dry run", dump(t, table, func(string) bool { return true }), all)
		rep, err := tenants.Remove(t.Context(), store, readings, swift)
		if err != nil || rep.Rows != plan.Rows || rep.State != tenants.Erased || rep.Late != 0 || len(rep.Tenants) != 3 {
			t.Errorf("report %+v, error %v", rep, err)
		}
		equal(t, "others", dump(t, table, outsideDataset("readings")), before)
		if left := dump(t, table, func(key string) bool { return ofDataset("readings")(key) || key == "!dataset#readings" }); len(left) > 0 {
			t.Errorf("left %v", left)
		}
		repo, e := f.readings.For(store, acme), tsdb.NewEntity("a", "b")
		_, err = repo.Latest(t.Context(), e)
		for what, err := range map[string]error{
			"Put": repo.Put(t.Context(), e, start, "x"), "Latest": err,
			"Ensure": store.Ensure(t.Context(), f.datasets()...), "Verify": store.Verify(t.Context(), f.datasets()...),
		} {
			if !errors.Is(err, tenancy.ErrDatasetDeleted) || !errors.Is(err, tsdb.ErrErased) {
				t.Errorf("%s in a deleted dataset: %v", what, err)
			}
		}
		if err := f.events.For(store, acme).Put(t.Context(), tsdb.NewEntity("u"), start, "x"); err != nil {
			t.Errorf("Put into another dataset: %v", err)
		}
		for range 2 {
			if err := tenants.Release(t.Context(), store, readings); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Ensure(t.Context(), f.datasets()...); err != nil {
			t.Fatal(err)
		}
		if _, err = repo.Latest(t.Context(), e); !errors.Is(err, tsdb.ErrNotFound) {
			t.Errorf("Latest in a new dataset: %v", err)
		}
		if err := repo.Put(t.Context(), e, start, "x"); err != nil {
			t.Error(err)
		}
	}
}

// TestTwoRemovers: of two parallel calls at least one finishes the removal, the other gets an error, and nothing is
// counted twice.
func TestTwoRemovers(t *testing.T) {
	f, store, conn, table := open(t, tsdbtest.Options{})
	other := second(t, conn, tsdb.Options{})
	threeTenants(t, f, store, conn)
	errs := make(chan error, 2)
	for _, s := range []*tsdb.Store{store, other} {
		go func() {
			_, err := tenants.Remove(t.Context(), s, readings, swift)
			errs <- err
		}()
	}
	ended := 0
	for range 2 {
		switch err := <-errs; {
		case err == nil:
			ended++
		case !errors.Is(err, tenants.ErrTakenOver):
			t.Error(err)
		}
	}
	rep, err := tenants.Remove(t.Context(), store, readings, swift)
	if err != nil || ended == 0 || rep.Rows != 45 || rep.State != tenants.Erased {
		t.Errorf("%d calls finished, report %+v, error %v", ended, rep, err)
	}
	if left := dump(t, table, ofDataset("readings")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestRemovalTakenOver: a call whose deletion another call has finished changes nothing of a new dataset with the same
// name.
func TestRemovalTakenOver(t *testing.T) {
	for _, at := range []tenants.State{"marked", "counting", tenants.Deleting, "verifying"} {
		f, store, conn, table := open(t, tsdbtest.Options{})
		_, admin := tsdbtest.Clients(t, conn)
		other := second(t, conn, tsdb.Options{Admin: admin})
		threeTenants(t, f, store, conn)
		first, looked, over := swift, false, false
		first.Progress = func(p tenants.Progress) {
			looked = looked || p.State == "marked"
			if p.State != at || over || !looked { // the first count comes before any mark
				return
			}
			over = true
			_, err := tenants.Remove(t.Context(), other, readings, swift)
			if err = errors.Join(err, tenants.Release(t.Context(), other, readings), other.Ensure(t.Context(), f.datasets()...)); err != nil {
				t.Fatal(err)
			}
			if err := f.readings.For(other, acme).Put(t.Context(), tsdb.NewEntity("new", "life"), start, "x"); err != nil {
				t.Error(err)
			}
		}
		if _, err := tenants.Remove(t.Context(), store, readings, first); !errors.Is(err, tenants.ErrTakenOver) {
			t.Errorf("taken over while %s: %v, want ErrTakenOver", at, err)
		}
		if n := len(dump(t, table, ofDataset("readings"))); n != 1 {
			t.Errorf("taken over while %s: %d rows, want the new one", at, n)
		}
		if err := store.Verify(t.Context(), f.datasets()...); err != nil {
			t.Errorf("taken over while %s: %v", at, err)
		}
	}
}

// TestEnsureDuringADeletion: a program that declares the dataset gets an error at any step of the deletion, and brings
// back neither its entry nor its rows. Its Ensure may have begun before the mark.
func TestEnsureDuringADeletion(t *testing.T) {
	f, store, conn, table := open(t, tsdbtest.Options{})
	client, admin := tsdbtest.Clients(t, conn)
	other := second(t, conn, tsdb.Options{Admin: admin})
	threeTenants(t, f, store, conn)
	var seen []tenants.State
	opts := swift
	opts.Progress = func(p tenants.Progress) {
		if slices.Contains(seen, p.State) {
			return
		}
		err := other.Ensure(t.Context(), f.datasets()...)
		if p.State == "counting" && len(seen) == 0 { // before the mark
			if err != nil {
				t.Errorf("Ensure before the mark: %v", err)
			}
			return
		}
		seen = append(seen, p.State)
		if !errors.Is(err, tenancy.ErrDatasetDeleted) {
			t.Errorf("Ensure while %s: %v", p.State, err)
		}
	}
	if _, err := tenants.Remove(t.Context(), store, readings, opts); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 5 {
		t.Errorf("steps seen: %v", seen)
	}
	// The next call deletes an entry that was written by an Ensure that had not seen the mark.
	own := newOwn("json", `{"name":"readings","key":["site","device"],"precision":"ns","salts":0,"first_wins":false,"tags":["str"],"classes":[{"name":"keep","policy":"never"}]}`)
	own.Set("_sys", "gen", 0, []byte("1"))
	if err := client.Open(tsdbtest.Table).Apply(t.Context(), "!dataset#readings", own); err != nil {
		t.Fatal(err)
	}
	if err := client.Open(tsdbtest.Table).Apply(t.Context(), "acme#readings#a#b#1", newCell()); err != nil {
		t.Fatal(err)
	}
	rep, err := tenants.Remove(t.Context(), store, readings, swift)
	if err != nil || rep.Late != 1 {
		t.Errorf("report %+v, error %v", rep, err)
	}
	if left := dump(t, table, func(key string) bool { return ofDataset("readings")(key) || key == "!dataset#readings" }); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestAJournalBringsNoDatasetBack: a process with a full journal, started after the deletion, drops the points and dead
// letters of the dataset, and delivers the rest. It does so too after the dataset was created again.
func TestAJournalBringsNoDatasetBack(t *testing.T) {
	bubble(t, func(t *testing.T) { journalOfADeletedDataset(t, false) })
	bubble(t, func(t *testing.T) { journalOfADeletedDataset(t, true) })
}

func journalOfADeletedDataset(t *testing.T, released bool) {
	f, store, conn, table := open(t, tsdbtest.Options{})
	dir := fullJournal(t, f, store, conn) // 100 points and 2 dead letters of readings
	if _, err := tenants.Remove(t.Context(), store, readings, swift); err != nil {
		t.Fatal(err)
	}
	if released {
		if err := errors.Join(tenants.Release(t.Context(), store, readings), store.Ensure(t.Context(), f.datasets()...)); err != nil {
			t.Fatal(err)
		}
	}
	w := newWriter(t, second(t, conn, tsdb.Options{}), dir)
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 60 { // a dead letter is counted once it has been dropped
		if s := w.Stats().Journal; s.DeadLetters == 0 && s.Erased == 102 {
			break
		}
		time.Sleep(time.Second)
	}
	if s := w.Stats().Journal; s.Points != 0 || s.DeadLetters != 0 || s.Erased != 102 {
		t.Errorf("stats %+v, want 100 points and 2 dead letters dropped", s)
	}
	if left := dump(t, table, ofDataset("readings")); len(left) > 0 {
		t.Errorf("rows of the deleted dataset: %v", left)
	}
	if n := len(dump(t, table, ofDataset("salted"))); n != 100 {
		t.Errorf("%d rows of the other dataset, want 100", n)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRemovalRefusals: invalid and unknown parts, and calls with a tenant, are refused.
func TestRemovalRefusals(t *testing.T) {
	_, store, _, _ := open(t, tsdbtest.Options{})
	for _, part := range []tenants.Part{{Class: "_x"}, {}, {Tag: "str"}, {Dataset: "a#b"}, {Dataset: "readings", Class: "a", Tag: "b"}, {Dataset: "readings", Rollup: "a#b"}} {
		if _, err := tenants.Remove(t.Context(), store, part, swift); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("Remove of %+v: %v", part, err)
		}
	}
	for _, part := range []tenants.Part{{Dataset: "nowhere"}, {Dataset: "readings", Rollup: "none"}, {Dataset: "readings", Class: "none"}, {Class: "none"}} {
		if _, err := tenants.Remove(t.Context(), store, part, swift); !errors.Is(err, tsdb.ErrNotFound) {
			t.Errorf("Remove of %+v: %v", part, err)
		}
		if err := tenants.Release(t.Context(), store, part); !errors.Is(err, tsdb.ErrNotFound) || strings.Contains(err.Error(), "families of retention class none is") {
			t.Errorf("Release of %+v: %v", part, err)
		} else if part.Dataset == "nowhere" && !strings.Contains(err.Error(), "deletion of dataset nowhere") {
			t.Errorf("Release of a dataset that was never deleted: %v", err)
		}
	}
	if _, err := tenants.Remove(tenant.NewContext(t.Context(), acme), store, readings, swift); !errors.Is(err, tsdb.ErrTenantMismatch) {
		t.Errorf("Remove with a tenant in the context: %v", err)
	}
}
