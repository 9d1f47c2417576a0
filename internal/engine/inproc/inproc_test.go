package inproc_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"go.uber.org/goleak"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/engine/inproc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	parent = "projects/p/instances/i"
	table  = parent + "/tables/t"
)

// start opens an engine in memory with a table of one family, and returns a connection to it.
func start(t *testing.T, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	e, err := engine.Open(engine.Options{GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := inproc.Dial(e, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	_, err = e.CreateTable(t.Context(), &adminpb.CreateTableRequest{
		Parent: parent, TableId: "t",
		Table: &adminpb.Table{ColumnFamilies: map[string]*adminpb.ColumnFamily{"f": {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func put(row string) *bigtablepb.MutateRowRequest {
	return &bigtablepb.MutateRowRequest{TableName: table, RowKey: []byte(row), Mutations: mutations()}
}

func mutations() []*bigtablepb.Mutation {
	return []*bigtablepb.Mutation{{Mutation: &bigtablepb.Mutation_SetCell_{SetCell: &bigtablepb.Mutation_SetCell{FamilyName: "f", Value: []byte("v")}}}}
}

func TestAllMethods(t *testing.T) {
	conn := start(t)
	ctx := t.Context()
	data, admin := bigtablepb.NewBigtableClient(conn), adminpb.NewBigtableTableAdminClient(conn)
	if _, err := data.MutateRow(ctx, put("a")); err != nil {
		t.Errorf("MutateRow: %v", err)
	}
	bulk, err := data.MutateRows(ctx, &bigtablepb.MutateRowsRequest{TableName: table, Entries: []*bigtablepb.MutateRowsRequest_Entry{{RowKey: []byte("b"), Mutations: mutations()}}})
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := bulk.Recv(); err != nil || len(resp.Entries) != 1 {
		t.Errorf("MutateRows: %v %v", resp, err)
	}
	if _, err := bulk.Recv(); err != io.EOF {
		t.Errorf("end of MutateRows: got %v, want EOF", err)
	}
	rows, err := data.ReadRows(ctx, &bigtablepb.ReadRowsRequest{TableName: table})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for {
		resp, err := rows.Recv()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, c := range resp.Chunks {
			keys = append(keys, string(c.RowKey))
		}
	}
	if !slices.Equal(keys, []string{"a", "b"}) {
		t.Errorf("got rows %q, want a and b", keys)
	}
	samples, err := data.SampleRowKeys(ctx, &bigtablepb.SampleRowKeysRequest{TableName: table})
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := samples.Recv(); err != nil || len(resp.RowKey) != 0 {
		t.Errorf("SampleRowKeys: %v %v", resp, err)
	}
	if _, err := samples.Recv(); err != io.EOF {
		t.Errorf("end of SampleRowKeys: got %v, want EOF", err)
	}
	cam, err := data.CheckAndMutateRow(ctx, &bigtablepb.CheckAndMutateRowRequest{TableName: table, RowKey: []byte("a"), TrueMutations: mutations()})
	if err != nil || !cam.PredicateMatched {
		t.Errorf("CheckAndMutateRow: %v %v", cam, err)
	}
	rmw, err := data.ReadModifyWriteRow(ctx, &bigtablepb.ReadModifyWriteRowRequest{TableName: table, RowKey: []byte("n"), Rules: []*bigtablepb.ReadModifyWriteRule{{FamilyName: "f", Rule: &bigtablepb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: 1}}}})
	if err != nil || len(rmw.Row.GetFamilies()) != 1 {
		t.Errorf("ReadModifyWriteRow: %v %v", rmw, err)
	}
	if _, err := data.PingAndWarm(ctx, &bigtablepb.PingAndWarmRequest{}); err != nil {
		t.Errorf("PingAndWarm: %v", err)
	}
	if got, err := admin.GetTable(ctx, &adminpb.GetTableRequest{Name: table}); err != nil || got.Name != table || len(got.ColumnFamilies) != 1 {
		t.Errorf("GetTable: %v %v", got, err)
	}
	if _, err := admin.DropRowRange(ctx, &adminpb.DropRowRangeRequest{Name: table, Target: &adminpb.DropRowRangeRequest_DeleteAllDataFromTable{DeleteAllDataFromTable: true}}); err != nil {
		t.Errorf("DropRowRange: %v", err)
	}
	if _, err := admin.CreateBackup(ctx, &adminpb.CreateBackupRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("CreateBackup: %v, want Unimplemented", err)
	}
	if err := conn.Invoke(ctx, "/google.bigtable.v2.Bigtable/Nothing", put("a"), &bigtablepb.MutateRowResponse{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("unknown method: got %v, want Unimplemented", err)
	}
	query, err := data.ExecuteQuery(ctx, &bigtablepb.ExecuteQueryRequest{})
	if err == nil {
		_, err = query.Recv()
	}
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("ExecuteQuery: %v, want Unimplemented", err)
	}
	session, err := data.OpenTable(ctx)
	if err == nil {
		_, err = session.Recv()
	}
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("OpenTable: %v, want Unimplemented", err)
	}
}

// Interceptors run before the engine, in their order, and can answer a call themselves.
func TestInterceptorsRunFirst(t *testing.T) {
	var calls []string
	unary := func(name string) grpc.UnaryClientInterceptor {
		return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			calls = append(calls, name)
			err := invoke(ctx, method, req, reply, cc, opts...)
			calls = append(calls, name+" after")
			return err
		}
	}
	stream := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		calls = append(calls, "stream")
		if strings.HasSuffix(method, "MutateRows") {
			return nil, status.Error(codes.Unavailable, "kept back")
		}
		return streamer(ctx, desc, cc, method, opts...)
	}
	conn := start(t, grpc.WithUnaryInterceptor(unary("one")), grpc.WithChainUnaryInterceptor(unary("two")), grpc.WithChainStreamInterceptor(stream))
	data := bigtablepb.NewBigtableClient(conn)
	if _, err := data.MutateRow(t.Context(), put("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := data.MutateRows(t.Context(), &bigtablepb.MutateRowsRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("MutateRows: got %v, want the interceptor's error", err)
	}
	if want := []string{"one", "two", "two after", "one after", "stream"}; !slices.Equal(calls, want) {
		t.Errorf("got calls %q, want %q", calls, want)
	}
}

func TestContexts(t *testing.T) {
	conn := start(t)
	data := bigtablepb.NewBigtableClient(conn)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for ctx, want := range map[context.Context]codes.Code{cancelled: codes.Canceled, late: codes.DeadlineExceeded} {
		if _, err := data.MutateRow(ctx, put("a")); status.Code(err) != want {
			t.Errorf("MutateRow: %v, want %v", err, want)
		}
		if _, err := data.ReadRows(ctx, &bigtablepb.ReadRowsRequest{TableName: table}); status.Code(err) != want {
			t.Errorf("ReadRows: %v, want %v", err, want)
		}
	}
	// The context ends between SendMsg and RecvMsg.
	ctx, cancel := context.WithCancel(t.Context())
	rows, err := data.ReadRows(ctx, &bigtablepb.ReadRowsRequest{TableName: table})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := rows.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("Recv after cancel: %v, want Canceled", err)
	}
}

func TestCallOptions(t *testing.T) {
	conn := start(t)
	data := bigtablepb.NewBigtableClient(conn)
	var header, trailer metadata.MD
	var from peer.Peer
	var finished []error
	opts := []grpc.CallOption{grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from), grpc.OnFinish(func(err error) { finished = append(finished, err) })}
	if _, err := data.MutateRow(t.Context(), put("a"), opts...); err != nil {
		t.Fatal(err)
	}
	if header == nil || trailer == nil || from.Addr == nil || len(finished) != 1 || finished[0] != nil {
		t.Errorf("got header %v, trailer %v, peer %v, finished %v; want all of them set", header, trailer, from, finished)
	}
	if _, err := data.MutateRow(t.Context(), put(""), opts...); status.Code(err) != codes.InvalidArgument || len(finished) != 2 || finished[1] == nil {
		t.Errorf("refused call: got %v, finished %v", err, finished)
	}
}

func TestClosedConnection(t *testing.T) {
	conn := start(t)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := bigtablepb.NewBigtableClient(conn).MutateRow(t.Context(), put("a")); status.Code(err) != codes.Canceled {
		t.Errorf("call on a closed connection: got %v, want Canceled", err)
	}
	if _, err := inproc.Dial(nil); err == nil {
		t.Error("Dial of a nil engine: got nil, want an error")
	}
}

// The engine and its client work in a synctest bubble: the client's retry pauses and the collector's interval pass at
// once.
func TestSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.Open(engine.Options{GCInterval: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		failures := 5
		conn, err := inproc.Dial(e, grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if strings.HasSuffix(method, "/MutateRow") && failures > 0 {
				failures--
				return status.Error(codes.Unavailable, "try again")
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}))
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		_, err = e.CreateTable(ctx, &adminpb.CreateTableRequest{Parent: parent, TableId: "t", Table: &adminpb.Table{ColumnFamilies: map[string]*adminpb.ColumnFamily{
			"f": {GcRule: &adminpb.GcRule{Rule: &adminpb.GcRule_MaxNumVersions{MaxNumVersions: 1}}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		client, err := bigtable.NewClientWithConfig(ctx, "p", "i", bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
		if err != nil {
			t.Fatal(err)
		}
		tbl := client.Open("t")
		began := time.Now()
		for ts := range 3 {
			m := bigtable.NewMutation()
			m.Set("f", "q", bigtable.Timestamp(ts*1000), []byte("v"))
			if err := tbl.Apply(ctx, "row", m); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(began) == 0 {
			t.Error("the client retried without a pause")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		row, err := tbl.ReadRow(ctx, "row")
		if err != nil || len(row["f"]) != 1 {
			t.Errorf("two minutes later: got row %v (%v), want one version", row, err)
		}
		_ = client.Close()
		_ = conn.Close()
		if err := e.Close(); err != nil && !errors.Is(err, engine.ErrClosed) {
			t.Error(err)
		}
	})
}
