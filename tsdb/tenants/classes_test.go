package tenants_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var (
	week  = gc.Class{Name: "d7", Policy: gc.MaxAge(7 * 24 * time.Hour)}
	month = gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}
)

// TestOnboardInAClass: a class that the table's datasets offer is stored in a column of its own. Any other is rejected
// with an error that lists the offered ones. Erasing the tenant removes the class.
func TestOnboardInAClass(t *testing.T) {
	for _, only := range []bool{false, true} {
		offering, err := tsdb.Define("readings", tsdb.Key("site"), codec.String(), tsdb.SchemaOptions{
			Retention: week, Classes: []gc.Class{month}, FormerClasses: []gc.Class{keep}, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2, Only: only},
		})
		if err != nil {
			t.Fatal(err)
		}
		plain, err := tsdb.Define("events", tsdb.Key("site"), codec.String(), tsdb.SchemaOptions{Retention: week})
		if err != nil {
			t.Fatal(err)
		}
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, offering, plain)
		row := func(name string) string {
			return dump(t, table, func(key string) bool { return key == "!tenant#"+name })["!tenant#"+name]
		}
		onboard := func(name string, p tenants.Profile) error {
			_, err := tenants.Onboard(t.Context(), store, tenant.MustParse(name), p, tenants.OnboardOptions{Replace: true})
			return err
		}
		for want, p := range map[string]tenants.Profile{
			`Retention is "d90"; want a class that a dataset of the table offers: events (d7), readings (d7, d30)`: {Retention: "d90"},
			`Retention is "keep"`: {Retention: "keep"}, // used by readers, but not offered
			`dataset in Classes is "reading"; want a dataset of the table: events (d7), readings (d7, d30)`: {Classes: map[string]string{"reading": "d7"}},
			`class for dataset readings is "d90"; want a class that it offers: readings (d7, d30)`:          {Retention: "d30", Classes: map[string]string{"readings": "d90"}},
			`class for dataset events is "d30"; want a class that it offers: events (d7)`:                   {Classes: map[string]string{"events": "d30"}},
			`class for dataset readings is empty`:                                                           {Classes: map[string]string{"readings": ""}},
			`Classes is 1001 datasets; want at most 1000`:                                                   {Classes: many(1001)},
		} {
			if err := onboard("a", p); !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("Onboard: %v\nwant %s", err, want)
			}
		}
		if got := row("a"); got != "" {
			t.Errorf("a rejected profile is stored: %s", got)
		}
		for _, name := range []string{"ab", "a-"} {
			if err := onboard(name, tenants.Profile{Name: name}); err != nil || strings.Contains(row(name), "_sys:c") {
				t.Errorf("error %v, row %s", err, row(name))
			}
		}
		p := tenants.Profile{Retention: "d30", Classes: map[string]string{"readings": "d7", "events": "d7"}}
		if err := onboard("a", p); err != nil || !strings.Contains(row("a"), `_sys:c@0="{\"retention\":\"d30\",\"classes\":{\"events\":\"d7\",\"readings\":\"d7\"}}"`) {
			t.Errorf("error %v, row %s", err, row("a"))
		}
		if got, err := tenants.Load(t.Context(), store, tenant.MustParse("a")); err != nil || got.Retention != "d30" || got.Classes["readings"] != "d7" {
			t.Errorf("profile %+v, error %v", got, err)
		}
		if err := onboard("a", tenants.Profile{Name: "a"}); err != nil || strings.Contains(row("a"), "_sys:c") || strings.Contains(row("a"), "d7") {
			t.Errorf("error %v, row %s", err, row("a"))
		}
		if err := onboard("a", p); err != nil {
			t.Fatal(err)
		}
		if _, err := tenants.Erase(t.Context(), store, tenant.MustParse("a"), tenants.EraseOptions{Settle: 1, RowsPerSecond: -1}); err != nil {
			t.Fatal(err)
		}
		if got := row("a"); got != "" {
			t.Errorf("after the erasure the row is %s", got)
		}
	}
}

func many(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[strings.Repeat("x", 1+i)] = "d7"
	}
	return out
}

// TestAClassFromBefore: the profile of an earlier version names a class that stores did not apply. They apply it after
// it is written again, which does not need Replace.
func TestAClassFromBefore(t *testing.T) {
	s, err := tsdb.Define("readings", tsdb.Key("site"), codec.String(), tsdb.SchemaOptions{Retention: week, Classes: []gc.Class{month}})
	if err != nil {
		t.Fatal(err)
	}
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	m := newOwn("json", `{"name":"","retention":"d30","limits":null,"view":false,"newer":7}`)
	m.Set("_sys", "gen", 0, []byte("1"))
	if err := table.Apply(context.Background(), "!tenant#acme", m); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := tenants.Onboard(t.Context(), store, acme, tenants.Profile{Retention: "d30"}, tenants.OnboardOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	row := dump(t, table, func(key string) bool { return key == "!tenant#acme" })["!tenant#acme"]
	if !strings.Contains(row, `_sys:c@0="{\"retention\":\"d30\"}"`) || !strings.Contains(row, `newer\":7`) {
		t.Error(row)
	}
	if n := conn.Counts().Calls[tsdbtest.CheckAndMutateRow]; n != 2 {
		t.Errorf("%d conditional writes, want 2: of the profile and of the log of changes", n)
	}
	if _, err := tenants.Onboard(t.Context(), store, acme, tenants.Profile{Retention: "d7"}, tenants.OnboardOptions{}); !errors.Is(err, tenants.ErrConflict) {
		t.Errorf("Onboard with another class: %v, want ErrConflict", err)
	}
}
