package buffer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// troubles are ways in which the service may refuse some tenants while it serves others. The refused tenants' names
// begin with "bad".
var troubles = []struct {
	name    string
	tenants int
	whole   bool          // their requests are refused as a whole, as if their view were missing
	wait    time.Duration // the pause that the service asks for with each of their items
	some    bool          // every second of their items is stored
}{
	{"an item asks for a minute", 1, false, time.Minute, true},
	{"each item asks for a minute", 1, false, time.Minute, false},
	{"each item is refused for now", 1, false, 0, false},
	{"every second item is refused for now", 3, false, 0, true},
	{"items of a hundred tenants are refused for now", 100, false, 0, false},
	{"a hundred tenants have no view", 100, true, 0, false},
}

// TestTroubledTenantsHoldUpNobody checks that one tenant's p99 stays within twice its p99 alone while the service
// refuses other tenants, even if one in fifty of its own items needs a second attempt. Each request takes 20 ms.
func TestTroubledTenantsHoldUpNobody(t *testing.T) {
	for _, trouble := range troubles {
		for _, apart := range []bool{false, true} {
			if trouble.whole && !apart {
				continue
			}
			for i, slots := range []int{1, 2, 4, 16, 1, 2, 4, 16} {
				repeats := i >= 4
				t.Run(fmt.Sprintf("%s/apart=%v/slots=%d/repeats=%v", trouble.name, apart, slots, repeats), func(t *testing.T) {
					testkit.OneOf(t, apart && slots == 4 && repeats)
					p99 := func(bad bool) (at time.Duration) {
						synctest.Test(t, func(t *testing.T) {
							var failed atomic.Int64
							s := &service{t: t, takes: 20 * time.Millisecond}
							s.verdict = func(it *Item) error {
								var n int
								if !strings.HasPrefix(it.Tenant, "bad") {
									fmt.Sscanf(it.Key, "quiet%d", &n)
									if out := it.Track.Outcome(); repeats && n%50 == 0 && out.Attempts == 0 {
										return errBusy
									}
									return nil
								}
								fmt.Sscanf(it.Key[strings.Index(it.Key, "#")+1:], "%d", &n)
								if trouble.some && n%2 == 0 {
									return nil
								}
								failed.Add(1)
								it.Wait = trouble.wait
								return errBusy
							}
							opts := options()
							opts.InFlight, opts.Apart = slots, apart
							q := New(s, opts)
							ctx, stop := context.WithCancel(t.Context())
							done := make(chan struct{})
							for i := range trouble.tenants {
								go func() {
									defer func() { done <- struct{}{} }()
									tenant := fmt.Sprintf("bad%03d", i)
									for n := 0; bad && ctx.Err() == nil; n++ {
										if err := q.Enqueue(ctx, item(tenant, fmt.Sprintf("%s#%09d", tenant, n))); err != nil && !errors.Is(err, context.Canceled) {
											t.Error(err)
										}
										time.Sleep(10 * time.Millisecond)
									}
								}()
							}
							time.Sleep(10 * time.Second)
							all := quiet(t, q, "quiet", 1000, 10*time.Millisecond)
							at = all[len(all)*99/100]
							t.Logf("p50 %v, p99 %v, most %v; %d requests, %d repeats, %d slots, %d refusals",
								all[len(all)/2], at, all[len(all)-1], q.Stats().Requests, q.Stats().Retries, q.Stats().Slots, failed.Load())
							stop()
							for range trouble.tenants {
								<-done
							}
							_ = q.Close(ctx)
							synctest.Wait()
						})
						return at
					}
					alone, during := p99(false), p99(true)
					if during > 2*alone {
						t.Errorf("got p99 %v while other tenants are refused, %v alone", during, alone)
					}
				})
			}
		}
	}
}

// TestOneBadRowDoesNotStopItsTenant checks that a row that is always refused, alone in its request, does not delay the
// tenant's other rows.
func TestOneBadRowDoesNotStopItsTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{t: t, takes: 20 * time.Millisecond}
		s.verdict = func(it *Item) error {
			if it.Key == "bad" {
				it.Wait = time.Minute
				return errBusy
			}
			return nil
		}
		q := New(s, options())
		if err := q.Enqueue(t.Context(), item("quiet", "bad")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if all := quiet(t, q, "quiet", 100, 10*time.Millisecond); all[99] > 100*time.Millisecond {
			t.Errorf("got up to %v for other rows", all[99])
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = q.Close(ctx)
		synctest.Wait()
	})
}
