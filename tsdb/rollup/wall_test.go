package rollup_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// liar returns rows with another key, once one is set.
type liar struct {
	grpc.ClientStream
	key *atomic.Pointer[string]
}

func (l *liar) RecvMsg(m any) error {
	err := l.ClientStream.RecvMsg(m)
	if key := l.key.Load(); err == nil && key != nil {
		if rows, ok := m.(*btpb.ReadRowsResponse); ok {
			for _, c := range rows.Chunks {
				if len(c.RowKey) > 0 {
					c.RowKey = []byte(*key)
				}
			}
		}
	}
	return err
}

// TestRowsOfOthersAreRefused: the service returns a row that was not requested. The rollup must not read, compute or
// write anything from it.
func TestRowsOfOthersAreRefused(t *testing.T) {
	var lie atomic.Pointer[string]
	var wrote atomic.Int32
	o := newOne(t, rollup.Options{}, gc.Class{},
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if strings.HasSuffix(method, "/MutateRows") {
				wrote.Add(1)
			}
			s, err := streamer(ctx, desc, cc, method, opts...)
			return &liar{s, &lie}, err
		}),
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			wrote.Add(1)
			return invoker(ctx, method, req, reply, cc, opts...)
		}))
	o.put(t, start, 1)
	o.Set(start.Add(3 * time.Hour))
	o.pass(t)
	o.put(t, start.Add(time.Hour), 2)
	o.Add(time.Hour)
	all, err := rollup.NewWorker(o.store, rollup.WorkerOptions{}, o.schema)
	if err != nil {
		t.Fatal(err)
	}
	wrote.Store(0)
	reader := rollup.For(o.hour, o.repo)
	for _, key := range []string{
		"acme2#r!mark.hour#berlin#roof-7#9223370262000000000", "acme2#r!rollup.hour#berlin#roof-7#9223370262000000000",
		"acme#r2!mark.hour#berlin#roof-7#9223370262000000000", "!format",
	} {
		lie.Store(&key)
		for name, call := range map[string]func() error{
			"Buckets": func() error {
				for b, err := range reader.Buckets(t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst) {
					if err != nil {
						return err
					}
					t.Errorf("Buckets yields %v", b)
				}
				return nil
			},
			"Latest": func() error { _, err := reader.Latest(t.Context(), roof, 1); return err },
			"Total":  func() error { _, err := reader.Total(t.Context(), roof, tsdb.AllTime()); return err },
			"Many": func() error {
				_, err := reader.Many(t.Context(), []tsdb.Entity{roof}, tsdb.AllTime())
				return err
			},
			"Rebuild": func() error {
				_, err := reader.Rebuild(t.Context(), tsdb.AllTime(), rollup.RebuildOptions{})
				return err
			},
			"Pass": func() error { _, err := o.worker.Pass(t.Context()); return err },
			"Pass over all tenants": func() error {
				if key != "!format" {
					return tsdb.ErrForeignRow // such a key may be of a tenant, whose rows are then refused
				}
				_, err := all.Pass(t.Context())
				return err
			},
		} {
			if err := call(); !errors.Is(err, tsdb.ErrForeignRow) {
				t.Errorf("%s whose response contains the row %q: %v, want ErrForeignRow", name, key, err)
			}
		}
	}
	if n := wrote.Load(); n != 0 {
		t.Errorf("%d writes because of foreign rows, want 0", n)
	}
}

// TestWorkerAmongTenants: one worker processes all tenants of a table, on a store that uses views, requires a tenant
// for each call, and limits reads to one hour. Names of tenants and entities are prefixes of others, and another
// program has rows. Each tenant's rollup contains exactly its own points.
func TestWorkerAmongTenants(t *testing.T) {
	names := []string{"a", "ab", "a.", "a-", "acme", "acme2", "acme.r", "0", "r"}
	entities := []tsdb.Entity{tsdb.NewEntity("a", "1"), tsdb.NewEntity("a", "12"), tsdb.NewEntity("a#", "1"), tsdb.NewEntity("\x00", "%00"), tsdb.NewEntity("#", "9223372036854775807")}
	var views []tenant.ID
	for _, name := range names {
		views = append(views, tenant.MustParse(name))
	}
	for _, salts := range []int{0, 3} {
		limits, err := limit.New(limit.Table{Defaults: limit.Limits{RangeLength: time.Hour}}, limit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		def := newThree(tsdb.SchemaOptions{Salts: salts})
		c := testkit.NewClock(start)
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now, RequireTenant: true, Limits: limits}, ViewsFor: views}, def.schema)
		for i := range 2500 {
			m := bigtable.NewMutation()
			m.Set("_mark", "0", 0, nil)
			if i%500 == 0 {
				if err := table.Apply(t.Context(), fmt.Sprintf("another program's %d", i), m); err != nil {
					t.Fatal(err)
				}
			}
		}
		for n, id := range views {
			repo := def.schema.For(store, id)
			for k, e := range entities {
				for i := range 3 {
					at := start.Add(time.Duration(i) * 7 * time.Hour)
					if err := repo.Put(tenant.NewContext(t.Context(), id), e, at, reading{TempC: float64(10*n + k)}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		worker, err := rollup.NewWorker(store, rollup.WorkerOptions{OnError: func(err error) { t.Error(err) }}, def.schema)
		if err != nil {
			t.Fatal(err)
		}
		c.Set(start.Add(72 * time.Hour))
		for range 4 {
			p, err := worker.Pass(t.Context())
			if err != nil || p.Tenants != len(views) {
				t.Fatalf("pass %+v, error %v", p, err)
			}
			c.Add(time.Hour)
		}
		for n, id := range views {
			ctx := tenant.NewContext(t.Context(), id)
			for _, r := range def.all() {
				answers, err := rollup.For(r, def.schema.For(store, id)).Many(ctx, entities, tsdb.AllTime(), tsdb.OldestFirst, tsdb.Concurrency(3))
				if err != nil {
					t.Fatal(err)
				}
				for k, a := range answers {
					points := int64(0)
					for _, b := range a.Buckets {
						points += b.Points
						if want := float64(10*n + k); b.Values[0].Min != want || b.Values[0].Max != want {
							t.Errorf("%s of %v of %s: %v to %v, want %v", r.Name(), a.Entity, id, b.Values[0].Min, b.Values[0].Max, want)
						}
					}
					if points != 3 || a.Entity != entities[k] {
						t.Errorf("%s of %v of %s holds %d points", r.Name(), a.Entity, id, points)
					}
				}
			}
		}
		left := 0
		if err := table.ReadRows(t.Context(), bigtable.InfiniteRange("0"), func(row bigtable.Row) bool {
			if strings.Contains(row.Key(), "!mark.") {
				left++
			}
			return true
		}); err != nil || left != 0 {
			t.Errorf("%d rows of marks are left, %v", left, err)
		}
	}
}

func TestNoWorker(t *testing.T) {
	o := newOne(t, rollup.Options{}, gc.Class{})
	for name, w := range map[string]*rollup.Worker{"nil": nil, "zero": {}} {
		if _, err := w.Pass(t.Context()); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.Run(t.Context()); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	none := func(context.Context) iter.Seq2[tenant.ID, error] { return nil }
	w, err := rollup.NewWorker(o.store, rollup.WorkerOptions{Tenants: none}, o.schema)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := w.Pass(t.Context()); p != (rollup.Pass{}) || err != nil {
		t.Errorf("a pass without tenants: %+v, %v", p, err)
	}
	if w, err = rollup.NewWorker(o.store, rollup.WorkerOptions{Tenants: only(tenant.ID{}, acme)}, o.schema); err != nil {
		t.Fatal(err)
	}
	if p, err := w.Pass(t.Context()); !errors.Is(err, tenant.ErrInvalid) || p.Failed != 1 || p.Tenants != 2 {
		t.Errorf("a pass with the zero tenant: %+v, %v", p, err)
	}
	for name, opts := range map[string]rollup.WorkerOptions{"Every": {Every: -1}, "Settle": {Settle: 1}, "Concurrency": {Concurrency: 257}} {
		if _, err := rollup.NewWorker(o.store, opts, o.schema); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := rollup.NewWorker(nil, rollup.WorkerOptions{}, o.schema); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("NewWorker without a store: %v, want ErrInvalid", err)
	}
	if _, err := rollup.NewWorker(o.store, rollup.WorkerOptions{}, (*tsdb.Schema[reading])(nil)); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("NewWorker without a schema: %v, want ErrInvalid", err)
	}
	for d, err := range o.store.Datasets(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rollup.NewWorker(o.store, rollup.WorkerOptions{}, d); !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), "definitions") {
			t.Errorf("NewWorker with a dataset of the catalogue: %v, want ErrInvalid: the worker would compute nothing", err)
		}
	}
}
