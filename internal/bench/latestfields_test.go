package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tsdb"
)

// wide is the number of fields of a device.
const wide = 20

// wideOf returns the fields from one number to another.
func wideOf(from, to int) codec.Record {
	fields := make([]codec.Field, 0, to-from)
	for i := from; i < to; i++ {
		fields = append(fields, codec.Field{Name: fmt.Sprintf("field-%02d", i), Value: codec.Float(float64(i))})
	}
	return codec.NewRecord(fields...)
}

// fleetOf is 100 devices in a schema, whose points have some of 20 fields each.
func fleetOf(b *testing.B, store *tsdb.Store, s *tsdb.Schema[codec.Record], fields int) []tsdb.Entity {
	b.Helper()
	base := time.Now().Add(-time.Hour).Truncate(time.Second)
	devices := make([]tsdb.Entity, 100)
	for d := range devices {
		devices[d] = tsdb.NewEntity("berlin", fmt.Sprintf("d-%d", d))
	}
	for i := 0; i < wide; i += fields {
		batch := make([]tsdb.Point[codec.Record], len(devices))
		for d, e := range devices {
			batch[d] = tsdb.Point[codec.Record]{Entity: e, Time: base.Add(time.Duration(i) * time.Second), Value: wideOf(i, i+fields)}
		}
		if _, err := s.For(store, acme).PutMany(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	return devices
}

// BenchmarkLatestFields measures reads of the newest values of 20 fields of each of 100 devices: from heads (head), by
// a scan of points that have one field each (scan), and from heads by hand with the official client, which keeps a
// column for each field (raw). For comparison: the newest point of each from the same heads, with all 20 fields
// (newest).
func BenchmarkLatestFields(b *testing.B) {
	options := tsdb.SchemaOptions{Precision: tsdb.Milliseconds}
	sparse := tsdb.MustDefine("sparse", tsdb.Key("site", "device"), codec.Records(), options)
	options.Merge, options.Head = true, tsdb.Head{Points: 1, Fields: true}
	headed := tsdb.MustDefine("headed", tsdb.Key("site", "device"), codec.Records(), options)
	server, err := local.Open(engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() })
	var tbl *bigtable.Table
	store := open(b, server, func(c *bigtable.Client, a *bigtable.AdminClient) *tsdb.Store {
		tbl = c.Open(table)
		s, err := tsdb.New(c, table, tsdb.Options{Admin: a})
		if err != nil {
			b.Fatal(err)
		}
		return s
	})
	ctx := context.Background()
	if err := store.Ensure(ctx, sparse, headed); err != nil {
		b.Fatal(err)
	}
	devices := fleetOf(b, store, sparse, 1)
	fleetOf(b, store, headed, wide)
	fields := func(name string, s *tsdb.Schema[codec.Record]) {
		b.Run(name, func(b *testing.B) {
			repo := s.For(store, acme)
			b.ReportAllocs()
			for b.Loop() {
				all, err := repo.LatestFieldsMany(ctx, devices, tsdb.FieldOptions{})
				if err != nil || len(all) != len(devices) || all[0].Times.Len() != wide {
					b.Fatal(len(all), err)
				}
			}
		})
	}
	fields("head", headed)
	fields("scan", sparse)
	b.Run("newest", func(b *testing.B) {
		repo := headed.For(store, acme)
		b.ReportAllocs()
		for b.Loop() {
			if all, err := repo.LatestMany(ctx, devices, 1); err != nil || len(all) != len(devices) || all[0].Points[0].Value.Len() != wide {
				b.Fatal(err)
			}
		}
	})
	b.Run("raw", func(b *testing.B) { rawFields(b, tbl, devices) })
}

// rawFields reads the columns of fields in the heads by hand.
func rawFields(b *testing.B, tbl *bigtable.Table, devices []tsdb.Entity) {
	keys := make(bigtable.RowList, len(devices))
	for i, e := range devices {
		keys[i] = "acme#headed!head#" + e.Parts()[0] + "#" + e.Parts()[1] + "#"
	}
	type field struct {
		value codec.Record
		at    time.Time
	}
	newest := bigtable.ChainFilters(bigtable.ColumnRangeFilter("keep.h1", "f:", "f;"), bigtable.LatestNFilter(1))
	b.ReportAllocs()
	for b.Loop() {
		all := make(map[string]map[string]field, len(devices))
		err := tbl.ReadRows(context.Background(), keys, func(r bigtable.Row) bool {
			of := make(map[string]field, wide)
			for _, it := range r["keep.h1"] {
				v, err := codec.Records().Decode(append([]byte{1, 1, 'x'}, it.Value...))
				if err != nil {
					b.Fatal(err)
				}
				of[it.Column] = field{v, it.Timestamp.Time()}
			}
			all[r.Key()] = of
			return true
		}, bigtable.RowFilter(newest))
		if err != nil || len(all) != len(devices) || len(all[keys[0]]) != wide {
			b.Fatal(len(all), len(all[keys[0]]), err)
		}
	}
}
