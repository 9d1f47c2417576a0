package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestLargeDeletions: large deletions work page by page, over every salt, past rows that cannot be deleted.
func TestLargeDeletions(t *testing.T) {
	testkit.Plain(t)
	for _, salts := range some(1, []int{0, 3}) {
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

// TestForeignRowsCostFewRequests: if other programs' rows use up a limit, the read continues with few further requests
// and returns exactly the limit.
func TestForeignRowsCostFewRequests(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	for i := range 3 {
		if err := repo.Put(t.Context(), roof, start.Add(time.Duration(i)*time.Hour), reading{float64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 300 { // between the newest point and the next, and before the newest
		for _, at := range []time.Duration{90 * time.Minute, 3 * time.Hour} {
			m := bigtable.NewMutation()
			m.Set("keep", "p:json", bigtable.Time(start), []byte(`{}`))
			apply(t, table, fmt.Sprintf("%s#x%d", key(roof, start.Add(at)), i), m)
		}
	}
	for _, tt := range []struct {
		opts []tsdb.ReadOption
		want []float64
	}{{[]tsdb.ReadOption{tsdb.Limit(2)}, []float64{2, 1}}, {[]tsdb.ReadOption{tsdb.Limit(3), tsdb.OldestFirst}, []float64{0, 1, 2}}} {
		conn.Reset()
		var got []float64
		for p, err := range repo.Range(t.Context(), roof, tsdb.AllTime(), tt.opts...) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, p.Value.TempC)
		}
		if n := conn.Counts().Calls[tsdbtest.ReadRows]; !equal(got, tt.want) || n > 8 {
			t.Errorf("%v: got %v in %d requests, want %v", tt.opts, got, n, tt.want)
		}
	}
}

// TestForeignRowsWithoutEnd: an entity with only other programs' rows is not found, in few requests.
func TestForeignRowsWithoutEnd(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	for i := range 150 {
		m := bigtable.NewMutation()
		m.Set("keep", "p:json", 0, []byte("{}"))
		if err := table.Apply(t.Context(), fmt.Sprintf("acme#readings#berlin#roof-7#7000000000000000000x%03d", i), m); err != nil {
			t.Fatal(err)
		}
	}
	conn.Reset()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := s.For(store, acme).Latest(ctx, roof)
	if n := conn.Counts().Calls[tsdbtest.ReadRows]; !errors.Is(err, tsdb.ErrNotFound) || n != 3 {
		t.Errorf("error %v after %d requests, want ErrNotFound after 3", err, n)
	}
}

// TestDeletionOverPages: foreign rows in a page do not end a deletion, the timeout of scans bounds it, and failures of
// all pages are counted.
func TestDeletionOverPages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Read: 500 * time.Millisecond, Write: time.Minute}}}, s)
		r := s.For(store, acme)
		m := bigtable.NewMutation()
		m.Set("keep", "p:json", 0, []byte("{}"))
		if err := table.Apply(t.Context(), "acme#readings#berlin#roof-7#0000000000000000000x", m); err != nil {
			t.Fatal(err)
		}
		points := make([]tsdb.Point[reading], 5010)
		for i := range points {
			points[i] = tsdb.Point[reading]{Entity: roof, Time: start.Add(time.Duration(-i) * time.Second)}
		}
		if _, err := r.PutMany(t.Context(), points); err != nil {
			t.Fatal(err)
		}
		conn.Inject(tsdbtest.Delay(time.Second).On(tsdbtest.ReadRows))
		last := points[5009].Time
		key := fmt.Sprintf("%019d", int64(1<<63-1)-last.UnixNano())
		conn.Inject(tsdbtest.FailEntries(codes.PermissionDenied, func(k string) bool { return strings.HasSuffix(k, key) }))
		n, err := r.DeleteRange(t.Context(), roof, tsdb.AllTime())
		var batch *tsdb.BatchError
		if !errors.As(err, &batch) || n != 5009 || len(batch.Failed) != 1 || batch.Failed[0].Index != 5009 || batch.Total != 5010 {
			t.Errorf("%d deleted, error %v, failures %+v", n, err, batch)
		}
	})
}

// TestDeletionGivesUp: if no row of a page can be deleted, the next page is not tried.
func TestDeletionGivesUp(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	if _, err := repo.PutMany(t.Context(), points(5001)); err != nil {
		t.Fatal(err)
	}
	conn.Inject(tsdbtest.FailEntries(codes.PermissionDenied, func(string) bool { return true }))
	n, err := repo.DeleteRange(t.Context(), roof, tsdb.AllTime())
	var batch *tsdb.BatchError
	if !errors.As(err, &batch) || n != 0 || batch.Total != 5000 || len(batch.Failed) != 5000 {
		t.Errorf("%d deleted, %v", n, err)
	}
}

// TestLargestPayload: a payload of exactly the limit is stored.
func TestLargestPayload(t *testing.T) {
	s := tsdb.MustDefine("blobs", tsdb.Key("id"), codec.Bytes(), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	if err := s.For(store, acme).Put(t.Context(), tsdb.NewEntity("x"), start, make([]byte, 10<<20)); err != nil {
		t.Errorf("Put of 10 MiB: %v", err)
	}
}
