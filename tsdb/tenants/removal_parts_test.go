package tenants_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

const day = 24 * time.Hour

// unusedParts is a dataset with unused parts: the classes old and spare, the tag str, and the rollup hour with a
// coarser rollup day. Another dataset also uses class old and tag str.
type unusedParts struct {
	store      *tsdb.Store
	conn       *tsdbtest.Conn
	table      *bigtable.Table
	now        time.Time
	full, lean *tsdb.Schema[string] // with all parts, and without them
	beside     *tsdb.Schema[string]
}

var (
	old    = gc.Class{Name: "old", Policy: gc.MaxAge(30 * day)}
	spare  = gc.Class{Name: "spare", Policy: gc.MaxAge(60 * day)}
	hourly = tenants.Part{Dataset: "temps", Rollup: "hour"}
)

func newUnusedParts(t testing.TB) *unusedParts {
	t.Helper()
	a := &unusedParts{now: start.Add(100 * day)}
	count := func(name string, every time.Duration, from string) tsdb.Rollup {
		return rollup.MustDefine[string](name, window.Every(every), nil, rollup.Options{From: from, Retention: keep})
	}
	key := tsdb.Key("device")
	head := tsdb.Head{Points: 2}
	a.full = tsdb.MustDefine("temps", key, codec.Fallback(codec.JSON[string](), codec.String()), tsdb.SchemaOptions{
		Retention: keep, Classes: []gc.Class{spare}, FormerClasses: []gc.Class{old}, Precision: tsdb.Milliseconds, Head: head,
		Rollups: []tsdb.Rollup{count("hour", time.Hour, ""), count("day", day, "hour")},
	})
	a.lean = tsdb.MustDefine("temps", key, codec.JSON[string](), tsdb.SchemaOptions{Retention: keep, Precision: tsdb.Milliseconds, Head: head})
	a.beside = tsdb.MustDefine("beside", key, codec.String(), tsdb.SchemaOptions{Retention: keep, FormerClasses: []gc.Class{old}})
	a.store, a.conn, a.table = tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return a.now }}}, a.full, a.beside)
	for _, name := range []string{"acm", "acme", "acme-"} {
		id := tenant.MustParse(name)
		for i := range 5 {
			at := a.now.Add(-time.Duration(i) * day)
			if err := a.full.For(a.store, id).Put(t.Context(), tsdb.NewEntity(fmt.Sprint(i)), at, "x"); err != nil {
				t.Fatal(err)
			}
			if err := a.beside.For(a.store, id).Put(t.Context(), tsdb.NewEntity(fmt.Sprint(i)), at, "x"); err != nil {
				t.Fatal(err)
			}
		}
		a.leave(t, name, "temps", 40*day, "old:p:json", "old.h2:p:json", "keep:p:json")
		a.leave(t, name, "temps", 41*day, "old:p:str")
		a.leave(t, name, "beside", 40*day, "old:p:str")
	}
	return a
}

// leave writes a row with cells of a certain age.
func (a *unusedParts) leave(t testing.TB, id, dataset string, age time.Duration, columns ...string) {
	t.Helper()
	mut := bigtable.NewMutation()
	at := a.now.Add(-age)
	for _, c := range columns {
		family, qualifier, _ := strings.Cut(c, ":")
		mut.Set(family, qualifier, bigtable.Time(at), []byte(`"x"`))
	}
	if err := a.table.Apply(t.Context(), fmt.Sprintf("%s#%s#left#%019d", id, dataset, int64(1<<63-1)-at.UnixMilli()), mut); err != nil {
		t.Fatal(err)
	}
}

// cells returns all cells of tenants, except those of dataset temps for which keep returns false.
func (a *unusedParts) cells(t testing.TB, keep func(key, cell string) bool) map[string]string {
	t.Helper()
	out := map[string]string{}
	for key, text := range dump(t, a.table, func(key string) bool { return !strings.HasPrefix(key, "!") }) {
		left := slices.DeleteFunc(strings.Split(text, " "), func(cell string) bool { return ofDataset("temps")(key) && !keep(key, cell) })
		if len(left) > 0 {
			out[key] = strings.Join(left, " ")
		}
	}
	return out
}

// TestRemoveParts: a class, a tag, a rollup and the families of a class are removed with their data, and nothing else
// changes. During the removal, programs with and without the part can start.
func TestRemoveParts(t *testing.T) {
	for _, c := range []struct {
		part tenants.Part
		keep func(key, cell string) bool
		rows int64
		more tenants.RemoveOptions
	}{
		{tenants.Part{Dataset: "temps", Class: "old"}, func(_, cell string) bool { return !strings.HasPrefix(cell, "old") }, 6, swift},
		{tenants.Part{Dataset: "temps", Class: "spare"}, func(_, cell string) bool { return true }, 0, swift},
		{tenants.Part{Dataset: "temps", Tag: "str"}, func(_, cell string) bool { return !strings.Contains(cell, ":p:str@") }, 3, swift},
		{tenants.Part{Dataset: "temps", Rollup: "day"}, func(key, _ string) bool {
			return !strings.Contains(key, "rollup.day") && !strings.Contains(key, "mark.day")
		}, 15, swift},
	} {
		a := newUnusedParts(t)
		if c.part.Rollup != "" {
			worker, err := rollup.NewWorker(a.store, rollup.WorkerOptions{}, a.full)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				a.now = a.now.Add(2 * day)
				_, err := worker.Pass(t.Context())
				if err != nil {
					t.Fatal(err)
				}
			}
			c.more.Unexpired = true
			if _, err := tenants.Remove(t.Context(), a.store, c.part, swift); !errors.Is(err, tenants.ErrImpossible) || !strings.Contains(err.Error(), "not expired") {
				t.Errorf("Remove of %s, which holds unexpired data: %v, want ErrImpossible", c.part, err)
			}
		}
		before, all := a.cells(t, c.keep), dump(t, a.table, func(string) bool { return true })
		if err := tenants.Retire(t.Context(), a.store, c.part); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*tsdb.Schema[string]{a.full} {
			if err := errors.Join(a.store.Ensure(t.Context(), s), a.store.Verify(t.Context(), s)); err != nil {
				t.Errorf("Ensure with the retired %s: %v", c.part, err)
			}
		}
		if err := tenants.Release(t.Context(), a.store, c.part); err != nil {
			t.Fatal(err)
		}
		after := dump(t, a.table, func(string) bool { return true })
		delete(all, "!dataset#temps")
		delete(after, "!dataset#temps")
		equal(t, "retired and released", after, all)
		rep, err := tenants.Remove(t.Context(), a.store, c.part, c.more)
		if err != nil || rep.Rows != c.rows || rep.State != tenants.Erased || rep.Late != 0 {
			t.Errorf("%s: report %+v, %v; want %d rows", c.part, rep, err, c.rows)
		}
		equal(t, c.part.String(), a.cells(t, func(_, _ string) bool { return true }), before)
		err = a.store.Ensure(t.Context(), a.full)
		if !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), "was removed") {
			t.Errorf("Ensure with the removed %s: %v, want a conflict", c.part, err)
		}
		if err := a.store.Verify(t.Context(), a.beside); err != nil {
			t.Error(err)
		}
		if err := tenants.Release(t.Context(), a.store, c.part); err != nil {
			t.Fatal(err)
		}
		if err := a.store.Ensure(t.Context(), a.full); err != nil {
			t.Errorf("Ensure with the released %s: %v", c.part, err)
		}
		if rest := dump(t, a.table, func(key string) bool { return strings.HasPrefix(key, "!job") }); len(rest) > 0 {
			t.Errorf("%s: left %v", c.part, rest)
		}
	}
}

// TestWithoutRetiredParts: programs without the parts start once these are retired, and their Ensure keeps the parts
// for other programs.
func TestWithoutRetiredParts(t *testing.T) {
	a := newUnusedParts(t)
	if err := a.store.Verify(t.Context(), a.lean); !errors.Is(err, tenancy.ErrSchemaConflict) {
		t.Errorf("Ensure without the parts before they are retired: %v", err)
	}
	parts := []tenants.Part{{Dataset: "temps", Class: "old"}, {Dataset: "temps", Class: "spare"}, {Dataset: "temps", Tag: "str"}, {Dataset: "temps", Rollup: "day"}}
	for _, p := range parts {
		if err := tenants.Retire(t.Context(), a.store, p); err != nil {
			t.Fatal(err)
		}
	}
	if err := tenants.Retire(t.Context(), a.store, hourly); !errors.Is(err, tenants.ErrImpossible) {
		t.Errorf("Retire of a rollup that another is computed from: %v", err)
	}
	lean := tsdb.MustDefine("temps", tsdb.Key("device"), codec.JSON[string](), tsdb.SchemaOptions{
		Retention: keep, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2}, Rollups: []tsdb.Rollup{rollup.MustDefine[string]("hour", window.Every(time.Hour), nil, rollup.Options{Retention: keep})},
	})
	entry := dump(t, a.table, func(key string) bool { return key == "!dataset#temps" })
	for _, s := range []*tsdb.Schema[string]{lean, a.full, lean} {
		if err := errors.Join(a.store.Ensure(t.Context(), s), a.store.Verify(t.Context(), s)); err != nil {
			t.Error(err)
		}
	}
	equal(t, "the entry", dump(t, a.table, func(key string) bool { return key == "!dataset#temps" }), entry)
	if _, err := tenants.Onboard(t.Context(), a.store, acme, tenants.Profile{Retention: "spare"}, tenants.OnboardOptions{}); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("Onboard with a retired class: %v", err)
	}
	// With one more tag, the entry is written again, and retired parts stay in it.
	wider := tsdb.MustDefine("temps", tsdb.Key("device"), codec.Fallback(codec.JSON[string](), codec.Convert(codec.Bytes(), func(b []byte) (string, error) { return string(b), nil }, func(s string) ([]byte, error) { return []byte(s), nil })), tsdb.SchemaOptions{
		Retention: keep, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2}, Rollups: []tsdb.Rollup{rollup.MustDefine[string]("hour", window.Every(time.Hour), nil, rollup.Options{Retention: keep})},
	})
	if err := a.store.Ensure(t.Context(), wider); err != nil {
		t.Fatal(err)
	}
	text := dump(t, a.table, func(key string) bool { return key == "!dataset#temps" })["!dataset#temps"]
	for _, name := range []string{`{\"name\":\"old\"`, `{\"name\":\"spare\"`, `\"tags\":[\"json\",\"raw\",\"str\"]`, `{\"name\":\"day\"`} { // with their content, not only by name in the list of retired parts
		if !strings.Contains(text, name) {
			t.Errorf("the entry lacks %s: %s", name, text)
		}
	}
}

// TestPartsInUse: a part that is in use is not removed, the error names the reason, and nothing changes.
func TestPartsInUse(t *testing.T) {
	for _, c := range []struct {
		part tenants.Part
		why  string
		use  func(t *testing.T, a *unusedParts)
	}{
		{tenants.Part{Dataset: "temps", Class: "keep"}, "unless a profile says otherwise", nil},
		{tenants.Part{Dataset: "temps", Tag: "json"}, "New points are written", nil},
		{hourly, "Rollup day is computed from it", nil},
		{tenants.Part{Dataset: "temps", Class: "old"}, "1 rows hold data that has not expired", func(t *testing.T, a *unusedParts) { a.leave(t, "acme", "temps", 20*day, "old:p:json") }},
		{tenants.Part{Dataset: "temps", Class: "old"}, "1 rows hold data that has not expired", func(t *testing.T, a *unusedParts) { a.leave(t, "acme", "temps", 20*day, "old.h2:p:str") }},
		{tenants.Part{Dataset: "temps", Tag: "str"}, "1 rows hold data that has not expired", func(t *testing.T, a *unusedParts) { a.leave(t, "acme", "temps", 50*day, "spare:p:str") }},
		{tenants.Part{Dataset: "temps", Class: "spare"}, "assign the class to tenants: acme", func(t *testing.T, a *unusedParts) {
			if _, err := tenants.Onboard(t.Context(), a.store, acme, tenants.Profile{Classes: map[string]string{"temps": "spare"}}, tenants.OnboardOptions{}); err != nil {
				t.Fatal(err)
			}
		}},
		{tenants.Part{Class: "old"}, "Datasets use the class: beside, temps", nil},
	} {
		a := newUnusedParts(t)
		if c.use != nil {
			c.use(t, a)
		}
		before := dump(t, a.table, func(string) bool { return true })
		rep, err := tenants.Remove(t.Context(), a.store, c.part, swift)
		if !errors.Is(err, tenants.ErrImpossible) || !strings.Contains(err.Error(), c.why) || !strings.Contains(rep.String(), c.why) {
			t.Errorf("Remove of %s: %v; want %q\n%s", c.part, err, c.why, rep)
		}
		dry := swift
		dry.DryRun = true
		if rep, err := tenants.Remove(t.Context(), a.store, c.part, dry); err != nil || len(rep.Impossible) == 0 {
			t.Errorf("dry run of %s: %v, %v", c.part, rep.Impossible, err)
		}
		equal(t, c.part.String(), dump(t, a.table, func(string) bool { return true }), before)
	}
}

// TestAPartComesIntoUse: a point that is written in a class after Remove has checked the class keeps the class and
// itself.
func TestAPartComesIntoUse(t *testing.T) {
	for _, at := range []tenants.State{"marked", tenants.Deleting} {
		a := newUnusedParts(t)
		opts, done := swift, false
		opts.Progress = func(p tenants.Progress) {
			if p.State == at && !done {
				done = true
				a.leave(t, "acme", "temps", 20*day, "old:p:json")
			}
		}
		_, err := tenants.Remove(t.Context(), a.store, tenants.Part{Dataset: "temps", Class: "old"}, opts)
		if want := map[tenants.State]error{"marked": tenants.ErrImpossible, tenants.Deleting: errtype.ErrRemains}[at]; !errors.Is(err, want) {
			t.Errorf("point written while %s: %v", at, err)
		}
		if left := dump(t, a.table, func(key string) bool { return strings.HasPrefix(key, "acme#temps#left") }); !strings.Contains(fmt.Sprint(left), "old:p:json") {
			t.Errorf("point written while %s is deleted: %v", at, left)
		}
		if err := a.store.Verify(t.Context(), a.full); err != nil {
			t.Errorf("point written while %s: %v", at, err)
		}
		if at == "marked" { // nothing was changed: the class is not retired either
			if err := tenants.Release(t.Context(), a.store, tenants.Part{Dataset: "temps", Class: "old"}); !errors.Is(err, tsdb.ErrNotFound) {
				t.Errorf("the class is retired after an impossible removal: Release returns %v", err)
			}
		}
	}
}

// TestRemoveFamilies: the families of a class are dropped once no dataset uses it. Families with cells of unknown
// datasets stay.
func TestRemoveFamilies(t *testing.T) {
	a := newUnusedParts(t)
	part := tenants.Part{Class: "spare"}
	rep, err := tenants.Remove(t.Context(), a.store, tenants.Part{Dataset: "temps", Class: "spare"}, swift)
	if err != nil || !slices.Equal(rep.Unused, []string{"spare"}) {
		t.Fatalf("report %+v, error %v", rep, err)
	}
	rep, err = tenants.Remove(t.Context(), a.store, tenants.Part{Dataset: "temps", Class: "old"}, swift)
	if err != nil || len(rep.Unused) != 0 {
		t.Fatalf("report %+v, error %v", rep, err)
	}
	a.leave(t, "acme", "gone", 20*day, "spare:p:json")
	if _, err := tenants.Remove(t.Context(), a.store, part, swift); !errors.Is(err, tenants.ErrImpossible) || !strings.Contains(err.Error(), "no dataset in the catalogue") {
		t.Errorf("Remove of families with a cell: %v, want ErrImpossible", err)
	}
	before := a.cells(t, func(string, string) bool { return true })
	delete(before, fmt.Sprintf("acme#gone#left#%019d", int64(1<<63-1)-a.now.Add(-20*day).UnixMilli()))
	opts := swift
	opts.Unexpired = true
	rep, err = tenants.Remove(t.Context(), a.store, part, opts)
	if err != nil || !slices.Equal(rep.Families, []string{"spare", "spare.h2"}) || rep.Rows != 1 {
		t.Errorf("report %+v, error %v", rep, err)
	}
	equal(t, "others", a.cells(t, func(string, string) bool { return true }), before)
	_, admin := tsdbtest.Clients(t, a.conn)
	info, err := admin.TableInfo(t.Context(), tsdbtest.Table)
	if err != nil || slices.Contains(info.Families, "spare") || slices.Contains(info.Families, "spare.h2") || !slices.Contains(info.Families, "old.h2") {
		t.Errorf("families %v, error %v", info.Families, err)
	}
}

// TestKilledRetirement: the removal of a class is cut off at each of its requests in turn, and continued.
func TestKilledRetirement(t *testing.T) {
	part, total := tenants.Part{Dataset: "temps", Class: "old"}, 0
	for cut := 0; cut <= total; cut += testkit.Stride(7) {
		a := newUnusedParts(t)
		before := a.cells(t, func(_, cell string) bool { return !strings.HasPrefix(cell, "old") })
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Int64
		a.conn.Inject(tsdbtest.DelayBy(func() time.Duration {
			if calls.Add(1) == int64(cut) {
				cancel()
			}
			return 0
		}))
		rep, err := tenants.Remove(ctx, a.store, part, swift)
		a.conn.Clear()
		if cut == 0 {
			total = int(calls.Load())
		}
		if err != nil {
			rep, err = tenants.Remove(t.Context(), a.store, part, swift)
		}
		cancel()
		if errors.Is(err, tsdb.ErrNotFound) { // the cut was after the end
			err, rep.State, rep.Rows = nil, tenants.Erased, 6
		}
		if err != nil || rep.State != tenants.Erased || rep.Rows != 6 {
			t.Errorf("cut at %d of %d: report %+v, %v", cut, total, rep, err)
		}
		equal(t, "after", a.cells(t, func(string, string) bool { return true }), before)
		if err := a.store.Ensure(t.Context(), a.full); !errors.Is(err, tenancy.ErrSchemaConflict) {
			t.Errorf("cut at %d of %d: %v", cut, total, err)
		}
	}
	if total < 20 {
		t.Errorf("the removal made only %d requests", total)
	}
}
