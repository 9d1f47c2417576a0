package tsdb_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// query is the arguments of Page.
type query struct {
	Entity tsdb.Entity
	In     tsdb.Interval
	Order  tsdb.Order
}

// seconds writes n points of roof, one second apart, with the values 0 to n-1.
func seconds(t testing.TB, repo *tsdb.Repository[reading], n int) {
	t.Helper()
	var points []tsdb.Point[reading]
	for i := range n {
		points = append(points, tsdb.Point[reading]{Entity: roof, Time: start.Add(time.Duration(i) * time.Second), Value: reading{float64(i)}})
	}
	if _, err := repo.PutMany(context.Background(), points); err != nil {
		t.Fatal(err)
	}
}

// temps returns the values of a page.
func temps(page tsdb.Page[reading]) (out []float64) {
	for _, p := range page.Points {
		out = append(out, p.Value.TempC)
	}
	return out
}

// TestPagesEndWhereTheQueryEnds: the last page has no cursor, even if it is full. Each page costs one request for one
// row more than it holds, however many points have expired.
func TestPagesEndWhereTheQueryEnds(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{Retention: d90})
	c := testkit.NewClock(start)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
	repo := s.For(store, acme)
	seconds(t, repo, 1000)
	c.Set(start.Add(90*24*time.Hour + 988*time.Second)) // 12 points remain visible
	for _, order := range []tsdb.Order{tsdb.NewestFirst, tsdb.OldestFirst} {
		for size := 1; size <= 14; size++ {
			conn.Reset()
			var got []float64
			pages, next := 0, ""
			for more := true; more; more = next != "" {
				page := must[tsdb.Page[reading]](t)(repo.Page(t.Context(), roof, tsdb.AllTime(), size, next, order))
				if len(page.Points) == 0 {
					t.Errorf("page size %d: page %d is empty", size, pages)
				}
				got, next = append(got, temps(page)...), page.Next
				if pages++; pages > 12 {
					t.Fatalf("page size %d: the pages do not end", size)
				}
			}
			if order == tsdb.NewestFirst {
				slices.Reverse(got)
			}
			if len(got) != 12 || got[0] != 988 || got[11] != 999 || !slices.IsSorted(got) {
				t.Errorf("page size %d: got %v", size, got)
			}
			counts := conn.Counts()
			if want := (12 + size - 1) / size; pages != want || counts.Calls[tsdbtest.ReadRows] != want || counts.RowsSeen > int64(12+pages) {
				t.Errorf("page size %d: %d pages, %d requests that saw %d rows; want %d pages and at most one extra row in each",
					size, pages, counts.Calls[tsdbtest.ReadRows], counts.RowsSeen, want)
			}
		}
	}
}

func TestPageOfNothing(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	if page, err := repo.Page(t.Context(), roof, tsdb.AllTime(), 10, ""); err != nil || len(page.Points) != 0 || page.Next != "" {
		t.Errorf("an entity without points: %v, %v", page, err)
	}
	// An interval outside the storable times could be rounded to these times.
	if err := errors.Join(repo.Put(t.Context(), roof, time.Unix(0, 0), reading{}), repo.Put(t.Context(), roof, time.Unix(0, math.MaxInt64), reading{})); err != nil {
		t.Fatal(err)
	}
	for _, in := range []tsdb.Interval{
		tsdb.Between(start, start), tsdb.Since(time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)), tsdb.Until(time.Time{}), tsdb.Until(time.Unix(0, 0)),
		tsdb.Since(time.Unix(0, math.MaxInt64)).OpenStart(), tsdb.Between(time.Unix(1, 0), time.Unix(1, 0)),
	} {
		page, err := repo.Page(t.Context(), roof, in, 10, "")
		if err != nil || len(page.Points) != 0 || page.Next != "" {
			t.Errorf("%+v: page %v, error %v", in, page, err)
		}
	}
}

// TestPageRefuses: invalid queries and sizes are rejected before anything is sent.
func TestPageRefuses(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	for _, tt := range []struct {
		q     query
		size  int
		field string
	}{
		{query{Entity: roof}, 0, "size"},
		{query{Entity: roof}, -1, "size"},
		{query{Entity: roof}, 10_001, "size"},
		{query{Entity: roof}, math.MaxInt, "size"},
		{query{Entity: roof, Order: 2}, 1, "order"},
		{query{}, 1, "entity"},
		{query{Entity: tsdb.NewEntity("berlin")}, 1, "entity"},
	} {
		_, err := repo.Page(t.Context(), tt.q.Entity, tt.q.In, tt.size, "", tt.q.Order)
		var invalid *tsdb.InvalidError
		if !errors.Is(err, tsdb.ErrInvalid) || !errors.As(err, &invalid) || invalid.Field != tt.field {
			t.Errorf("%+v with size %d: %v, want an error that names %s", tt.q, tt.size, err, tt.field)
		}
	}
	if calls := conn.Counts().Calls; len(calls) != 0 {
		t.Errorf("refused calls sent requests: %v", calls)
	}
	seconds(t, repo, 10_001)
	page, err := repo.Page(t.Context(), roof, tsdb.AllTime(), 10_000, "")
	if err != nil || len(page.Points) != 10_000 || page.Next == "" {
		t.Errorf("the largest page has %d points, %v", len(page.Points), err)
	}
}

// TestPagesToTheEndsOfTime: pages work at the first and the last time that a precision can hold.
func TestPagesToTheEndsOfTime(t *testing.T) {
	for _, precision := range []tsdb.Precision{tsdb.Nanoseconds, tsdb.Microseconds, tsdb.Milliseconds} {
		s := readings(t, tsdb.SchemaOptions{Precision: precision})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		newest := map[tsdb.Precision]time.Time{
			tsdb.Nanoseconds: time.Unix(0, math.MaxInt64), tsdb.Microseconds: time.Date(9999, 12, 31, 23, 59, 59, 999999e3, time.UTC), tsdb.Milliseconds: time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC),
		}[precision]
		for i, at := range []time.Time{time.Unix(0, 0), time.Unix(1, 0), newest.Add(-time.Second), newest} {
			if err := repo.Put(t.Context(), roof, at, reading{float64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		for order, want := range map[tsdb.Order][]float64{tsdb.NewestFirst: {3, 2, 1, 0}, tsdb.OldestFirst: {0, 1, 2, 3}} {
			var got []float64
			q, next := query{Entity: roof, Order: order}, ""
			for more := true; more; more = next != "" {
				page := must[tsdb.Page[reading]](t)(repo.Page(t.Context(), q.Entity, q.In, 1, next, q.Order))
				if got, next = append(got, temps(page)...), page.Next; len(got) > 4 {
					t.Fatalf("%v, order %d: the pages do not end", precision, order)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v, order %d: points %v, want %v", precision, order, got, want)
			}
			// The cursor before the last point, whose deletion leaves nothing to read.
			at := int64(0)
			if order == tsdb.OldestFirst {
				at = last(precision)
			}
			end := cursor.Box{}.WriteTime(known(q, precision), at)
			if page, err := repo.Page(t.Context(), q.Entity, q.In, 1, end, q.Order); err != nil || len(page.Points) > 0 || page.Next != "" {
				t.Errorf("%v, order %d: a page after the last point is %v, %v; want an empty page", precision, order, page, err)
			}
		}
	}
}

// TestCorruptPointsInPages: corrupt points keep their place, are counted, and can be the last of a page.
func TestCorruptPointsInPages(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	seconds(t, repo, 6)
	for n, want := range map[int]string{1: "p:json", 4: "p:pb9"} {
		m := bigtable.NewMutation()
		m.DeleteRow()
		m.Set("keep", want, bigtable.Time(start), []byte(`{"temp_c":`))
		apply(t, table, key(roof, start.Add(time.Duration(n)*time.Second)), m)
	}
	for n := range 5 { // other programs' rows between the points
		m := bigtable.NewMutation()
		m.Set("keep", "p:json", bigtable.Time(start), []byte(`{}`))
		apply(t, table, key(roof, start.Add(time.Duration(n)*time.Second))+"#x", m)
	}
	next := ""
	for i, want := range []struct {
		n   int
		err error
	}{{5, nil}, {4, codec.ErrUnknownTag}, {3, nil}, {2, nil}, {1, codec.ErrCorrupt}, {0, nil}} {
		page, err := repo.Page(t.Context(), roof, tsdb.AllTime(), 1, next)
		next = page.Next
		var bad tsdb.PointErrors
		if !errors.Is(err, want.err) || (want.err != nil) != errors.As(err, &bad) || len(page.Points) != 1 || (next == "") != (i == 5) {
			t.Fatalf("page %d: %v, %v; want point %d and error %v", i, page, err, want.n, want.err)
		}
		if at := start.Add(time.Duration(want.n) * time.Second); !page.Points[0].Time.Equal(at) || bad != nil && !bad[0].Time.Equal(at) {
			t.Errorf("page %d: %v, %v; want point %d", i, page, err, want.n)
		}
	}
	page, err := repo.Page(t.Context(), roof, tsdb.AllTime(), 6, "", tsdb.OldestFirst)
	var bad tsdb.PointErrors
	if !errors.As(err, &bad) || len(bad) != 2 || !slices.Equal(temps(page), []float64{0, 0, 2, 3, 0, 5}) || page.Next != "" {
		t.Errorf("all points in one page: %v, %v", page, err)
	}
}

// TestPagesOfLargePayloads: pages are bounded in bytes too, without losing points.
func TestPagesOfLargePayloads(t *testing.T) {
	testkit.Plain(t)
	s := tsdb.MustDefine("frames", tsdb.Key("camera"), codec.Bytes(), tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	door := tsdb.NewEntity("door")
	const mb = 1 << 20
	for i, size := range []int{9 * mb, 9 * mb, 9 * mb, 5*mb + 1, 10} {
		payload := make([]byte, size)
		payload[0] = byte(i)
		if err := repo.Put(t.Context(), door, start.Add(time.Duration(i)), payload); err != nil {
			t.Fatal(err)
		}
	}
	conn.Reset()
	var pages [][]byte
	next := ""
	for more := true; more; more = next != "" {
		page, err := repo.Page(t.Context(), door, tsdb.AllTime(), 100, next, tsdb.OldestFirst)
		if err != nil {
			t.Fatal(err)
		}
		var first []byte
		for _, p := range page.Points {
			first = append(first, p.Value[0])
		}
		pages, next = append(pages, first), page.Next
	}
	if !slices.EqualFunc(pages, [][]byte{{0, 1, 2}, {3, 4}}, slices.Equal) {
		t.Errorf("pages hold the points %v, want 27 MiB and then the rest", pages)
	}
	if n := conn.Counts().Calls[tsdbtest.ReadRows]; n != 2 {
		t.Errorf("%d requests for 2 pages, want 2", n)
	}
}

// TestPagesUnderFaults: a call returns a whole page or an error, and its cursor can be used again.
func TestPagesUnderFaults(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Read: time.Second, Scan: time.Hour}}}, s)
		repo := s.For(store, acme)
		seconds(t, repo, 500)
		for _, order := range []tsdb.Order{tsdb.NewestFirst, tsdb.OldestFirst} {
			q := query{Entity: roof, Order: order}
			conn.Clear()
			first := must[tsdb.Page[reading]](t)(repo.Page(t.Context(), q.Entity, q.In, 100, "", q.Order))
			whole := must[tsdb.Page[reading]](t)(repo.Page(t.Context(), q.Entity, q.In, 100, first.Next, q.Order))
			for _, f := range []tsdbtest.Fault{tsdbtest.Fail(codes.PermissionDenied), tsdbtest.CutStream(50, codes.PermissionDenied), tsdbtest.Delay(time.Hour), tsdbtest.Fail(codes.Unavailable)} {
				conn.Clear()
				conn.Inject(f)
				begin := time.Now()
				if page, err := repo.Page(t.Context(), q.Entity, q.In, 100, first.Next, q.Order); err == nil || page.Points != nil || page.Next != "" || time.Since(begin) > 2*time.Second {
					t.Errorf("under a fault: page %v, error %v after %v; want only the error", page, err, time.Since(begin))
				}
			}
			conn.Clear()
			conn.Inject(tsdbtest.CutStream(30, codes.Unavailable).On(tsdbtest.ReadRows).Times(2))
			if page, err := repo.Page(t.Context(), q.Entity, q.In, 100, first.Next, q.Order); err != nil || !slices.Equal(page.Points, whole.Points) {
				t.Errorf("with a stream cut twice: %d points, %v", len(page.Points), err)
			}
			conn.Clear()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := repo.Page(ctx, q.Entity, q.In, 100, first.Next, q.Order); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v, want context.Canceled", err)
			}
		}
	})
}

// TestPagesAtTheSameTime: many clients page through one store while points arrive.
func TestPagesAtTheSameTime(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{CursorKeys: secrets(1, 2)}}, s)
	repo := s.For(store, acme)
	seconds(t, repo, 100)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 100 {
			if err := repo.Put(t.Context(), roof, start.Add(time.Hour+time.Duration(i)), reading{-1}); err != nil {
				t.Error(err)
			}
		}
	})
	for client := range 8 {
		wg.Go(func() {
			q := query{Entity: roof, In: tsdb.Until(start.Add(time.Duration(60+client) * time.Second))}
			var got []float64
			next := ""
			for more := true; more; more = next != "" {
				page, err := repo.Page(t.Context(), q.Entity, q.In, client+1, next, q.Order)
				if err != nil {
					t.Error(err)
					return
				}
				if got, next = append(got, temps(page)...), page.Next; len(got) > 100 {
					break
				}
			}
			if slices.Reverse(got); len(got) != 60+client || !slices.IsSorted(got) {
				t.Errorf("client %s gets %v", strconv.Itoa(client), got)
			}
		})
	}
	wg.Wait()
}
