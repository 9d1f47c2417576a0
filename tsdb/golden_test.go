package tsdb_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// breaksRows explains a difference between stored bytes and a golden file.
const breaksRows = "rows that are stored today would no longer be read as they were written (see docs/format.md)"

// TestStoredBytes compares a table byte for byte with a golden file. If it fails, this version would not read existing
// rows correctly: read docs/format.md before changing the file.
func TestStoredBytes(t *testing.T) {
	noon := time.Date(2026, 6, 1, 12, 0, 0, 123456789, time.UTC)
	c := testkit.NewClock(noon)
	d30 := gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}
	either := gc.Class{Name: "either", Policy: gc.All(gc.MaxAge(24*time.Hour), gc.MaxAge(48*time.Hour))}
	plain := tsdb.MustDefine("weather", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{})
	salted := tsdb.MustDefine("salted", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{Salts: 16, Precision: tsdb.Microseconds, Retention: d30})
	fallen := tsdb.MustDefine("Mixed-1.x", tsdb.Key("k"), codec.Fallback(codec.Records(), codec.Convert(codec.Int64(),
		func(int64) (codec.Record, error) { return codec.Record{}, nil }, nil)),
		tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Retention: d30, FormerClasses: []gc.Class{either}, FirstWins: true})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, plain, salted, fallen)
	put := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	for _, id := range []string{"acme", "acme2", "A.b_c-9"} {
		tid := tenant.MustParse(id)
		put(plain.For(store, tid).Put(ctx, tsdb.NewEntity("berlin", "roof-7"), noon, reading{21.5}))
	}
	p := plain.For(store, acme)
	for _, parts := range [][]string{{"a b", "#%!$&"}, {"\x00\x1f\x20\x25\x26", "\x7f"}, {"東京", "é"}, {"9223372036854775807", "0"}} {
		put(p.Put(ctx, tsdb.NewEntity(parts...), noon, reading{-0.25}))
	}
	put(p.Put(ctx, tsdb.NewEntity("t", "first"), time.Unix(0, 0), reading{1}))
	put(p.Put(ctx, tsdb.NewEntity("t", "last"), time.Unix(0, 1<<63-1), reading{2}))
	for _, device := range []string{"truck_1", "truck_2", "truck_3"} {
		put(salted.For(store, acme).Put(ctx, tsdb.NewEntity(device), noon, 0.5))
	}
	rec := codec.NewRecord(codec.Field{Name: "n", Value: codec.Int(-3)}, codec.Field{Name: "ok", Value: codec.Bool(true)})
	put(fallen.For(store, acme).Put(ctx, tsdb.NewEntity("x"), noon, rec))
	got := dump(t, table)
	testkit.Golden(t, "testdata/stored.golden", got, breaksRows)
}

// dump prints every cell of a table, one per line, but for the lists of fields, which are written in the background.
func dump(t *testing.T, table *bigtable.Table) string {
	t.Helper()
	var b strings.Builder
	err := table.ReadRows(t.Context(), bigtable.InfiniteRange(""), func(row bigtable.Row) bool {
		if rowkey.IsFieldsRow(row.Key()) {
			return true
		}
		for _, family := range slices.Sorted(maps.Keys(row)) {
			for _, item := range row[family] {
				fmt.Fprintf(&b, "%q %q %d %q\n", item.Row, item.Column, item.Timestamp, item.Value)
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
