package rollup_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// aged is a schema in which rollups of tenants in class d30 are kept for 60 days, and others for ever.
type aged struct {
	*clock
	hour, day *rollup.Rollup[reading]
	events    *rollup.Rollup[reading]
	schema    *tsdb.Schema[reading]
	store     *tsdb.Store
	conn      *tsdbtest.Conn
	table     *bigtable.Table
	worker    *rollup.Worker
}

const oneDay = 24 * time.Hour

func newAged(t *testing.T) *aged {
	t.Helper()
	a := &aged{clock: testkit.NewClock(start)}
	a.hour = rollup.MustDefine("hour", window.Every(time.Hour), measures(), rollup.Options{Span: 2 * oneDay})
	a.day = rollup.MustDefine("day", window.Every(oneDay), measures(), rollup.Options{From: "hour", Span: 10 * oneDay})
	a.events = rollup.MustDefine("events", window.Every(time.Hour), measures(), rollup.Options{Mode: rollup.ByMessage, Span: 2 * oneDay})
	a.schema = tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{
		Retention:  gc.Class{Name: "d90", Policy: gc.MaxAge(90 * oneDay)},
		Classes:    []gc.Class{{Name: "d30", Policy: gc.MaxAge(30 * oneDay)}},
		RollupAges: map[string]time.Duration{"d30": 60 * oneDay},
		Rollups:    []tsdb.Rollup{a.hour, a.day, a.events},
	})
	a.store, a.conn, a.table = tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: a.Now}}, a.schema)
	a.assign(t, acme, "d30")
	var err error
	if a.worker, err = rollup.NewWorker(a.store, rollup.WorkerOptions{Tenants: only(acme, acme2)}, a.schema); err != nil {
		t.Fatal(err)
	}
	return a
}

// assign puts a tenant into a class, and waits until stores apply it.
func (a *aged) assign(t *testing.T, id tenant.ID, class string) {
	t.Helper()
	if _, err := tenants.Onboard(t.Context(), a.store, id, tenants.Profile{Retention: class}, tenants.OnboardOptions{Replace: true}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(tenancy.ClassesWithin + time.Second)
}

// fill writes a point and an event in the first minutes of consecutive days, and computes the marked buckets.
func (a *aged) fill(t *testing.T, days int) (midnight time.Time) {
	t.Helper()
	midnight = a.day.Grid().Next(start)
	for i := range days {
		for _, id := range []tenant.ID{acme, acme2} {
			repo, at := a.schema.For(a.store, id), midnight.Add(time.Duration(i)*oneDay)
			if err := repo.Put(t.Context(), roof, at, reading{TempC: 1}); err != nil {
				t.Fatal(err)
			}
			if _, err := rollup.NewAdder(a.events, repo, nil).AddMessage(t.Context(), at.String(), roof, at, reading{TempC: 1}); err != nil {
				t.Fatal(err)
			}
		}
		a.Set(midnight.Add(time.Duration(i)*oneDay + time.Hour))
	}
	a.Set(midnight.Add(time.Duration(days)*oneDay + 2*time.Hour))
	for range 4 {
		a.pass(t)
		a.Add(2 * time.Minute)
	}
	return midnight
}

func (a *aged) pass(t *testing.T) rollup.Pass {
	t.Helper()
	p, err := a.worker.Pass(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// count returns how many buckets of a tenant each rollup shows.
func (a *aged) count(t *testing.T, id tenant.ID) (n [3]int) {
	t.Helper()
	for i, r := range []*rollup.Rollup[reading]{a.hour, a.day, a.events} {
		for _, err := range rollup.For(r, a.schema.For(a.store, id)).Buckets(t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst) {
			if err != nil {
				t.Fatal(err)
			}
			n[i]++
		}
	}
	return n
}

// rows returns how many rows and cells the rollups of a tenant have in the table.
func (a *aged) rows(t *testing.T, id tenant.ID) (rows, cells int) {
	t.Helper()
	err := a.table.ReadRows(t.Context(), bigtable.PrefixRange(id.String()+"#r!rollup."), func(row bigtable.Row) bool {
		rows++
		for _, items := range row {
			cells += len(items)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows, cells
}

// TestRollupAges: if a tenant's class sets an age, expired buckets of all kinds of rollups disappear from reads at the
// exact time, and from the table when a worker has made a pass. A tenant in another class loses nothing.
func TestRollupAges(t *testing.T) {
	clockBubble(t, func(t *testing.T) {
		a := newAged(t)
		midnight := a.fill(t, 5)
		want := func(what string, id tenant.ID, n int) {
			t.Helper()
			if got := a.count(t, id); got != [3]int{n, n, n} {
				t.Errorf("%s: %s has %v buckets by hour, day and event, want %d each", what, id, got, n)
			}
		}
		want("at first", acme, 5)
		want("at first", acme2, 5)
		_, others := a.rows(t, acme2)
		a.Set(midnight.Add(60*oneDay + oneDay))
		want("at the age of the second", acme, 4)
		a.Add(time.Millisecond)
		want("behind the age of the second", acme, 3)
		want("behind the age of the second", acme2, 5)
		if _, cells := a.rows(t, acme); cells != others {
			t.Errorf("%d cells before a worker has passed, want %d", cells, others)
		}
		a.conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.MutateRows))
		if p, err := a.worker.Pass(t.Context()); err == nil || p.Trimmed != 0 {
			t.Errorf("pass with failing deletions: %+v, %v; want an error", p, err)
		}
		a.conn.Clear()
		if p := a.pass(t); p.Trimmed != 0 {
			t.Errorf("pass %+v immediately after one that failed, want no full scan", p)
		}
		a.Add(time.Hour)
		if p := a.pass(t); p.Trimmed == 0 {
			t.Errorf("pass %+v, want trimmed rows", p)
		}
		want("after a pass", acme, 3)
		if _, cells := a.rows(t, acme); cells >= others {
			t.Errorf("%d cells after a worker has passed, want fewer than %d", cells, others)
		}
		a.conn.Reset()
		a.Add(time.Hour)
		if p := a.pass(t); p.Trimmed != 0 || a.conn.Counts().Calls[tsdbtest.ReadRows] > 2 {
			t.Errorf("pass %+v an hour later, and %v: want no scan for expired buckets", p, a.conn.Counts().Calls)
		}
		a.Set(midnight.Add(80 * oneDay))
		a.pass(t)
		if rows, cells := a.rows(t, acme); rows != 0 {
			t.Errorf("%d rows and %d cells are left after all have expired", rows, cells)
		}
		if _, cells := a.rows(t, acme2); cells != others {
			t.Errorf("a tenant in another class has %d cells, want %d", cells, others)
		}
		want("in the end", acme2, 5)
	})
}

// TestRollupAgesOfAMovedTenant: the current class decides. Deleted buckets do not reappear under a longer class,
// neither through late points nor as parts of days.
func TestRollupAgesOfAMovedTenant(t *testing.T) {
	clockBubble(t, func(t *testing.T) {
		a := newAged(t)
		repo := a.schema.For(a.store, acme2)
		evening := a.day.Grid().Next(start).Add(2*oneDay + 18*time.Hour)
		if err := repo.Put(t.Context(), roof, evening, reading{TempC: 1}); err != nil { // in the day that the age cuts in two
			t.Fatal(err)
		}
		midnight := a.fill(t, 5)
		a.Set(midnight.Add(60*oneDay + 2*oneDay + 12*time.Hour))
		a.assign(t, acme2, "d30")
		if got := a.count(t, acme2); got != [3]int{3, 2, 2} {
			t.Errorf("%v buckets after a move to a shorter class, want 3 hours and 2 others", got)
		}
		a.pass(t)
		a.assign(t, acme2, "d90")
		if got := a.count(t, acme2); got != [3]int{3, 2, 2} {
			t.Errorf("%v buckets after moving back, want 3 hours and 2 others", got)
		}
		if err := repo.Put(t.Context(), roof, evening.Add(time.Minute), reading{TempC: 1}); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			a.Add(2 * time.Minute)
			a.pass(t)
		}
		if _, err := rollup.For(a.day, repo).Rebuild(t.Context(), tsdb.AllTime(), rollup.RebuildOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := a.count(t, acme2); got != [3]int{3, 2, 2} {
			t.Errorf("%v buckets after a late point, want 3 hours and 2 others", got)
		}
	})
}

// TestRollupAgesAndAdders: an event whose bucket has already expired in its tenant's class is rejected.
func TestRollupAgesAndAdders(t *testing.T) {
	clockBubble(t, func(t *testing.T) {
		a := newAged(t)
		for id, want := range map[tenant.ID]error{acme: tsdb.ErrExpired, acme2: nil} {
			at := a.events.Grid().Start(a.Now()).Add(-60*oneDay - time.Hour)
			_, err := rollup.NewAdder(a.events, a.schema.For(a.store, id), nil).AddMessage(t.Context(), "one", roof, at, reading{})
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", id, err, want)
			}
		}
	})
}

// TestRollupAgesAreNotGuessed: a store that has not read the profiles yet hides buckets that may have expired.
func TestRollupAgesAreNotGuessed(t *testing.T) {
	clockBubble(t, func(t *testing.T) {
		a := newAged(t)
		midnight := a.fill(t, 2)
		a.Set(midnight.Add(70 * oneDay))
		client, _ := tsdbtest.Clients(t, a.conn)
		other, err := tsdb.New(client, tsdbtest.Table, tsdb.Options{StoreOptions: tsdb.StoreOptions{Clock: a.Now}})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		a.store = other
		if got := a.count(t, acme); got != [3]int{} {
			t.Errorf("a new store shows %v buckets", got)
		}
	})
}

// TestRollupAgesThatCannotBe: invalid ages are rejected by Define.
func TestRollupAgesThatCannotBe(t *testing.T) {
	hour := rollup.MustDefine("hour", window.Every(time.Hour), measures(), rollup.Options{})
	week := rollup.MustDefine("week", window.Weeks(1, time.Monday), measures(), rollup.Options{From: "hour"})
	for want, ages := range map[string]map[string]time.Duration{
		"RollupAges of class \"d7\" is 24h0m0s; want a class in which points are written": {"d7": oneDay},
		"want at least as long as the class keeps points, 72h0m0s":                        {"d3": oneDay},
		"want a positive whole number of seconds":                                         {"d3": 100*oneDay + time.Millisecond},
		"want none, as the class keeps points for ever":                                   {"ever": 10 * oneDay},
		"or RollupAges, is 72h0m0s; want more than the longest bucket":                    {"d3": 3 * oneDay},
	} {
		_, err := tsdb.Define("r", tsdb.Key("k"), codec.JSON[reading](), tsdb.SchemaOptions{
			Retention:     gc.Class{Name: "d3", Policy: gc.MaxAge(3 * oneDay)},
			Classes:       []gc.Class{{Name: "ever", Policy: gc.Never()}},
			FormerClasses: []gc.Class{{Name: "d7", Policy: gc.MaxAge(7 * oneDay)}}, RollupAges: ages,
			Rollups: []tsdb.Rollup{hour, week},
		})
		if !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("ages %v: error %v, want %q", ages, err, want)
		}
	}
	_, err := tsdb.Define("r", tsdb.Key("k"), codec.JSON[reading](), tsdb.SchemaOptions{
		Retention: gc.Class{Name: "d3", Policy: gc.MaxAge(3 * oneDay)}, RollupAges: map[string]time.Duration{"d3": 3 * oneDay},
	})
	if !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), "none where there are no Rollups") {
		t.Errorf("ages without rollups: %v, want ErrInvalid", err)
	}
}

// TestRollupAgesBeyond1970: an age that reaches back before 1970 deletes nothing.
func TestRollupAgesBeyond1970(t *testing.T) {
	clockBubble(t, func(t *testing.T) {
		a := &aged{clock: testkit.NewClock(start)}
		a.hour = rollup.MustDefine("hour", window.Every(time.Hour), measures(), rollup.Options{Span: 2 * oneDay})
		a.day = rollup.MustDefine("day", window.Every(oneDay), measures(), rollup.Options{From: "hour", Span: 10 * oneDay})
		a.events = rollup.MustDefine("events", window.Every(time.Hour), measures(), rollup.Options{Mode: rollup.ByMessage, Span: 2 * oneDay})
		a.schema = tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{
			Retention:  gc.Class{Name: "d90", Policy: gc.MaxAge(90 * oneDay)},
			Classes:    []gc.Class{{Name: "d30", Policy: gc.MaxAge(30 * oneDay)}},
			RollupAges: map[string]time.Duration{"d30": 60 * 365 * oneDay},
			Rollups:    []tsdb.Rollup{a.hour, a.day, a.events},
		})
		a.store, a.conn, a.table = tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: a.Now}}, a.schema)
		a.assign(t, acme, "d30")
		var err error
		if a.worker, err = rollup.NewWorker(a.store, rollup.WorkerOptions{Tenants: only(acme, acme2)}, a.schema); err != nil {
			t.Fatal(err)
		}
		a.fill(t, 5)
		before := a.count(t, acme)
		a.Add(26 * time.Hour)
		if p := a.pass(t); p.Trimmed != 0 || a.count(t, acme) != before || before[2] == 0 {
			t.Errorf("trimmed %d, want 0; %v buckets, want %v", p.Trimmed, a.count(t, acme), before)
		}
	})
}
