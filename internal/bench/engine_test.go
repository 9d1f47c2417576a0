package bench

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/bttest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
)

// client returns the official client's table over conn, and creates the table if it does not exist.
func client(b *testing.B, conn *grpc.ClientConn) *bigtable.Table {
	b.Helper()
	c, admin, err := local.Clients(context.Background(), conn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	if err := admin.CreateTableFromConf(context.Background(), &bigtable.TableConf{
		TableID: table, ColumnFamilies: map[string]bigtable.Family{family: {GCPolicy: bigtable.MaxAgePolicy(retention)}},
	}); err != nil {
		b.Fatal(err)
	}
	return c.Open(table)
}

// serve opens an engine and returns a table on it, in process.
func serve(b *testing.B, opts engine.Options) *bigtable.Table {
	b.Helper()
	server, err := local.Open(opts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() })
	conn, err := server.Dial()
	if err != nil {
		b.Fatal(err)
	}
	return client(b, conn)
}

// pipe serves what register registers, over gRPC on a pipe in memory.
func pipe(b *testing.B, register func(*grpc.Server)) *grpc.ClientConn {
	b.Helper()
	lis := bufconn.Listen(1 << 20)
	srv := grpc.NewServer()
	register(srv)
	go func() { _ = srv.Serve(lis) }()
	b.Cleanup(srv.Stop)
	return dialPipe(b, lis)
}

func dialPipe(b *testing.B, lis *bufconn.Listener) *grpc.ClientConn {
	b.Helper()
	conn, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		b.Fatal(err)
	}
	return conn
}

// history writes n rows of one device by hand, and returns the time of the newest.
func history(b *testing.B, tbl *bigtable.Table, n int) time.Time {
	b.Helper()
	newest := time.Now().Truncate(time.Second)
	for i := 0; i < n; i += 10_000 {
		bulk(b, tbl, i, min(10_000, n-i), func(i int) time.Time { return newest.Add(-time.Duration(i) * time.Millisecond) })
	}
	return newest
}

func bulk(b *testing.B, tbl *bigtable.Table, first, n int, at func(i int) time.Time) {
	b.Helper()
	keys, muts := make([]string, n), make([]*bigtable.Mutation, n)
	for i := range n {
		t := at(first + i)
		keys[i], muts[i] = rowKey(t), bigtable.NewMutation()
		muts[i].Set(family, qualifier, bigtable.Time(t), []byte(`{"temp_c":21.5,"humidity":40}`))
	}
	if errs, err := tbl.ApplyBulk(context.Background(), keys, muts); err != nil || errs != nil {
		b.Fatal(errs, err)
	}
}

func latestRow(b *testing.B, tbl *bigtable.Table, newest time.Time) {
	var got string
	err := tbl.ReadRows(context.Background(), bigtable.PrefixRange(prefix), func(row bigtable.Row) bool {
		got = row.Key()
		return true
	}, bigtable.LimitRows(1))
	if err != nil || got != rowKey(newest) {
		b.Fatal(got, err)
	}
}

// BenchmarkLatestHistory measures reads of a device's newest row with a short and a long history, through the SDK, on
// disk.
func BenchmarkLatestHistory(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		name := fmt.Sprintf("%dk", n/1000)
		if n == 1_000_000 {
			name = "1M"
		}
		b.Run(name, func(b *testing.B) {
			repo, tbl := setup(b, engine.Options{Dir: b.TempDir(), NoSync: true})
			newest := history(b, tbl, sized(n))
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				if p, err := repo.Latest(context.Background(), roof); err != nil || !p.Time.Equal(newest) {
					b.Fatal(p, err)
				}
			}
		})
	}
}

// BenchmarkLatest100k measures the same read with the official client, on the official fake and on the engine.
func BenchmarkLatest100k(b *testing.B) {
	run := func(b *testing.B, tbl *bigtable.Table) {
		newest := history(b, tbl, sized(100_000))
		b.ReportAllocs()
		b.ResetTimer()
		for b.Loop() {
			latestRow(b, tbl, newest)
		}
	}
	b.Run("bttest", func(b *testing.B) {
		lis := bufconn.Listen(1 << 20)
		srv, err := bttest.NewServerWithListener(lis)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			_ = lis.Close()
			srv.Close()
		})
		run(b, client(b, dialPipe(b, lis)))
	})
	b.Run("engine", func(b *testing.B) { run(b, serve(b, engine.Options{})) })
}

// BenchmarkTransport measures the same read on one engine, over gRPC on a pipe and by direct calls.
func BenchmarkTransport(b *testing.B) {
	run := func(b *testing.B, conn func(*local.Server) *grpc.ClientConn) {
		server, err := local.Open(engine.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = server.Close() })
		tbl := client(b, conn(server))
		newest := history(b, tbl, 1000)
		b.ReportAllocs()
		b.ResetTimer()
		for b.Loop() {
			latestRow(b, tbl, newest)
		}
	}
	b.Run("bufconn", func(b *testing.B) {
		run(b, func(s *local.Server) *grpc.ClientConn {
			return pipe(b, func(srv *grpc.Server) { s.Register(srv) })
		})
	})
	b.Run("inproc", func(b *testing.B) {
		run(b, func(s *local.Server) *grpc.ClientConn {
			conn, err := s.Dial()
			if err != nil {
				b.Fatal(err)
			}
			return conn
		})
	})
}

// BenchmarkEnginePut measures writes of one row a call, each synced to disk: by one writer, and by 64 writers that
// share syncs.
func BenchmarkEnginePut(b *testing.B) {
	var n atomic.Int64
	base := time.Now()
	put := func(tbl *bigtable.Table) error {
		t := base.Add(time.Duration(n.Add(1)) * time.Microsecond)
		m := bigtable.NewMutation()
		m.Set(family, qualifier, bigtable.Time(t), []byte(`{"temp_c":21.5,"humidity":40}`))
		return tbl.Apply(context.Background(), rowKey(t), m)
	}
	b.Run("serial", func(b *testing.B) {
		tbl := serve(b, engine.Options{Dir: b.TempDir()})
		b.ReportAllocs()
		b.ResetTimer()
		for b.Loop() {
			if err := put(tbl); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		tbl := serve(b, engine.Options{Dir: b.TempDir()})
		b.SetParallelism(32) // times GOMAXPROCS
		b.ReportAllocs()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := put(tbl); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

// BenchmarkEngineBulk measures writes of 1,000 rows a call, each call synced to disk, in rows per second.
func BenchmarkEngineBulk(b *testing.B) {
	tbl := serve(b, engine.Options{Dir: b.TempDir()})
	const batch = 1000
	base := time.Now()
	rows := 0
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		bulk(b, tbl, rows, batch, func(i int) time.Time { return base.Add(time.Duration(i) * time.Microsecond) })
		rows += batch
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}
