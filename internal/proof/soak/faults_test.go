package soak

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var (
	faultMethods = []tsdbtest.Method{tsdbtest.ReadRows, tsdbtest.ReadRows, tsdbtest.MutateRows, tsdbtest.MutateRows, tsdbtest.MutateRows, tsdbtest.CheckAndMutateRow, tsdbtest.MutateRow}
	passing      = []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Aborted}
)

// injectFaults disturbs the connection until the load ends: about ten faults a second, each for a few calls, and
// sometimes an outage of seconds. In between, calls succeed.
func (w *world) injectFaults() {
	rnd := rand.New(rand.NewPCG(w.seed, 3))
	defer w.conn.Clear()
	next := time.Now().Add(w.untilOutage(rnd))
	cleared := time.Now()
	for pause(w.ctx, time.Duration(20+rnd.IntN(160))*time.Millisecond) {
		if time.Now().After(next) {
			w.stats.outages.Add(1)
			end := w.conn.Outage()
			pause(w.ctx, time.Duration(500+rnd.IntN(int(min(w.duration/10, 5*time.Second)/time.Millisecond)))*time.Millisecond)
			end()
			next = time.Now().Add(w.untilOutage(rnd))
		}
		if time.Since(cleared) > 2*time.Second {
			w.conn.Clear() // remove used faults
			cleared = time.Now()
		}
		w.stats.faults.Add(1)
		w.conn.Inject(w.fault(rnd))
	}
}

func (w *world) untilOutage(rnd *rand.Rand) time.Duration {
	return time.Duration((0.5 + rnd.Float64()) * float64(min(w.duration/4, 40*time.Second)))
}

// fault draws a fault.
func (w *world) fault(rnd *rand.Rand) tsdbtest.Fault {
	code := passing[rnd.IntN(len(passing))]
	method := faultMethods[rnd.IntN(len(faultMethods))]
	some := 1 + rnd.IntN(3)
	pick := rnd.Uint32()
	match := func(one uint32) func(string) bool {
		return func(key string) bool {
			h := fnv.New32a()
			h.Write([]byte(key))
			return (h.Sum32()^pick)%one == 0
		}
	}
	switch rnd.IntN(10) {
	case 0, 1:
		return tsdbtest.Fail(code).On(method).Times(some)
	case 2, 3:
		return tsdbtest.LoseResponse(code).On(method).Times(some)
	case 4:
		return tsdbtest.CutStream(rnd.IntN(40), code).On(tsdbtest.ReadRows).Times(some)
	case 5:
		return tsdbtest.CutStream(rnd.IntN(40), code).On(tsdbtest.MutateRows).Times(some)
	case 6, 7:
		return tsdbtest.FailEntries(code, match(4)).Times(some)
	case 8:
		return tsdbtest.Delay(time.Duration(rnd.IntN(400)) * time.Millisecond).On(method).Times(some)
	}
	// A write that the service refuses permanently becomes a dead letter, so there are few of these.
	if rnd.IntN(2) == 0 {
		return tsdbtest.FailEntries(codes.InvalidArgument, match(6)).Times(1)
	}
	return tsdbtest.Fail(codes.InvalidArgument).On(tsdbtest.CheckAndMutateRow).Times(1)
}
