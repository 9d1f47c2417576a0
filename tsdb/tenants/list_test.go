package tenants_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func list(t testing.TB, store *tsdb.Store, opts tenants.ListOptions) (out []tenants.Tenant) {
	t.Helper()
	for one, err := range tenants.List(t.Context(), store, opts) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, one)
	}
	return out
}

// TestList: tenants with rows, profiles or marks are listed in order, and other programs' rows are ignored.
func TestList(t *testing.T) {
	testkit.Plain(t)
	f, store, conn, table := open(t, tsdbtest.Options{})
	want := map[string]string{}
	for i, id := range crowd() {
		switch i % 4 {
		case 0:
			f.fill(t, store, id)
			want[id.String()] = "rows"
		case 1:
			want[id.String()] = "profile"
		case 2:
			f.fill(t, store, id)
			want[id.String()] = "rows profile"
		case 3:
			continue
		}
		if i%4 > 0 {
			if _, err := tenants.Onboard(t.Context(), store, id, tenants.Profile{Name: id.String()}, tenants.OnboardOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := tenants.Erase(t.Context(), store, tenant.MustParse("ab"), quick); err != nil {
		t.Fatal(err)
	}
	want["ab"] = "erased"
	alien := []string{"acme#x", "acme04x#notours#1", "user:17", "!job#1", "{}", "zz", "zzz#a b#", "aa#readings", "aa#read!ings#", "0x1#\x00"}
	for i := range 2500 {
		alien = append(alien, fmt.Sprintf("log/%04d", i))
	}
	for _, key := range alien {
		if err := table.Apply(t.Context(), key, newCell()); err != nil {
			t.Fatal(err)
		}
	}
	conn.Reset()
	got := map[string]string{}
	var names []string
	for _, one := range list(t, store, tenants.ListOptions{}) {
		var is []string
		if one.Rows {
			is = append(is, "rows")
		}
		if one.Profile != nil {
			is = append(is, "profile")
			if one.Profile.Name != one.ID.String() {
				t.Errorf("tenant %s has the profile of %s", one.ID, one.Profile.Name)
			}
		}
		if one.Erased == tenants.Erased {
			is = append(is, "erased")
		}
		got[one.ID.String()] = strings.Join(is, " ")
		names = append(names, one.ID.String())
	}
	equal(t, "list", got, want)
	if !slices.IsSorted(names) {
		t.Error("tenants are not in order")
	}
	for i, name := range names { // continued after each
		rest := list(t, store, tenants.ListOptions{After: tenant.MustParse(name)})
		if len(rest) != len(names)-i-1 {
			t.Errorf("after %s: %d tenants, want %d", name, len(rest), len(names)-i-1)
		}
	}
	for _, one := range list(t, store, tenants.ListOptions{ProfilesOnly: true}) {
		if one.Rows || want[one.ID.String()] == "rows" {
			t.Errorf("tenant %+v", one)
		}
	}
}

// TestListIsConcurrent: many tenants, with names of any distribution, are found in parallel, in order and each once,
// with at most two requests per tenant.
func TestListIsConcurrent(t *testing.T) {
	for _, names := range []struct {
		format string
		n      int
	}{{"tenant-%05d", 1000}, {"%x-customer", 600}, {"a#%d", 0}, {"prefix.that.is.very.long.and.the.same.for.all.%d", 300}} {
		bubble(t, func(t *testing.T) {
			f, store, conn, _ := open(t, tsdbtest.Options{})
			var want []string
			for i := range names.n {
				id := tenant.MustParse(fmt.Sprintf(names.format, i))
				want = append(want, id.String())
				if err := f.readings.For(store, id).Put(t.Context(), tsdb.NewEntity("s", "d"), start, "v"); err != nil {
					t.Fatal(err)
				}
			}
			slices.Sort(want)
			conn.Reset()
			conn.Inject(tsdbtest.Delay(10 * time.Millisecond).On(tsdbtest.ReadRows))
			begin := time.Now()
			var got []string
			for _, one := range list(t, store, tenants.ListOptions{}) {
				got = append(got, one.ID.String())
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %d tenants, want %d", names.format, len(got), len(want))
			}
			if n := conn.Counts().Calls[tsdbtest.ReadRows]; n > 2*names.n+5 {
				t.Errorf("%s: %d requests for %d tenants", names.format, n, names.n)
			}
			if took, one := time.Since(begin), time.Duration(names.n)*10*time.Millisecond; names.n > 0 && took > one/3 {
				t.Errorf("%s: it took %v, one after the other takes %v", names.format, took, one)
			}
		})
	}
}

// TestListIsOneRequestATenant: however much a tenant has stored, for as many as are found one after the other.
func TestListIsOneRequestATenant(t *testing.T) {
	f, store, conn, _ := open(t, tsdbtest.Options{})
	ids := crowd()[:15]
	for _, id := range ids {
		f.fill(t, store, id)
	}
	conn.Reset()
	if n := len(list(t, store, tenants.ListOptions{})); n != len(ids) {
		t.Errorf("%d tenants, want %d", n, len(ids))
	}
	// One a tenant, one that finds no other, one each for the catalogue, the profiles and the marks.
	if n := conn.Counts().Calls[tsdbtest.ReadRows]; n != len(ids)+4 {
		t.Errorf("%d requests for %d tenants, want one for each and 4 more", n, len(ids))
	}
	if n := conn.Counts().RowsReturned; n > int64(len(ids)+4) {
		t.Errorf("%d rows read for %d tenants, want at most one for each and 4 more", n, len(ids))
	}
	for range tenants.List(t.Context(), store, tenants.ListOptions{}) {
		break // ends the sequence
	}
}

// TestOnboard: a profile is written once, compared, and replaced only on request. Columns that a newer program added
// stay.
func TestOnboard(t *testing.T) {
	_, store, conn, table := open(t, tsdbtest.Options{})
	p := tenants.Profile{Name: "Acme", Retention: "keep", Limits: json.RawMessage(`{"points_per_second": 10}`)}
	for range 2 {
		got, err := tenants.Onboard(t.Context(), store, acme, p, tenants.OnboardOptions{})
		if err != nil || got.Name != "Acme" || string(got.Limits) != `{"points_per_second":10}` {
			t.Fatalf("profile %+v, error %v", got, err)
		}
	}
	if n := conn.Counts().Calls[tsdbtest.CheckAndMutateRow]; n != 2 {
		t.Errorf("%d conditional writes, want 2: of the profile and of the log of changes", n)
	}
	m := newOwn("json", `{"name":"Acme","retention":"keep","limits":{"points":10},"view":false,"newer":7}`)
	if err := table.Apply(t.Context(), "!tenant#acme", m); err != nil {
		t.Fatal(err)
	}
	p.Name, p.Limits = "Acme & Sons", nil
	if _, err := tenants.Onboard(t.Context(), store, acme, p, tenants.OnboardOptions{}); !errors.Is(err, tenants.ErrConflict) {
		t.Errorf("Onboard with another profile: %v, want ErrConflict", err)
	}
	if got, err := tenants.Onboard(t.Context(), store, acme, p, tenants.OnboardOptions{Replace: true}); err != nil || got.Name != p.Name || got.Limits != nil {
		t.Errorf("profile %+v, error %v", got, err)
	}
	stored := dump(t, table, func(key string) bool { return key == "!tenant#acme" })["!tenant#acme"]
	if !strings.Contains(stored, `newer\":7`) || !strings.Contains(stored, `_sys:gen@0="2"`) {
		t.Errorf("stored row: %s", stored)
	}
	if got, err := tenants.Onboard(t.Context(), store, acme, tenants.Profile{View: true}, tenants.OnboardOptions{Replace: true}); err != nil || !got.View {
		t.Errorf("profile with a view: %+v, error %v", got, err)
	}
	for _, bad := range []tenants.Profile{
		{Name: strings.Repeat("x", 257)},
		{Name: "\xff"},
		{Retention: "\xff"},
		{Limits: json.RawMessage(`{`)},
		{Limits: json.RawMessage(``)},
		{Limits: json.RawMessage(`"` + strings.Repeat("x", 64<<10) + `"`)},
	} {
		if _, err := tenants.Onboard(t.Context(), store, acme, bad, tenants.OnboardOptions{Replace: true}); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("profile named %.20q: %v, want ErrInvalid", bad.Name, err)
		}
	}
	if _, err := tenants.Onboard(t.Context(), store, tenant.ID{}, p, tenants.OnboardOptions{}); !errors.Is(err, tenant.ErrInvalid) {
		t.Errorf("Onboard of the zero tenant: %v", err)
	}
	if _, err := tenants.Onboard(t.Context(), nil, acme, p, tenants.OnboardOptions{}); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("Onboard without a store: %v", err)
	}
}

// TestTwoOperators: an operator who replaces the version that was read cannot undo a change that another made
// meanwhile.
func TestTwoOperators(t *testing.T) {
	_, store, _, _ := open(t, tsdbtest.Options{})
	replace := func(p tenants.Profile) (tenants.Profile, error) {
		return tenants.Onboard(t.Context(), store, acme, p, tenants.OnboardOptions{Replace: true})
	}
	first, err := replace(tenants.Profile{Name: "Acme"})
	if err != nil || first.Version != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	one, err := tenants.Load(t.Context(), store, acme)
	if err != nil || one.Version != first.Version {
		t.Fatalf("%+v, %v", one, err)
	}
	two := one
	one.Limits, two.Name = json.RawMessage(`{"fan_out":4}`), "Acme & Sons"
	if one, err = replace(one); err != nil || one.Version != 2 {
		t.Fatalf("%+v, %v", one, err)
	}
	if got, err := replace(two); !errors.Is(err, tenants.ErrConflict) || got.Version != 2 || got.Limits == nil {
		t.Errorf("Onboard with an outdated version = %+v, %v; want ErrConflict", got, err)
	}
	if got, err := replace(one); err != nil || got.Version != 2 {
		t.Errorf("the same Onboard again = %+v, %v", got, err)
	}
	two.Version = 0
	if got, err := replace(two); err != nil || got.Version != 3 || got.Limits != nil {
		t.Errorf("Onboard that replaces any version = %+v, %v", got, err)
	}
	if _, err := tenants.Onboard(t.Context(), store, tenant.MustParse("ab"), two, tenants.OnboardOptions{}); err != nil {
		t.Error(err)
	}
}
