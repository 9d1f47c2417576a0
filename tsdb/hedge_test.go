package tsdb_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// fleet returns a repository over n devices with a point each.
func fleet(t *testing.T, n int, timeouts tsdb.Timeouts) (*tsdb.Repository[reading], *tsdbtest.Conn, []tsdb.Entity) {
	t.Helper()
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: timeouts}}, s)
	devices := make([]tsdb.Entity, n)
	points := make([]tsdb.Point[reading], n)
	for i := range devices {
		devices[i] = device("berlin", i)
		points[i] = tsdb.Point[reading]{Entity: devices[i], Time: start, Value: reading{float64(i)}}
	}
	putAll(t, s.For(store, acme), points)
	conn.Reset()
	return s.For(store, acme), conn, devices
}

// TestHedgeTakesTheTailOff: a read that hangs is answered by its second request, and the first is cancelled, not left.
func TestHedgeTakesTheTailOff(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		repo, conn, devices := fleet(t, 100, tsdb.Timeouts{Read: time.Hour, Scan: time.Hour})
		conn.Inject(tsdbtest.Delay(time.Minute).On(tsdbtest.ReadRows).Skip(50).Times(2))
		begin := time.Now()
		answers, err := repo.LatestMany(t.Context(), devices, tsdb.Hedge{After: 10 * time.Millisecond, MaxRatio: 0.05})
		if err != nil || time.Since(begin) != 10*time.Millisecond {
			t.Errorf("%v after %v, want answers after 10ms", err, time.Since(begin))
		}
		for i, a := range answers {
			if a.Err != nil || a.Point.Value.TempC != float64(i) {
				t.Errorf("answer %d: %+v", i, a)
			}
		}
		if n := conn.Counts().Calls[tsdbtest.ReadRows]; n != 102 {
			t.Errorf("%d requests, want 2 more than devices", n)
		}
		synctest.Wait() // nothing is left: the bubble would not end
	})
}

// TestHedgesAreCapped: a service that is slow altogether gets no more than the share, over calls too.
func TestHedgesAreCapped(t *testing.T) {
	testkit.Plain(t)
	longBubble(t, func(t *testing.T) {
		repo, conn, devices := fleet(t, 100, tsdb.Timeouts{})
		conn.Inject(tsdbtest.Delay(time.Second).On(tsdbtest.ReadRows))
		hedge := tsdb.Hedge{After: 10 * time.Millisecond, MaxRatio: 0.05}
		begin := time.Now()
		for range 4 {
			if _, err := repo.LatestMany(t.Context(), devices, hedge); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range devices { // each on its own earns a twentieth of a request
			if _, err := repo.LatestMany(t.Context(), []tsdb.Entity{d}, hedge); err != nil {
				t.Fatal(err)
			}
		}
		marks := int(time.Since(begin) / (tsdb.ErasedWithin / 2)) // are read beside
		if n := conn.Counts().Calls[tsdbtest.ReadRows]; n < 520 || n > 525+marks {
			t.Errorf("%d requests for 500 reads, want at most a twentieth more", n)
		}
		conn.Clear()
		for range 100 { // what healthy times save up is bounded
			if _, err := repo.LatestMany(t.Context(), devices, hedge); err != nil {
				t.Fatal(err)
			}
		}
		conn.Reset()
		conn.Inject(tsdbtest.Delay(time.Second).On(tsdbtest.ReadRows))
		for range 10 {
			if _, err := repo.LatestMany(t.Context(), devices, hedge); err != nil {
				t.Fatal(err)
			}
		}
		if n := conn.Counts().Calls[tsdbtest.ReadRows]; n > 1150 {
			t.Errorf("%d requests for 1000 reads, want at most 150 more", n)
		}
	})
}

// TestHedgeThatFails: the answer that is right counts, whichever comes first.
func TestHedgeThatFails(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		repo, conn, devices := fleet(t, 1, tsdb.Timeouts{})
		hedge := tsdb.Hedge{After: 10 * time.Millisecond, MaxRatio: 1}
		conn.Inject(tsdbtest.Delay(time.Second).On(tsdbtest.ReadRows).Times(1))
		conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.ReadRows).Skip(1))
		if answers, err := repo.LatestMany(t.Context(), devices, hedge); err != nil || answers[0].Err != nil {
			t.Errorf("the second request is refused: %v, %v, want the first's answer", answers, err)
		}
		conn.Clear()
		conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.ReadRows))
		conn.Reset()
		if _, err := repo.LatestMany(t.Context(), devices, hedge); err == nil || conn.Counts().Calls[tsdbtest.ReadRows] != 1 {
			t.Errorf("refused at once: %v after %d requests", err, conn.Counts().Calls[tsdbtest.ReadRows])
		}
		conn.Clear()
		conn.Inject(tsdbtest.Delay(time.Hour).On(tsdbtest.ReadRows))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := repo.LatestMany(ctx, devices, hedge); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("both hang: %v", err)
		}
	})
}
