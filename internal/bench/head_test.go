package bench

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// schema returns a schema of readings in milliseconds, with heads of head points.
func schema(name string, head int) *tsdb.Schema[reading] {
	return tsdb.MustDefine(name, tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{
		Retention: gc.Class{Name: family, Policy: gc.MaxAge(retention)}, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: head},
	})
}

var (
	points = schema("points", 0)
	heads  = schema("heads", 5)
)

// plain returns a store on an engine in memory, without delays or telemetry.
func plain(b *testing.B, datasets ...tsdb.Dataset) *tsdb.Store {
	b.Helper()
	return plainOn(b, engine.Options{}, datasets...)
}

// plainOn is plain with options for the engine.
func plainOn(b *testing.B, opts engine.Options, datasets ...tsdb.Dataset) *tsdb.Store {
	b.Helper()
	server, err := local.Open(opts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() })
	store := open(b, server, func(c *bigtable.Client, a *bigtable.AdminClient) *tsdb.Store {
		s, err := tsdb.New(c, table, tsdb.Options{Admin: a})
		if err != nil {
			b.Fatal(err)
		}
		return s
	})
	if err := store.Ensure(context.Background(), datasets...); err != nil {
		b.Fatal(err)
	}
	return store
}

// latestOfHeads is the case head of BenchmarkLatestMany.
func latestOfHeads(b *testing.B) {
	store, conn := tsdbtest.Open(b, tsdbtest.Options{}, heads)
	repo := heads.For(store, acme)
	devices := fillFleet(b, repo, "berlin", 500, 10)
	conn.Inject(tsdbtest.Delay(5 * time.Millisecond))
	b.ReportAllocs()
	for b.Loop() {
		if answers, err := repo.LatestMany(context.Background(), devices, 1); err != nil || len(answers) != len(devices) {
			b.Fatal(err)
		}
	}
}

// BenchmarkLatestOfOne measures reads of a device's newest five points, from its points and from its head. The head has
// been written 1,000 times and mostly not been collected.
func BenchmarkLatestOfOne(b *testing.B) {
	store := plain(b, points, heads)
	for _, bm := range []struct {
		name   string
		schema *tsdb.Schema[reading]
	}{{"points", points}, {"head", heads}} {
		b.Run(bm.name, func(b *testing.B) {
			repo := bm.schema.For(store, acme)
			newest := time.Now().Truncate(time.Second)
			for i := range 1000 {
				if err := repo.Put(context.Background(), roof, newest.Add(-time.Duration(i)*time.Second), reading{21.5, 40}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if got, err := repo.LatestMany(context.Background(), []tsdb.Entity{roof}, 5); err != nil || len(got[0].Points) != 5 {
					b.Fatal(got, err)
				}
			}
		})
	}
}

// BenchmarkPutHead measures puts of single points, and of 1,000 in a call, without and with heads.
func BenchmarkPutHead(b *testing.B) {
	store := plain(b, points, heads)
	base := time.Now().Truncate(time.Second)
	for _, bm := range []struct {
		name   string
		schema *tsdb.Schema[reading]
	}{{"points", points}, {"heads", heads}} {
		repo := bm.schema.For(store, acme)
		n := 0
		next := func() time.Time {
			n++
			return base.Add(time.Duration(n%100_000) * time.Millisecond)
		}
		b.Run("one/"+bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := repo.Put(context.Background(), roof, next(), reading{21.5, 40}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("many/"+bm.name, func(b *testing.B) {
			b.ReportAllocs()
			batch := make([]tsdb.Point[reading], 1000)
			for b.Loop() {
				for i := range batch {
					batch[i] = tsdb.Point[reading]{Entity: roof, Time: next(), Value: reading{21.5, 40}}
				}
				if _, err := repo.PutMany(context.Background(), batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
