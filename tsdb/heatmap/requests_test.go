package heatmap_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/heat"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func newRecorder(t *testing.T) *heatmap.Recorder {
	t.Helper()
	r, err := heatmap.NewRecorder(heatmap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rawTable returns a table of the official client, without the store's interceptors, on an engine of its own.
func rawTable(t *testing.T, recorder *heatmap.Recorder) *bigtable.Table {
	t.Helper()
	server, err := local.Open(engine.Options{GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	conn, err := server.Dial(recorder.DialOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	client, admin, err := local.Clients(context.Background(), conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = admin.Close()
		_ = client.Close()
	})
	if err := admin.CreateTableFromConf(context.Background(), &bigtable.TableConf{TableID: "t", Families: map[string]bigtable.GCPolicy{"f": bigtable.NoGcPolicy(), "g": bigtable.NoGcPolicy()}}); err != nil {
		t.Fatal(err)
	}
	return client.Open("t")
}

// counted returns how the totals of a recorder change while do runs.
func counted(r *heatmap.Recorder, do func()) heat.Totals {
	before := r.Recording().Totals()
	do()
	t := r.Recording().Totals()
	return heat.Totals{Reads: t.Reads - before.Reads, Writes: t.Writes - before.Writes, Failures: t.Failures - before.Failures, Bytes: t.Bytes - before.Bytes}
}

// TestStoreRequests: each row that a call of a store reads or writes counts once, as what it was.
func TestStoreRequests(t *testing.T) {
	recorder := newRecorder(t)
	schema := tsdb.MustDefine("readings", tsdb.Key("device"), codec.String(), tsdb.SchemaOptions{})
	first := tsdb.MustDefine("firsts", tsdb.Key("device"), codec.String(), tsdb.SchemaOptions{FirstWins: true})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{DialOptions: recorder.DialOptions()}, schema, first)
	ctx, acme := t.Context(), tenant.MustParse("acme")
	repo, firsts := schema.For(store, acme), first.For(store, acme)
	device, noon := tsdb.NewEntity("device-1"), time.Now().Add(-time.Hour)
	points := make([]tsdb.Point[string], 100)
	for i := range points {
		points[i] = tsdb.Point[string]{Entity: device, Time: noon.Add(time.Duration(i) * time.Second), Value: "12345678"}
	}
	const cell = uint64(len("p:str") + 8)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(repo.Put(ctx, device, noon, "warm up")) // and the store's own reads
	_, err := repo.Latest(ctx, device)
	must(err)
	must(firsts.Put(ctx, device, noon, "warm up"))
	for _, test := range []struct {
		name string
		do   func()
		want heat.Totals
	}{
		{"Put", func() { must(repo.Put(ctx, device, noon, "12345678")) }, heat.Totals{Writes: 1, Bytes: cell}},
		{"PutMany", func() { _, err := repo.PutMany(ctx, points); must(err) }, heat.Totals{Writes: 100, Bytes: 100 * cell}},
		{"Latest", func() { _, err := repo.Latest(ctx, device); must(err) }, heat.Totals{Reads: 1, Bytes: 8}},
		{"Latest of nothing", func() {
			if _, err := repo.Latest(ctx, tsdb.NewEntity("device-2")); !errors.Is(err, tsdb.ErrNotFound) {
				t.Fatal(err)
			}
		}, heat.Totals{Reads: 1}},
		{"Range", func() {
			for _, err := range repo.Range(ctx, device, tsdb.AllTime()) {
				must(err)
			}
		}, heat.Totals{Reads: 100, Bytes: 800}},
		{"a condition", func() { must(firsts.Put(ctx, device, noon.Add(time.Second), "12345678")) }, heat.Totals{Writes: 1, Bytes: cell}},
		{"a Put that is refused", func() {
			conn.Inject(tsdbtest.LoseResponse(codes.PermissionDenied))
			if err := repo.Put(ctx, device, noon, "12345678"); err == nil {
				t.Fatal("the fault did not happen")
			}
			conn.Clear()
		}, heat.Totals{Failures: 1}},
		{"a Latest that fails", func() {
			conn.Inject(tsdbtest.LoseResponse(codes.PermissionDenied))
			if _, err := repo.Latest(ctx, device); err == nil {
				t.Fatal("the fault did not happen")
			}
			conn.Clear()
		}, heat.Totals{Failures: 1}},
	} {
		if got := counted(recorder, test.do); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// TestBulkWriteInParts: entries that the service refuses are failures, and each of the others is a write.
func TestBulkWriteInParts(t *testing.T) {
	recorder := newRecorder(t)
	schema := tsdb.MustDefine("readings", tsdb.Key("device"), codec.String(), tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{DialOptions: recorder.DialOptions()}, schema)
	repo := schema.For(store, tenant.MustParse("acme"))
	var points []tsdb.Point[string]
	for i := range 10 {
		points = append(points, tsdb.Point[string]{Entity: tsdb.NewEntity(fmt.Sprintf("device-%d", i)), Time: time.Now(), Value: "v"})
	}
	if _, err := repo.PutMany(t.Context(), points); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		fault tsdbtest.Fault
		want  heat.Totals
	}{
		"some entries":     {tsdbtest.FailEntries(codes.InvalidArgument, func(key string) bool { return strings.Contains(key, "device-2") || strings.Contains(key, "device-5") }), heat.Totals{Writes: 8, Failures: 2}},
		"the whole stream": {tsdbtest.LoseResponse(codes.PermissionDenied), heat.Totals{Failures: 10}},
	} {
		got := counted(recorder, func() {
			conn.Inject(test.fault)
			if _, err := repo.PutMany(t.Context(), points); err == nil {
				t.Error("the fault did not happen")
			}
			conn.Clear()
		})
		if got.Bytes = 0; got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// TestRawRequests: requests that the store never makes, and a row in several responses.
func TestRawRequests(t *testing.T) {
	recorder := newRecorder(t)
	table := rawTable(t, recorder)
	ctx := context.Background()
	large := strings.Repeat("x", 3<<20)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	set := func(columns ...string) *bigtable.Mutation {
		m := bigtable.NewMutation()
		for _, c := range columns {
			m.Set("f", c, 1000, []byte(large))
		}
		return m
	}
	small := bigtable.NewMutation()
	small.Set("f", "n", 1000, []byte("12"))
	for _, test := range []struct {
		name string
		do   func()
		want heat.Totals
	}{
		{"a row of 9 MiB", func() { must(table.Apply(ctx, "large", set("a", "b", "c"))) }, heat.Totals{Writes: 1, Bytes: 9<<20 + 3}},
		{"a read of it", func() { _, err := table.ReadRow(ctx, "large"); must(err) }, heat.Totals{Reads: 1, Bytes: 9 << 20}},
		{"an increment", func() {
			m := bigtable.NewReadModifyWrite()
			m.Increment("f", "n", 1)
			_, err := table.ApplyReadModifyWrite(ctx, "count", m)
			must(err)
		}, heat.Totals{Writes: 1, Bytes: 9}},
		{"samples of keys", func() { _, err := table.SampleRowKeys(ctx); must(err) }, heat.Totals{}},
		{"a read that its caller ends", func() {
			must(table.ReadRows(ctx, bigtable.InfiniteRange(""), func(bigtable.Row) bool { return false }))
		}, heat.Totals{Reads: 2, Bytes: 9<<20 + 8}},
		{"two appends", func() {
			m := bigtable.NewReadModifyWrite()
			m.AppendValue("f", "t", []byte("ab"))
			m.AppendValue("f", "t", []byte("cd"))
			_, err := table.ApplyReadModifyWrite(ctx, "text", m)
			must(err)
		}, heat.Totals{Writes: 1, Bytes: 5}},
		{"a condition that holds", func() {
			must(table.Apply(ctx, "count", bigtable.NewCondMutation(bigtable.PassAllFilter(), small, nil)))
		}, heat.Totals{Writes: 1, Bytes: 3}},
		{"a condition that holds, and nothing to store", func() {
			must(table.Apply(ctx, "count", bigtable.NewCondMutation(bigtable.PassAllFilter(), nil, small)))
		}, heat.Totals{Writes: 1}},
		{"a condition that does not hold", func() {
			must(table.Apply(ctx, "count", bigtable.NewCondMutation(bigtable.BlockAllFilter(), set("a"), small)))
		}, heat.Totals{Writes: 1, Bytes: 3}},
	} {
		if got := counted(recorder, test.do); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// TestServerRecords: a server records clients that know nothing of the recorder, once each request.
func TestServerRecords(t *testing.T) {
	recorder := newRecorder(t)
	server, err := embedded.NewServer(embedded.Options{Project: "p", Instance: "i", ServerOptions: recorder.ServerOptions()})
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- server.Serve(ctx, lis) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient("passthrough:///"+lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	admin, err := bigtable.NewAdminClient(ctx, "p", "i", option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	client, err := bigtable.NewClientWithConfig(ctx, "p", "i", bigtable.ClientConfig{DisableSession: true, MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.CreateTableFromConf(ctx, &bigtable.TableConf{TableID: "t", Families: map[string]bigtable.GCPolicy{"f": bigtable.NoGcPolicy()}}); err != nil {
		t.Fatal(err)
	}
	table := client.Open("t")
	var keys []string
	var muts []*bigtable.Mutation
	for i := range 50 {
		m := bigtable.NewMutation()
		m.Set("f", "c", 1000, []byte("value"))
		keys, muts = append(keys, fmt.Sprintf("row-%02d", i)), append(muts, m)
	}
	if errs, err := table.ApplyBulk(ctx, keys, muts); err != nil || errs != nil {
		t.Fatal(err, errs)
	}
	if err := table.Apply(ctx, "row-00", muts[0]); err != nil {
		t.Fatal(err)
	}
	rows := 0
	if err := table.ReadRows(ctx, bigtable.InfiniteRange(""), func(bigtable.Row) bool { rows++; return true }); err != nil {
		t.Fatal(err)
	}
	if got, want := recorder.Recording().Totals(), (heat.Totals{Reads: 50, Writes: 51, Bytes: 51*6 + 50*5}); got != want {
		t.Errorf("the server recorded %+v, want %+v", got, want)
	}
}

// TestManyAtOnce: requests and recordings at the same time lose no row.
func TestManyAtOnce(t *testing.T) {
	recorder := newRecorder(t)
	schema := tsdb.MustDefine("readings", tsdb.Key("device"), codec.String(), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{DialOptions: recorder.DialOptions()}, schema)
	before := recorder.Recording().Totals()
	var all sync.WaitGroup
	const workers, each = 8, 40
	for w := range workers {
		all.Go(func() {
			repo := schema.For(store, tenant.MustParse(fmt.Sprintf("tenant-%d", w)))
			var points []tsdb.Point[string]
			for i := range each {
				points = append(points, tsdb.Point[string]{Entity: tsdb.NewEntity(fmt.Sprint(i)), Time: time.Now(), Value: "v"})
			}
			for range 5 {
				if _, err := repo.PutMany(t.Context(), points); err != nil {
					t.Error(err)
				}
				for _, err := range repo.Under(tsdb.AllEntities()).Latest(t.Context()) {
					if err != nil {
						t.Error(err)
					}
				}
				var file strings.Builder
				if err := recorder.Recording().Write(&file); err != nil || strings.Contains(file.String(), "spoiled") {
					t.Errorf("the recording has rows that were used again: %v", err)
				}
			}
		})
	}
	all.Wait()
	if got := recorder.Recording().Totals(); got.Writes-before.Writes != workers*each*5 {
		t.Errorf("%d writes are recorded, want %d", got.Writes-before.Writes, workers*each*5)
	}
}
