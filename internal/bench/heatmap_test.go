package bench

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
)

// BenchmarkHeatmap measures calls of a store without a recorder and with one. Compare the two of each call in several
// runs: -count 10.
func BenchmarkHeatmap(b *testing.B) {
	for _, call := range []struct {
		name string
		run  func(*testing.B, *tsdb.Repository[reading], *tsdb.Store)
	}{
		{"put", putEach},
		{"latest", latestEach},
		{"writer", func(b *testing.B, repo *tsdb.Repository[reading], store *tsdb.Store) {
			ctx := context.Background()
			w, err := store.NewWriter(tsdb.WriterOptions{})
			if err != nil {
				b.Fatal(err)
			}
			sink, base, n := repo.Via(w), time.Now().Add(-24*time.Hour), 0
			b.ReportAllocs()
			for b.Loop() {
				if err := sink.Enqueue(ctx, roof, base.Add(time.Duration(n)*time.Microsecond), reading{21.5, 40}); err != nil {
					b.Fatal(err)
				}
				n++
			}
			if err := w.Close(ctx); err != nil {
				b.Fatal(err)
			}
		}},
		{"range", func(b *testing.B, repo *tsdb.Repository[reading], _ *tsdb.Store) {
			ctx := context.Background()
			fill(b, repo, 1000)
			b.ReportAllocs()
			for b.Loop() {
				drained(b, repo.Range(ctx, roof, tsdb.AllTime()), 1000)
			}
		}},
	} {
		for _, state := range []string{"off", "on"} {
			b.Run(call.name+"/"+state, func(b *testing.B) {
				var recorder *heatmap.Recorder // records nothing while it is nil
				if state == "on" {
					var err error
					if recorder, err = heatmap.NewRecorder(heatmap.Options{}); err != nil {
						b.Fatal(err)
					}
				}
				store := recordedStore(b, recorder.DialOptions())
				call.run(b, readings.For(store, acme), store)
			})
		}
	}
}

func recordedStore(b *testing.B, dial []grpc.DialOption) *tsdb.Store {
	b.Helper()
	server, err := local.Open(engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() })
	conn, err := server.Dial(append(tsdb.DialOptions(), dial...)...)
	if err != nil {
		b.Fatal(err)
	}
	client, admin, err := local.Clients(context.Background(), conn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = admin.Close() })
	store, err := tsdb.New(client, table, tsdb.Options{Admin: admin, OnClose: client.Close})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	if err := store.Ensure(context.Background(), readings); err != nil {
		b.Fatal(err)
	}
	return store
}
