package tenants_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestOnboardWithLimits: a document that no store could apply is rejected, and the error names the place.
func TestOnboardWithLimits(t *testing.T) {
	_, store, _, table := open(t, tsdbtest.Options{})
	for doc, want := range map[string]string{
		`{"points":5}`:                     `limits.points is unknown; want a limit, such as points_per_second`,
		`{"points_per_second":-1}`:         `limits.points_per_second is -1; want 0 for no limit`,
		`{"points_burst":5}`:               `limits.points_burst is 5; want 0, because points_per_second is 0`,
		`{"range_length":"1 day"}`:         `limits.range_length`,
		`{"entities":1,"entities":1}`:      `present twice`,
		`{"defaults":{"entities":1}}`:      `limits.defaults is unknown`,
		`[1]`:                              `want an object`,
		`{`:                                `not JSON at line 1`,
		strings.Repeat(" ", 64<<10) + `{}`: `at most 64 KiB`,
	} {
		_, err := tenants.Onboard(t.Context(), store, acme, tenants.Profile{Limits: json.RawMessage(doc)}, tenants.OnboardOptions{})
		if !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("limits %.40s: %v\nwant %s", doc, err, want)
		}
	}
	if got := dump(t, table, func(key string) bool { return key == "!tenant#acme" }); len(got) != 0 {
		t.Errorf("a rejected document is stored: %v", got)
	}
	for _, doc := range []string{`{"points_per_second":5,"range_length":"24h"}`, `{}`, `null`} {
		for _, opts := range []tenants.OnboardOptions{{Replace: true}, {}} { // may be repeated
			if _, err := tenants.Onboard(t.Context(), store, acme, tenants.Profile{Limits: json.RawMessage(doc)}, opts); err != nil {
				t.Errorf("limits %q, %+v: %v", doc, opts, err)
			}
		}
	}
}

// limited is a table with two stores: one takes limits from profiles, the other changes them.
type limited struct {
	fleet
	store, other *tsdb.Store
	conn         *tsdbtest.Conn
	table        *bigtable.Table
}

func newLimited(t *testing.T, opts tsdb.Options) limited {
	t.Helper()
	f, other, conn, table := open(t, tsdbtest.Options{})
	opts.ProfileLimits = true
	return limited{f, second(t, conn, opts), other, conn, table}
}

// set writes a tenant's limits, and waits until other stores apply them.
func (l limited) set(t *testing.T, id tenant.ID, doc string) {
	t.Helper()
	if _, err := tenants.Onboard(t.Context(), l.other, id, tenants.Profile{Limits: json.RawMessage(doc)}, tenants.OnboardOptions{Replace: true}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(tenancy.ClassesWithin + time.Second)
}

// write writes points with Put and through a writer, and returns how many were accepted.
func (l limited) write(t *testing.T, id tenant.ID) (n int) {
	t.Helper()
	for i := range 20 {
		err := l.readings.For(l.store, id).Put(t.Context(), tsdb.NewEntity("site#0", "dev 0"), start.Add(time.Duration(i)*time.Second), "v")
		switch {
		case err == nil:
			n++
		case !errors.Is(err, limit.ErrExceeded):
			t.Fatal(err)
		}
	}
	return n
}

// TestLimitsOfProfiles: a store applies the limits in profiles, and each change of them, at the cost of reading the
// changed profiles. A profile without limits has those of the store's table.
func TestLimitsOfProfiles(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter, err := limit.New(limit.Table{Defaults: limit.Limits{PointsPerSecond: 9}}, limit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := newLimited(t, tsdb.Options{StoreOptions: tsdb.StoreOptions{Limits: limiter}})
		ab := tenant.MustParse("ab")
		want := func(what string, id tenant.ID, n int) {
			t.Helper()
			_ = l.write(t, id) // applies new limits
			time.Sleep(2 * time.Second)
			if got := l.write(t, id); got != n {
				t.Errorf("%s: %d points of %s were accepted, want %d", what, got, id, n)
			}
		}
		l.set(t, acme, `{"points_per_second":3}`)
		want("a profile with limits", acme, 3)
		want("no profile", ab, 9)
		for i := range 20 {
			l.set(t, tenant.MustParse("t"+string(rune('a'+i))), `{"entities":1}`)
		}
		want("as before", acme, 3)
		l.conn.Reset()
		l.set(t, acme, `{"points_per_second":5}`)
		want("changed", acme, 5)
		if n := l.conn.Counts().UpkeepRows; n > 10 {
			t.Errorf("%d rows read for one changed profile", n)
		}
		l.set(t, acme, `{"points_per_second":0}`)
		want("no limit", acme, 20)
		l.set(t, acme, `null`)
		want("none of its own any more", acme, 9)
		l.set(t, acme, `{"points_per_second":4}`)
		want("limits again", acme, 4)
		if err := limiter.Set(limit.Table{Overrides: map[tenant.ID]limit.Limits{acme: {PointsPerSecond: 2}}}); err != nil {
			t.Fatal(err)
		}
		want("overridden", acme, 2)
		want("without defaults", ab, 20)
		w, err := l.store.NewWriter(tsdb.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close(t.Context())
		if err := limiter.Set(limit.Table{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		n := 0
		for i := range 20 {
			if err := l.readings.For(l.store, acme).Via(w).Enqueue(t.Context(), tsdb.NewEntity("site#0", "dev 0"), start.Add(time.Duration(i)*time.Second), "v"); err == nil {
				n++
			}
		}
		if n != 4 {
			t.Errorf("%d points through a writer, want 4", n)
		}
		if _, err := tenants.Erase(t.Context(), l.other, acme, quick); err != nil {
			t.Fatal(err)
		}
		if err := tenants.Readmit(t.Context(), l.other, acme); err != nil {
			t.Fatal(err)
		}
		time.Sleep(tenancy.ClassesWithin + time.Second)
		want("readmitted", acme, 20)
	})
}

// TestLimitsThatCannotBeRead: a tenant whose profile cannot be read is never without limits. Its last known limits
// apply; if there are none, calls fail.
func TestLimitsThatCannotBeRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLimited(t, tsdb.Options{})
		bad := tenant.MustParse("bad")
		put := func(s *tsdb.Store, id tenant.ID) error {
			time.Sleep(2 * time.Second)
			return l.readings.For(s, id).Put(t.Context(), tsdb.NewEntity("site#0", "dev 0"), start, "v")
		}
		l.set(t, acme, `{"points_per_second":3}`)
		store := func(id tenant.ID, doc string) {
			t.Helper()
			if err := l.table.Apply(t.Context(), "!tenant#"+id.String(), newOwn("json", doc)); err != nil {
				t.Fatal(err)
			}
		}
		store(bad, `{"limits":{"points":5}}`) // as an older program accepted it
		if err := put(l.store, bad); !errors.Is(err, invalid.ErrLimits) || errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), "tenant bad: ") {
			t.Errorf("an invalid document, and none before: %v, want an error of the stored limits that is not ErrInvalid", err)
		}
		if n := l.write(t, acme); n != 3 {
			t.Errorf("%d points of another tenant, want 3", n)
		}
		if err := l.table.Apply(t.Context(), "!tenant#bad", newOwn("gen", "1")); err != nil {
			t.Fatal(err)
		}
		l.set(t, bad, `{"points_per_second":2}`)
		_ = put(l.store, bad)
		if err := put(l.store, bad); err != nil {
			t.Errorf("after the document was corrected: %v", err)
		}
		for id := range map[tenant.ID]bool{acme: true, bad: true} {
			store(id, `{"limits":7`)
		}
		time.Sleep(2 * time.Hour) // all profiles are read again
		_ = put(l.store, acme)
		time.Sleep(2 * time.Second)
		if n := l.write(t, acme); n != 3 {
			t.Errorf("%d points accepted by the last valid document, want 3", n)
		}
		l.conn.Inject(tsdbtest.Fail(codes.Unavailable).On(tsdbtest.ReadRows))
		late := second(t, l.conn, tsdb.Options{StoreOptions: tsdb.StoreOptions{ProfileLimits: true, Timeouts: tsdb.Timeouts{Read: 5 * time.Second, Write: 5 * time.Second, Scan: 10 * time.Second}}})
		if err := put(late, acme); err == nil {
			t.Error("a store that could not read the profiles accepted a write")
		}
	})
}
