package dynamic_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestRepository: the repository of a view reads what that of the schema reads, stays within its tenant, and writes no
// values.
func TestRepository(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"plain": {}, "salted": {Salts: 3, Precision: tsdb.Microseconds}, "only heads": {Head: tsdb.Head{Points: 50, Only: true}, Precision: tsdb.Milliseconds},
		"rollups": {Rollups: []tsdb.Rollup{hour}}, "identity": {Identity: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := define(t, opts)
			store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return start.Add(time.Hour) }}}, s)
			var points []tsdb.Point[sample]
			for i := range 30 {
				for _, device := range []string{"roof-7", "roof-77"} {
					p := tsdb.Point[sample]{Entity: tsdb.NewEntity("berlin", device), Time: start.Add(time.Duration(i) * time.Second), Value: sample{float64(i)}}
					if opts.Identity {
						p.ID = "a"
					}
					points = append(points, p)
				}
			}
			if _, err := s.For(store, acme).PutMany(t.Context(), points); err != nil {
				t.Fatal(err)
			}
			v, err := dynamic.Open(t.Context(), store, acme, "readings")
			if err != nil {
				t.Fatal(err)
			}
			repo := v.Repository()
			typed := codec.JSON[sample]()
			n := 0
			for p, err := range repo.Under(tsdb.NewPrefix("berlin")).Range(t.Context(), tsdb.AllTime(), tsdb.OldestFirst) {
				if err != nil || p.Value.Tag != "json" {
					t.Fatalf("%+v, %v", p, err)
				}
				want := points[n%30*2+n/30]
				if got, err := typed.Decode(p.Value.Data); err != nil || got != want.Value || p.Entity != want.Entity || !p.Time.Equal(want.Time) || p.ID != want.ID {
					t.Fatalf("point %d is %+v, %v; want %+v", n, p, err, want)
				}
				n++
			}
			if n != len(points) {
				t.Errorf("%d points, want %d", n, len(points))
			}
			silent, err := repo.Under(tsdb.AllEntities()).Silent(t.Context(), start.Add(time.Minute), 10)
			if err != nil || len(silent) != 2 {
				t.Errorf("silent: %v, %v", silent, err)
			}
			numbers := window.Measure[dynamic.Payload]{Name: "temp", Of: func(p dynamic.Payload) (float64, bool) {
				r, err := typed.Decode(p.Data)
				return r.TempC, err == nil
			}}
			line, err := window.ReadLine(t.Context(), repo, roof, tsdb.Between(start, start.Add(time.Hour)), numbers, window.LineOptions{Columns: 1})
			if err != nil || line.Rollup != "" {
				t.Fatalf("a chart from %+v, %v", line, err)
			}
			for s, err := range line.Samples {
				if err != nil {
					t.Fatal(s, err)
				}
			}
			point := tsdb.Point[dynamic.Payload]{Entity: roof, Time: start, Value: dynamic.Payload{Tag: "json", Data: []byte("{}")}}
			if opts.Identity {
				point.ID = "a"
			}
			if _, err := repo.PutMany(t.Context(), []tsdb.Point[dynamic.Payload]{point}); !errors.Is(err, codecerr.ErrReadOnly) {
				t.Errorf("PutMany: %v, want ErrReadOnly", err)
			}
			if err := repo.WithID(point.ID).Delete(t.Context(), roof, point.Time); err != nil {
				t.Errorf("Delete: %v", err)
			}
			if _, err := s.For(store, acme).WithID(point.ID).Get(t.Context(), roof, point.Time); !errors.Is(err, tsdb.ErrNotFound) {
				t.Errorf("Get after Delete: %v, want ErrNotFound", err)
			}
			if opts.Head.Points > 0 {
				newest := points[len(points)-1]
				if n, err := repo.DeleteRange(t.Context(), newest.Entity, tsdb.Since(newest.Time)); n != 1 || err != nil {
					t.Errorf("DeleteRange deletes %d points, %v; want the newest", n, err)
				}
				got, err := s.For(store, acme).LatestMany(t.Context(), []tsdb.Entity{newest.Entity}, 1)
				if err != nil || !got[0].Points[0].Time.Equal(newest.Time.Add(-time.Second)) {
					t.Errorf("after that the head has %v, %v; want the point before it", got, err)
				}
			}
			if _, err := rollup.For(new(rollup.Rollup[dynamic.Payload]), repo).Total(t.Context(), roof, tsdb.AllTime()); !errors.Is(err, tsdb.ErrInvalid) {
				t.Errorf("a rollup of no function: %v", err)
			}
		})
	}
	var none *dynamic.View
	if _, err := none.Repository().Latest(t.Context(), roof); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("the repository of no view: %v", err)
	}
}
