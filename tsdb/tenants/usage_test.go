package tenants_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestUsage: Usage counts what fill writes, of one tenant only, with any page size, and also if it stops after each
// page and continues from the JSON of its report.
func TestUsage(t *testing.T) {
	f, store, _, table := open(t, tsdbtest.Options{})
	for _, n := range []string{"acm", "acme", "acme-", "acme2"} {
		f.fill(t, store, tenant.MustParse(n))
	}
	m := newCell()
	if err := table.Apply(t.Context(), "acme#elsewhere#x", m); err != nil { // of an unknown dataset
		t.Fatal(err)
	}
	hour := start.Add(time.Hour)
	newest := hour.Add(11 * time.Second)
	want := []tenants.DatasetUsage{
		{Dataset: "elsewhere", Rows: 1},
		{Dataset: "events", Known: true, Rows: 12, Points: 12, Entities: 3, Newest: newest, Oldest: start},
		{Dataset: "events", Kind: "head", Known: true, Rows: 3, Entities: 3},
		{Dataset: "last", Kind: "head", Known: true, Rows: 6, Points: 12, Entities: 6, Newest: hour, Oldest: start},
		{Dataset: "readings", Known: true, Rows: 12, Points: 12, Entities: 6, Newest: hour, Oldest: start},
		{Dataset: "salted", Known: true, Rows: 12, Points: 12, Entities: 6, Newest: hour, Oldest: start},
	}
	var bytes int64
	for key, cells := range dump(t, table, ofTenant("acme")) {
		bytes += int64(len(key)) + int64(strings.Count(cells, "@"))*int64(len("p:str"))
		bytes += int64(4 * strings.Count(cells, "\"") / 2) // each value has four bytes: acme, late
	}
	for _, page := range []int{0, 1, 5, 7, 46} {
		for _, exact := range []bool{true, false} {
			opts := tenants.WithPage(tenants.UsageOptions{Exact: exact}, page)
			rep, err := tenants.Usage(t.Context(), store, acme, opts)
			if err != nil || !rep.Complete || rep.Tenant != acme {
				t.Fatalf("report %+v, error %v", rep, err)
			}
			check := func(rep tenants.UsageReport) {
				t.Helper()
				sum := int64(0)
				for i := range rep.Kinds {
					if rep.Kinds[i].Estimated == exact {
						t.Errorf("kind %+v, exact %v", rep.Kinds[i], exact)
					}
					sum += rep.Kinds[i].Bytes
					rep.Kinds[i].Bytes, rep.Kinds[i].Estimated = 0, false
				}
				if !reflect.DeepEqual(rep.Kinds, want) {
					t.Errorf("pages of %d rows: kinds %+v, want %+v", page, rep.Kinds, want)
				}
				if exact && sum != bytes || !exact && (sum < bytes*8/10 || sum > bytes*12/10) {
					t.Errorf("%d bytes, want %d", sum, bytes)
				}
			}
			check(rep)
			if page > 0 && page < 46 {
				check(broken(t, opts, func(ctx context.Context, o tenants.UsageOptions) (tenants.UsageReport, error) {
					return tenants.Usage(ctx, store, acme, o)
				}))
			}
		}
	}
	stranger := tenants.UsageReport{Tenant: tenant.MustParse("acme2"), Next: []byte("acme2#")}
	twisted := tenants.UsageReport{Tenant: acme, Next: []byte("acme2#")}
	for _, c := range []tenants.UsageReport{stranger, twisted, {}} {
		if _, err := tenants.Usage(t.Context(), store, acme, tenants.UsageOptions{Continue: &c}); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestUsageContinuesFromTheStart: a count that ends before its first page continues from its report, too.
func TestUsageContinuesFromTheStart(t *testing.T) {
	f, store, _, _ := open(t, tsdbtest.Options{})
	f.fill(t, store, acme)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rep, err := tenants.Usage(ctx, store, acme, tenants.UsageOptions{})
	if !errors.Is(err, context.Canceled) || rep.Complete {
		t.Fatal(rep, err)
	}
	if rep, err = tenants.Usage(t.Context(), store, acme, tenants.UsageOptions{Continue: &rep}); err != nil || !rep.Complete || len(rep.Kinds) == 0 {
		t.Errorf("%+v, %v", rep, err)
	}
}

// broken runs a count that stops after each page, and is continued.
func broken(t *testing.T, opts tenants.UsageOptions, usage func(context.Context, tenants.UsageOptions) (tenants.UsageReport, error)) tenants.UsageReport {
	t.Helper()
	for {
		ctx, cancel := context.WithCancel(t.Context())
		opts.Progress = func(tenants.UsageReport) { cancel() }
		rep, err := usage(ctx, opts)
		cancel()
		if err == nil {
			return rep
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		text, err := json.Marshal(rep)
		if err != nil {
			t.Fatal(err)
		}
		opts.Continue = new(tenants.UsageReport)
		if err := json.Unmarshal(text, opts.Continue); err != nil {
			t.Fatal(err)
		}
	}
}
