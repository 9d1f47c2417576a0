package retention_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func withStream(t *testing.T, p *retention.Plan, keep time.Duration) *retention.Plan {
	t.Helper()
	next, err := p.WithChangeStream(keep)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// settings returns the texts of the items that concern settings.
func settings(p *retention.Plan) (all []string) {
	for _, i := range p.Items() {
		if i.Setting != "" {
			all = append(all, i.String())
		}
	}
	return all
}

// readBack writes a plan as JSON and reads it again.
func readBack(t *testing.T, p *retention.Plan) *retention.Plan {
	t.Helper()
	doc, err := p.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := retention.ReadPlan(bytes.NewReader(doc))
	if err != nil || again.String() != p.String() {
		t.Fatalf("a plan read back differs: %v\n%v", err, again)
	}
	return again
}

// TestChangeStream: a plan enables, lengthens, shortens and disables the change stream. What loses changes must be allowed.
func TestChangeStream(t *testing.T) {
	s := define(t, "readings", days("d90", 90))
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	a := admin(t, conn)
	for _, step := range []struct {
		keep    time.Duration
		item    string
		refused bool
		kept    string
	}{
		{keep: 0},
		{keep: 3 * day, item: "create change stream: kept for 3d", kept: "72h0m0s"},
		{keep: 3 * day, kept: "72h0m0s"},
		{keep: 7 * day, item: "change change stream: kept for 3d -> kept for 7d", kept: "168h0m0s"},
		{keep: 25 * time.Hour, item: "change change stream: kept for 7d -> kept for 25h (destructive)", refused: true, kept: "25h0m0s"},
		{keep: 0, item: "change change stream: kept for 25h -> none (destructive)", refused: true},
	} {
		silent := plan(t, store, s)
		if !silent.Empty() || len(settings(silent)) > 0 {
			t.Fatalf("a plan that says nothing changes the change stream:\n%v", silent)
		}
		p := readBack(t, withStream(t, silent, step.keep))
		if got := strings.Join(settings(p), "; "); got != step.item {
			t.Errorf("%v: the plan has %q, want %q", step.keep, got, step.item)
		}
		before := policies(t, a)
		if _, err := p.Apply(t.Context(), store, retention.ApplyOptions{}); errors.Is(err, retention.ErrNotAllowed) != step.refused || !step.refused && err != nil {
			t.Errorf("%v: Apply without permission: %v, want a refusal %v", step.keep, err, step.refused)
		}
		if step.refused {
			if now := policies(t, a); now[retention.ChangeStream] != before[retention.ChangeStream] {
				t.Errorf("%v: a refused plan changed the stream to %q", step.keep, now[retention.ChangeStream])
			}
			if got := p.Destructive(); !slices.Equal(got, []string{"change stream"}) {
				t.Errorf("%v: Destructive = %q", step.keep, got)
			}
			apply(t, store, p, p.Destructive()...)
			if r := apply(t, store, p, p.Destructive()...); len(r.Applied) > 0 {
				t.Errorf("%v: a second Apply reports %v", step.keep, r)
			}
		}
		if got := policies(t, a)[retention.ChangeStream]; got != step.kept {
			t.Errorf("%v: the table keeps changes for %q, want %q", step.keep, got, step.kept)
		}
	}
}

// TestPlanShowsStream: a plan that leaves the settings alone shows them.
func TestPlanShowsSettings(t *testing.T) {
	s := define(t, "readings", cold(days("d90", 90), 45))
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	if err := admin(t, conn).UpdateTableWithChangeStream(t.Context(), tsdbtest.Table, bigtable.ChangeStreamRetention(2*day)); err != nil {
		t.Fatal(err)
	}
	p := plan(t, store, s)
	for _, want := range []string{"The table's tiered storage stays: cold after 45d.\n", "The table's change stream stays: kept for 2d.\n"} {
		if !strings.Contains(p.String(), want) {
			t.Errorf("the plan lacks %q:\n%v", want, p)
		}
	}
	if p = withStream(t, p, 0); strings.Contains(p.String(), "change stream stays") {
		t.Errorf("a plan that disables the change stream says that it stays:\n%v", p)
	}
}

// TestSettingsOfNewTable: a plan creates a missing table with its tiered storage and its change stream.
func TestSettingsOfNewTable(t *testing.T) {
	s := define(t, "readings", cold(days("d90", 90), 45))
	store, conn := tsdbtest.Open(t, tsdbtest.Options{})
	p := withStream(t, plan(t, store, s), day)
	r := apply(t, store, p)
	got := policies(t, admin(t, conn))
	if got[retention.TieredStorage] != "1080h0m0s" || got[retention.ChangeStream] != "24h0m0s" || len(r.Applied) != 5 {
		t.Errorf("the table is %v after %v", got, r)
	}
	if left := withStream(t, plan(t, store, s), day); !left.Empty() {
		t.Errorf("the next plan is not empty:\n%v", left)
	}
}

// TestStaleSettings: a setting that changed since the plan was made is neither overwritten nor ignored.
func TestStaleSettings(t *testing.T) {
	d90 := days("d90", 90)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, define(t, "readings", cold(d90, 60)))
	a := admin(t, conn)
	p := withStream(t, plan(t, store, define(t, "readings", cold(d90, 30))), day)
	setCold(t, a, 77*day)
	_, err := p.Apply(t.Context(), store, retention.ApplyOptions{})
	if !errors.Is(err, retention.ErrStale) || !strings.Contains(err.Error(), `the tiered storage was "cold after 60d" and is "cold after 77d"`) {
		t.Errorf("Apply after a change elsewhere: %v, want ErrStale", err)
	}
	setCold(t, a, 30*day) // somebody else has done what the plan wants
	if r := apply(t, store, p); len(r.Applied) != 2 {
		t.Errorf("Apply did %v, want the change stream and the entry", r)
	}
}

func TestRefusedChangeStreams(t *testing.T) {
	s := define(t, "readings", days("d90", 90))
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	p := plan(t, store, s)
	for _, keep := range []time.Duration{-1, time.Second, day - time.Second, 7*day + time.Second, 2*day + 1} {
		if _, err := p.WithChangeStream(keep); !errors.Is(err, retention.ErrInvalid) || !strings.Contains(err.Error(), "24h to 168h") {
			t.Errorf("%v: %v, want ErrInvalid with the limits", keep, err)
		}
	}
	for name, p := range map[string]*retention.Plan{"nil": nil, "zero": {}, "earlier": earlier(t)} {
		if _, err := p.WithChangeStream(day); !errors.Is(err, retention.ErrInvalid) {
			t.Errorf("%s plan: %v, want ErrInvalid", name, err)
		}
	}
}

// earlier returns a plan that a version without settings has written.
func earlier(t *testing.T) *retention.Plan {
	t.Helper()
	doc, err := os.ReadFile("testdata/earlier_version.json")
	if err != nil {
		t.Fatal(err)
	}
	p, err := retention.ReadPlan(bytes.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPlanOfEarlierVersion: a plan in a file of an earlier version is applied, and leaves the settings alone.
func TestPlanOfEarlierVersion(t *testing.T) {
	d90 := days("d90", 90)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, define(t, "readings", d90, heads(5), hourly(d90)), define(t, "events", d90))
	a := admin(t, conn)
	setCold(t, a, 50*day)
	if err := a.UpdateTableWithChangeStream(t.Context(), tsdbtest.Table, bigtable.ChangeStreamRetention(day)); err != nil {
		t.Fatal(err)
	}
	p := earlier(t)
	apply(t, store, p, p.Destructive()...)
	got := policies(t, a)
	if got["d90"] != "age() > 30d" || got[retention.TieredStorage] != "1200h0m0s" || got[retention.ChangeStream] != "24h0m0s" {
		t.Errorf("the table has %v", got)
	}
}

// updates intercepts the calls that change settings.
func updates(do func(n int, call func() error) error) grpc.DialOption {
	n := 0
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		call := func() error { return invoker(ctx, method, req, reply, cc, opts...) }
		if _, ok := req.(*adminpb.UpdateTableRequest); !ok {
			return call()
		}
		n++
		return do(n, call)
	})
}

// TestLostResponseOfSetting: a change whose response was lost is reported once as applied.
func TestLostResponseOfSetting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		calls := 0
		store, conn := tsdbtest.Open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{updates(func(n int, call func() error) error {
			calls = n
			if err := call(); err != nil || n > 1 {
				return err
			}
			return status.Error(codes.Unavailable, "lost")
		})}}, define(t, "readings", days("d90", 90)))
		r := apply(t, store, plan(t, store, define(t, "readings", cold(days("d90", 90), 30))))
		if calls != 1 || len(r.Applied) != 2 || policies(t, admin(t, conn))[retention.TieredStorage] != "720h0m0s" {
			t.Errorf("%d calls, applied %v", calls, r)
		}
	})
}

// TestRefusedSetting: the service's refusal is returned with what it may mean, and the catalogue does not claim the change.
func TestRefusedSetting(t *testing.T) {
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{DialOptions: []grpc.DialOption{updates(func(int, func() error) error {
		return status.Error(codes.FailedPrecondition, "this instance has no tiers")
	})}}, define(t, "readings", days("d90", 90)))
	p := plan(t, store, define(t, "readings", cold(days("d90", 90), 30)))
	before := catalogue(t, table)
	r, err := p.Apply(t.Context(), store, retention.ApplyOptions{})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "only instances on SSD") || len(r.Applied) > 0 {
		t.Errorf("Apply = %v, %v", r, err)
	}
	if after := catalogue(t, table); after["!dataset#readings _sys:json"] != before["!dataset#readings _sys:json"] {
		t.Error("the catalogue has an age that the table does not have")
	}
}

// TestEnsureLeavesTiers: Ensure neither compares nor changes the ages of an existing table, also when it writes an entry. A class
// that it adds brings its own.
func TestEnsureLeavesTiers(t *testing.T) {
	d90 := days("d90", 90)
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, define(t, "readings", cold(d90, 60)))
	for _, s := range []tsdb.Dataset{
		define(t, "readings", d90), define(t, "readings", cold(d90, 30)),
		define(t, "readings", cold(d90, 30), choice(cold(class("long", gc.Never()), 40))),
	} {
		if err := errors.Join(store.Ensure(t.Context(), s), store.Verify(t.Context(), s)); err != nil {
			t.Errorf("Ensure and Verify with another age: %v", err)
		}
	}
	if got := policies(t, admin(t, conn))[retention.TieredStorage]; got != "1440h0m0s" {
		t.Errorf("Ensure changed the table's age to %s", got)
	}
	if doc := catalogue(t, table)["!dataset#readings _sys:json"]; !strings.Contains(doc, `"cold_after":{"d90":"60d","long":"40d"}`) {
		t.Errorf("the entry is %s", doc)
	}
	if p := plan(t, store, define(t, "readings", cold(d90, 60), choice(cold(class("long", gc.Never()), 40)))); !p.Empty() {
		t.Errorf("the plan is not empty:\n%v", p)
	}
}

// TestOneColdAfter: a schema that states two ages for one class is a mistake.
func TestOneColdAfter(t *testing.T) {
	opts := tsdb.SchemaOptions{Retention: cold(days("d90", 90), 60)}
	hourly(days("d90", 90))(&opts)
	_, err := tsdb.Define("readings", tsdb.Key("device"), codec.Float64(), opts)
	if !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), "one ColdAfter, not both 1440h0m0s and 0s") {
		t.Errorf("Define: %v", err)
	}
}

// TestSettingChangedAtOnce: if another program changes the setting again before Apply ends, Apply does not claim its own value.
func TestSettingChangedAtOnce(t *testing.T) {
	var a *bigtable.AdminClient
	store, conn := tsdbtest.Open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{updates(func(n int, call func() error) error {
		if err := call(); err != nil || n > 1 {
			return err
		}
		setCold(t, a, 77*day)
		return nil
	})}}, define(t, "readings", days("d90", 90)))
	a = admin(t, conn)
	_, err := plan(t, store, define(t, "readings", cold(days("d90", 90), 30))).Apply(t.Context(), store, retention.ApplyOptions{})
	if !errors.Is(err, retention.ErrStale) || !strings.Contains(err.Error(), "cold after 77d") {
		t.Errorf("Apply: %v, want ErrStale", err)
	}
}

// TestColdAfter compares what plans record of ages in the catalogue with a golden file: plans of other versions derive the
// table's age from it.
func TestColdAfter(t *testing.T) {
	d90, keep := days("d90", 90), class("keep", gc.Never())
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, define(t, "readings", cold(d90, 30), hourly(cold(keep, 365))))
	var got strings.Builder
	for _, step := range []struct {
		name   string
		schema tsdb.Dataset
	}{
		{"as it was made", nil},
		{"another age", define(t, "readings", cold(d90, 45), hourly(cold(keep, 365)))},
		{"one class less", define(t, "readings", d90, hourly(cold(keep, 365)))},
		{"one class more", define(t, "readings", d90, choice(cold(class("long", gc.Never()), 40)), hourly(cold(keep, 365)))},
		{"none", define(t, "readings", d90, choice(class("long", gc.Never())), hourly(keep))},
	} {
		if step.schema != nil {
			apply(t, store, plan(t, store, step.schema))
		}
		fmt.Fprintf(&got, "%s\n  %q\n", step.name, catalogue(t, table)["!dataset#readings _sys:json"])
	}
	golden(t, "cold_after.golden", []byte(got.String()))
}
