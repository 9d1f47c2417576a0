package bench

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// addEntities is the number of rows that the events go to.
const addEntities = 1000

// BenchmarkRollupAdd measures adding events with one number (count, sum, min, max) to the hours of a thousand entities.
// The baseline is one Apply of AddIntToCell for each event, which counts an event twice if a response is lost.
func BenchmarkRollupAdd(b *testing.B) {
	entities := make([]tsdb.Entity, addEntities)
	for i := range entities {
		entities[i] = tsdb.NewEntity("berlin", fmt.Sprintf("d%d", i))
	}
	at := time.Now()
	each := func(name string, mode rollup.Mode, run func(b *testing.B, r *rollup.Rollup[reading], repo *tsdb.Repository[reading], tbl *bigtable.Table)) {
		b.Run(name, func(b *testing.B) {
			r := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[reading]{
				{Name: "temp", Of: func(v reading) (float64, bool) { return v.TempC, true }, Decimals: 2, Max: 1000},
			}, rollup.Options{Mode: mode, MaxMessages: map[bool]int{true: 100_000}[mode == rollup.ByMessage]})
			s := tsdb.MustDefine("events", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{r}})
			_, tbl, store := setupIngest(b, engine.Options{})
			if err := store.Ensure(context.Background(), s); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			run(b, r, s.For(store, acme), tbl)
		})
	}
	ctx := context.Background()
	value := reading{21.5, 40}
	each("baseline", rollup.Once, func(b *testing.B, _ *rollup.Rollup[reading], _ *tsdb.Repository[reading], tbl *bigtable.Table) {
		n, ts := 0, bigtable.Time(at.Truncate(time.Hour))
		for b.Loop() {
			m := bigtable.NewMutation()
			m.AddIntToCell("keep.s", "n", ts, 1)
			m.AddIntToCell("keep.s", "c.temp", ts, 1)
			m.AddIntToCell("keep.s", "s.temp", ts, 2150)
			m.AddIntToCell("keep.n", "temp", ts, 2150)
			m.AddIntToCell("keep.x", "temp", ts, 2150)
			if err := tbl.Apply(ctx, fmt.Sprintf("acme#byhand#%d", n%addEntities), m); err != nil {
				b.Fatal(err)
			}
			n++
		}
		pointsPerSecond(b, n)
	})
	each("atmostonce", rollup.Once, func(b *testing.B, r *rollup.Rollup[reading], repo *tsdb.Repository[reading], _ *bigtable.Table) {
		in, n := rollup.NewAdder(r, repo, nil), 0
		for b.Loop() {
			if err := in.Add(ctx, entities[n%addEntities], at, value); err != nil {
				b.Fatal(err)
			}
			n++
		}
		pointsPerSecond(b, n)
	})
	each("atmostonce_many", rollup.Once, func(b *testing.B, r *rollup.Rollup[reading], repo *tsdb.Repository[reading], _ *bigtable.Table) {
		in, n := rollup.NewAdder(r, repo, nil), 0
		var events []tsdb.Point[reading]
		for b.Loop() {
			events = append(events, tsdb.Point[reading]{Entity: entities[n%addEntities], Time: at, Value: value})
			if n++; len(events) == 5000 {
				if _, err := in.AddMany(ctx, events); err != nil {
					b.Fatal(err)
				}
				events = events[:0]
			}
		}
		b.StartTimer() // count the delivery of the rest
		_, err := in.AddMany(ctx, events)
		b.StopTimer()
		if err != nil {
			b.Fatal(err)
		}
		pointsPerSecond(b, n)
	})
	each("message", rollup.ByMessage, func(b *testing.B, r *rollup.Rollup[reading], repo *tsdb.Repository[reading], _ *bigtable.Table) {
		in, n := rollup.NewAdder(r, repo, nil), 0
		for b.Loop() {
			if added, err := in.AddMessage(ctx, fmt.Sprint("m", n), entities[n%addEntities], at, value); err != nil || !added {
				b.Fatal(added, err)
			}
			n++
		}
		pointsPerSecond(b, n)
	})
	each("stream", rollup.ByStream, func(b *testing.B, r *rollup.Rollup[reading], repo *tsdb.Repository[reading], _ *bigtable.Table) {
		w, err := repo.Store().NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: b.TempDir()}})
		if err != nil {
			b.Fatal(err)
		}
		in, n, acked := rollup.NewAdder(r, repo, w), 0, 0
		ended := func(o tsdb.Outcome) {
			if o.State == tsdb.Journaled {
				acked++
			}
		}
		for b.Loop() {
			if err := in.AddFunc(ctx, entities[n%addEntities], at, value, ended); err != nil {
				b.Fatal(err)
			}
			n++
		}
		b.StartTimer() // count the delivery of the rest
		err = errors.Join(w.Flush(ctx), w.Close(ctx))
		b.StopTimer()
		if err != nil || acked != n {
			b.Fatalf("got %d of %d events acknowledged, %v", acked, n, err)
		}
		pointsPerSecond(b, n)
	})
}
