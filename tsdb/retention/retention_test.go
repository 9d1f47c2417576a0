package retention_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const day = 24 * time.Hour

var acme = tenant.MustParse("acme")

// bubble runs a test with a simulated clock. Over TCP, where synctest does not work, the test is skipped.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if os.Getenv("TIDEMARK_TEST_TCP") != "" {
		t.Skip("needs a simulated clock; it runs in process")
	}
	synctest.Test(t, f)
}

func class(name string, p gc.Policy) gc.Class { return gc.Class{Name: name, Policy: p} }

// days returns a class of n days.
func days(name string, n int) gc.Class { return class(name, gc.MaxAge(time.Duration(n)*day)) }

func define(t testing.TB, name string, c gc.Class, change ...func(*tsdb.SchemaOptions)) *tsdb.Schema[float64] {
	t.Helper()
	opts := tsdb.SchemaOptions{Retention: c, Precision: tsdb.Milliseconds}
	for _, f := range change {
		f(&opts)
	}
	s, err := tsdb.Define(name, tsdb.Key("site", "device"), codec.Float64(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func heads(n int) func(*tsdb.SchemaOptions) {
	return func(o *tsdb.SchemaOptions) { o.Head = tsdb.Head{Points: n} }
}

func hourly(c gc.Class) func(*tsdb.SchemaOptions) {
	hour := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[float64]{{Name: "v", Of: func(v float64) (float64, bool) { return v, true }, Decimals: 2, Max: 100}}, rollup.Options{Retention: c})
	return func(o *tsdb.SchemaOptions) { o.Rollups = []tsdb.Rollup{hour} }
}

func older(c ...gc.Class) func(*tsdb.SchemaOptions) {
	return func(o *tsdb.SchemaOptions) { o.FormerClasses = c }
}

func choice(c ...gc.Class) func(*tsdb.SchemaOptions) {
	return func(o *tsdb.SchemaOptions) { o.Classes = c }
}

// admin returns a client besides the store's, like that of a console.
func admin(t testing.TB, conn *tsdbtest.Conn) *bigtable.AdminClient {
	t.Helper()
	_, a := tsdbtest.Clients(t, conn)
	return a
}

// set changes a family's policy outside the store.
func set(t testing.TB, a *bigtable.AdminClient, family string, p bigtable.GCPolicy) {
	t.Helper()
	if err := a.SetGCPolicy(context.Background(), tsdbtest.Table, family, p); err != nil {
		t.Fatal(err)
	}
}

func create(t testing.TB, a *bigtable.AdminClient, family string, f bigtable.Family) {
	t.Helper()
	if err := a.CreateColumnFamilyWithConfig(context.Background(), tsdbtest.Table, family, f); err != nil {
		t.Fatal(err)
	}
}

// policies returns the table's families.
func policies(t testing.TB, a *bigtable.AdminClient) map[string]string {
	t.Helper()
	info, err := a.TableInfo(context.Background(), tsdbtest.Table)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range info.FamilyInfos {
		out[f.Name] = f.GCPolicy
	}
	return out
}

// catalogue returns the cells of the store's own rows.
func catalogue(t testing.TB, table *bigtable.Table) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := table.ReadRows(context.Background(), bigtable.PrefixRange("!"), func(r bigtable.Row) bool {
		for _, c := range r["_sys"] {
			out[c.Row+" "+c.Column] = string(c.Value)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// rows returns the rows of tenants.
func rows(t testing.TB, table *bigtable.Table) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := table.ReadRows(context.Background(), bigtable.InfiniteRange("\""), func(r bigtable.Row) bool {
		out[r.Key()] = fmt.Sprint(r)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func plan(t testing.TB, store *tsdb.Store, datasets ...tsdb.Dataset) *retention.Plan {
	t.Helper()
	p, err := retention.NewPlan(context.Background(), store, datasets...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func apply(t testing.TB, store *tsdb.Store, p *retention.Plan, allow ...string) retention.Report {
	t.Helper()
	r, err := p.Apply(context.Background(), store, retention.ApplyOptions{Allow: allow})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// console intercepts admin calls that change families: it counts them, and may act before them or lose their responses.
type console struct {
	mu     sync.Mutex
	calls  int
	ignore bool              // of the last call
	before func(n int) error // of the n-th call, from 1
	after  func(n int) error
	reply  func(*adminpb.Table) // changes the response
}

func (c *console) option() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if !strings.HasSuffix(method, "/ModifyColumnFamilies") {
			return invoker(ctx, method, req, reply, cc, opts...)
		}
		c.mu.Lock()
		c.calls++
		c.ignore = req.(*adminpb.ModifyColumnFamiliesRequest).GetIgnoreWarnings()
		n := c.calls
		c.mu.Unlock()
		if c.before != nil {
			if err := c.before(n); err != nil {
				return err
			}
		}
		if err := invoker(ctx, method, req, reply, cc, opts...); err != nil {
			return err
		}
		if t, ok := reply.(*adminpb.Table); ok && c.reply != nil {
			c.reply(t)
		}
		if c.after == nil {
			return nil
		}
		return c.after(n)
	})
}
