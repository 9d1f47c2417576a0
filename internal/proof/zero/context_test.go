package zero

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/grpctenant"
	"github.com/tidemark-go/tidemark/tenant/httptenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// live holds one value of each type whose methods take contexts.
type live struct {
	store  *tsdb.Store
	conn   *tsdbtest.Conn
	table  *bigtable.Table
	schema *tsdb.Schema[int]
	repo   *tsdb.Repository[int]
	writer *tsdb.Writer
	sink   *tsdb.Sink[int]
	worker *rollup.Worker
	hours  *rollup.Rollup[int]
	counts map[rollup.Mode]*rollup.Rollup[int]
}

var (
	acme = tenant.MustParse("acme")
	roof = tsdb.NewEntity("roof")
	noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
)

func newLive(t *testing.T) *live {
	t.Helper()
	l := &live{counts: map[rollup.Mode]*rollup.Rollup[int]{}}
	measure := []rollup.Measure[int]{{Name: "v", Of: func(v int) (float64, bool) { return float64(v), true }, Max: 100}}
	l.hours = rollup.MustDefine("hours", window.Every(time.Hour), measure, rollup.Options{})
	all := []tsdb.Rollup{l.hours}
	for name, mode := range map[string]rollup.Mode{"st": rollup.ByStream, "msg": rollup.ByMessage, "one": rollup.Once} {
		l.counts[mode] = rollup.MustDefine(name, window.Every(time.Hour), measure, rollup.Options{Mode: mode})
		all = append(all, l.counts[mode])
	}
	l.schema = tsdb.MustDefine("d", tsdb.Key("k"), codec.JSON[int](), tsdb.SchemaOptions{Rollups: all})
	l.store, l.conn, l.table = tsdbtest.OpenTable(t, tsdbtest.Options{}, l.schema)
	l.repo = l.schema.For(l.store, acme)
	var err error
	if l.writer, err = l.store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: t.TempDir()}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.writer.Close(context.Background()) })
	l.sink = l.repo.Via(l.writer)
	if l.worker, err = rollup.NewWorker(l.store, rollup.WorkerOptions{}, l.schema); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestNilContexts checks that no method panics if its context is nil and its other arguments are zero.
func TestNilContexts(t *testing.T) {
	l := newLive(t)
	limiter, err := limit.New(limit.Table{}, limit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{
		l.store, l.repo, l.sink, l.schema, l.worker, limiter, l.conn,
		rollup.For(l.hours, l.repo), rollup.NewAdder(l.counts[rollup.ByStream], l.repo, l.writer),
		rollup.NewAdder(l.counts[rollup.ByMessage], l.repo, nil), rollup.NewAdder(l.counts[rollup.Once], l.repo, nil), l.writer,
	} {
		of := reflect.ValueOf(v)
		for i := range of.NumMethod() {
			m := of.Method(i)
			if m.Type().NumIn() == 0 || m.Type().In(0) != contextType {
				continue
			}
			name := of.Type().String() + "." + of.Type().Method(i).Name
			callWith(t, name, m, reflect.Zero)
		}
	}
}

func export(t *testing.T, l *live) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := transfer.Export(t.Context(), l.store, acme, &b, transfer.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestEdgesWithNothing checks that a server's middleware and interceptors refuse calls without a context, a method or a
// handler, and do not panic.
func TestEdgesWithNothing(t *testing.T) {
	edge, err := grpctenant.New(tenant.FromHeader("x-tenant"), grpctenant.Options{})
	if err != nil {
		t.Fatal(err)
	}
	info := &grpc.UnaryServerInfo{FullMethod: "/a/b"}
	handler := func(context.Context, any) (any, error) { return nil, nil }
	var none context.Context
	for name, f := range map[string]func() error{
		"no context": func() error { _, err := edge.Unary(none, nil, info, handler); return err },
		"no method":  func() error { _, err := edge.Unary(t.Context(), nil, nil, handler); return err },
		"no handler": func() error { _, err := edge.Unary(t.Context(), nil, info, nil); return err },
		"no stream":  func() error { return edge.Stream(nil, nil, &grpc.StreamServerInfo{}, nil) },
	} {
		if err := f(); err == nil {
			t.Errorf("%s: got nil, want an error", name)
		}
	}
	middleware, err := httptenant.New(tenant.FromHeader("X-Tenant"), httptenant.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Tenant", "acme")
	w := httptest.NewRecorder()
	if middleware(nil).ServeHTTP(w, r); w.Code != http.StatusNotFound {
		t.Errorf("middleware without a handler: got status %d, want 404", w.Code)
	}
}

// TestServerWithANilContext checks that a server with a nil context does not serve, and closes.
func TestServerWithANilContext(t *testing.T) {
	s, err := embedded.NewServer(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var none context.Context
	if err := s.Serve(none, lis); !namesContext(err) {
		t.Errorf("Serve with a nil context: got %v, want an error that names ctx", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
