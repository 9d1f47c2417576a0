package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// BenchmarkIngestFields writes records and objects of ten fields through a writer: without the list of fields, and with
// it.
func BenchmarkIngestFields(b *testing.B) {
	var fields []codec.Field
	object := map[string]any{}
	for i := range 10 {
		name := fmt.Sprintf("motor_%d_temp", i)
		fields, object[name] = append(fields, codec.Field{Name: name, Value: codec.Float(float64(i) + 0.5)}), float64(i)+0.5
	}
	ingestFields(b, "rec", codec.Records(), codec.NewRecord(fields...))
	ingestFields(b, "json", codec.JSON[map[string]any](), object)
}

func ingestFields[T any](b *testing.B, name string, c codec.Codec[T], v T) {
	for _, listed := range []bool{false, true} {
		b.Run(fmt.Sprintf("%s/listed=%v", name, listed), func(b *testing.B) {
			ctx := context.Background()
			store, err := embedded.Open(ctx, b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			s := tsdb.MustDefine("readings", tsdb.Key("device"), c, tsdb.SchemaOptions{})
			if err := store.Ensure(ctx, s); err != nil {
				b.Fatal(err)
			}
			if !listed {
				in, err := inside.Of(store).Internals()
				if err != nil {
					b.Fatal(err)
				}
				in.Fields = nil // Table is shared with the store
			}
			w, err := store.NewWriter(tsdb.WriterOptions{})
			if err != nil {
				b.Fatal(err)
			}
			in, base, n := s.For(store, tenant.MustParse("acme")).Via(w), time.Now(), 0
			b.ReportAllocs()
			for b.Loop() {
				if err := in.Enqueue(ctx, tsdb.NewEntity("a"), base.Add(time.Duration(n)*time.Microsecond), v); err != nil {
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
		})
	}
}
