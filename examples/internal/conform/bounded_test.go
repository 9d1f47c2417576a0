package conform_test

import (
	"context"
	"errors"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/examples/internal/conform"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/internal/proof/faultdisk"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// obstacle is called before each request, with the name of its method.
type obstacle func(ctx context.Context, method string) error

func (o obstacle) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if err := o(ctx, path.Base(method)); err != nil {
				return err
			}
			return invoker(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if err := o(ctx, path.Base(method)); err != nil {
				return nil, err
			}
			return streamer(ctx, desc, cc, method, opts...)
		}),
	}
}

// hang waits until the call is given up.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

// hangsFrom returns an obstacle at which all requests hang from the nth of a method on, except those to exempt methods.
func hangsFrom(from string, n int64, exempt ...string) obstacle {
	var seen atomic.Int64
	var on atomic.Bool
	return func(ctx context.Context, method string) error {
		if method == from && seen.Add(1) == n {
			on.Store(true)
		}
		for _, e := range exempt {
			if method == e {
				return nil
			}
		}
		if on.Load() {
			return hang(ctx)
		}
		return nil
	}
}

// A quick run on a service that hangs or is slow ends within a minute and a quarter, names the cases that were not run,
// and says whether the scratch table is left.
func TestRunsAreBounded(t *testing.T) {
	testkit.Plain(t)
	sleep := func(ctx context.Context, d time.Duration) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	for name, tt := range map[string]struct {
		obstacle obstacle
		results  int    // at least
		want     string // of the error
		removed  bool
	}{
		"hangs from the start":                    {hangsFrom("ListTables", 1), 0, "list the tables", true},
		"is not available":                        {func(context.Context, string) error { return status.Error(codes.Unavailable, "test") }, 0, "list the tables", true},
		"hangs before it makes the table":         {hangsFrom("CreateTable", 1, "DeleteTable"), 0, "make the scratch table", true},
		"hangs in a family":                       {hangsFrom("ModifyColumnFamilies", 1, "DeleteTable"), 0, "cases were not run", true},
		"hangs in a case":                         {hangsFrom("MutateRow", 2, "DeleteTable"), 1, "cases were not run", true},
		"hangs in a case, and in removal":         {hangsFrom("MutateRow", 2), 1, "may still exist", false},
		"is slow":                                 {func(ctx context.Context, _ string) error { return sleep(ctx, 2*time.Second) }, 1, "cases were not run", true},
		"is available for the admin API alone":    {func(_ context.Context, m string) error { return unavailable(m) }, 1, "cases were not run", true},
		"hangs in reads":                          {hangsFrom("ReadRows", 1, "DeleteTable"), 1, "cases were not run", true},
		"makes the table, and never says so":      {nil, 0, "make the scratch table", true},
		"makes a table of a given name, the same": {nil, 0, "may exist", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := server(t)
			o := conform.Options{Project: "p", Instance: "i", Dial: s.Dial, DialOptions: tt.obstacle.dialOptions(), Quick: true}
			if tt.obstacle == nil {
				o.DialOptions = silent("CreateTable")
			}
			if strings.Contains(name, "given name") {
				o.Table = "mine"
			}
			began := time.Now()
			r, err := conform.Run(t.Context(), o)
			took := time.Since(began)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, conform.ErrLate) {
				t.Errorf("%s: %v, want %q", name, err, tt.want)
			}
			if took > 76*time.Second {
				t.Errorf("%s: the run took %v, want at most 76 s", name, took)
			}
			if tt.results > 0 && (r == nil || len(r.Results) < tt.results || len(r.NotRun) == 0 || len(r.Results)+len(r.NotRun) < 50) {
				t.Fatalf("%s: the report is %+v, want results and what was not run", name, r)
			}
			if r != nil {
				var text strings.Builder
				if err := r.WriteText(&text); err != nil {
					t.Error(err)
				}
				for _, c := range r.NotRun {
					if !strings.Contains(text.String(), c) {
						t.Errorf("%s: the report does not name %s", name, c)
					}
				}
			}
			if left := tables(t, s); (len(left) == 0) != tt.removed {
				t.Errorf("%s: the tables %v are left", name, left)
			}
			t.Logf("%s: %v: %v", name, took, err)
		})
	}
}

func unavailable(method string) error {
	switch method {
	case "ReadRows", "MutateRow", "MutateRows", "CheckAndMutateRow":
		return status.Error(codes.Unavailable, "test")
	}
	return nil
}

// silent returns options with which a method is done, and its response never comes.
func silent(method string) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(func(ctx context.Context, called string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoker(ctx, called, req, reply, cc, opts...)
		if path.Base(called) == method && err == nil {
			return hang(ctx)
		}
		return err
	})}
}

// After Ctrl-C, a run whose connection hangs ends within the time of the removal.
func TestInterruptedWhileItHangs(t *testing.T) {
	testkit.Plain(t)
	for name, exempt := range map[string][]string{"removed": {"DeleteTable"}, "left": nil} {
		synctest.Test(t, func(t *testing.T) {
			s := server(t)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(5*time.Second, cancel)
			began := time.Now()
			r, err := conform.Run(ctx, conform.Options{Project: "p", Instance: "i", Dial: s.Dial, DialOptions: hangsFrom("ReadRows", 2, exempt...).dialOptions()})
			if !errors.Is(err, context.Canceled) || r == nil || len(r.NotRun) == 0 {
				t.Errorf("%s: %v, %+v", name, err, r)
			}
			if took := time.Since(began); took > 5*time.Second+conform.RemoveTimeout+time.Second {
				t.Errorf("%s: it took %v", name, took)
			}
			if left := tables(t, s); (len(left) == 0) != (name == "removed") {
				t.Errorf("%s: the tables %v are left", name, left)
			}
		})
	}
}

// On a service whose disk fails in the middle, the run ends. It reports the cases after that as failed, and that the
// table is left.
func TestDiskFails(t *testing.T) {
	testkit.Plain(t)
	disk := faultdisk.New()
	s, err := local.Open(engine.Options{Dir: "table", FS: disk, GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := conform.Run(t.Context(), conform.Options{Project: "p", Instance: "i", Dial: s.Dial, Quick: true, Progress: func(done, _ int, _ conform.Result) {
		if done == 10 {
			disk.Fail()
		}
	}})
	if r == nil || err == nil || !strings.Contains(err.Error(), r.Table+", which still exists") {
		t.Fatalf("the run ends with %v, want that the table is left", err)
	}
	if len(r.Results)+len(r.NotRun) < 50 || len(r.Unmet()) == 0 {
		t.Errorf("%d results, %d of them unmet, %d not run; want all cases, and that some failed", len(r.Results), len(r.Unmet()), len(r.NotRun))
	}
	for _, c := range r.Results[:10] {
		if c.Status != conform.AsExpected && c.Status != conform.Skipped {
			t.Errorf("%s, before the disk failed: %s %s", c.Name, c.Status, c.Seen)
		}
	}
}
