package bench

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tsdb"
)

// BenchmarkPage100 measures reads of 100 points from the middle of 10,000: by hand, with one more row that shows
// whether there are more; as a range with a limit, which does not show that; and as a page that reads one cursor and
// writes another, without and with a seal.
func BenchmarkPage100(b *testing.B) {
	server, err := local.Open(engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() })
	repo := func(keys [][]byte) *tsdb.Repository[reading] {
		return readings.For(open(b, server, func(c *bigtable.Client, a *bigtable.AdminClient) *tsdb.Store {
			s, err := tsdb.New(c, table, tsdb.Options{StoreOptions: tsdb.StoreOptions{CursorKeys: keys}, Admin: a})
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Ensure(context.Background(), readings); err != nil {
				b.Fatal(err)
			}
			return s
		}), acme)
	}
	plain, sealed := repo(nil), repo([][]byte{[]byte("a key for nothing but a benchmark")[:32]})
	newest := fill(b, plain, 10_000)
	conn, err := server.Dial()
	if err != nil {
		b.Fatal(err)
	}
	client, _, err := local.Clients(context.Background(), conn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	tbl := client.Open(table)
	ctx := context.Background()
	from := newest.Add(-5000 * time.Second)
	b.Run("raw", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			points := make([]point, 0, 100)
			more := false
			var bad error
			err := tbl.ReadRows(ctx, bigtable.NewRange(rowKey(from)+"\x00", rowKey(cutoff())), func(row bigtable.Row) bool {
				if more = len(points) == 100; more {
					return false
				}
				var p point
				p, bad = decode(row)
				points = append(points, p)
				return bad == nil
			}, bigtable.RowFilter(filter()), bigtable.LimitRows(101))
			cancel()
			if err != nil || bad != nil || !more {
				b.Fatal(len(points), err, bad)
			}
		}
	})
	b.Run("range", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			points := make([]tsdb.Point[reading], 0, 100)
			for p, err := range plain.Range(ctx, roof, tsdb.Until(from), tsdb.Limit(100)) {
				if err != nil {
					b.Fatal(err)
				}
				points = append(points, p)
			}
			if len(points) != 100 {
				b.Fatal(len(points))
			}
		}
	})
	for _, c := range []struct {
		name string
		repo *tsdb.Repository[reading]
	}{{"page", plain}, {"sealed", sealed}} {
		b.Run(c.name, func(b *testing.B) {
			half, err := c.repo.Page(ctx, roof, tsdb.AllTime(), 5001, "") // down to from
			if err != nil || !half.Points[5000].Time.Equal(from) {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				page, err := c.repo.Page(ctx, roof, tsdb.AllTime(), 100, half.Next)
				if err != nil || len(page.Points) != 100 || page.Next == "" {
					b.Fatal(page, err)
				}
			}
		})
	}
}
