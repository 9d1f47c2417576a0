package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// warm reads devices, so that the store knows their newest points, and then resets the counts.
func warm(t testing.TB, repo *tsdb.Repository[reading], conn *tsdbtest.Conn, devices []tsdb.Entity) {
	t.Helper()
	if _, err := latestMany(context.Background(), repo, devices); err != nil {
		t.Fatal(err)
	}
	conn.Reset()
}

// sameAsLatest compares LatestMany with Latest of each device.
func sameAsLatest(t testing.TB, what string, repo *tsdb.Repository[reading], devices []tsdb.Entity) {
	t.Helper()
	answers, err := latestMany(context.Background(), repo, devices)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for i, a := range answers {
		want, err := repo.Latest(context.Background(), devices[i])
		if a.Err != err || a.Point.Time != want.Time || a.Point.ID != want.ID || a.Point.Value != want.Value || a.Point.Entity != devices[i] {
			t.Errorf("%s: %v is %+v, Latest %+v, %v", what, devices[i], a, want, err)
		}
	}
}

// TestLatestManyIsOneRequest: once a store has read devices, it reads them in one request, including those that were
// silent for days and those without points. Each device whose newest point is gone takes one more.
func TestLatestManyIsOneRequest(t *testing.T) {
	c := testkit.NewClock(start)
	s := readings(t, tsdb.SchemaOptions{Retention: d90})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
	repo := s.For(store, acme)
	var devices []tsdb.Entity
	var points []tsdb.Point[reading]
	for n := range 40 {
		devices = append(devices, device("berlin", n))
		newest := start.Add(-time.Duration(n) * time.Second)
		switch {
		case n == 39:
			continue // no points
		case n%3 == 0:
			newest = newest.Add(-72 * time.Hour)
		}
		for k := range 50 {
			points = append(points, tsdb.Point[reading]{Entity: devices[n], Time: newest.Add(-time.Duration(k) * time.Minute), Value: reading{float64(n)}})
		}
	}
	putAll(t, repo, points)
	conn.Reset()
	read := func(what string, requests, rows int) {
		t.Helper()
		conn.Reset()
		if _, err := latestMany(t.Context(), repo, devices); err != nil {
			t.Fatal(what, err)
		}
		if n := conn.Counts(); n.Calls[tsdbtest.ReadRows] != requests || n.RowsSeen != int64(rows) {
			t.Errorf("%s: %d requests saw %d rows, want %d and %d", what, n.Calls[tsdbtest.ReadRows], n.RowsSeen, requests, rows)
		}
		sameAsLatest(t, what, repo, devices)
	}
	read("first", 40, 39)
	read("second", 1, 39)
	c.Add(24 * time.Hour)
	read("a day later", 1, 39)
	for _, n := range []int{0, 1, 2, 39} {
		putAll(t, repo, []tsdb.Point[reading]{{Entity: devices[n], Time: c.Now(), Value: reading{100}}})
	}
	read("after four points", 1, 43)
	if err := repo.Delete(t.Context(), devices[0], c.Now()); err != nil {
		t.Fatal(err)
	}
	read("after a deletion", 2, 40)
	read("after that", 1, 40)
	c.Add(89 * 24 * time.Hour)
	read("as most have expired", 1, 3)
}

// TestLatestManyEqualsLatest compares LatestMany with Latest over random histories with deletions and expiring points,
// of two tenants whose devices have the same names.
func TestLatestManyEqualsLatest(t *testing.T) {
	short := gc.Class{Name: "short", Policy: gc.MaxAge(time.Hour)}
	all := []tsdb.SchemaOptions{
		{Retention: d90}, {Retention: short, FormerClasses: []gc.Class{d90}, Precision: tsdb.Milliseconds}, {Salts: 3, Identity: true}, {Precision: tsdb.Microseconds, Salts: 2},
	}
	for i, opts := range slices.Concat(all, all) {
		rnd := rand.New(rand.NewPCG(7, uint64(i)))
		c := testkit.NewClock(start)
		s := readings(t, opts)
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
		repos := []*tsdb.Repository[reading]{s.For(store, acme), s.For(store, tenant.MustParse("acme2"))}
		if i >= len(all) {
			inProcess(t, repos[0])
		}
		var devices []tsdb.Entity
		for n := range 12 {
			devices = append(devices, device("berlin", n))
		}
		last := map[string]time.Time{}
		for round := 0; round < 60; round += testkit.Stride(8) {
			c.Add(time.Duration(rnd.IntN(20)) * time.Minute)
			for k, repo := range repos {
				for n, d := range devices {
					name := fmt.Sprint(k, n)
					at := c.Now().Add(-time.Duration(rnd.IntN(60)) * time.Second)
					if opts.Identity {
						repo = repo.WithID("x")
					}
					switch rnd.IntN(6) {
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
				rnd.Shuffle(len(devices), func(i, j int) { devices[i], devices[j] = devices[j], devices[i] })
				sameAsLatest(t, fmt.Sprintf("%+v, round %d", opts, round), repo, devices[:4+rnd.IntN(len(devices)-4)])
			}
		}
	}
}

// onRequest calls before with each request of a stream of that method, and after when the stream has ended.
func onRequest(method string, before func(m any), after func()) grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := streamer(ctx, desc, cc, name, opts...)
		if err != nil || !strings.HasSuffix(name, "/"+method) {
			return s, err
		}
		return &asked{s, before, after}, nil
	})
}

type asked struct {
	grpc.ClientStream
	before func(any)
	after  func()
}

func (s *asked) SendMsg(m any) error {
	s.before(m)
	return s.ClientStream.SendMsg(m)
}

func (s *asked) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == io.EOF {
		s.after()
	}
	return err
}

// TestLatestManyLosesNoMovedPoint: if a newer point replaces a device's point while it is read, the result has a point,
// even if the device's range in the first request was empty.
func TestLatestManyLosesNoMovedPoint(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	var move atomic.Pointer[func()]
	store, conn := tsdbtest.Open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{onRequest("ReadRows", func(any) {}, func() {
		if do := move.Swap(nil); do != nil {
			(*do)()
		}
	})}}, s)
	repo := s.For(store, acme)
	var devices []tsdb.Entity
	for n := range 4 {
		devices = append(devices, device("berlin", n))
		putAll(t, repo, []tsdb.Point[reading]{{Entity: devices[n], Time: start}, {Entity: devices[n], Time: start.Add(time.Minute)}})
	}
	warm(t, repo, conn, devices)
	if err := repo.Delete(t.Context(), devices[0], start.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	do := func() {
		if err := errors.Join(repo.Put(t.Context(), devices[0], start.Add(time.Hour), reading{1}), repo.Delete(t.Context(), devices[0], start)); err != nil {
			t.Error(err)
		}
	}
	move.Store(&do)
	answers, err := latestMany(t.Context(), repo, devices)
	if err != nil || answers[0].Err != nil || answers[0].Point.Value.TempC != 1 {
		t.Errorf("%+v, %v, want the point that replaced the others", answers[0], err)
	}
}

// TestLatestManyRefusesForeignRows: if the response to a request for several devices holds a row of another device, or
// repeats an earlier row, no result shows its points.
func TestLatestManyRefusesForeignRows(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	var lie atomic.Pointer[string]
	var first *btpb.ReadRowsRequest
	var again atomic.Bool
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
		onRequest("ReadRows", func(m any) { // when a stream is resumed, asks for all rows again
			req := m.(*btpb.ReadRowsRequest)
			if !again.Load() {
				return
			}
			if first == nil {
				first = proto.CloneOf(req)
			}
			req.Rows = first.Rows
		}, func() {}),
	}}, s)
	repo := s.For(store, acme)
	var devices []tsdb.Entity
	for n := range 6 {
		devices = append(devices, device("berlin", n))
		putAll(t, repo, []tsdb.Point[reading]{{Entity: devices[n], Time: start, Value: reading{1}}})
	}
	warm(t, repo, conn, devices)
	refused := func(what string) {
		t.Helper()
		conn.Reset()
		answers, err := latestMany(t.Context(), repo, devices)
		if !errors.Is(err, tsdb.ErrForeignRow) {
			t.Errorf("%s: %v, want ErrForeignRow", what, err)
		}
		for _, a := range answers {
			if a.Point.Value != (reading{}) || !errors.Is(a.Err, tsdb.ErrForeignRow) {
				t.Errorf("%s: result %+v", what, a)
			}
		}
		if n := conn.Counts().Calls[tsdbtest.ReadRows]; n > 2 {
			t.Errorf("%s: %d requests, want no further ones", what, n)
		}
	}
	for _, key := range []string{
		key(tsdb.NewEntity("berlin", "d-2x"), start), key(devices[2], start.Add(-time.Nanosecond)), // of another device; older than its range
		strings.Replace(key(devices[2], start), "acme", "acme2", 1), strings.Replace(key(devices[2], start), "readings", "readings2", 1), "zzz",
	} {
		lie.Store(&key)
		refused(key)
	}
	lie.Store(nil)
	again.Store(true)
	conn.Inject(tsdbtest.CutStream(3, codes.Unavailable).On(tsdbtest.ReadRows).Times(1))
	refused("rows that came before the stream was cut")
}

// TestLatestManyTogetherThroughFaults: a request for many devices is resumed if its stream is cut. If it cannot be
// resumed, the points that arrived are returned, and no other device is reported to have none.
func TestLatestManyTogetherThroughFaults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, tt := range map[string]struct {
			fault            tsdbtest.Fault
			failed, requests int
			want             error
		}{
			"unavailable":       {tsdbtest.Fail(codes.Unavailable).Times(3), 0, 4, nil},
			"cut":               {tsdbtest.CutStream(7, codes.Unavailable).Times(2), 0, 3, nil},
			"cut before a row":  {tsdbtest.CutStream(0, codes.Unavailable).Times(2), 0, 3, nil},
			"lost":              {tsdbtest.LoseResponse(codes.Unavailable).Times(2), 0, 3, nil},
			"refused":           {tsdbtest.Fail(codes.PermissionDenied), 40, 1, nil},
			"refused on resume": {tsdbtest.CutStream(7, codes.PermissionDenied), 33, 1, nil},
			"no table":          {tsdbtest.Fail(codes.NotFound), 40, 1, tsdb.ErrNoTable},
			"outage":            {tsdbtest.Fail(codes.Unavailable), 40, 0, context.DeadlineExceeded},
		} {
			for _, opts := range [][]tsdb.ReadOption{nil, {tsdb.Hedge{After: time.Minute, MaxRatio: 1}}} {
				for _, local := range []bool{false, true} {
					repo, conn, devices := fleet(t, 40, tsdb.Timeouts{Read: 2 * time.Second})
					if local {
						inProcess(t, repo)
					}
					warm(t, repo, conn, devices)
					conn.Inject(tt.fault.On(tsdbtest.ReadRows))
					answers, err := latestMany(t.Context(), repo, devices, opts...)
					checkAnswers(t, name, answers, err, tt.failed, tt.want)
					if n := conn.Counts().Calls[tsdbtest.ReadRows]; tt.requests > 0 && n != tt.requests {
						t.Errorf("%s, in process %t: %d requests, want %d", name, local, n, tt.requests)
					}
				}
			}
		}
	})
}

// TestLatestManyTogetherIsHedged: the second request answers a call for many devices whose first request hangs.
func TestLatestManyTogetherIsHedged(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		repo, conn, devices := fleet(t, 40, tsdb.Timeouts{Read: time.Hour, Scan: time.Hour})
		warm(t, repo, conn, devices)
		conn.Inject(tsdbtest.Delay(time.Minute).On(tsdbtest.ReadRows).Times(1))
		begin := time.Now()
		answers, err := latestMany(t.Context(), repo, devices, tsdb.Hedge{After: 10 * time.Millisecond, MaxRatio: 1})
		if err != nil || time.Since(begin) != 10*time.Millisecond || answers[39].Point.Value.TempC != 39 {
			t.Errorf("error %v after %v, want results after 10ms", err, time.Since(begin))
		}
		if n := conn.Counts().Calls[tsdbtest.ReadRows]; n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
	})
}

// TestLatestManyOfBusyDevices: however many points devices write between two calls, a call reads few of their rows. If
// they write evenly, it soon takes one request.
func TestLatestManyOfBusyDevices(t *testing.T) {
	testkit.Plain(t)
	c := testkit.NewClock(start)
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
	repo := s.For(store, acme)
	const n = 30
	var devices []tsdb.Entity
	for i := range n {
		devices = append(devices, device("berlin", i))
	}
	write := func(e tsdb.Entity, points int, step time.Duration) {
		var all []tsdb.Point[reading]
		for k := range points {
			all = append(all, tsdb.Point[reading]{Entity: e, Time: c.Now().Add(-time.Duration(k) * step), Value: reading{float64(k)}})
		}
		putAll(t, repo, all)
	}
	for _, e := range devices {
		write(e, 10, time.Second)
	}
	warm(t, repo, conn, devices)
	for round := range 6 {
		c.Add(time.Minute)
		for _, e := range devices {
			write(e, 60, time.Second)
		}
		conn.Reset()
		if _, err := latestMany(t.Context(), repo, devices); err != nil {
			t.Fatal(err)
		}
		got := conn.Counts()
		if got.RowsSeen > 9*n {
			t.Errorf("even, round %d: %d rows seen of %d devices", round, got.RowsSeen, n)
		}
		if round > 0 && (got.Calls[tsdbtest.ReadRows] != 1 || got.RowsSeen > 4*n) {
			t.Errorf("even, round %d: %d requests saw %d rows of %d devices", round, got.Calls[tsdbtest.ReadRows], got.RowsSeen, n)
		}
		sameAsLatest(t, "even", repo, devices)
	}
	requests := 0
	for round := range 40 { // every other round, one device uploads the points of an hour
		c.Add(time.Minute)
		if round%2 == 0 {
			write(devices[0], 3600, time.Second)
		}
		for _, e := range devices[1:] {
			write(e, 60, time.Second)
		}
		conn.Reset()
		if _, err := latestMany(t.Context(), repo, devices); err != nil {
			t.Fatal(err)
		}
		got := conn.Counts()
		if got.RowsSeen > 9*n {
			t.Errorf("with an upload, round %d: %d rows seen of %d devices", round, got.RowsSeen, n)
		}
		if round >= 20 {
			requests += got.Calls[tsdbtest.ReadRows]
		}
		sameAsLatest(t, "with an upload", repo, devices)
	}
	if requests > 3*20 {
		t.Errorf("20 calls in which one device uploads made %d requests, want at most 3 each", requests)
	}
}

// TestLatestManyOfLargePayloads: at most 4 MiB of payloads are read without being returned.
func TestLatestManyOfLargePayloads(t *testing.T) {
	testkit.Plain(t)
	s := tsdb.MustDefine("blobs", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	var devices []tsdb.Entity
	for n := range 4 {
		devices = append(devices, device("berlin", n))
		if err := repo.Put(t.Context(), devices[n], start, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := latestMany(t.Context(), repo, devices); err != nil {
		t.Fatal(err)
	}
	for k := range 8 {
		for _, e := range devices {
			if err := repo.Put(t.Context(), e, start.Add(time.Duration(k+1)*time.Second), strings.Repeat("x", 1<<20+k)); err != nil {
				t.Fatal(err)
			}
		}
	}
	conn.Reset()
	answers, err := latestMany(t.Context(), repo, devices)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		if a.Err != nil || len(a.Point.Value) != 1<<20+7 {
			t.Errorf("answer %d: %d bytes, %v", i, len(a.Point.Value), a.Err)
		}
	}
	if n := conn.Counts(); n.RowsReturned > 5+3+1 {
		t.Errorf("%d rows were returned, want those of 5 MiB, and 3 of other devices", n.RowsReturned)
	}
}

// TestLatestManySplitsRequests: the ranges of a request stay below the service's limit.
func TestLatestManySplitsRequests(t *testing.T) {
	testkit.Plain(t)
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	var devices []tsdb.Entity
	var points []tsdb.Point[reading]
	for n := range 200 {
		devices = append(devices, tsdb.NewEntity(strings.Repeat("x", 1500), fmt.Sprint(n)))
		points = append(points, tsdb.Point[reading]{Entity: devices[n], Time: start, Value: reading{float64(n)}})
	}
	putAll(t, repo, points)
	warm(t, repo, conn, devices)
	sameAs, err := latestMany(t.Context(), repo, devices)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range sameAs {
		if a.Err != nil || a.Point.Value.TempC != float64(i) {
			t.Fatalf("answer %d: %+v", i, a)
		}
	}
	if n := conn.Counts().Calls[tsdbtest.ReadRows]; n != 2 {
		t.Errorf("%d requests, want 2 of at most 500 KB each", n)
	}
}
