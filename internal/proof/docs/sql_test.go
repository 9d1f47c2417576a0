package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

var (
	sqlFence  = regexp.MustCompile("(?m)^```sql\n((?:.*\n)*?)```$")
	sqlPrefix = regexp.MustCompile(`STARTS_WITH\(_key, '([^']+)'\)`)
	sqlRange  = regexp.MustCompile(`_key >= '([^']+)' AND _key < '([^']+)'`)
	sqlColumn = regexp.MustCompile("`?([a-z0-9_.]+)`?\\['([^']+)'\\]")
	sqlCast   = regexp.MustCompile("AS `payloads\\.([a-zA-Z.]+)`\\)\\.([a-z_]+)")
	sqlDigits = regexp.MustCompile(`(?m)^\| (\S+) \| (ms|us|ns) \| (\d{19}) \|$`)
	sqlTimes  = regexp.MustCompile(`of one entity from (\S+) until (\S+):`)
)

type weather struct {
	Temp float64 `json:"temp"`
}

// sqlWorld is a table as docs/sql.md describes it.
type sqlWorld struct {
	weather *tsdb.Repository[weather]
	rows    map[string][]string // by row key, its columns
}

func openSQL(t *testing.T) sqlWorld {
	t.Helper()
	now := time.Date(2026, 6, 1, 15, 0, 0, 0, time.UTC)
	acme := tenant.MustParse("acme")
	hour := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[weather]{{
		Name: "temp", Of: func(w weather) (float64, bool) { return w.Temp, true }, Decimals: 2, Max: 1000, Aggregates: window.Basic,
	}}, rollup.Options{Retention: gc.Class{Name: "hours", Policy: gc.MaxAge(365 * 24 * time.Hour)}})
	weathers := tsdb.MustDefine("weather", tsdb.Key("site", "device"), codec.JSON[weather](), tsdb.SchemaOptions{
		Retention: gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)}, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 5}, Rollups: []tsdb.Rollup{hour},
	})
	trips := tsdb.MustDefine("trips", tsdb.Key("truck"), codec.Proto[*durationpb.Duration](), tsdb.SchemaOptions{})
	gauges := tsdb.MustDefine("gauges", tsdb.Key("device"), codec.Int64(), tsdb.SchemaOptions{Precision: tsdb.Milliseconds})

	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}}, weathers, trips, gauges)
	ctx := t.Context()
	w := sqlWorld{weather: weathers.For(store, acme), rows: map[string][]string{}}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	roof := tsdb.NewEntity("berlin", "roof-7")
	for _, at := range []time.Duration{11*time.Hour + 59*time.Minute + 59999*time.Millisecond, 12 * time.Hour, 12*time.Hour + 30*time.Minute, 13*time.Hour - time.Millisecond, 13 * time.Hour} {
		check(w.weather.Put(ctx, roof, now.Truncate(24*time.Hour).Add(at), weather{20}))
	}
	check(trips.For(store, acme).Put(ctx, tsdb.NewEntity("truck-1"), now, durationpb.New(time.Hour)))
	check(gauges.For(store, acme).Put(ctx, tsdb.NewEntity("g1"), now, 7))
	_, err := rollup.For(hour, w.weather).Rebuild(ctx, tsdb.Between(now.Truncate(24*time.Hour), now), rollup.RebuildOptions{})
	check(err)
	check(w.weather.Put(ctx, roof, now, weather{21})) // marks a bucket
	check(table.ReadRows(ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		for family, cells := range r {
			for _, c := range cells {
				w.rows[r.Key()] = append(w.rows[r.Key()], family+"['"+strings.TrimPrefix(c.Column, family+":")+"']")
			}
		}
		return true
	}))
	return w
}

// TestSQL checks what docs/sql.md says of keys and columns, on a table that the SDK has written.
func TestSQL(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "sql.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	queries := sqlFence.FindAllStringSubmatch(page, -1)
	var all strings.Builder
	for _, m := range queries {
		all.WriteString(m[1] + ";\n")
	}
	testkit.Golden(t, "../../../examples/internal/sqldoc/testdata/queries.sql", all.String(), "the queries of docs/sql.md differ from those that a test in the examples parses; run with -update")
	w := openSQL(t)
	for _, m := range queries {
		query := m[1]
		var selected []string
		prefix, between := sqlPrefix.FindStringSubmatch(query), sqlRange.FindStringSubmatch(query)
		for key := range w.rows {
			if prefix != nil && strings.HasPrefix(key, prefix[1]) || between != nil && between[1] <= key && key < between[2] {
				selected = append(selected, key)
			}
		}
		if len(selected) == 0 {
			t.Errorf("no row of the SDK is selected by\n%s", query)
			continue
		}
		for _, c := range sqlColumn.FindAllStringSubmatch(query, -1) {
			for _, key := range selected {
				if !slices.Contains(w.rows[key], c[1]+"['"+c[2]+"']") {
					t.Errorf("the row %s has %q, but not %s['%s'] of\n%s", key, w.rows[key], c[1], c[2], query)
				}
			}
		}
		if between != nil {
			w.checkRange(t, page, selected)
		}
		if c := sqlCast.FindStringSubmatch(query); c != nil {
			checkCast(t, c[1], c[2])
		}
	}
}

// checkRange compares the rows of a range of keys with the points that the SDK returns between the times on the page.
func (w sqlWorld) checkRange(t *testing.T, page string, selected []string) {
	t.Helper()
	times := sqlTimes.FindStringSubmatch(page)
	if times == nil {
		t.Fatal("the page does not say which times the range of keys has")
	}
	from, err := time.Parse(time.RFC3339, times[1])
	if err != nil {
		t.Fatal(err)
	}
	until, err := time.Parse(time.RFC3339, times[2])
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for p, err := range w.weather.Range(t.Context(), tsdb.NewEntity("berlin", "roof-7"), tsdb.Between(from, until)) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("acme#weather#berlin#roof-7#%019d", uint64(1<<63-1)-uint64(p.Time.UnixMilli())))
	}
	slices.Sort(selected)
	if !slices.Equal(selected, want) || len(want) != 3 {
		t.Errorf("the keys select %q, the SDK returns %q", selected, want)
	}
}

// checkCast checks that the message of a query has the field.
func checkCast(t *testing.T, message, field string) {
	t.Helper()
	d, _ := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(message))
	if m, ok := d.(protoreflect.MessageDescriptor); !ok || m.Fields().ByName(protoreflect.Name(field)) == nil {
		t.Errorf("no field %s of %s", field, message)
	}
}

// TestSQLDigits compares the digits on the page with the keys that the SDK writes.
func TestSQLDigits(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "sql.md"))
	if err != nil {
		t.Fatal(err)
	}
	precisions := map[string]tsdb.Precision{"ms": tsdb.Milliseconds, "us": tsdb.Microseconds, "ns": tsdb.Nanoseconds}
	found := sqlDigits.FindAllStringSubmatch(string(text), -1)
	if len(found) != len(precisions) {
		t.Fatalf("the page has digits of %d precisions, want %d", len(found), len(precisions))
	}
	for _, m := range found {
		at, err := time.Parse(time.RFC3339, m[1])
		if err != nil {
			t.Fatal(err)
		}
		d := tsdb.MustDefine("d", tsdb.Key("id"), codec.Int64(), tsdb.SchemaOptions{Precision: precisions[m[2]]})
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, d)
		if err := d.For(store, tenant.MustParse("acme")).Put(t.Context(), tsdb.NewEntity("a"), at, 1); err != nil {
			t.Fatal(err)
		}
		row, err := table.ReadRow(t.Context(), "acme#d#a#"+m[3])
		if err != nil || row == nil {
			t.Errorf("%s in %s: no row has the digits %s (%v)", m[1], m[2], m[3], err)
		}
	}
}
