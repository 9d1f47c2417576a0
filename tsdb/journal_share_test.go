package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestOneTenantCannotFillTheJournal: a tenant whose points wait for an operator, or are all rejected, fills its share
// of the journal. Another tenant's points are still accepted, and their p99 until they can be read is at most twice
// what it is alone. Each request takes 20 ms.
func TestOneTenantCannotFillTheJournal(t *testing.T) {
	for name, code := range map[string]codes.Code{"stuck": codes.NotFound, "rejected": codes.InvalidArgument} {
		for _, views := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/views=%v", name, views), func(t *testing.T) {
				testkit.OneOf(t, name == "stuck" && views)
				p99 := func(trouble bool) (at time.Duration) {
					longBubble(t, func(t *testing.T) { at = delayNextToFailingTenant(t, code, views, trouble) })
					return at
				}
				if alone, beside := p99(false), p99(true); beside > 2*alone {
					t.Errorf("p99 is %v next to a tenant in trouble, %v alone", beside, alone)
				}
			})
		}
	}
}

func delayNextToFailingTenant(t *testing.T, code codes.Code, views, trouble bool) time.Duration {
	s, bad, quiet := blobs(t), tenant.MustParse("bad"), tenant.MustParse("quiet")
	var conf tsdbtest.Options
	if views {
		conf.ViewsFor = []tenant.ID{bad, quiet}
	}
	store, conn := tsdbtest.Open(t, conf, s)
	opts := journaled(t)
	opts.Journal.MaxBytes = 16 << 20
	w := must[*tsdb.Writer](t)(store.NewWriter(opts))
	conn.Inject(tsdbtest.Delay(20 * time.Millisecond))
	conn.Inject(tsdbtest.FailEntries(code, func(key string) bool { return strings.HasPrefix(key, "bad#") }))
	taken := 0
	put := func() error {
		err := s.For(store, bad).Via(w).TryEnqueue(t.Context(), tsdb.NewEntity("x"), start.Add(time.Duration(taken)*time.Second), make([]byte, 256<<10))
		if err == nil {
			taken++
		}
		return err
	}
	for full := 0; trouble && full < 20; {
		if err := put(); errors.Is(err, tsdb.ErrBufferFull) {
			full++
			time.Sleep(500 * time.Millisecond)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if trouble && (taken < 48 || taken > 58) {
		t.Errorf("%d of 64 points of the tenant in trouble are in the journal, want about 7/8", taken)
	}
	var took []time.Duration
	in, out := s.For(store, quiet).Via(w), s.For(store, quiet)
	for i := range 200 {
		at, begin := start.Add(time.Duration(i)*time.Second), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := in.Enqueue(ctx, tsdb.NewEntity("x"), at, make([]byte, 1<<10))
		cancel()
		if err != nil {
			t.Fatalf("point %d of the other tenant: %v", i, err)
		}
		for p, err := out.Latest(t.Context(), tsdb.NewEntity("x")); err != nil || !p.Time.Equal(at); p, err = out.Latest(t.Context(), tsdb.NewEntity("x")) {
			if time.Since(begin) > time.Minute {
				t.Fatalf("point %d is not stored after a minute: %v", i, err)
			}
		}
		took = append(took, time.Since(begin))
	}
	if trouble {
		readmitted(t, w, conn, put)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.Close(ctx); err != nil {
		t.Error(err)
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// readmitted checks that delivered or dropped points free the tenant's share.
func readmitted(t *testing.T, w *tsdb.Writer, conn *tsdbtest.Conn, put func() error) {
	t.Helper()
	conn.Clear()
	var ids []uint64
	for _, l := range letters(t, w) {
		ids = append(ids, l.ID)
	}
	half := len(ids) / 2
	if n, err := w.DropDeadLetters(t.Context(), ids[:half]...); n != half || err != nil {
		t.Errorf("DropDeadLetters = %d, %v", n, err)
	}
	if n, err := w.RetryDeadLetters(t.Context(), ids[half:]...); n != len(ids)-half || err != nil {
		t.Errorf("RetryDeadLetters = %d, %v", n, err)
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 50 { // as many as at the start
		if err := put(); err != nil {
			t.Fatalf("point %d after the share was given back: %v", i, err)
		}
	}
}

// TestSharesOfAJournalThatIsOpenedAgain: points that a tenant already has in a reopened journal count towards its
// share.
func TestSharesOfAJournalThatIsOpenedAgain(t *testing.T) {
	for name, code := range map[string]codes.Code{"stuck": codes.NotFound, "rejected": codes.InvalidArgument} {
		t.Run(name, func(t *testing.T) {
			testkit.OneOf(t, name == "stuck")
			longBubble(t, func(t *testing.T) {
				s := blobs(t)
				store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
				opts := journaled(t)
				opts.Journal.MaxBytes = 16 << 20
				conn.Inject(tsdbtest.FailEntries(code, func(string) bool { return true }))
				taken := 0
				for range 3 {
					w := must[*tsdb.Writer](t)(store.NewWriter(opts))
					time.Sleep(10 * time.Second)
					for full := 0; full < 5; {
						err := s.For(store, acme).Via(w).TryEnqueue(t.Context(), tsdb.NewEntity("x"), start.Add(time.Duration(taken)*time.Second), make([]byte, 256<<10))
						if err == nil {
							taken++
							continue
						}
						full++
						time.Sleep(time.Second)
					}
					if taken < 48 || taken > 58 {
						t.Errorf("%d of 64 points are accepted, want about 7/8", taken)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					if err := w.Close(ctx); (code == codes.NotFound) != errors.Is(err, tsdb.ErrUndelivered) {
						t.Error(err)
					}
					cancel()
				}
			})
		})
	}
}
