package rollup_test

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
)

// TestMarksMadeDuringAPass: late points of one slot arrive at any time, also between two requests of a pass that will
// clear the slot's mark, and take effect up to 20 seconds after their attempt. Many of their marks have the timestamp
// of the mark that the worker read. None is lost: when workers find no marks, each point is in the stored buckets.
func TestMarksMadeDuringAPass(t *testing.T) {
	if os.Getenv("TIDEMARK_TEST_TCP") != "" {
		t.Skip("needs a simulated clock to hold a request")
	}
	for seed := range uint64(fewer(24)) {
		synctest.Test(t, func(t *testing.T) { marksInPass(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

// inFlight is a write that was attempted and has not taken effect yet.
type inFlight struct {
	attempted time.Time
	gate      chan struct{}
	done      chan error
}

type gateKey struct{}

func marksInPass(t *testing.T, rnd *rand.Rand) {
	const mostInFlight = 20 * time.Second // Settle is 30
	var between func()                    // called between two requests of a pass
	held := func(ctx context.Context) {
		if gate, ok := ctx.Value(gateKey{}).(chan struct{}); ok {
			<-gate
		} else if f := between; f != nil {
			between = nil
			f()
			between = f
		}
	}
	o := newOne(t, rollup.Options{Lateness: time.Millisecond}, gc.Class{},
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			held(ctx)
			return invoker(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			held(ctx)
			return streamer(ctx, desc, cc, method, opts...)
		}))
	var flying []inFlight
	points := 0.0
	land := func() {
		w := flying[0]
		flying = flying[1:]
		close(w.gate)
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
	}
	attempt := func() {
		points++
		w := inFlight{o.Now(), make(chan struct{}), make(chan error)}
		ctx, at := context.WithValue(t.Context(), gateKey{}, w.gate), start.Add(time.Duration(points)*time.Second)
		go func() { w.done <- o.repo.Put(ctx, roof, at, reading{TempC: 1}) }()
		synctest.Wait() // until it is held
		flying = append(flying, w)
	}
	wait := func() {
		o.Add([]time.Duration{time.Millisecond, time.Second, 5 * time.Second, 11 * time.Second, mostInFlight}[rnd.IntN(5)])
		for len(flying) > 0 && o.Now().Sub(flying[0].attempted) > mostInFlight {
			land()
		}
	}
	step := func() {
		switch n := rnd.IntN(4); {
		case n == 0:
			attempt()
		case n == 1 && len(flying) > 0:
			land()
		default:
			wait()
		}
	}
	o.Set(start.Add(time.Hour + time.Second))
	for range 60 {
		if rnd.IntN(4) > 0 {
			step()
			continue
		}
		between = func() {
			for range rnd.IntN(4) {
				step()
			}
		}
		o.pass(t)
		between = nil
	}
	for len(flying) > 0 {
		land()
	}
	o.want(t, "read", o.sums(t), points)
	for range 2 {
		o.Add(2 * time.Minute)
		o.pass(t)
	}
	if p := o.pass(t); p != (rollup.Pass{Tenants: 1}) {
		t.Fatalf("the last pass found marks: %+v", p)
	}
	o.want(t, "stored", o.stored(t), points)
}
