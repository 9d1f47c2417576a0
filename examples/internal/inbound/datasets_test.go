package inbound

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var acme, acme2 = tenant.MustParse("acme"), tenant.MustParse("acme2")

// open returns datasets with the rules, on a store with the limits of a JSON text, if it is not empty.
func open(t *testing.T, limits string, rules ...string) (*Datasets, *tsdbtest.Conn) {
	t.Helper()
	name := ""
	if limits != "" {
		name = filepath.Join(t.TempDir(), "limits.json")
		if err := os.WriteFile(name, []byte(limits), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	table, err := edge.OpenLimits(name)
	if err != nil {
		t.Fatal(err)
	}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Limits: table.Limiter}})
	return declare(t, store, rules...), conn
}

func declare(t *testing.T, store *tsdb.Store, rules ...string) *Datasets {
	t.Helper()
	ks := Keys{}
	for _, r := range rules {
		if err := ks.Set(r); err != nil {
			t.Fatal(err)
		}
	}
	ds, err := NewDatasets(t.Context(), store, ks, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// refuses fails the test unless a name is refused for a tenant with a text, as an error that no repetition mends.
func (ds *Datasets) refuses(t *testing.T, id tenant.ID, name, text string) {
	t.Helper()
	_, err := ds.Find(t.Context(), id, name)
	if _, final := errors.AsType[*Error](err); !final || !strings.Contains(err.Error(), text) {
		t.Errorf("%s for %v: %v, want a final error with %q", name, id, err, text)
	}
}

func (ds *Datasets) finds(t *testing.T, id tenant.ID, name string) *Dataset {
	t.Helper()
	d, err := ds.Find(t.Context(), id, name)
	if err != nil {
		t.Fatalf("%s for %v: %v", name, id, err)
	}
	return d
}

// TestRefusedDatasetsAreRemembered: records of a dataset that the store refused make one read of the store a minute,
// not one each.
func TestRefusedDatasetsAreRemembered(t *testing.T) {
	first, conn := open(t, `{"overrides": {"acme": {"datasets": 1}}}`, "*=host")
	first.finds(t, acme2, "theirs")
	ds := declare(t, first.store, "*=zone")
	ds.finds(t, acme, "mine")
	for name, text := range map[string]string{"theirs": "give it another name", "more": "limit"} {
		ds.refuses(t, acme, name, text)
		conn.Reset()
		for range 50 {
			ds.refuses(t, acme, name, text)
		}
		if n := conn.Counts().Calls[tsdbtest.ReadRows]; n > 0 {
			t.Errorf("%d reads for 50 records of the refused dataset %s", n, name)
		}
	}
	if u := ds.of(acme); len(u.used) != 1 {
		t.Errorf("refused datasets count towards the tenant's: %v", u.used)
	}
	// However many names the tenant tries, few of them reach the store.
	conn.Reset()
	for i := range 5 * tenantRefused {
		ds.refuses(t, acme, fmt.Sprint("n", i), "")
	}
	if n := conn.Counts().Calls[tsdbtest.ReadRows]; n > 4*tenantRefused {
		t.Errorf("%d reads for names that a tenant tries", n)
	}
	ds.finds(t, acme2, "theirs-too")
	for name, ref := range ds.of(acme).refused {
		ds.of(acme).refused[name] = refused{ref.why, time.Now()}
	}
	conn.Reset()
	ds.refuses(t, acme, "more", "limit")
	if n := conn.Counts().Calls[tsdbtest.ReadRows]; n == 0 {
		t.Error("no read of the store after a minute")
	}
}

// TestDatasetsAreBounded: datasets being created count, and a refused one frees its place.
func TestDatasetsAreBounded(t *testing.T) {
	ds, _ := open(t, "", "*=host")
	add := func(n int) {
		ds.mu.Lock()
		ds.pending += n
		ds.mu.Unlock()
	}
	add(MaxDatasets - 1) // of other tenants
	ds.finds(t, acme, "last")
	ds.refuses(t, acme2, "more", "is the most")
	add(-1)
	ds.finds(t, acme2, "more")
	if want := MaxDatasets - 2; ds.pending != want {
		t.Errorf("%d datasets are being created, want the %d of other tenants", ds.pending, want)
	}
}

// TestBatch: records of one series and time are one point, each record has the point's outcome, and two series that
// differ only outside the key are never one.
func TestBatch(t *testing.T) {
	ds, _ := open(t, "", "cpu=host", "all=host,*")
	w, err := ds.store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(t.Context()) })
	start := time.Now().Truncate(time.Second)
	point := func(dataset, zone, field string) Point {
		b := ds.finds(t, acme, dataset).NewPoint()
		p, err := b.Point(At(start))
		if p.Dataset != nil || err == nil {
			t.Errorf("a point without its key: %v, %v", p, err)
		}
		if err := errors.Join(b.Tag("host", "a"), b.Tag("zone", zone), b.Field(field, codec.Int(1))); err != nil {
			t.Fatal(err)
		}
		if p, err = b.Point(At(start)); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, tt := range []struct {
		name   string
		points []Point
		want   string // the outcomes, as origins and error
		added  string // the error of Add
	}{
		{"one point of two records", []Point{point("cpu", "x", "f"), point("cpu", "x", "g")}, "[record 0 record 1] <nil>;", ""},
		{"two series that meet in one batch", []Point{point("cpu", "x", "f"), point("cpu", "y", "f")}, "[record 0] <nil>;", `its tag "zone" is "y", and "x" on record 0`},
		{"a series that meets a stored one", []Point{point("cpu", "y", "f")}, "[record 0] " + ReasonSeries + ";", ""},
		{"two series by all their tags", []Point{point("all", "x", "f"), point("all", "y", "f")}, "[record 0] <nil>;[record 1] <nil>;", ""},
	} {
		var b Batch[string]
		added := ""
		for i, p := range tt.points {
			if _, err := b.Add(p, fmt.Sprint("record ", i), 10); err != nil {
				added += err.Error()
			}
		}
		got := ""
		err := b.Store(t.Context(), Sink{ds.store, w}, acme, func(from []string, out tsdb.Outcome) {
			why := fmt.Sprint(out.Err)
			if e, ok := errors.AsType[*Error](out.Err); ok {
				why = e.Reason
			}
			got += fmt.Sprint(from, " ", why, ";")
		})
		if err != nil || got != tt.want || !strings.Contains(added, tt.added) || (added == "") != (tt.added == "") {
			t.Errorf("%s: %v, outcomes %q and errors %q; want %q and %q", tt.name, err, got, added, tt.want, tt.added)
		}
	}
	ends := make(chan tsdb.Outcome)
	Sink{ds.store, w}.Enqueue(t.Context(), acme, point("cpu", "y", "f"), func(out tsdb.Outcome) { ends <- out })
	if e, ok := errors.AsType[*Error]((<-ends).Err); !ok || e.Reason != ReasonSeries {
		t.Errorf("a single point whose tag differs from the stored one: %v", e)
	}
}

// TestBatchRefusesOneRecord: a record that cannot be stored, alone or with others of its series and time, does not keep
// the others from being stored, and many records of one point take little time.
func TestBatchRefusesOneRecord(t *testing.T) {
	ds, _ := open(t, "", "cpu=host")
	w, err := ds.store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(t.Context()) })
	start := time.Now().Truncate(time.Second)
	var b Batch[string]
	add := func(origin string, fields ...codec.Field) error {
		p := ds.finds(t, acme, "cpu").NewPoint()
		err := p.Tag("host", "a")
		for _, f := range fields {
			err = errors.Join(err, p.Field(f.Name, f.Value))
		}
		point, perr := p.Point(At(start))
		_, aerr := b.Add(point, origin, 10)
		return errors.Join(err, perr, aerr)
	}
	refuses := func(err error, text string) {
		t.Helper()
		if e, ok := errors.AsType[*Error](err); !ok || e.Reason != ReasonValue || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want a refused record and %q", err, text)
		}
	}
	one := codec.Field{Name: "one", Value: codec.Int(1)}
	refuses(add("long name", codec.Field{Name: strings.Repeat("x", 256), Value: codec.Int(1)}), "256 bytes")
	refuses(add("long", codec.Field{Name: "x", Value: codec.Str(strings.Repeat("x", maxPoint))}), "at most 8192 bytes")
	if err := errors.Join(add("first", one), add("half", codec.Field{Name: "x", Value: codec.Str(strings.Repeat("x", maxPoint/2))})); err != nil {
		t.Error(err)
	}
	refuses(add("other half", codec.Field{Name: "y", Value: codec.Str(strings.Repeat("y", maxPoint/2))}), "together with what first and others have")
	if err := add("last", codec.Field{Name: "z", Value: codec.Int(1)}); err != nil {
		t.Error(err)
	}
	allocated := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.TotalAlloc
	}
	const part = batchRecords / 5
	begin, parts := allocated(), []uint64(nil)
	for i := range batchRecords {
		var fields []codec.Field
		for j := range 100 {
			fields = append(fields, codec.Field{Name: fmt.Sprintf("f%d.%d", i, j), Value: codec.Bool(true)})
		}
		_ = add("more", fields...)
		if (i+1)%part == 0 {
			parts, begin = append(parts, allocated()-begin), allocated()
		}
	}
	if last := len(parts) - 1; parts[last] > 2*parts[0] {
		t.Errorf("of %d records of one point, the first %d allocate %d bytes, the last %d allocate %d: the cost of a record must not grow", batchRecords, part, parts[0], part, parts[last])
	}
	var stored []string
	err = b.Store(t.Context(), Sink{ds.store, w}, acme, func(from []string, out tsdb.Outcome) {
		if out.Err == nil {
			stored = append(stored, from[:3]...)
		}
	})
	if err != nil || fmt.Sprint(stored) != "[first half last]" {
		t.Errorf("stored %v, %v; want first, half and last", stored, err)
	}
}

func TestKeys(t *testing.T) {
	ks := Keys{}
	for _, text := range []string{"cpu=host,*", "*=a,b"} {
		if err := ks.Set(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "cpu", "=host", "disk=", "cpu=host", "disk=*,host", "disk=a,a", "disk=a,", "a b=host", "*=x"} {
		if err := ks.Set(text); err == nil {
			t.Errorf("the rule %q is accepted", text)
		}
	}
}
