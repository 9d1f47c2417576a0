// Package bench compares the SDK with the same work written by hand on the official client. It also measures the
// embedded engine.
package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

type reading struct {
	TempC    float64 `json:"temp_c"`
	Humidity float64 `json:"humidity"`
}

const (
	table     = "iot"
	family    = "d90"
	qualifier = "p:json"
	retention = 90 * 24 * time.Hour
	timeout   = 10 * time.Second
	prefix    = "acme#readings#berlin#roof-7#"
)

var (
	acme     = tenant.MustParse("acme")
	roof     = tsdb.NewEntity("berlin", "roof-7")
	readings = tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{
		Retention: gc.Class{Name: family, Policy: gc.MaxAge(retention)},
	})
)

// setup serves an engine in memory. It returns the SDK's repository, and the official client's table on a connection of
// its own.
func setup(b *testing.B, opts engine.Options) (*tsdb.Repository[reading], *bigtable.Table) {
	b.Helper()
	repo, tbl, _ := setupIngest(b, opts)
	return repo, tbl
}

// setupIngest is setup that also returns the repository's store.
func setupIngest(b *testing.B, opts engine.Options) (*tsdb.Repository[reading], *bigtable.Table, *tsdb.Store) {
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
	if err := store.Ensure(context.Background(), readings); err != nil {
		b.Fatal(err)
	}
	conn, err := server.Dial()
	if err != nil {
		b.Fatal(err)
	}
	client, _, err := local.Clients(context.Background(), conn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	return readings.For(store, acme), client.Open(table), store
}

func open(b *testing.B, server *local.Server, store func(*bigtable.Client, *bigtable.AdminClient) *tsdb.Store) *tsdb.Store {
	b.Helper()
	conn, err := server.Dial(tsdb.DialOptions()...)
	if err != nil {
		b.Fatal(err)
	}
	client, admin, err := local.Clients(context.Background(), conn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	s := store(client, admin)
	in, err := inside.Of(s).Internals()
	if err != nil {
		b.Fatal(err)
	}
	in.OnlyFirst = true // as package embedded does
	return s
}

// fill writes n points of roof, a second apart, and returns the time of the newest.
func fill(b *testing.B, repo *tsdb.Repository[reading], n int) time.Time {
	b.Helper()
	newest := time.Now().Truncate(time.Second)
	const batch = 10_000
	points := make([]tsdb.Point[reading], 0, batch)
	for i := range n {
		points = append(points, tsdb.Point[reading]{Entity: roof, Time: newest.Add(-time.Duration(i) * time.Second), Value: reading{21.5, 40}})
		if len(points) == batch || i == n-1 {
			if _, err := repo.PutMany(context.Background(), points); err != nil {
				b.Fatal(err)
			}
			points = points[:0]
		}
	}
	return newest
}

// rowKey returns the row key that a competent program writes by hand.
func rowKey(t time.Time) string { return prefix + reverse(t) }

func reverse(t time.Time) string { return fmt.Sprintf("%019d", (1<<63-1)-t.UnixNano()) }

func cutoff() time.Time { return time.Now().Add(-retention) }

// filter hides expired points.
func filter() bigtable.Filter {
	return bigtable.ChainFilters(bigtable.FamilyFilter(family), bigtable.TimestampRangeFilter(cutoff().Truncate(time.Millisecond), time.Time{}))
}

type point struct {
	t time.Time
	v reading
}

func decode(row bigtable.Row) (p point, err error) {
	key := row.Key()
	rev, err := strconv.ParseInt(key[len(key)-19:], 10, 64)
	if err != nil {
		return p, err
	}
	p.t = time.Unix(0, (1<<63-1)-rev).UTC()
	for _, item := range row[family] {
		if item.Column == family+":"+qualifier {
			return p, json.Unmarshal(item.Value, &p.v)
		}
	}
	return p, fmt.Errorf("no payload in %s", key)
}

func BenchmarkRowKey(b *testing.B) {
	space, err := rowkey.NewSpace(acme, "readings", []string{"site", "device"}, 0)
	if err != nil {
		b.Fatal(err)
	}
	path := rowkey.Path("berlin", "roof-7")
	key := string(space.AppendPoint(nil, path, time.Now().UnixNano()))
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, 0, 256)
		for b.Loop() {
			buf = space.AppendPoint(buf[:0], path, 1e18)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, ok := space.Split(key); !ok {
				b.Fatal(key)
			}
		}
	})
}

func BenchmarkPut(b *testing.B) {
	repo, tbl := setup(b, engine.Options{})
	ctx := context.Background()
	base := time.Now()
	n := 0
	next := func() time.Time {
		n++
		return base.Add(time.Duration(n%100_000) * time.Microsecond)
	}
	put := func(ctx context.Context, t time.Time) error {
		payload, err := json.Marshal(reading{21.5, 40})
		if err != nil {
			return err
		}
		m := bigtable.NewMutation()
		m.Set(family, qualifier, bigtable.Time(t), payload)
		return tbl.Apply(ctx, rowKey(t), m)
	}
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := put(ctx, next()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("raw", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			if err := put(ctx, next()); err != nil {
				b.Fatal(err)
			}
			cancel()
		}
	})
	b.Run("sdk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := repo.Put(ctx, roof, next(), reading{21.5, 40}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkLatest(b *testing.B) {
	repo, tbl := setup(b, engine.Options{})
	newest := fill(b, repo, 10_000)
	ctx := context.Background()
	check := func(p point, err error) {
		if err != nil || !p.t.Equal(newest) {
			b.Fatal(p, err)
		}
	}
	latest := func(ctx context.Context, set bigtable.RowSet, opts ...bigtable.ReadOption) (p point, err error) {
		rerr := tbl.ReadRows(ctx, set, func(row bigtable.Row) bool {
			p, err = decode(row)
			return true
		}, append(opts, bigtable.LimitRows(1))...)
		if rerr != nil {
			return p, rerr
		}
		return p, err
	}
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			check(latest(ctx, bigtable.PrefixRange(prefix)))
		}
	})
	b.Run("raw", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			check(latest(ctx, bigtable.NewRange(prefix, rowKey(cutoff())), bigtable.RowFilter(filter())))
			cancel()
		}
	})
	b.Run("sdk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p, err := repo.Latest(ctx, roof)
			check(point{p.Time, p.Value}, err)
		}
	})
}

func BenchmarkRange1000(b *testing.B) {
	repo, tbl := setup(b, engine.Options{})
	newest := fill(b, repo, 10_000)
	ctx := context.Background()
	from, to := newest.Add(-2000*time.Second), newest.Add(-1000*time.Second)
	scan := func(ctx context.Context, set bigtable.RowSet, opts ...bigtable.ReadOption) (n int) {
		var bad error
		err := tbl.ReadRows(ctx, set, func(row bigtable.Row) bool {
			_, bad = decode(row)
			n++
			return bad == nil
		}, opts...)
		if err != nil || bad != nil || n != 1000 {
			b.Fatal(n, err, bad)
		}
		return n
	}
	set := bigtable.NewRange(rowKey(to.Add(-1)), rowKey(from)+"\x00")
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			scan(ctx, set)
		}
	})
	b.Run("raw", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			scan(ctx, set, bigtable.RowFilter(filter()))
			cancel()
		}
	})
	b.Run("sdk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			for _, err := range repo.Range(ctx, roof, tsdb.Between(from, to)) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != 1000 {
				b.Fatal(n)
			}
		}
	})
}
