package tsdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestSlowReplicasEnsureManyClasses: eight replicas call Ensure at once with twelve new classes, with different delays.
func TestSlowReplicasEnsureManyClasses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{FormerClasses: manyClasses(12)})
		jitter := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
			return invoker(ctx, method, req, reply, cc, opts...)
		}
		store := through(t, tsdb.Timeouts{}, nil, grpc.WithChainUnaryInterceptor(jitter))
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() { errs[i] = store.Ensure(t.Context(), s) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
		if err := store.Verify(t.Context(), s); err != nil {
			t.Error(err)
		}
	})
}

// TestReplicasAddDifferentTags: an addition that one replica makes between another's read and write is not lost.
func TestReplicasAddDifferentTags(t *testing.T) {
	v := func(tags ...string) *tsdb.Schema[reading] {
		var old []codec.Codec[reading]
		for _, tag := range tags {
			old = append(old, codec.Tagged(tag, codec.JSON[reading]()))
		}
		return tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Fallback(codec.JSON[reading](), old...), tsdb.SchemaOptions{})
	}
	for _, tt := range []struct {
		slow, fast *tsdb.Schema[reading]
		want       error
	}{{v("a"), v("b"), tenancy.ErrSchemaConflict}, {v("a", "b"), v("b"), nil}} {
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, v())
		conn.Inject(tsdbtest.DelayBy(func() time.Duration {
			if err := store.Ensure(t.Context(), tt.fast); err != nil {
				t.Error(err)
			}
			return 0
		}).On(tsdbtest.CheckAndMutateRow).Times(1))
		if err := store.Ensure(t.Context(), tt.slow); !errors.Is(err, tt.want) {
			t.Errorf("Ensure of the slower replica: %v, want %v", err, tt.want)
		}
		conn.Clear()
		all := tt.fast
		if tt.want == nil {
			all = tt.slow
		}
		if err := store.Verify(t.Context(), all); err != nil {
			t.Errorf("the catalogue lost what was added: %v", err)
		}
	}
}

// TestAnotherVersionInBetween: a program with a newer format converts the table while Ensure runs.
func TestAnotherVersionInBetween(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	m := bigtable.NewMutation()
	m.DeleteRow()
	apply(t, table, "!format", m)
	apply(t, table, "!dataset#readings", m)
	conn.Inject(tsdbtest.DelayBy(func() time.Duration {
		m := bigtable.NewMutation()
		m.Set("_sys", "v", 0, []byte("2"))
		apply(t, table, "!format", m)
		return 0
	}).On(tsdbtest.CheckAndMutateRow).Times(1))
	if err := store.Ensure(t.Context(), s); !errors.Is(err, tenancy.ErrSchemaConflict) {
		t.Errorf("Ensure: %v, want a conflict", err)
	}
	row, err := table.ReadRow(t.Context(), "!dataset#readings")
	if err != nil || row != nil {
		t.Errorf("the newer program's table now holds %v, %v", row, err)
	}
}

// TestEnsureTriesAgain: one lost response does not fail Ensure.
func TestEnsureTriesAgain(t *testing.T) {
	for _, f := range []tsdbtest.Fault{tsdbtest.Fail(codes.Unavailable), tsdbtest.LoseResponse(codes.Unavailable)} {
		s := readings(t, tsdb.SchemaOptions{Retention: gc.Class{Name: "x", Policy: gc.Never()}})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{})
		for _, m := range []tsdbtest.Method{tsdbtest.ReadRows, tsdbtest.CheckAndMutateRow} {
			conn.Inject(f.On(m).Times(1))
		}
		if err := store.Ensure(t.Context(), s); err != nil {
			t.Errorf("Ensure: %v", err)
		}
		if err := store.Verify(t.Context(), s); err != nil {
			t.Errorf("Verify: %v", err)
		}
	}
}

// TestWhatANewerProgramNotedIsKept: Ensure adds to the catalogue and keeps fields that it does not know.
func TestWhatANewerProgramNotedIsKept(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	row, err := table.ReadRow(t.Context(), "!dataset#readings", bigtable.RowFilter(bigtable.ColumnFilter("json")))
	if err != nil {
		t.Fatal(err)
	}
	m := bigtable.NewMutation()
	m.Set("_sys", "json", 0, append([]byte(`{"packs":["hourly"],`), row["_sys"][0].Value[1:]...))
	apply(t, table, "!dataset#readings", m)
	more := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Fallback(codec.JSON[reading](), codec.Tagged("a", codec.JSON[reading]())), tsdb.SchemaOptions{})
	if err := store.Ensure(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	row, err = table.ReadRow(t.Context(), "!dataset#readings", bigtable.RowFilter(bigtable.ColumnFilter("json")))
	if err != nil || !strings.Contains(string(row["_sys"][0].Value), `"packs":["hourly"]`) || !strings.Contains(string(row["_sys"][0].Value), `"json","a"`) {
		t.Errorf("the entry is now %s, %v", row["_sys"][0].Value, err)
	}
}

// TestConditionalWritesTakeTheirOwnClient: conditional writes use the client of Config.ConditionalAppProfile.
func TestConditionalWritesTakeTheirOwnClient(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	_, conn, _ := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	_, other, _ := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	data, _ := tsdbtest.Clients(t, conn)
	conditional, _ := tsdbtest.Clients(t, other)
	store, err := tsdb.New(data, tsdbtest.Table, tsdb.Options{Conditional: conditional})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := s.For(store, acme).PutIfAbsent(t.Context(), roof, start, reading{}); err != nil {
		t.Fatal(err)
	}
	if here, there := conn.Counts().Calls[tsdbtest.CheckAndMutateRow], other.Counts().Calls[tsdbtest.CheckAndMutateRow]; here != 0 || there != 1 {
		t.Errorf("%d conditional writes used the data client, want 0; %d used the other client, want 1", here, there)
	}
}

// TestBulkReadsTakeTheirOwnClient: exports read the points with the client of Config.BulkAppProfile, and nothing else
// of the SDK does. That client's cluster lags behind: it has an old point of the tenant, and neither a later point nor
// the tenant's erasure.
func TestBulkReadsTakeTheirOwnClient(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{Head: tsdb.Head{Points: 2}, Precision: tsdb.Milliseconds})
		there, lags := tsdbtest.Open(t, tsdbtest.Options{}, s)
		_, conn, _ := tsdbtest.OpenTable(t, tsdbtest.Options{})
		data, admin := tsdbtest.Clients(t, conn)
		bulk, _ := tsdbtest.Clients(t, lags)
		for name, views := range map[string]bool{"table": false, "views": true} {
			store, err := tsdb.New(data, tsdbtest.Table, tsdb.Options{StoreOptions: tsdb.StoreOptions{Views: views}, Bulk: bulk, Admin: admin})
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Ensure(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			id := tenant.MustParse(name)
			if views {
				for _, of := range []*tsdb.Store{store, there} {
					if err := of.EnsureView(t.Context(), id, s); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := s.For(there, id).Put(t.Context(), roof, start, reading{}); err != nil {
				t.Fatal(err)
			}
			before := lags.Counts()
			repo := s.For(store, id)
			if err := repo.Put(t.Context(), roof, start.Add(time.Hour), reading{}); err != nil {
				t.Fatal(err)
			}
			for p, err := range repo.Range(t.Context(), roof, tsdb.AllTime()) {
				if err != nil || !p.Time.Equal(start.Add(time.Hour)) {
					t.Errorf("%s: Range read %v, %v", name, p, err)
				}
			}
			view, err := dynamic.Open(t.Context(), store, id, s.Name())
			if err != nil {
				t.Fatal(err)
			}
			for p, err := range view.Points(t.Context(), roof, tsdb.AllTime()) {
				if err != nil || !p.Time.Equal(start.Add(time.Hour)) {
					t.Errorf("%s: dynamic reads %v, %v", name, p, err)
				}
			}
			if got := lags.Counts(); !reflect.DeepEqual(got, before) {
				t.Errorf("%s: other calls used the client for bulk reads: %+v, before %+v", name, got, before)
			}
			var file bytes.Buffer
			if done, err := transfer.Export(t.Context(), store, id, &file, transfer.ExportOptions{}); err != nil || done.Points != 1 || !strings.Contains(file.String(), start.Format("2006-01-02T15:04")) {
				t.Errorf("%s: the export holds %d points, %v, want that of the lagging cluster:\n%s", name, done.Points, err, file.String())
			}
			if _, err := tenants.Erase(t.Context(), store, id, tenants.EraseOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := transfer.Export(t.Context(), store, id, &file, transfer.ExportOptions{}); !errors.Is(err, tsdb.ErrErased) {
				t.Errorf("%s: an export of an erased tenant: %v, although its points are in the lagging cluster", name, err)
			}
		}
	})
}

// TestLargePointsAreSplit: requests are bounded in bytes.
func TestLargePointsAreSplit(t *testing.T) {
	s := tsdb.MustDefine("blobs", tsdb.Key("id"), codec.Bytes(), tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	var points []tsdb.Point[[]byte]
	for i := range 3 {
		points = append(points, tsdb.Point[[]byte]{Entity: tsdb.NewEntity(fmt.Sprint(i)), Time: start, Value: make([]byte, 5<<20)})
	}
	if _, err := s.For(store, acme).PutMany(t.Context(), points); err != nil {
		t.Fatal(err)
	}
	if n := conn.Counts().Calls[tsdbtest.MutateRows]; n != 3 {
		t.Errorf("15 MiB took %d requests, want 3", n)
	}
}

// TestCatalogueKeepsTheLastOrder: the catalogue stores the last declared order of tags and classes, for tools without a
// schema.
func TestCatalogueKeepsTheLastOrder(t *testing.T) {
	d30 := gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}
	v2 := codec.Tagged("json.v2", codec.JSON[reading]())
	def := func(c codec.Codec[reading], a, b gc.Class) *tsdb.Schema[reading] {
		return tsdb.MustDefine("readings", tsdb.Key("site", "device"), c, tsdb.SchemaOptions{Retention: a, FormerClasses: []gc.Class{b}})
	}
	doc := func(table *bigtable.Table) string {
		row, err := table.ReadRow(t.Context(), "!dataset#readings")
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range row["_sys"] {
			if i.Column == "_sys:json" {
				return string(i.Value)
			}
		}
		return ""
	}
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, def(codec.Fallback(codec.JSON[reading](), v2), d90, d30))
	for want, s := range map[string]tsdb.Dataset{
		`"tags":["json.v2","json"],"classes":[{"name":"d90"`: def(codec.Fallback(v2, codec.JSON[reading]()), d90, d30),
		`"tags":["json","json.v2"],"classes":[{"name":"d30"`: def(codec.Fallback(codec.JSON[reading](), v2), d30, d90),
	} {
		if err := store.Ensure(t.Context(), def(codec.Fallback(codec.JSON[reading](), v2), d90, d30)); err != nil {
			t.Fatal(err)
		}
		if err := store.Ensure(t.Context(), s); err != nil || !strings.Contains(strings.ReplaceAll(doc(table), " ", ""), strings.Split(want, ",\"classes\"")[0]) || !strings.Contains(doc(table), strings.SplitN(want, "],", 2)[1]) {
			t.Errorf("%v: %s, want %s", err, doc(table), want)
		}
	}
}

// TestFamilyMadeInBetween: another program creates the family first, with another policy.
func TestFamilyMadeInBetween(t *testing.T) {
	other := tsdb.MustDefine("other", tsdb.Key("a"), codec.String(), tsdb.SchemaOptions{Retention: gc.Class{Name: "d90", Policy: gc.MaxAge(time.Hour)}})
	s := readings(t, tsdb.SchemaOptions{Retention: d90})
	var store *tsdb.Store
	armed := false
	store = through(t, tsdb.Timeouts{}, []tsdb.Dataset{emptySchema()}, func() grpc.DialOption {
		var once sync.Once
		return grpc.WithChainUnaryInterceptor(func(ctx context.Context, name string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if armed && strings.HasSuffix(name, "/ModifyColumnFamilies") {
				once.Do(func() {
					armed = false
					if err := store.Ensure(t.Context(), other); err != nil {
						t.Error(err)
					}
				})
			}
			return invoker(ctx, name, req, reply, cc, opts...)
		})
	}())
	armed = true
	if err := store.Ensure(t.Context(), s); !errors.Is(err, tenancy.ErrSchemaConflict) {
		t.Error("Ensure after another program created the family with another policy:", err)
	}
}

// TestEntryMadeInBetween: another program creates the dataset first, with another shape.
func TestEntryMadeInBetween(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	us := readings(t, tsdb.SchemaOptions{Precision: tsdb.Microseconds})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, emptySchema())
	conn.Inject(tsdbtest.DelayBy(func() time.Duration {
		if err := store.Ensure(t.Context(), us); err != nil {
			t.Error(err)
		}
		return 0
	}).On(tsdbtest.CheckAndMutateRow).Times(1))
	if err := store.Ensure(t.Context(), s); !errors.Is(err, tenancy.ErrSchemaConflict) {
		t.Errorf("Ensure: %v, want a conflict", err)
	}
}

// nothing returns a schema for tables that only have to exist.
func emptySchema() *tsdb.Schema[string] {
	return tsdb.MustDefine("nothing", tsdb.Key("a"), codec.String(), tsdb.SchemaOptions{})
}
