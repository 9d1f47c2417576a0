package zero

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/grpctenant"
	"github.com/tidemark-go/tidemark/tenant/httptenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/follow"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/under"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// live holds one value of each type whose methods take contexts.
type live struct {
	store  *tsdb.Store
	conn   *tsdbtest.Conn
	schema *tsdb.Schema[int64]
	repo   *tsdb.Repository[int64]
	writer *tsdb.Writer
	sink   *tsdb.Sink[int64]
	worker *rollup.Worker
	hours  *rollup.Rollup[int64]
	counts map[rollup.Mode]*rollup.Rollup[int64]
}

var (
	acme = tenant.MustParse("acme")
	roof = tsdb.NewEntity("roof")
	noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
)

func newLive(t *testing.T) *live {
	t.Helper()
	l := &live{counts: map[rollup.Mode]*rollup.Rollup[int64]{}}
	measure := []rollup.Measure[int64]{{Name: "v", Of: func(v int64) (float64, bool) { return float64(v), true }, Max: 100}}
	l.hours = rollup.MustDefine("hours", window.Every(time.Hour), measure, rollup.Options{})
	all := []tsdb.Rollup{l.hours}
	for name, mode := range map[string]rollup.Mode{"st": rollup.ByStream, "msg": rollup.ByMessage, "one": rollup.Once} {
		l.counts[mode] = rollup.MustDefine(name, window.Every(time.Hour), measure, rollup.Options{Mode: mode})
		all = append(all, l.counts[mode])
	}
	l.schema = tsdb.MustDefine("d", tsdb.Key("k"), codec.Int64(), tsdb.SchemaOptions{Rollups: all})
	l.store, l.conn = tsdbtest.Open(t, tsdbtest.Options{}, l.schema)
	l.repo = l.schema.For(l.store, acme)
	var err error
	if l.writer, err = l.store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: t.TempDir()}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.writer.Close(context.Background()) })
	l.sink = l.repo.Via(l.writer)
	if l.worker, err = rollup.NewWorker(l.store, rollup.WorkerOptions{}, rollup.NewJob(l.schema)); err != nil {
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
		rollup.For(l.hours, l.repo), rollup.NewStreamAdder(l.counts[rollup.ByStream], l.repo, l.writer),
		rollup.NewMessageAdder(l.counts[rollup.ByMessage], l.repo), rollup.NewOnceAdder(l.counts[rollup.Once], l.repo), l.writer,
	} {
		of := reflect.ValueOf(v)
		for i := range of.NumMethod() {
			m := of.Method(i)
			if m.Type().NumIn() == 0 || m.Type().In(0) != contextType {
				continue
			}
			name := of.Type().String() + "." + of.Type().Method(i).Name
			callWith(t, name, m, nil)
		}
	}
}

// TestNilContextIsNamed checks that a call with valid arguments and a nil context returns an error that names the
// context.
func TestNilContextIsNamed(t *testing.T) {
	l := newLive(t)
	none := context.Context(nil)
	point := []tsdb.Point[int64]{{Entity: roof, Time: noon, Value: 1}}
	last := func(seq iter.Seq2[tsdb.Point[int64], error]) (err error) {
		for _, err = range seq { //nolint:revive // the loop keeps the last error
		}
		return err
	}
	follower, err := follow.Entity(t.Context(), l.repo, roof, follow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer follower.Close()
	for name, f := range map[string]func() error{
		"Put":          func() error { return l.repo.Put(none, roof, noon, 1) },
		"PutMany":      func() error { _, err := l.repo.PutMany(none, point); return err },
		"PutIfAbsent":  func() error { _, err := l.repo.PutIfAbsent(none, roof, noon, 1); return err },
		"Get":          func() error { _, err := l.repo.Get(none, roof, noon); return err },
		"Latest":       func() error { _, err := l.repo.Latest(none, roof); return err },
		"LatestMany":   func() error { _, err := l.repo.LatestMany(none, []tsdb.Entity{roof}); return err },
		"Range":        func() error { return last(l.repo.Range(none, roof, tsdb.AllTime())) },
		"Page":         func() error { _, err := l.repo.Page(none, roof, tsdb.AllTime(), 10, ""); return err },
		"PageUnder":    func() error { _, err := l.repo.PageUnder(none, tsdb.AllEntities(), 10, ""); return err },
		"PageEntities": func() error { _, err := l.repo.PageEntities(none, tsdb.AllEntities(), 10, ""); return err },
		"under.Range":  func() error { return last(under.Range(none, l.repo, tsdb.AllEntities(), tsdb.AllTime())) },
		"under.Merged": func() error { return last(under.Merged(none, l.repo, tsdb.AllEntities(), tsdb.AllTime())) },
		"under.Silent": func() error { _, err := under.Silent(none, l.repo, tsdb.AllEntities(), noon, 1); return err },
		"under.Windows": func() error {
			by, err := window.New(window.Every(time.Hour), []window.Measure[int64]{{Name: "n", Int: func(v int64) (int64, bool) { return v, true }}}, window.Options{})
			if err != nil {
				return err
			}
			for _, err = range under.Windows(none, l.repo, by, tsdb.AllEntities(), 0, tsdb.Between(noon, noon.Add(time.Hour))) { //nolint:revive // the loop keeps the last error
			}
			return err
		},
		"window.Outages": func() (err error) {
			for _, err = range window.Outages(none, l.repo, roof, tsdb.Between(noon, noon.Add(time.Hour)), time.Minute) { //nolint:revive // the loop keeps the last error
			}
			return err
		},
		"window.AlignToPoints": func() (err error) {
			series := []window.Series[int64]{window.NewSeries(l.repo, roof, func(v int64) (int64, bool) { return v, true })}
			for _, err = range window.AlignToPoints(none, tsdb.AllTime(), series, window.AlignOptions{}) { //nolint:revive // the loop keeps the last error
			}
			return err
		},
		"follow.Entity":    func() error { _, err := follow.Entity(none, l.repo, roof, follow.Options{}); return err },
		"follow.Points":    func() error { return last(follower.Points(none)) },
		"Delete":           func() error { return l.repo.Delete(none, roof, noon) },
		"DeleteEntity":     func() error { _, err := l.repo.DeleteEntity(none, roof); return err },
		"Sink.Enqueue":     func() error { return l.sink.Enqueue(none, roof, noon, 1) },
		"Writer.Flush":     func() error { return l.writer.Flush(none) },
		"ScrubJournal":     func() error { return l.writer.ScrubJournal(none) },
		"DropDeadLetters":  func() error { _, err := l.writer.DropDeadLetters(none, 1); return err },
		"RetryDeadLetters": func() error { _, err := l.writer.RetryDeadLetters(none, 1); return err },
		"Ping":             func() error { return l.store.Ping(none) },
		"Ensure":           func() error { return l.store.Ensure(none, l.schema) },
		"Verify":           func() error { return l.store.Verify(none, l.schema) },
		"Datasets": func() (err error) {
			for _, err = range l.store.Datasets(none) { //nolint:revive // the loop keeps the last error
			}
			return err
		},
		"Pass": func() error { _, err := l.worker.Pass(none); return err },
		"Run":  func() error { return l.worker.Run(none) },
		"Rebuild": func() error {
			_, err := rollup.For(l.hours, l.repo).Rebuild(none, tsdb.AllTime(), rollup.RebuildOptions{})
			return err
		},
		"OnceAdder.Add": func() error { return rollup.NewOnceAdder(l.counts[rollup.Once], l.repo).Add(none, roof, time.Now(), 1) },
		"MessageAdder.Add": func() error {
			_, err := rollup.NewMessageAdder(l.counts[rollup.ByMessage], l.repo).Add(none, "m", roof, time.Now(), 1)
			return err
		},
		"StreamAdder.Add": func() error {
			return rollup.NewStreamAdder(l.counts[rollup.ByStream], l.repo, l.writer).Add(none, roof, time.Now(), 1)
		},
		"tenants.Onboard": func() error {
			_, err := tenants.Onboard(none, l.store, acme, tenants.Profile{}, tenants.OnboardOptions{})
			return err
		},
		"tenants.Erase":  func() error { _, err := tenants.Erase(none, l.store, acme, tenants.EraseOptions{}); return err },
		"tenants.Retire": func() error { return tenants.Retire(none, l.store, tenants.Part{Dataset: "d", Class: "c"}) },
		"tenants.Remove": func() error {
			_, err := tenants.Remove(none, l.store, tenants.Part{Dataset: "d"}, tenants.RemoveOptions{})
			return err
		},
		"tenants.Usage":  func() error { _, err := tenants.Usage(none, l.store, acme, tenants.UsageOptions{}); return err },
		"transfer.Check": func() error { _, err := transfer.Check(none, bytes.NewReader(export(t, l)), nil); return err },
		"transfer.Export": func() error {
			_, err := transfer.Export(none, l.store, acme, new(bytes.Buffer), transfer.ExportOptions{})
			return err
		},
		"retention.NewPlan": func() error { _, err := retention.NewPlan(none, l.store, l.schema); return err },
		"NewForecast":       func() error { _, err := retention.NewForecast(none, l.store, retention.ForecastOptions{}); return err },
		"embedded.New":      func() error { _, err := embedded.New(none, embedded.Options{}); return err },
	} {
		if err := f(); !errors.Is(err, tsdb.ErrInvalid) || !namesContext(err) {
			t.Errorf("%s with a nil context: got %v, want an error that names ctx", name, err)
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
