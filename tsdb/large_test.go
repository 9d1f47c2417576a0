package tsdb_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestLargeDeletions go page by page, over every salt, past what cannot be deleted.
func TestLargeDeletions(t *testing.T) {
	for _, salts := range []int{0, 3} {
		s := readings(t, tsdb.SchemaOptions{Salts: salts})
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		var points []tsdb.Point[reading]
		for i := range 12_001 {
			points = append(points, tsdb.Point[reading]{Entity: tsdb.NewEntity("berlin", fmt.Sprint(i%20)), Time: start.Add(time.Duration(i))})
		}
		if _, err := repo.PutMany(t.Context(), points); err != nil {
			t.Fatal(err)
		}
		conn.Inject(tsdbtest.FailEntries(codes.PermissionDenied, func(key string) bool { return strings.Contains(key, "#7#") }))
		n, err := repo.DeletePrefix(t.Context(), tsdb.AllEntities())
		var batch *tsdb.BatchError
		var bad *tsdb.PointError
		if n != 12_001-600 || !errors.As(err, &batch) || len(batch.Failed) != 600 || batch.Total != 12_001 || !errors.As(err, &bad) || bad.Entity != tsdb.NewEntity("berlin", "7") {
			t.Errorf("%d salts: %d deleted, %v", salts, n, err)
		}
		conn.Clear()
		n, err = repo.DeletePrefix(t.Context(), tsdb.NewPrefix("berlin"))
		if n != 600 || err != nil || len(rows(t, table)) != 0 {
			t.Errorf("%d salts: %d deleted, %v, %d rows left", salts, n, err, len(rows(t, table)))
		}
	}
}

// TestForeignRowsCostFewRequests: a limit that other programs' rows use up is made up for, exactly and in few requests.
func TestForeignRowsCostFewRequests(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	for i := range 3 {
		if err := repo.Put(t.Context(), roof, start.Add(time.Duration(i)*time.Hour), reading{float64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 300 { // between the newest and the one before it, and before the newest
		for _, at := range []time.Duration{90 * time.Minute, 3 * time.Hour} {
			m := bigtable.NewMutation()
			m.Set("keep", "p:json", bigtable.Time(start), []byte(`{}`))
			apply(t, table, fmt.Sprintf("%s#x%d", key(roof, start.Add(at)), i), m)
		}
	}
	for _, tt := range []struct {
		opts []tsdb.RangeOption
		want []float64
	}{{[]tsdb.RangeOption{tsdb.Limit(2)}, []float64{2, 1}}, {[]tsdb.RangeOption{tsdb.Limit(3), tsdb.OldestFirst}, []float64{0, 1, 2}}} {
		conn.Reset()
		var got []float64
		for p, err := range repo.Range(t.Context(), roof, tsdb.AllTime(), tt.opts...) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, p.Value.TempC)
		}
		if n := conn.Counts().Calls[tsdbtest.ReadRows]; !equal(got, tt.want) || n > 8 {
			t.Errorf("%v: %v in %d requests, want %v", tt.opts, got, n, tt.want)
		}
	}
}
