package growth_test

import (
	"context"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/growth"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// leak is a connection that retains something for each every-th request.
type leak struct {
	every  int
	retain func()

	mu sync.Mutex
	n  int
}

func (l *leak) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	l.count()
	return invoker(ctx, method, req, reply, cc, opts...)
}

func (l *leak) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	l.count()
	return streamer(ctx, desc, cc, method, opts...)
}

func (l *leak) count() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n++; l.every > 0 && l.n%l.every == 0 {
		l.retain()
	}
}

// A connection that leaks for some requests is found, with what it leaks. One that does not leak passes.
func TestLeaksAreFound(t *testing.T) {
	testkit.Plain(t)
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	var buffers [][]byte
	var opened []*os.File
	t.Cleanup(func() {
		runtime.KeepAlive(buffers)
		for _, f := range opened {
			_ = f.Close()
		}
	})
	for name, tt := range map[string]struct {
		every  int
		retain func()
		want   []growth.Quantity // the first one grows, the others may
	}{
		"nothing":     {},
		"buffers":     {5, func() { buffers = append(buffers, make([]byte, 16<<10)) }, []growth.Quantity{growth.Heap}},
		"goroutines":  {5, func() { go func() { <-ended }() }, []growth.Quantity{growth.Goroutines, growth.Heap}},
		"descriptors": {5, func() { f, _ := os.Open(os.DevNull); opened = append(opened, f) }, []growth.Quantity{growth.Files, growth.Heap}},
		"channels and streams": {20, func() {
			cc, err := grpc.NewClient("passthrough:///nowhere.invalid:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			t.Cleanup(func() { cancel(); _ = cc.Close() })
			go func() {
				_ = cc.Invoke(ctx, "/s/m", &emptypb.Empty{}, &emptypb.Empty{}, grpc.WaitForReady(true))
			}()
		}, []growth.Quantity{growth.Channels, growth.Streams, growth.Goroutines, growth.Files, growth.Heap}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &leak{every: tt.every, retain: tt.retain}
			verdicts := load(t, l)
			text, grows := growth.Report(verdicts)
			if grows != (tt.every > 0) {
				t.Errorf("grows %v%s", grows, text)
			}
			may := map[growth.Quantity]bool{}
			for i, q := range tt.want {
				may[q] = true
				for _, v := range verdicts {
					if v.Quantity == q && i == 0 && !v.Grows {
						t.Errorf("%v are not found%s", q, text)
					}
				}
			}
			for _, v := range verdicts {
				if v.Grows && !may[v.Quantity] {
					t.Errorf("%v", v)
				}
			}
		})
	}
}

// load makes requests through l for 48 samples, and judges them. It takes as long as the requests: nothing waits.
func load(t *testing.T, l *leak) []growth.Verdict {
	store, _, _ := tsdbtest.OpenTable(t, tsdbtest.Options{DialOptions: []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(l.unary), grpc.WithChainStreamInterceptor(l.stream),
	}})
	schema := tsdb.MustDefine("d", tsdb.Key("device"), codec.JSON[int](), tsdb.SchemaOptions{})
	if err := store.Ensure(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	repo, e := schema.For(store, must(tenant.Parse("acme"))), tsdb.NewEntity("a")
	began := time.Now().Truncate(time.Second)
	s := growth.NewSampler()
	var samples []growth.Sample
	for range 48 {
		for i := range 25 {
			if err := repo.Put(t.Context(), e, began.Add(-time.Duration(i)*time.Second), i); err != nil {
				t.Fatal(err)
			}
			if _, err := repo.Latest(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		sample, err := s.Take()
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, sample)
	}
	return growth.Judge(samples, growth.Default)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
