package tenants_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// plain returns a report without the parts that differ between runs.
func plain(r tenants.Report) string {
	r.Started, r.Verified, r.Ended = time.Time{}, time.Time{}, time.Time{}
	text, _ := json.Marshal(r)
	return string(text)
}

// work is an erasure or a removal, for tests that disturb both in the same way.
type work struct {
	fill func(t *testing.T, f fleet, store *tsdb.Store, conn *tsdbtest.Conn)
	// run does the work, and returns a report without the parts that differ between runs.
	run func(context.Context, *tsdb.Store) (report string, err error)
	// removed and others select the rows that it deletes and those that it must not change.
	removed, others func(key string) bool
	requests        int // the least number that it makes
}

var erasure = work{
	fill: func(t *testing.T, f fleet, store *tsdb.Store, _ *tsdbtest.Conn) {
		for _, n := range []string{"acm", "acme", "acme-"} {
			f.fill(t, store, tenant.MustParse(n))
		}
	},
	run: func(ctx context.Context, store *tsdb.Store) (string, error) {
		rep, err := tenants.Erase(ctx, store, acme, tenants.WithPages(quick, 20))
		return plain(rep), err
	},
	removed: ofTenant("acme"), others: others("acme"), requests: 15,
}

var removal = work{
	fill: func(t *testing.T, f fleet, store *tsdb.Store, conn *tsdbtest.Conn) { threeTenants(t, f, store, conn) },
	run: func(ctx context.Context, store *tsdb.Store) (string, error) {
		rep, err := tenants.Remove(ctx, store, readings, swift)
		return plainRemoval(rep), err
	},
	removed: ofDataset("readings"), others: outsideDataset("readings"), requests: 30,
}

// TestKilledAndContinuedEndsTheSame: an erasure, and a removal, is cut off at each of its requests in turn, and another
// store continues it.
func TestKilledAndContinuedEndsTheSame(t *testing.T) {
	for name, w := range map[string]work{"erasure": erasure, "removal": removal} {
		t.Run(name, func(t *testing.T) {
			want, total := "", 0
			for cut := 0; cut <= total; cut += testkit.Stride(7) { // the plain run has all cuts
				f, store, conn, table := open(t, tsdbtest.Options{})
				_, admin := tsdbtest.Clients(t, conn)
				other := second(t, conn, tsdb.Options{Admin: admin})
				w.fill(t, f, store, conn)
				before := dump(t, table, w.others)
				ctx, cancel := context.WithCancel(t.Context())
				var calls atomic.Int64
				conn.Inject(tsdbtest.DelayBy(func() time.Duration {
					if calls.Add(1) == int64(cut) {
						cancel()
					}
					return 0
				}))
				rep, err := w.run(ctx, store)
				conn.Clear()
				switch {
				case cut == 0 && err != nil:
					t.Fatal(err)
				case cut == 0:
					want, total = rep, int(calls.Load())
				case err != nil && !errors.Is(err, context.Canceled):
					t.Errorf("cut at %d: %v", cut, err)
				}
				rep, err = w.run(t.Context(), other)
				if err != nil || rep != want {
					t.Errorf("cut at %d of %d: report %s, %v; want %s", cut, total, rep, err, want)
				}
				equal(t, "others", dump(t, table, w.others), before)
				if left := dump(t, table, w.removed); len(left) > 0 {
					t.Errorf("cut at %d: left %v", cut, left)
				}
				cancel()
			}
			if total < w.requests {
				t.Errorf("it made only %d requests", total)
			}
		})
	}
}

// TestFaultsOnTheConnection: lost responses, failing calls and broken streams do not change the report.
func TestFaultsOnTheConnection(t *testing.T) {
	for name, w := range map[string]work{"erasure": erasure, "removal": removal} {
		t.Run(name, func(t *testing.T) {
			want := ""
			for i, fault := range []tsdbtest.Fault{
				{},
				tsdbtest.Fail(codes.Unavailable).Times(1),
				tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Times(1),
				tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Skip(3).Times(2),
				tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Skip(5).Times(2),
				tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.MutateRow).Times(2),
				tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.MutateRows).Times(2),
				tsdbtest.CutStream(3, codes.Unavailable).On(tsdbtest.MutateRows).Times(1),
				tsdbtest.CutStream(2, codes.Unavailable).On(tsdbtest.ReadRows).Skip(2).Times(3),
				tsdbtest.CutStream(3, codes.Unavailable).On(tsdbtest.ReadRows).Skip(2).Times(3),
				tsdbtest.FailEntries(codes.Unavailable, func(key string) bool { return strings.Contains(key, "dev%200") }).Times(2),
				tsdbtest.FailEntries(codes.InvalidArgument, func(key string) bool { return strings.Contains(key, "dev%200") }).Times(1),
			} {
				f, store, conn, table := open(t, tsdbtest.Options{})
				w.fill(t, f, store, conn)
				conn.Inject(fault)
				rep, err := w.run(t.Context(), store)
				if i == 0 {
					want = rep
				}
				if err != nil || rep != want {
					t.Errorf("fault %d: report %s, %v; want %s", i, rep, err, want)
				}
				if left := dump(t, table, w.removed); len(left) > 0 {
					t.Errorf("fault %d: left %v", i, left)
				}
			}
		})
	}
}

// TestTwoErasers: of two parallel calls at least one finishes the erasure, the other gets an error, and nothing is
// counted twice.
func TestTwoErasers(t *testing.T) {
	f, store, conn, table := open(t, tsdbtest.Options{})
	other := second(t, conn, tsdb.Options{})
	f.fill(t, store, acme)
	small := tenants.WithPages(quick, 5)
	errs := make(chan error, 2)
	for _, s := range []*tsdb.Store{store, other} {
		go func() {
			_, err := tenants.Erase(t.Context(), s, acme, small)
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
	if ended == 0 {
		t.Error("neither call finished the erasure")
	}
	rep, err := tenants.Erasure(t.Context(), store, acme)
	if err != nil || rep.Rows != tenantRows || rep.State != tenants.Erased {
		t.Errorf("report %+v, error %v", rep, err)
	}
	if left := dump(t, table, ofTenant("acme")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestTakenOver: a call whose erasure another call has continued returns ErrTakenOver, at any step, and changes nothing
// more.
func TestTakenOver(t *testing.T) {
	for i, at := range []tenants.State{"marked", "counting", tenants.Deleting, "verifying", "marked", "counting", tenants.Deleting, "verifying"} {
		written := i < 4
		f, store, conn, table := open(t, tsdbtest.Options{})
		other := second(t, conn, tsdb.Options{})
		f.fill(t, store, acme)
		small := tenants.WithPages(quick, 20)
		first, over := small, false
		first.Progress = func(p tenants.Progress) {
			if p.State != at || over {
				return
			}
			over = true
			if _, err := tenants.Erase(t.Context(), other, acme, small); err != nil {
				t.Error(err)
			}
			if _, err := tenants.Onboard(t.Context(), other, acme, tenants.Profile{Name: "new"}, tenants.OnboardOptions{Readmit: true}); err != nil {
				t.Error(err)
			}
			if !written {
				return
			}
			if err := f.readings.For(other, acme).Put(t.Context(), tsdb.NewEntity("new", "life"), start, "x"); err != nil {
				t.Error(err)
			}
		}
		if _, err := tenants.Erase(t.Context(), store, acme, first); !errors.Is(err, tenants.ErrTakenOver) {
			t.Errorf("taken over while %s: %v, want ErrTakenOver", at, err)
		}
		if n := len(dump(t, table, ofTenant("acme"))); (n == 1) != written || n > 1 {
			t.Errorf("taken over while %s: %d rows, want the new one: %v", at, n, written)
		}
		if p, err := tenants.Load(t.Context(), store, acme); err != nil || p.Name != "new" {
			t.Errorf("taken over while %s: the new profile: %v, %v", at, p, err)
		}
	}
}

// TestDryRunChangesNothing: a dry run counts what an erasure would delete.
func TestDryRunChangesNothing(t *testing.T) {
	f, store, conn, table := open(t, tsdbtest.Options{})
	f.fill(t, store, acme)
	before := dump(t, table, func(string) bool { return true })
	conn.Reset()
	opts := quick
	opts.DryRun = true
	rep, err := tenants.Erase(t.Context(), store, acme, opts)
	if err != nil || rep.Rows != tenantRows || !rep.DryRun || rep.State != "" {
		t.Errorf("report %+v, error %v", rep, err)
	}
	equal(t, "dry run", dump(t, table, func(string) bool { return true }), before)
	calls := conn.Counts().Calls
	if calls[tsdbtest.MutateRow]+calls[tsdbtest.MutateRows]+calls[tsdbtest.CheckAndMutateRow] > 0 {
		t.Errorf("a dry run sent %v", calls)
	}
}

// TestEraseEntity: one entity is deleted, with its head, from each dataset that has its key fields in any order. Other
// entities stay, and the entity cannot be written again.
func TestEraseEntity(t *testing.T) {
	f, store, _, table := open(t, tsdbtest.Options{})
	f.fill(t, store, acme)
	f.fill(t, store, tenant.MustParse("acme2"))
	mine := func(key string) bool {
		return strings.HasPrefix(key, "acme#") && (strings.Contains(key, "#site%231#dev%200#") || strings.Contains(key, "#dev%200#site%231#"))
	}
	rest := func(key string) bool { return !mine(key) && !strings.HasPrefix(key, "!erased") }
	before := dump(t, table, rest)
	fields := map[string]string{"device": "dev 0", "site": "site#1"}
	rep, err := tenants.EraseEntity(t.Context(), store, acme, "", fields, quick)
	if err != nil || rep.Rows != 5 || rep.State != tenants.Erased || rep.Fields["site"] != "site#1" {
		t.Fatalf("report %+v, error %v", rep, err)
	}
	equal(t, "the rest", dump(t, table, rest), before)
	if left := dump(t, table, mine); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	for key, cells := range dump(t, table, func(key string) bool { return strings.HasPrefix(key, "!erased") }) {
		if strings.Contains(key+cells, "dev 0") || strings.Contains(key+cells, "site#1") || strings.Contains(key+cells, "site%231") {
			t.Errorf("the mark contains the entity's name: %s %s", key, cells)
		}
	}
	gone, near := tsdb.NewEntity("site#1", "dev 0"), tsdb.NewEntity("site#1", "dev 1")
	for _, s := range []*tsdb.Schema[string]{f.readings, f.salted} {
		if err := s.For(store, acme).Put(t.Context(), gone, start, "x"); !errors.Is(err, tsdb.ErrErased) {
			t.Errorf("Put to the erased entity: %v, want ErrErased", err)
		}
		if err := s.For(store, acme).Put(t.Context(), near, start, "x"); err != nil {
			t.Errorf("Put to the next entity: %v", err)
		}
		if err := s.For(store, tenant.MustParse("acme2")).Put(t.Context(), gone, start, "x"); err != nil {
			t.Errorf("Put of another tenant: %v", err)
		}
	}
	for _, bad := range []map[string]string{nil, {"site": "x"}, {"site": "x", "user": "y"}, {"site": "", "device": "y"}, {"site": "x", "device": "\xff"}} {
		if rep, err := tenants.EraseEntity(t.Context(), store, acme, "", bad, quick); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("fields %v: report %+v, error %v", bad, rep, err)
		}
	}
}

// TestLateRowsAreFound: rows of a program that ignores the mark are deleted, if it stops writing them.
func TestLateRowsAreFound(t *testing.T) {
	f, store, conn, table := open(t, tsdbtest.Options{})
	f.fill(t, store, acme)
	client, _ := tsdbtest.Clients(t, conn)
	rogue := client.Open(tsdbtest.Table)
	n := 0
	write := func() {
		m := newCell()
		if err := rogue.Apply(context.Background(), "acme#readings#late#x#7443056836731319018", m); err != nil {
			t.Error(err)
		}
		n++
	}
	opts := quick
	opts.Progress = func(p tenants.Progress) {
		if p.State == "verifying" && n == 0 {
			write()
		}
	}
	rep, err := tenants.Erase(t.Context(), store, acme, opts)
	if err != nil || rep.Late != 1 || rep.Rows != tenantRows {
		t.Errorf("report %+v, error %v", rep, err)
	}
	write() // after the erasure has ended
	rep, err = tenants.Erase(t.Context(), store, acme, quick)
	if err != nil || rep.Late != 2 || rep.Rows != tenantRows || len(dump(t, table, ofTenant("acme"))) > 0 {
		t.Errorf("report %+v, error %v", rep, err)
	}
	if rep.Ended.After(rep.Verified) || rep.Ended.IsZero() {
		t.Errorf("ended %v, verified %v", rep.Ended, rep.Verified)
	}
}

// TestMarksEnd: after Keep the tenant may write again without a readmission.
func TestMarksEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, store, _, _ := open(t, tsdbtest.Options{})
		f.fill(t, store, acme)
		opts := quick
		opts.Keep = time.Hour
		if _, err := tenants.Erase(t.Context(), store, acme, opts); err != nil {
			t.Fatal(err)
		}
		repo := f.readings.For(store, acme)
		time.Sleep(time.Hour - time.Minute)
		if err := repo.Put(t.Context(), tsdb.NewEntity("a", "b"), start, "x"); !errors.Is(err, tsdb.ErrErased) {
			t.Errorf("Put before the end of Keep: %v, want ErrErased", err)
		}
		time.Sleep(time.Minute + time.Second)
		if err := repo.Put(t.Context(), tsdb.NewEntity("a", "b"), start, "x"); err != nil {
			t.Errorf("Put after the end of Keep: %v", err)
		}
		rep, err := tenants.Erase(t.Context(), store, acme, opts) // a second erasure
		if err != nil || rep.Rows != 1 {
			t.Errorf("report %+v, error %v", rep, err)
		}
	})
}
