package tsdb_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestFlowControl: the service asks for less. A writer with FlowControl sends less, and Put is as fast as before. A
// writer without it does not change. All points are stored.
func TestFlowControl(t *testing.T) {
	for _, follows := range []bool{false, true} {
		for _, journal := range []bool{false, true} {
			t.Run(fmt.Sprintf("follows=%v/journal=%v", follows, journal), func(t *testing.T) {
				testkit.OneOf(t, follows)
				longBubble(t, func(t *testing.T) {
					s := readings(t, tsdb.SchemaOptions{})
					store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
					repo := s.For(store, acme)
					var opts tsdb.WriterOptions
					if journal {
						opts = journaled(t)
					}
					opts.FlowControl = follows
					w := writer(t, store, opts)
					n := 0
					offer := func(d time.Duration) {
						for begin := time.Now(); time.Since(begin) < d; time.Sleep(100 * time.Millisecond) {
							pts := make([]tsdb.Point[reading], 50)
							for i := range pts {
								pts[i] = tsdb.Point[reading]{Entity: tsdb.NewEntity("berlin", fmt.Sprint("d", n%1000)), Time: start.Add(time.Duration(n) * time.Second)}
								n++
								if !journal {
									if err := repo.Via(w).Enqueue(t.Context(), pts[i].Entity, pts[i].Time, reading{1}); err != nil {
										t.Fatal(err)
									}
								}
							}
							if !journal {
								continue
							}
							if _, err := repo.Via(w).EnqueueMany(t.Context(), pts); err != nil { // one sync, and no wait for the delivery
								t.Fatal(err)
							}
						}
					}
					offer(3 * time.Second)
					conn.Inject(tsdbtest.LimitRate(0.7, 10*time.Second))
					offer(25 * time.Second) // two limits: 0.7 and 0.49
					st := w.Stats()
					late := n - int(st.Stored)
					if limited := st.RateLimit > 0; limited != follows {
						t.Errorf("got a limit of %d bytes a second", st.RateLimit)
					}
					// Without a limit only the last batch is on its way. With it, 0.3 of 10 s and 0.51 of 15 s of the
					// points wait.
					if want := 0.3*10*500 + 0.51*15*500; follows && (float64(late) < want*0.8 || float64(late) > want*1.2) || !follows && late > 50 {
						t.Errorf("got %d of %d points late, with a limit about %.0f", late, n, want)
					}
					begin := time.Now()
					if err := repo.Put(t.Context(), roof, start, reading{1}); err != nil || time.Since(begin) > 50*time.Millisecond {
						t.Errorf("Put took %v: %v", time.Since(begin), err)
					}
					conn.Clear()
					if err := w.Flush(t.Context()); err != nil {
						t.Fatal(err)
					}
					if st := w.Stats(); int(st.Stored) != n || st.Rejected+st.Unknown > 0 {
						t.Errorf("got %+v, want %d stored", st, n)
					}
					time.Sleep(time.Minute)
					if got := w.Stats().RateLimit; got != 0 {
						t.Errorf("got a limit of %d bytes a second after a minute without advice", got)
					}
				})
			})
		}
	}
}

// TestFlowControlLosesNothing: the service asks for less while it loses responses, refuses entries and cuts streams.
// Each point has one outcome, and all are stored, of all tenants.
func TestFlowControlLosesNothing(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		w := writer(t, store, tsdb.WriterOptions{FlowControl: true, BatchPoints: 50, DeliveryTimeout: time.Hour})
		outcomes := map[string]int{}
		for round, f := range []tsdbtest.Fault{
			{},
			tsdbtest.LoseResponse(codes.Unavailable).Times(3),
			tsdbtest.LoseResponse(codes.ResourceExhausted).Times(3),
			tsdbtest.Fail(codes.ResourceExhausted).Times(3),
			tsdbtest.CutStream(7, codes.Internal).Times(3),
			tsdbtest.CutStream(0, codes.Unavailable).Times(3),
			tsdbtest.Hang(3).Times(1),
			tsdbtest.FailEntries(codes.Unavailable, func(key string) bool { return len(key)%2 == 0 }).Times(3),
		} {
			conn.Inject(tsdbtest.LimitRate([]float64{0.7, 0, math.NaN(), 1.3, 1e300, -1, 0.9, 1}[round], 5*time.Second))
			conn.Inject(f.On(tsdbtest.MutateRows))
			for i := range 600 {
				id := tenant.MustParse(fmt.Sprint("t", i%10))
				at := start.Add(time.Duration(round*600+i) * time.Second)
				err := s.For(store, id).Via(w).EnqueueFunc(t.Context(), roof, at, reading{1}, func(o tsdb.Outcome) {
					outcomes[fmt.Sprint(round, id, at)]++
					if o.State != tsdb.Stored {
						t.Errorf("round %d: got %+v", round, o)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(20 * time.Millisecond)
			}
			conn.Clear()
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		for point, n := range outcomes {
			if n != 1 {
				t.Errorf("point %s has %d outcomes", point, n)
			}
		}
		stored := 0
		for i := range 10 {
			for _, err := range s.For(store, tenant.MustParse(fmt.Sprint("t", i))).Range(t.Context(), roof, tsdb.Interval{}) {
				if err != nil {
					t.Fatal(err)
				}
				stored++
			}
		}
		if stored != 8*600 || len(outcomes) != stored {
			t.Errorf("got %d points stored and %d outcomes, want %d", stored, len(outcomes), 8*600)
		}
	})
}
