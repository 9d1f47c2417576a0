package tsdb_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestMergedPointsInHeads: many writers add fields to the same points in parallel. The head ends with all fields.
func TestMergedPointsInHeads(t *testing.T) {
	s := merging(t, tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: kept}})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	w := writer(t, store, tsdb.WriterOptions{})
	var writers sync.WaitGroup
	for n := range 12 {
		writers.Go(func() {
			for i := range 5 {
				p := tsdb.Point[codec.Record]{Entity: roof, Time: start.Add(time.Duration(i) * time.Second), Value: rec(fmt.Sprintf("f%02d", n), int64(i))}
				var err error
				switch n % 3 {
				case 0:
					err = repo.Put(t.Context(), p.Entity, p.Time, p.Value)
				case 1:
					_, err = repo.PutMany(t.Context(), []tsdb.Point[codec.Record]{p, p})
				case 2:
					_, err = repo.Via(w).EnqueueMany(t.Context(), []tsdb.Point[codec.Record]{p})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	wholeHead(t, "12 writers", repo, roof, kept)
	points, err := ofHead(repo, roof, kept)
	if err != nil || len(points) != kept {
		t.Fatal(points, err)
	}
	for _, p := range points {
		if p.Value.Len() != 12 {
			t.Errorf("the head holds %v, want 12 fields", p.Value)
		}
	}
}

func TestHeadsAloneDoNotMerge(t *testing.T) {
	_, err := tsdb.Define("readings", tsdb.Key("site", "device"), codec.Records(),
		tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Merge: true, Head: tsdb.Head{Points: 1, Only: true}})
	if !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), "Merge is true; want false") {
		t.Error(err)
	}
}

// TestMergesAreInBothRows: whatever fault occurs, a merge reported as stored is also in the head. Repeating a failed
// merge repairs the head.
func TestMergesAreInBothRows(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := merging(t, tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: kept}})
		short := faultTimeout() / 5
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: short, Read: short, Scan: 3 * short}}}, s)
		repo := s.For(store, acme)
		cases := outcomeFaults(tsdbtest.MutateRow, tsdbtest.CheckAndMutateRow, tsdbtest.ReadRows)
		failed := 0
		for i, what := range slices.Sorted(maps.Keys(cases)) {
			at := start.Add(time.Duration(i) * time.Second)
			for _, v := range []codec.Record{rec("a", 1), rec("b", 2)} { // of a new point, and of an existing one
				cases[what](conn)
				err := repo.Put(t.Context(), roof, at, v)
				conn.Clear()
				if state(t, err) == tsdb.Stored {
					wholeHead(t, what, repo, roof, kept)
					continue
				}
				failed++
				if err := repo.Put(t.Context(), roof, at, v); err != nil {
					t.Errorf("%s: repeated merge: %v, want nil", what, err)
				}
				wholeHead(t, what+", repeated", repo, roof, kept)
			}
			wantRecord(t, what, repo, at, "{a=1i b=2i}")
		}
		if failed == 0 {
			t.Error("no write failed under any fault, so the test proves nothing")
		}
	})
}
