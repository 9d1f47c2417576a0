package retention_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestNothingIsDeletedThatIsNotAllowed: if a destructive name is missing in Allow, Apply changes nothing at all.
func TestNothingIsDeletedThatIsNotAllowed(t *testing.T) {
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, define(t, "readings", days("d90", 90), heads(5)), define(t, "events", days("d30", 30)))
	a := admin(t, conn)
	p := plan(t, store, define(t, "readings", days("d90", 7), heads(5)), define(t, "events", days("d30", 7)), define(t, "new", days("d7", 7)))
	before, own := policies(t, a), catalogue(t, table)
	for _, tt := range []struct {
		allow []string
		err   error
		says  []string
	}{
		{nil, retention.ErrNotAllowed, []string{"d90 (maxage=90d -> maxage=7d)", "d90.h5 (", "d30 ("}},
		{[]string{"d90"}, retention.ErrNotAllowed, []string{"d30 ("}},
		{[]string{"d90.h5", "d30"}, retention.ErrNotAllowed, []string{"steps that are not allowed: d90 (maxage=90d -> maxage=7d)"}},
		{[]string{"d90", "d30", "d3"}, tsdb.ErrInvalid, []string{`Allow is "d3"; want a class or family of a destructive step: d30, d90, d90.h5`}},
		{[]string{"d7", "d90", "d30"}, tsdb.ErrInvalid, []string{`Allow is "d7"`}},
		{[]string{""}, tsdb.ErrInvalid, []string{"Allow is empty"}},
	} {
		rep, err := p.Apply(t.Context(), store, retention.ApplyOptions{Allow: tt.allow})
		if !errors.Is(err, tt.err) || len(rep.Applied) > 0 {
			t.Errorf("Allow %v: %v, %v, want %v", tt.allow, rep, err, tt.err)
			continue
		}
		for _, text := range tt.says {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("Allow %v: %v, want it to say %q", tt.allow, err, text)
			}
		}
	}
	if !maps.Equal(policies(t, a), before) || !maps.Equal(catalogue(t, table), own) {
		t.Error("a refused Apply has changed the table")
	}
	if rep := apply(t, store, p, "d90", "d90.h5", "d30"); len(rep.Applied) != 7 {
		t.Errorf("report %v, want 4 families and 3 datasets", rep)
	}
}

// TestAPlanOfAnOlderTableIsRefused: a plan is stale after any change of the table that the plan does not want itself.
func TestAPlanOfAnOlderTableIsRefused(t *testing.T) {
	readings := define(t, "readings", days("d90", 90))
	for name, tt := range map[string]struct {
		change func(t *testing.T, store *tsdb.Store, a *bigtable.AdminClient)
		says   string
	}{
		"another policy": {func(t *testing.T, _ *tsdb.Store, a *bigtable.AdminClient) {
			set(t, a, "d90", bigtable.MaxAgePolicy(60*day))
		}, `family d90 was "maxage=90d" and is "maxage=60d"`},
		"a family that came": {func(t *testing.T, _ *tsdb.Store, a *bigtable.AdminClient) {
			create(t, a, "own", bigtable.Family{})
		}, `family own was not there and is "never"`},
		"a family that went": {func(t *testing.T, _ *tsdb.Store, a *bigtable.AdminClient) {
			if err := a.DeleteColumnFamily(t.Context(), tsdbtest.Table, "d90"); err != nil {
				t.Fatal(err)
			}
		}, `family d90 was "maxage=90d" and is not there`},
		"a kind that the plan does not want": {func(t *testing.T, _ *tsdb.Store, a *bigtable.AdminClient) {
			create(t, a, "d7", bigtable.Family{GCPolicy: bigtable.MaxAgePolicy(7 * day), ValueType: bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: bigtable.SumAggregator{}}})
		}, "family d7 was not there"},
		"a dataset": {func(t *testing.T, store *tsdb.Store, _ *bigtable.AdminClient) {
			if err := store.Ensure(t.Context(), define(t, "others", days("d90", 90))); err != nil {
				t.Fatal(err)
			}
		}, "entry of dataset others"},
		"a dataset that gained a class": {func(t *testing.T, store *tsdb.Store, _ *bigtable.AdminClient) {
			if err := store.Ensure(t.Context(), define(t, "readings", days("d90", 90), older(days("d7", 7)))); err != nil {
				t.Fatal(err)
			}
		}, "entry of dataset readings"},
		"the table": {func(t *testing.T, _ *tsdb.Store, a *bigtable.AdminClient) {
			if err := a.DeleteTable(t.Context(), tsdbtest.Table); err != nil {
				t.Fatal(err)
			}
		}, "is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			store, conn := tsdbtest.Open(t, tsdbtest.Options{}, readings)
			p := plan(t, store, define(t, "readings", days("d90", 30)), define(t, "events", days("d7", 7)))
			a := admin(t, conn)
			tt.change(t, store, a)
			rep, err := p.Apply(t.Context(), store, retention.ApplyOptions{Allow: []string{"d90"}})
			if !errors.Is(err, retention.ErrStale) || !strings.Contains(err.Error(), tt.says) || len(rep.Applied) > 0 {
				t.Errorf("report %v, error %v; want ErrStale with %q", rep, err, tt.says)
			}
			if info, err := a.TableInfo(t.Context(), tsdbtest.Table); err == nil {
				for _, f := range info.FamilyInfos {
					if f.GCPolicy == "age() > 30d" {
						t.Errorf("%s was changed", f.Name)
					}
				}
			}
		})
	}
}

// TestAPlanGoesOnWhereItEnded: if a part of a plan is already applied, by itself or by another program with the same
// plan, Apply does the rest.
func TestAPlanGoesOnWhereItEnded(t *testing.T) {
	want := []tsdb.Dataset{define(t, "readings", days("d90", 30)), define(t, "events", days("d7", 7))}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, define(t, "readings", days("d90", 90)))
	p := plan(t, store, want...)
	conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.CheckAndMutateRow).Skip(1).Times(1)) // after the probe
	rep, err := p.Apply(t.Context(), store, retention.ApplyOptions{Allow: []string{"d90"}})
	if status.Code(err) != codes.PermissionDenied || len(rep.Applied) != 2 {
		t.Fatalf("report %v, error %v; want the two families and an error", rep, err)
	}
	if rep := apply(t, store, p, "d90"); len(rep.Applied) != 2 {
		t.Errorf("report %v, want the two datasets", rep)
	}
	if err := store.Ensure(t.Context(), want...); err != nil {
		t.Error(err)
	}
}

// TestAPlanGoesOnBetweenTwoSteps: an entry that gains a rollup and changes a policy is written twice.
func TestAPlanGoesOnBetweenTwoSteps(t *testing.T) {
	want := define(t, "readings", days("d90", 30), hourly(days("d7", 7)))
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, define(t, "readings", days("d90", 90)))
	p := plan(t, store, want)
	conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.CheckAndMutateRow).Skip(2).Times(1)) // after the probe and the policy
	rep, err := p.Apply(t.Context(), store, retention.ApplyOptions{Allow: []string{"d90"}})
	if err == nil || len(rep.Applied) != len(p.Items())-1 {
		t.Fatalf("report %v, error %v; want everything except the dataset, and an error", rep, err)
	}
	if rep := apply(t, store, p, "d90"); len(rep.Applied) != 1 {
		t.Errorf("report %v, want the dataset", rep)
	}
	if err := store.Ensure(t.Context(), want); err != nil {
		t.Error(err)
	}
}

// TestManyReplicasApplyAtOnce: all replicas succeed, each step is reported by at least one of them, and the table is as
// planned.
func TestManyReplicasApplyAtOnce(t *testing.T) {
	t.Run("a table", func(t *testing.T) { replicas(t, define(t, "readings", days("d90", 90), heads(2))) })
	t.Run("no table", func(t *testing.T) { replicas(t) })
}

func replicas(t *testing.T, stored ...tsdb.Dataset) {
	t.Helper()
	want := []tsdb.Dataset{define(t, "readings", days("d90", 30), heads(2), hourly(days("d90", 30))), define(t, "events", days("d7", 7), hourly(days("d90", 30)))}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, stored...)
	a := admin(t, conn)
	plans := make([]*retention.Plan, 6)
	for i := range plans {
		plans[i] = plan(t, store, want...)
	}
	errs := make([]error, len(plans))
	applied := make([]int, len(plans))
	var wg sync.WaitGroup
	for i, p := range plans {
		wg.Go(func() {
			rep, err := p.Apply(context.Background(), store, retention.ApplyOptions{Allow: p.Destructive()})
			errs[i], applied[i] = err, len(rep.Applied)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Errorf("Apply from many replicas: %v", err)
	}
	sum := 0
	for _, n := range applied {
		sum += n
	}
	if steps := len(plans[0].Items()); sum < steps {
		t.Errorf("reported %v of %d steps", applied, steps)
	}
	if err := store.Ensure(t.Context(), want...); err != nil {
		t.Error(err)
	}
	if got := policies(t, a)["d90.s"]; got != "age() > 30d" {
		t.Errorf("d90.s has %s", got)
	}
}

// TestAnotherChangesInTheMiddle: a faster replica with another plan either makes this plan stale, or its change is
// noticed.
func TestAnotherChangesInTheMiddle(t *testing.T) {
	c := &console{}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{c.option()}}, define(t, "readings", days("d90", 90)))
	a := admin(t, conn)
	p := plan(t, store, define(t, "readings", days("d90", 30)), define(t, "events", days("d7", 7)))
	c.before = func(n int) error {
		if n == 1 {
			create(t, a, "d7", bigtable.Family{GCPolicy: bigtable.MaxAgePolicy(8 * day)}) // so the call is refused, and Apply reads the table again
		}
		return nil
	}
	_, err := p.Apply(t.Context(), store, retention.ApplyOptions{Allow: []string{"d90"}})
	if !errors.Is(err, retention.ErrStale) || policies(t, a)["d90"] != "age() > 90d" {
		t.Errorf("error %v, and d90 has %s", err, policies(t, a)["d90"])
	}
}

// TestTheAnswerIsLookedAt: if another program changes the table after the call, Apply checks what the table has, not
// what it asked for.
func TestTheAnswerIsLookedAt(t *testing.T) {
	c := &console{}
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{DialOptions: []grpc.DialOption{c.option()}}, define(t, "readings", days("d90", 90)))
	p := plan(t, store, define(t, "readings", days("d90", 30)))
	own := catalogue(t, table)
	c.reply = func(t *adminpb.Table) { t.ColumnFamilies["d90"] = &adminpb.ColumnFamily{} }
	_, err := p.Apply(t.Context(), store, retention.ApplyOptions{Allow: []string{"d90"}})
	if !errors.Is(err, retention.ErrStale) || !maps.Equal(catalogue(t, table), own) {
		t.Errorf("error %v, and the catalogue has %v", err, catalogue(t, table))
	}
	if got := policies(t, admin(t, conn))["d90"]; got != "age() > 30d" {
		t.Errorf("d90 has %s", got)
	}
}

// TestLostAnswers: one admin call makes all changes. If its response is lost, or it fails in between, the report is
// still correct.
func TestLostAnswers(t *testing.T) {
	for name, fault := range map[string]func(c *console, lost error){
		"lost":   func(c *console, lost error) { c.after = once(lost) },
		"failed": func(c *console, lost error) { c.before = once(lost) },
	} {
		for _, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.Internal} {
			t.Run(name+" "+code.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					c := &console{}
					store, conn := tsdbtest.Open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{c.option()}}, define(t, "readings", days("d90", 90), heads(2)))
					p := plan(t, store, define(t, "readings", days("d90", 30), heads(2)), define(t, "events", days("d7", 7)))
					c.calls = 0
					fault(c, status.Error(code, "the response is lost"))
					conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Skip(1).Times(2))
					rep := apply(t, store, p, "d90")
					if len(rep.Applied) != len(p.Items()) {
						t.Errorf("report %v, want all of\n%v", rep, p)
					}
					if want := map[string]int{"lost": 1, "failed": 2}[name]; c.calls != want {
						t.Errorf("%d calls change families, want %d", c.calls, want)
					}
					if left := plan(t, store, define(t, "readings", days("d90", 30), heads(2)), define(t, "events", days("d7", 7))); !left.Empty() {
						t.Errorf("the next plan is not empty:\n%v", left)
					}
				})
			})
		}
	}
}

// once returns a fault of the first call only.
func once(err error) func(int) error {
	return func(n int) error {
		if n == 1 {
			return err
		}
		return nil
	}
}

// TestApplyEnds: without the service, Apply ends within the timeout of scans, and at once when its context ends.
func TestApplyEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := &console{before: func(int) error { return status.Error(codes.Unavailable, "away") }}
		s, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Scan: time.Minute}}, DialOptions: []grpc.DialOption{c.option()}}, define(t, "readings", days("d90", 90)))
		p := plan(t, s, define(t, "readings", days("d90", 30)))
		begin := time.Now()
		if _, err := p.Apply(t.Context(), s, retention.ApplyOptions{Allow: []string{"d90"}}); status.Code(err) != codes.Unavailable && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(begin); took > time.Minute || c.calls < 10 {
			t.Errorf("Apply took %v and %d calls", took, c.calls)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Apply(ctx, s, retention.ApplyOptions{Allow: []string{"d90"}}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, err := retention.NewPlan(ctx, s, define(t, "readings", days("d90", 30))); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestNoConditionalWrites: without an app profile for conditional writes, Apply fails before it changes anything.
func TestNoConditionalWrites(t *testing.T) {
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, define(t, "readings", days("d90", 90)))
	a := admin(t, conn)
	p := plan(t, store, define(t, "readings", days("d90", 30)))
	conn.Inject(tsdbtest.Fail(codes.FailedPrecondition).On(tsdbtest.CheckAndMutateRow))
	_, err := p.Apply(t.Context(), store, retention.ApplyOptions{Allow: []string{"d90"}})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "ConditionalAppProfile") {
		t.Error(err)
	}
	if got := policies(t, a)["d90"]; got != "age() > 90d" {
		t.Errorf("d90 has %s", got)
	}
}

// TestWhatAPlanCosts: a plan reads the catalogue twice, makes one admin call, and writes nothing.
func TestWhatAPlanCosts(t *testing.T) {
	c := &console{}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{c.option()}}, define(t, "readings", days("d90", 90)))
	plan(t, store, define(t, "readings", days("d90", 30)))
	if calls := conn.Counts().Calls; len(calls) != 1 || calls[tsdbtest.ReadRows] != 2 || c.calls != 0 {
		t.Errorf("a plan made the calls %v, and changed families %d times", calls, c.calls)
	}
	p := plan(t, store, define(t, "readings", days("d90", 30)))
	conn.Reset()
	apply(t, store, p, "d90")
	if calls := conn.Counts().Calls; calls[tsdbtest.ReadRows] != 2 || calls[tsdbtest.CheckAndMutateRow] != 2 || c.calls != 1 {
		t.Errorf("Apply made the calls %v, and changed families %d times", calls, c.calls)
	}
}

// TestRefusals: each call names what it lacks, and changes nothing.
func TestRefusals(t *testing.T) {
	readings := define(t, "readings", days("d90", 90))
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, readings)
	p := plan(t, store, define(t, "readings", days("d90", 30)))
	ctx := t.Context()
	client, a := tsdbtest.Clients(t, conn)
	unguarded, err := tsdb.New(client, tsdbtest.Table, tsdb.Options{Admin: a})
	if err != nil {
		t.Fatal(err)
	}
	defer unguarded.Close()
	closed, _ := tsdbtest.Open(t, tsdbtest.Options{}, readings)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	clash := plan(t, store, define(t, "readings", days("d90", 90), heads(4)))
	for name, tt := range map[string]struct {
		do   func() error
		want error
	}{
		"a zero plan":       {func() error { return applied(new(retention.Plan).Apply(ctx, store, retention.ApplyOptions{})) }, tsdb.ErrInvalid},
		"a nil plan":        {func() error { return applied((*retention.Plan)(nil).Apply(ctx, store, retention.ApplyOptions{})) }, tsdb.ErrInvalid},
		"a closed store":    {func() error { return applied(p.Apply(ctx, closed, retention.ApplyOptions{})) }, tsdb.ErrClosed},
		"a plan, closed":    {func() error { return planned(retention.NewPlan(ctx, closed, readings)) }, tsdb.ErrClosed},
		"a nil store":       {func() error { return planned(retention.NewPlan(ctx, nil, readings)) }, tsdb.ErrInvalid},
		"a nil dataset":     {func() error { return planned(retention.NewPlan(ctx, store, nil)) }, tsdb.ErrInvalid},
		"a dataset twice":   {func() error { return planned(retention.NewPlan(ctx, store, readings, readings)) }, tsdb.ErrInvalid},
		"a contradiction":   {func() error { return planned(retention.NewPlan(ctx, store, readings, define(t, "b", days("d90", 1)))) }, tsdb.ErrInvalid},
		"a plain client":    {func() error { return planned(retention.NewPlan(ctx, unguarded, readings)) }, bt.ErrUnguarded},
		"an impossible one": {func() error { return applied(clash.Apply(ctx, store, retention.ApplyOptions{})) }, errtype.ErrPlan},
		"a tenant": {func() error {
			return planned(retention.NewPlan(tenant.NewContext(ctx, acme), store, readings))
		}, tsdb.ErrTenantMismatch},
		"Apply for a tenant": {func() error {
			return applied(p.Apply(tenant.NewContext(ctx, acme), store, retention.ApplyOptions{Allow: []string{"d90"}}))
		}, tsdb.ErrTenantMismatch},
	} {
		if err := tt.do(); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	if got := policies(t, a)["d90"]; got != "age() > 90d" {
		t.Errorf("d90 has %s", got)
	}
}

func planned(_ *retention.Plan, err error) error  { return err }
func applied(_ retention.Report, err error) error { return err }

// TestTheTableHasRoomFor100Families: the limit counts families of classes, of aggregates and of other programs.
func TestTheTableHasRoomFor100Families(t *testing.T) {
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, define(t, "readings", days("d90", 90)))
	a := admin(t, conn)
	for i := range 96 {
		create(t, a, fmt.Sprintf("own%d", i), bigtable.Family{})
	}
	apply(t, store, plan(t, store, define(t, "readings", days("d90", 90), older(days("d1", 1), days("d2", 2)))))
	full := plan(t, store, define(t, "readings", days("d90", 90), older(days("d1", 1), days("d2", 2), days("d3", 3))))
	_, err := full.Apply(t.Context(), store, retention.ApplyOptions{})
	if !errors.Is(err, errtype.ErrPlan) || !strings.Contains(err.Error(), "101 column families") {
		t.Errorf("error %v, plan\n%v", err, full)
	}
}

// TestWhatANewerProgramWrote: what this version does not understand is not changed.
func TestWhatANewerProgramWrote(t *testing.T) {
	for name, tt := range map[string]struct{ row, column, value, says string }{
		"a newer format":   {"!format", "v", "2", "The stored format has version 2; this program supports version 1."},
		"a newer dataset":  {"!dataset#events", "json", `{"name":"events","precision":"ps"}`, "dataset events: This version cannot read its entry in the catalogue"},
		"a broken dataset": {"!dataset#events", "json", "{", "!dataset#events does not decode"},
	} {
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, define(t, "readings", days("d90", 90)), define(t, "events", days("d7", 7)))
		m := bigtable.NewMutation()
		m.Set("_sys", tt.column, 0, []byte(tt.value))
		if err := table.Apply(t.Context(), tt.row, m); err != nil {
			t.Fatal(err)
		}
		p, err := retention.NewPlan(t.Context(), store, define(t, "readings", days("d90", 30)))
		if err == nil {
			_, err = p.Apply(t.Context(), store, retention.ApplyOptions{Allow: []string{"d90"}})
		}
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: error %v, want %q", name, err, tt.says)
		}
		if _, err := retention.NewPlanFor(t.Context(), store, nil); err == nil && name != "a newer format" {
			t.Errorf("%s: NewPlanFor succeeds, want an error", name)
		}
	}
}

// TestOutage: a plan waits for an unavailable service, within the timeout of scans.
func TestOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		readings := define(t, "readings", days("d90", 90))
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Scan: time.Minute}}}, readings)
		end := conn.Outage()
		begin := time.Now()
		if _, err := retention.NewPlan(t.Context(), store, readings); err == nil || time.Since(begin) > time.Minute {
			t.Errorf("error %v after %v", err, time.Since(begin))
		}
		time.AfterFunc(10*time.Second, end)
		if p, err := retention.NewPlan(t.Context(), store, readings); err != nil || !strings.Contains(p.String(), "/tables/"+tsdbtest.Table) {
			t.Errorf("plan %v, error %v", p, err)
		}
	})
}

// TestNothingButPoliciesChanges: Apply changes no byte of the tenants' data. Points that a shorter policy expires are
// invisible to programs that declare it, even before the service deletes them, and visible to others.
func TestNothingButPoliciesChanges(t *testing.T) {
	c := &console{}
	old, next := define(t, "readings", days("d90", 90), heads(2)), define(t, "readings", days("d90", 30), heads(2))
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{DialOptions: []grpc.DialOption{c.option()}}, old)
	e, ctx := tsdb.NewEntity("berlin", "roof"), t.Context()
	tenants := []tenant.ID{acme, tenant.MustParse("a"), tenant.MustParse("acme-")}
	for _, id := range tenants {
		if err := old.For(store, id).Put(ctx, e, time.Now().Add(-40*day), 1); err != nil {
			t.Fatal(err)
		}
	}
	before := rows(t, table)
	if _, err := plan(t, store, next).Apply(ctx, store, retention.ApplyOptions{Allow: []string{"d90"}, IgnoreWarnings: true}); err != nil || !c.ignore {
		t.Fatalf("error %v, service warnings ignored: %v", err, c.ignore)
	}
	if after := rows(t, table); !maps.Equal(after, before) || len(before) != 2*len(tenants) {
		t.Errorf("rows are %v, were %v", after, before)
	}
	for _, id := range tenants {
		if p, err := old.For(store, id).Latest(ctx, e); err != nil || p.Value != 1 {
			t.Errorf("a program with 90 days reads %v, %v", p, err)
		}
		if p, err := next.For(store, id).Latest(ctx, e); !errors.Is(err, tsdb.ErrNotFound) {
			t.Errorf("a program with 30 days reads %v, %v", p, err)
		}
	}
}
