package rollup_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// onceAds is newAds for a rollup of mode Once, with dial options.
func onceAds(t *testing.T, opts tsdbtest.Options) *ads {
	t.Helper()
	a := &ads{t: t, model: map[string]int64{}}
	a.rollup = rollup.MustDefine("hour", window.Every(time.Hour), viewMeasures, rollup.Options{Mode: rollup.Once})
	a.schema = tsdb.MustDefine("views", tsdb.Key("ip", "ad"), codec.JSON[view](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{a.rollup}})
	a.store, a.conn, a.table = tsdbtest.OpenTable(t, opts, a.schema)
	a.repo = a.schema.For(a.store, acme)
	return a
}

// addAll adds events and returns the outcomes.
func (a *ads) addAll(many bool, events []tsdb.Point[view]) []tsdb.Outcome {
	in := rollup.NewAdder(a.rollup, a.repo, nil)
	if many {
		outcomes, _ := in.AddMany(a.t.Context(), events)
		return outcomes
	}
	var outcomes []tsdb.Outcome
	for _, ev := range events {
		o := tsdb.Outcome{State: tsdb.Stored}
		if w, ok := errors.AsType[*tsdb.WriteError](in.Add(a.t.Context(), ev.Entity, ev.Time, ev.Value)); ok {
			o = w.Outcome
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

// withoutTokens removes the tokens of additions, as a service does that ignores them.
func withoutTokens() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if m, ok := req.(*btpb.MutateRowRequest); ok {
				m.Idempotency = nil
			}
			return invoker(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := streamer(ctx, desc, cc, method, opts...)
			return tokenless{s}, err
		}),
	}
}

// tokenless is a stream of such a service.
type tokenless struct{ grpc.ClientStream }

func (s tokenless) SendMsg(m any) error {
	if req, ok := m.(*btpb.MutateRowsRequest); ok {
		for _, e := range req.Entries {
			e.Idempotency = nil
		}
	}
	return s.ClientStream.SendMsg(m)
}

// TestOnceThroughLostResponses: an addition whose response is lost is sent again with its token, is stored, and counts
// once. A service that ignores tokens is noticed before the repetition: the addition counts at most once, and its
// outcome is unknown.
func TestOnceThroughLostResponses(t *testing.T) {
	faults := []struct {
		name  string
		fault tsdbtest.Fault
		lost  bool // a response is lost, or may be, after the addition was applied
	}{
		{"fails before", tsdbtest.Fail(codes.Unavailable).Times(1), true},
		{"lost", tsdbtest.LoseResponse(codes.Unavailable).Times(1), true},
		{"lost twice", tsdbtest.LoseResponse(codes.Unavailable).Times(2), true},
		{"lost, internal", tsdbtest.LoseResponse(codes.Internal).Times(1), true},
		{"lost, overload", tsdbtest.LoseResponse(codes.ResourceExhausted).Times(1), true},
		{"lost, deadline", tsdbtest.LoseResponse(codes.DeadlineExceeded).Times(3), true},
		{"stream cut", tsdbtest.CutStream(1, codes.Unavailable).On(tsdbtest.MutateRows).Times(1), true},
		{"refused", tsdbtest.Fail(codes.InvalidArgument).Times(1), false},
	}
	for _, tokens := range []bool{true, false} {
		for _, many := range []bool{true, false} {
			for _, f := range faults {
				addBubble(t, func(t *testing.T) {
					opts := tsdbtest.Options{}
					if !tokens {
						opts.DialOptions = withoutTokens()
					}
					a := onceAds(t, opts)
					method := tsdbtest.MutateRow
					if many {
						method = tsdbtest.MutateRows
					}
					events := a.events(rand.New(rand.NewPCG(13, 14)), 6)
					a.addAll(many, events[:1])
					a.count(events[0])
					a.conn.Inject(f.fault.On(method))
					repeated := 0
					for i, o := range a.addAll(many, events[1:]) {
						switch {
						case o.State == tsdb.Stored && o.Attempts > 1:
							repeated++
						case o.State == tsdb.Rejected && f.lost, o.State == tsdb.Unknown && tokens:
							t.Errorf("%s, many=%v, tokens=%v: event %d is %v after %d attempts: %v", f.name, many, tokens, i, o.State, o.Attempts, o.Err)
						}
						if o.State != tsdb.Rejected && (o.State == tsdb.Stored || f.name != "fails before") {
							a.count(events[1+i])
						}
					}
					if !tokens && repeated > 0 {
						t.Errorf("%s, many=%v: %d additions were repeated to a service that ignores tokens", f.name, many, repeated)
					}
					a.check(f.name)
				})
			}
		}
	}
}

// TestOnceThroughARepeatingProxy: a proxy that sends an addition twice counts it twice without a token, and once with
// it.
func TestOnceThroughARepeatingProxy(t *testing.T) {
	for _, tokens := range []bool{true, false} {
		opts, want := tsdbtest.Options{}, int64(1)
		if !tokens {
			opts.DialOptions, want = withoutTokens(), 2
		}
		a := onceAds(t, opts)
		a.conn.Inject(tsdbtest.Repeat())
		a.addAll(false, a.events(rand.New(rand.NewPCG(15, 16)), 1))
		a.conn.Clear()
		cells, _ := a.stored()
		for cell, n := range cells {
			if strings.Contains(cell, "keep.s:n@") && n != want {
				t.Errorf("tokens=%v: %s is %d, want %d", tokens, cell, n, want)
			}
		}
	}
}

// TestOnceThroughResets: connections that are reset while a response arrives lose no addition and count none twice.
func TestOnceThroughResets(t *testing.T) {
	var armed atomic.Bool
	dial := grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		return resetting{conn, &armed}, err
	})
	a := onceAds(t, tsdbtest.Options{
		TCP: true, DialOptions: []grpc.DialOption{dial},
		StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: time.Minute, Scan: time.Minute}}, // gRPC may wait seconds before it dials again
	})
	resets := 0
	for n, ev := range a.events(rand.New(rand.NewPCG(17, 18)), 12) {
		armed.Store(n > 0)
		for _, o := range a.addAll(n%2 == 0, []tsdb.Point[view]{ev}) {
			if o.State != tsdb.Stored {
				t.Errorf("event %d is %v: %v", n, o.State, o.Err)
			}
			if n > 0 && !armed.Load() {
				resets++
			}
		}
		a.count(ev)
	}
	armed.Store(false)
	a.check("after resets")
	if resets < 11 {
		t.Errorf("only %d of 11 connections were reset", resets)
	}
}

// resetting is a connection that fails when the next bytes arrive, if it is armed.
type resetting struct {
	net.Conn
	armed *atomic.Bool
}

func (c resetting) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil && c.armed.CompareAndSwap(true, false) {
		c.Close()
		return 0, syscall.ECONNRESET
	}
	return n, err
}
