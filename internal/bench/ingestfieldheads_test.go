package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/tsdb"
)

// five is a payload of five fields.
type five struct{ A, B, C, D, E float64 }

// BenchmarkIngestFieldHeads measures a writer of points of five fields: of a schema without heads (points), with the
// newest point in heads (head), with the newest value of each field in heads (fields), and without heads in a sink that
// leaves out nine points of ten (onchange). The points come from 100 devices. It reports requests for a million points.
func BenchmarkIngestFieldHeads(b *testing.B) {
	define := func(name string, h tsdb.Head) *tsdb.Schema[five] {
		return tsdb.MustDefine(name, tsdb.Key("site", "device"), codec.JSON[five](), tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: h})
	}
	for _, bm := range []struct {
		schema   *tsdb.Schema[five]
		onChange bool
	}{
		{define("points", tsdb.Head{}), false},
		{define("head", tsdb.Head{Points: 1}), false},
		{define("fields", tsdb.Head{Fields: true}), false},
		{define("onchange", tsdb.Head{}), true},
	} {
		b.Run(bm.schema.Name(), func(b *testing.B) {
			store := plainOn(b, engine.Options{Dir: b.TempDir()}, bm.schema)
			w, err := store.NewWriter(tsdb.WriterOptions{})
			if err != nil {
				b.Fatal(err)
			}
			in := bm.schema.For(store, acme).Via(w)
			if bm.onChange {
				in = in.OnChange(tsdb.OnChange[five]{})
			}
			ingestFieldHeads(b, w, in)
		})
	}
}

func ingestFieldHeads(b *testing.B, w *tsdb.Writer, in *tsdb.Sink[five]) {
	ctx, base := context.Background(), time.Now()
	devices := make([]tsdb.Entity, 100)
	for i := range devices {
		devices[i] = tsdb.NewEntity("berlin", fmt.Sprintf("d-%d", i))
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		at := n / len(devices)
		v := float64(at / 20) // the point before a step is stored, too
		if err := in.Enqueue(ctx, devices[n%len(devices)], base.Add(time.Duration(at)*time.Millisecond), five{v, v, v, v, v}); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.StartTimer() // what is still on its way counts
	if err := w.Close(ctx); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	pointsPerSecond(b, n)
	b.ReportMetric(float64(w.Stats().Requests)*1e6/float64(n), "requests/Mpoint")
}
