package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// minutely returns n points of an entity, a minute apart.
func minutely(e tsdb.Entity, newest time.Time, n int) (points []tsdb.Point[reading]) {
	for k := range n {
		points = append(points, tsdb.Point[reading]{Entity: e, Time: newest.Add(-time.Duration(k) * time.Minute), Value: reading{float64(k)}})
	}
	return points
}

// TestUnderKnownIsOneRequest: once a store has met entities with long histories, Under.Latest reads their newest points
// in one request, and shows new entities between them. Few entities whose newest point is gone cost two requests more
// each.
func TestUnderKnownIsOneRequest(t *testing.T) {
	for _, salts := range []int{0, 2} {
		c := testkit.NewClock(start)
		s := readings(t, tsdb.SchemaOptions{Retention: d90, Salts: salts})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
		repo := s.For(store, acme)
		const n = 40
		var want []tsdb.Entity
		put := func(e tsdb.Entity, newest time.Time, points int) {
			putAll(t, repo, minutely(e, newest, points))
			if !slices.Contains(want, e) {
				want = append(want, e)
				slices.SortFunc(want, tsdb.Entity.Compare)
			}
		}
		for i := range n {
			put(device("berlin", i), start.Add(-time.Duration(i)*time.Hour), 50)
		}
		read := func(what string, requests, rows int) {
			t.Helper()
			requests += max(0, salts-1)
			conn.Reset()
			got, err := gather(t.Context(), repo)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %d entities, %v, want %d", what, len(got), err, len(want))
			}
			if n := conn.Counts(); n.Calls[tsdbtest.ReadRows] > requests || n.RowsSeen > int64(rows) {
				t.Errorf("%s, %d salts: %d requests saw %d rows, want at most %d and %d", what, salts, n.Calls[tsdbtest.ReadRows], n.RowsSeen, requests, rows)
			}
			for p, err := range repo.Under(tsdb.AllEntities()).Latest(t.Context()) {
				if latest, err2 := repo.Latest(t.Context(), p.Entity); err != nil || err2 != nil || p != latest {
					t.Errorf("%s: %v, %v, Latest %v, %v", what, p, err, latest, err2)
				}
			}
		}
		read("first", n+10, 16*n+64)
		read("second", 1, n)
		put(tsdb.NewEntity("berlin", "a"), start, 1)
		put(tsdb.NewEntity("berlin", "d-17x"), start, 1)
		put(tsdb.NewEntity("berlin", "z"), start, 1)
		read("with new entities", 1, n+3)
		read("after that", 1, n+3)
		c.Add(24 * time.Hour)
		for i := range 5 {
			put(device("berlin", i), c.Now(), 3)
		}
		read("after three points each of five", 1, n+3+15)
		read("after that", 1, n+3)
		c.Add(time.Hour)
		put(device("berlin", 3), c.Now(), 59)
		read("after many points of one", 3, 3*n)
		if err := repo.Delete(t.Context(), device("berlin", 0), c.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		read("after a deletion", 3, 2*n+64)
		read("after that", 1, n+10)
		if _, err := repo.DeleteRange(t.Context(), device("berlin", 1), tsdb.AllTime()); err != nil {
			t.Fatal(err)
		}
		want = slices.DeleteFunc(want, func(e tsdb.Entity) bool { return e == device("berlin", 1) })
		read("without an entity", 3, 2*n+64)
		c.Add(90*24*time.Hour - 90*time.Minute)
		want = []tsdb.Entity{device("berlin", 0), device("berlin", 2), device("berlin", 3), device("berlin", 4)}
		read("as most have expired", 1, n+10)
	}
}

// TestUnderKnownEqualsLatest compares Under.Latest, Entities and Under.PageLatest with Latest over random histories
// with deletions and expiring points, of two tenants whose devices have the same names.
func TestUnderKnownEqualsLatest(t *testing.T) {
	short := gc.Class{Name: "short", Policy: gc.MaxAge(time.Hour)}
	for i, opts := range []tsdb.SchemaOptions{
		{Retention: d90}, {Retention: short, FormerClasses: []gc.Class{d90}, Precision: tsdb.Milliseconds}, {Salts: 3, Identity: true}, {Precision: tsdb.Microseconds, Salts: 2},
	} {
		rnd := rand.New(rand.NewPCG(7, uint64(i)))
		c := testkit.NewClock(start)
		s := readings(t, opts)
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
		repos := []*tsdb.Repository[reading]{s.For(store, acme), s.For(store, tenant.MustParse("acme2"))}
		if opts.Identity {
			repos[0], repos[1] = repos[0].WithID("x"), repos[1].WithID("x")
		}
		var devices []tsdb.Entity
		for n := range 20 {
			devices = append(devices, device([]string{"berlin", "bern"}[n%2], n))
		}
		last := map[string]time.Time{}
		rounds := 30
		if sampling() {
			rounds = 8
		}
		for range rounds {
			c.Add(time.Duration(rnd.IntN(20)) * time.Minute)
			for k, repo := range repos {
				for n, d := range devices {
					name, at := fmt.Sprint(k, n), c.Now().Add(-time.Duration(rnd.IntN(60))*time.Second)
					switch rnd.IntN(8) {
					case 0: // many points since the last call
						for j := range rnd.IntN(40) {
							if err := repo.Put(t.Context(), d, at.Add(-time.Duration(j)*time.Second), reading{rnd.Float64()}); err != nil && !errors.Is(err, tsdb.ErrExpired) {
								t.Fatal(err)
							}
						}
						last[name] = at
					case 1:
						if err := repo.Put(t.Context(), d, at, reading{rnd.Float64()}); err != nil {
							t.Fatal(err)
						}
						last[name] = at
					case 2:
						if !last[name].IsZero() {
							if err := repo.Delete(t.Context(), d, last[name]); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
				underIsLatest(t, repo, devices, []tsdb.Prefix{tsdb.AllEntities(), tsdb.NewPrefix("berlin"), tsdb.NewPrefix("bern")}[rnd.IntN(3)], 1+rnd.IntN(8))
			}
		}
	}
}

// underIsLatest compares what is found below a prefix with Latest of each device.
func underIsLatest(t *testing.T, repo *tsdb.Repository[reading], devices []tsdb.Entity, prefix tsdb.Prefix, page int) {
	t.Helper()
	var want, got, paged []tsdb.Point[reading]
	for _, d := range devices {
		p, err := repo.Latest(t.Context(), d)
		switch {
		case err == nil && (prefix == tsdb.AllEntities() || prefix.Parts()[0] == d.Parts()[0]):
			want = append(want, p)
		case err != nil && !errors.Is(err, tsdb.ErrNotFound):
			t.Fatal(err)
		}
	}
	slices.SortFunc(want, func(a, b tsdb.Point[reading]) int { return a.Entity.Compare(b.Entity) })
	for p, err := range repo.Under(prefix).Latest(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p)
	}
	for next, more := "", true; more; more = next != "" {
		p, err := repo.Under(prefix).PageLatest(t.Context(), page, next)
		if err != nil {
			t.Fatal(err)
		}
		paged, next = append(paged, p.Points...), p.Next
	}
	n := 0
	for e, err := range repo.Under(prefix).Entities(t.Context(), tsdb.AllTime()) {
		if err != nil || n >= len(want) || e != want[n].Entity {
			t.Errorf("%v: entity %d is %v, %v", prefix, n, e, err)
		}
		n++
	}
	if !slices.Equal(got, want) || !slices.Equal(paged, want) || n != len(want) {
		t.Errorf("%v: Under.Latest has %d points, pages %d, Entities %d, want %d as Latest has them", prefix, len(got), len(paged), n, len(want))
	}
}

// TestUnderKnownRefusesForeignRows: in a request for known entities, a row that was not asked for ends the scan.
func TestUnderKnownRefusesForeignRows(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	var lie atomic.Pointer[string]
	store, conn := tsdbtest.Open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{
		onStream("ReadRows", func(m any) error {
			if key := lie.Load(); key != nil {
				for _, c := range m.(*btpb.ReadRowsResponse).Chunks {
					if strings.Contains(string(c.RowKey), "#d-2#") {
						c.RowKey = []byte(*key)
					}
				}
			}
			return nil
		}),
	}}, s)
	repo := s.For(store, acme)
	for n := range 6 {
		putAll(t, repo, minutely(device("berlin", n), start, 100))
	}
	if all, err := gather(t.Context(), repo); err != nil || len(all) != 6 {
		t.Fatal(all, err)
	}
	other := device("berlin", 2)
	for _, key := range []string{
		key(other, start.Add(-time.Nanosecond)), // older than what was asked for
		strings.Replace(key(other, start), "acme", "acme2", 1), strings.Replace(key(other, start), "readings", "readings2", 1), "zzz",
	} {
		lie.Store(&key)
		conn.Reset()
		seen, err := gather(t.Context(), repo)
		if !errors.Is(err, tsdb.ErrForeignRow) || len(seen) > 0 {
			t.Errorf("%s: %v, %v, want ErrForeignRow", key, seen, err)
		}
		if n := conn.Counts().Calls[tsdbtest.ReadRows]; n != 1 {
			t.Errorf("%s: %d requests, want 1", key, n)
		}
	}
}

// TestUnderKnownThroughFaults: a request for known entities is resumed if its stream is cut, and hedged. If it fails
// for a time, the entities are read without it.
func TestUnderKnownThroughFaults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, tt := range map[string]struct {
			fault tsdbtest.Fault
			opts  []tsdb.ReadOption
			most  int // requests
			want  error
		}{
			"cut":       {tsdbtest.CutStream(7, codes.Unavailable).Times(2), nil, 3, nil},
			"lost":      {tsdbtest.LoseResponse(codes.Unavailable).Times(2), nil, 3, nil},
			"slow once": {tsdbtest.Delay(time.Minute).Times(1), []tsdb.ReadOption{tsdb.Hedge{After: time.Second, MaxRatio: 1}}, 2, nil},
			"too slow":  {tsdbtest.Delay(time.Minute).Times(1), nil, 50, nil},
			"no table":  {tsdbtest.Fail(codes.NotFound), nil, 1, tsdb.ErrNoTable},
			"outage":    {tsdbtest.Fail(codes.Unavailable), nil, 50, context.DeadlineExceeded},
		} {
			repo, conn, entities := depot(t, 0, 40, 50, number, tsdb.Timeouts{Read: 2 * time.Second})
			if _, err := gather(t.Context(), repo); err != nil {
				t.Fatal(err)
			}
			conn.Reset()
			conn.Inject(tt.fault.On(tsdbtest.ReadRows))
			seen, err := gather(t.Context(), repo, tt.opts...)
			if !errors.Is(err, tt.want) || tt.want == nil && !slices.Equal(seen, entities) || tt.want != nil && len(seen) > 0 {
				t.Errorf("%s: %d entities, %v, want %v", name, len(seen), err, tt.want)
			}
			if n := conn.Counts().Calls[tsdbtest.ReadRows]; n > tt.most {
				t.Errorf("%s: %d requests, want at most %d", name, n, tt.most)
			}
		}
	})
}

// TestPagesOfShortHistories: a page of the newest points of short histories takes few requests, and reads no more rows
// than its entities and a page of one row each have.
func TestPagesOfShortHistories(t *testing.T) {
	const n, size = 120, 50
	for each, requests := range map[int]int{1: 2, 2: 3, 10: 5} {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		now := time.Now()
		for i := range n {
			putAll(t, repo, minutely(device("berlin", i), now.Add(-time.Minute), each))
		}
		found := 0
		for next, more := "", true; more; more = next != "" {
			conn.Reset()
			page := must[tsdb.Page[reading]](t)(repo.Under(tsdb.NewPrefix("berlin")).PageLatest(t.Context(), size, next))
			if c := conn.Counts(); c.Calls[tsdbtest.ReadRows] > requests || c.RowsSeen > (size+1)*int64(each)+32 {
				t.Errorf("%d points each: a page took %d requests, which saw %d rows, want at most %d and %d", each, c.Calls[tsdbtest.ReadRows], c.RowsSeen, requests, (size+1)*each+32)
			}
			found, next = found+len(page.Points), page.Next
		}
		if found != n {
			t.Errorf("%d points each: %d entities, want %d", each, found, n)
		}
	}
}

// TestMixedHistoriesReadAgain: where short and longer histories take turns, what a scan remembers makes the next one no
// dearer.
func TestMixedHistoriesReadAgain(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	now := time.Now()
	const n = 1200
	var points []tsdb.Point[reading]
	for i := range n {
		each := 1
		if i%600 < 200 {
			each = 10
		}
		points = append(points, minutely(tsdb.NewEntity("berlin", fmt.Sprintf("d-%05d", i)), now.Add(-time.Minute), each)...)
	}
	putAll(t, repo, points)
	first := 0
	for round := range 3 {
		conn.Reset()
		found := 0
		for _, err := range repo.Under(tsdb.AllEntities()).Latest(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			found++
		}
		requests := conn.Counts().Calls[tsdbtest.ReadRows]
		if round == 0 {
			first = requests
		}
		if found != n || requests > first {
			t.Errorf("read %d found %d entities in %d requests, want %d in at most %d", round, found, requests, n, first)
		}
	}
}
