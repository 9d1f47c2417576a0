package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// TestHeadsAreOneRead counts requests with expired, uncollected history.
func TestHeadsAreOneRead(t *testing.T) {
	for _, only := range []bool{false, true} {
		for _, salts := range []int{0, 4} {
			if testkit.Raced && only != (salts > 0) {
				continue // the plain run has all four
			}
			c := testkit.NewClock(start)
			s := headSchema(t, only, tsdb.SchemaOptions{Salts: salts, Retention: minutes10})
			store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
			repo := s.For(store, acme)
			var devices []tsdb.Entity
			for n := range 500 {
				devices = append(devices, tsdb.NewEntity("berlin", fmt.Sprintf("d%04d", n)))
			}
			for step := range 8 { // the first points expire, and all stay in the table
				c.Set(start.Add(time.Duration(step) * 3 * time.Minute))
				var batch []tsdb.Point[reading]
				for n, e := range devices {
					if n%10 > 0 || step == 0 { // every tenth device is silent after its first point
						batch = append(batch, tsdb.Point[reading]{Entity: e, Time: c.Now(), Value: reading{float64(step)}})
					}
				}
				putAll(t, repo, batch)
			}
			conn.Reset()
			answers, err := latestMany(t.Context(), repo, append(devices, devices...))
			if err != nil {
				t.Fatal(err)
			}
			for n, a := range answers {
				if silent := n%10 == 0; silent != errors.Is(a.Err, tsdb.ErrNotFound) || !silent && a.Point.Value.TempC != 7 {
					t.Fatalf("heads only %v: result %+v", only, a)
				}
			}
			if n := conn.Counts(); n.Calls[tsdbtest.ReadRows] != 1 || n.RowsSeen > 500 {
				t.Errorf("only %v: LatestMany of 500 devices takes %v", only, n)
			}
			conn.Reset()
			seen := 0
			for _, err := range repo.Under(tsdb.NewPrefix("berlin")).Latest(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				seen++
			}
			if n := conn.Counts(); seen != 450 || n.Calls[tsdbtest.ReadRows] != max(1, salts) || n.RowsSeen > 500 {
				t.Errorf("only %v, %d salts: Under.Latest of %d entities takes %v", only, salts, seen, n)
			}
		}
	}
}

// TestManyHeads uses more heads than one page of a scan holds.
func TestManyHeads(t *testing.T) {
	s := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.Int64(), tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 1, Only: true}})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	const many = 2_500
	var all []tsdb.Entity
	var batch []tsdb.Point[int64]
	for n := range many {
		all = append(all, tsdb.NewEntity("berlin", fmt.Sprint("d", n)))
		batch = append(batch, tsdb.Point[int64]{Entity: all[n], Time: start, Value: int64(n)})
	}
	if _, err := repo.PutMany(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, tsdb.Entity.Compare)
	conn.Reset()
	n := 0
	for p, err := range repo.Under(tsdb.AllEntities()).Latest(t.Context()) {
		if err != nil || p.Entity != all[n] {
			t.Fatalf("point %v, error %v; want %v", p, err, all[n])
		}
		n++
	}
	if calls := conn.Counts().Calls[tsdbtest.ReadRows]; n != many || calls != 3 {
		t.Errorf("%d of %d entities in %d requests", n, many, calls)
	}
	if n, err := repo.DeletePrefix(t.Context(), tsdb.AllEntities()); err != nil || n != many {
		t.Errorf("DeletePrefix = %d, %v", n, err)
	}
	for e, err := range repo.Under(tsdb.AllEntities()).Entities(t.Context(), tsdb.AllTime()) {
		t.Fatalf("%v is left after DeletePrefix (error %v)", e, err)
	}
}

// TestHeadsOfLongNames uses more row keys than one request can name.
func TestHeadsOfLongNames(t *testing.T) {
	s := headSchema(t, false, tsdb.SchemaOptions{Salts: 2})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	var devices []tsdb.Entity
	var batch []tsdb.Point[reading]
	for n := range 600 {
		devices = append(devices, tsdb.NewEntity(strings.Repeat("long", 500), fmt.Sprint("d", n)))
		batch = append(batch, tsdb.Point[reading]{Entity: devices[n], Time: start, Value: reading{float64(n)}})
	}
	putAll(t, repo, batch)
	for _, opts := range [][]tsdb.ReadOption{nil, {tsdb.Concurrency(1)}, {tsdb.Hedge{After: time.Minute, MaxRatio: 1}}} {
		conn.Reset()
		answers, err := latestMany(t.Context(), repo, devices, opts...)
		if err != nil {
			t.Fatal(err)
		}
		for n, a := range answers {
			if a.Err != nil || a.Point.Value.TempC != float64(n) || a.Point.Entity != devices[n] {
				t.Fatalf("device %d is %v, %v", n, a.Point.Value, a.Err)
			}
		}
		if n := conn.Counts().Calls[tsdbtest.ReadRows]; n != 3 {
			t.Errorf("1.2 MB of row keys take %d requests, want 3 of at most 500 KB", n)
		}
	}
}

// TestHeadsThatCannotBeRead: results that arrived before a read failed are returned, the others have errors. A damaged
// head is one bad result.
func TestHeadsThatCannotBeRead(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := headSchema(t, false, tsdb.SchemaOptions{})
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Read: time.Second}}}, s)
		repo := s.For(store, acme)
		var devices []tsdb.Entity
		var batch []tsdb.Point[reading]
		for n := range 9 {
			devices = append(devices, tsdb.NewEntity("berlin", fmt.Sprint("d", n)))
			batch = append(batch, tsdb.Point[reading]{Entity: devices[n], Time: start, Value: reading{float64(n)}})
		}
		putAll(t, repo, batch)
		m := bigtable.NewMutation()
		m.Set("keep.h3", "p:json", bigtable.Time(start.Add(time.Hour)), []byte("{"))
		apply(t, table, headKey(devices[4]), m)
		ask := append([]tsdb.Entity{tsdb.NewEntity("only one part")}, devices...)
		check := func(what string, cause error, stands int) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			answers, err := latestMany(ctx, repo, ask)
			var re *tsdb.ReadError
			if !errors.As(err, &re) || !errors.Is(answers[0].Err, tsdb.ErrInvalid) {
				t.Fatalf("%s: error %v, results %+v", what, err, answers)
			}
			good := 0
			for n, a := range answers[1:] {
				var bad *tsdb.PointError
				switch {
				case a.Err == nil && a.Point.Value.TempC == float64(n), n == 4 && errors.As(a.Err, &bad):
					good++
				case !errors.Is(a.Err, cause):
					t.Errorf("%s: result %+v", what, a)
				}
			}
			if good != stands {
				t.Errorf("%s: %d results, want %d", what, good, stands)
			}
		}
		check("nothing", nil, 9)
		conn.Inject(tsdbtest.CutStream(3, codes.Unavailable).On(tsdbtest.ReadRows).Times(1))
		check("a stream that is cut once", nil, 9)
		conn.Clear()
		conn.Inject(tsdbtest.CutStream(3, codes.Unavailable).On(tsdbtest.ReadRows).Times(1))
		conn.Inject(tsdbtest.Delay(time.Hour).On(tsdbtest.ReadRows).Skip(1))
		check("a stream that is cut and then hangs", context.DeadlineExceeded, 3)
		conn.Clear()
		end := conn.Outage()
		check("an outage", context.DeadlineExceeded, 0)
		end()
		bad := 0
		for p, err := range repo.Under(tsdb.NewPrefix("berlin")).Latest(t.Context()) {
			var pe *tsdb.PointError
			if errors.As(err, &pe) {
				bad++
			} else if err != nil || p.Time != start {
				t.Errorf("Under.Latest yields %v, %v", p, err)
			}
		}
		if bad != 1 {
			t.Errorf("%d bad points below the prefix", bad)
		}
	})
}

// TestOnlyHeadsShowWhatTheyKeep: before a collection, a head has more points than the schema keeps. No read shows them.
func TestOnlyHeadsShowWhatTheyKeep(t *testing.T) {
	s := headSchema(t, true, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	for i := range kept + 3 {
		if err := repo.Put(t.Context(), roof, start.Add(time.Duration(i)*time.Second), reading{}); err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n <= kept+4; n++ {
		for h, err := range repo.Under(tsdb.AllEntities()).LatestN(t.Context(), n) {
			if err != nil || len(h.Points) != min(n, kept) {
				t.Errorf("LatestN of %d: %d points, %v; want %d", n, len(h.Points), err, min(n, kept))
			}
		}
	}
}
