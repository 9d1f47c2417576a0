package engine_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// manyRows writes n rows. Only the first holds "yes".
func manyRows(t *testing.T, r *rig, n int) {
	t.Helper()
	req := &bigtablepb.MutateRowsRequest{TableName: fullName}
	for i := range n {
		value := "no"
		if i == 0 {
			value = "yes"
		}
		req.Entries = append(req.Entries, &bigtablepb.MutateRowsRequest_Entry{
			RowKey: fmt.Appendf(nil, "row%06d", i), Mutations: []*bigtablepb.Mutation{setCell("f", "q", 1000, value)},
		})
	}
	if _, err := r.MutateRowsAll(r.ctx, req); err != nil {
		t.Fatal(err)
	}
}

// A scan returns the rows that it has found before it searches on.
func TestFoundRowsDoNotWait(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	manyRows(t, r, 20_000)
	reader, err := r.NewReader(r.ctx, &bigtablepb.ReadRowsRequest{TableName: fullName, Filter: &bigtablepb.RowFilter{
		Filter: &bigtablepb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte("yes")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var first, second bigtablepb.ReadRowsResponse
	if err := reader.Next(&first); err != nil || len(first.Chunks) != 1 || len(first.LastScannedRowKey) != 0 {
		t.Fatalf("first answer: %d chunks, last scanned %q, %v; want the row that matches", len(first.Chunks), first.LastScannedRowKey, err)
	}
	if err := reader.Next(&second); err != nil || len(second.LastScannedRowKey) == 0 {
		t.Fatalf("second answer: last scanned %q, %v; want a last scanned row: the first answer must not wait for the end of the scan", second.LastScannedRowKey, err)
	}
	for err == nil {
		err = reader.Next(new(bigtablepb.ReadRowsResponse))
	}
	if err != io.EOF {
		t.Errorf("end of the stream: got %v, want io.EOF", err)
	}
}

// Close waits for running reads, so it must end a long read that finds no row.
func TestCloseEndsLongReads(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	manyRows(t, r, 5000)
	wide := &bigtablepb.MutateRowRequest{TableName: fullName, RowKey: []byte("wide")}
	for i := range 5000 {
		wide.Mutations = append(wide.Mutations, setCell("g", fmt.Sprint(i), 1000, "no"))
	}
	if _, err := r.MutateRow(r.ctx, wide); err != nil {
		t.Fatal(err)
	}
	for name, rows := range map[string]*bigtablepb.RowSet{
		"many rows": nil, "a wide row": {RowKeys: [][]byte{[]byte("wide")}},
	} {
		reader, err := r.NewReader(r.ctx, &bigtablepb.ReadRowsRequest{TableName: fullName, Rows: rows, Filter: &bigtablepb.RowFilter{
			Filter: &bigtablepb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte("none")},
		}})
		if err != nil {
			t.Fatal(err)
		}
		r.BeginClose()
		if err := reader.Next(new(bigtablepb.ReadRowsResponse)); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("%s: %v while the engine closes, want FailedPrecondition", name, err)
		}
	}
}

// A client may abandon a stream by ending its context, before or after the first answer. The read is then released.
func TestAbandonedStreamIsReleased(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	ctx, cancel := context.WithCancel(r.ctx)
	stream, err := r.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, bigtablepb.Bigtable_ReadRows_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.SendMsg(&bigtablepb.ReadRowsRequest{TableName: fullName}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if n := r.OpenReaders(); n != 0 {
		t.Errorf("got %d open readers after their streams were abandoned, want 0", n)
	}
}

// Many appends to one column in one request do not copy the whole value for each append.
func TestManyAppends(t *testing.T) {
	r := open(t, engine.Options{})
	tbl := r.create(t)
	m := bigtable.NewReadModifyWrite()
	for range 50_000 {
		m.AppendValue("f", "q", []byte("0123456789"))
	}
	start := time.Now()
	row, err := tbl.ApplyReadModifyWrite(r.ctx, "a", m)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(row["f"][0].Value); n != 500_000 {
		t.Errorf("the appended value has %d bytes, want 500000", n)
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("50,000 appends took %v", d)
	}
	if got, err := tbl.ReadRow(r.ctx, "a"); err != nil || len(got["f"]) != 1 || len(got["f"][0].Value) != 500_000 {
		t.Errorf("got %d stored cells, %v; want one of 500000 bytes", len(got["f"]), err)
	}
}

func TestModifyTooLarge(t *testing.T) {
	testkit.Plain(t)
	r := open(t, engine.Options{})
	tbl := r.create(t)
	value := []byte(strings.Repeat("x", 90<<20))
	m := bigtable.NewReadModifyWrite()
	for _, q := range []string{"a", "b", "c"} {
		m.AppendValue("f", q, value)
	}
	_, err := tbl.ApplyReadModifyWrite(r.ctx, "a", m)
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("appending 270 MiB to one row: got %v, want InvalidArgument", err)
	}
	if got := dump(t, r, bigtable.SingleRow("a"), bigtable.RowFilter(bigtable.StripValueFilter())); len(got) != 0 {
		t.Errorf("after the refused request, the row holds %q, want nothing", got)
	}
}

// Samples through a view show neither keys nor sizes of other tenants' rows.
func TestViewSamples(t *testing.T) {
	r := open(t, engine.Options{MemTableBytes: 64 << 10})
	r.create(t)
	for _, tenant := range []string{"acme", "bob", "zeta"} {
		for i := range 60 {
			apply(t, r, fmt.Sprintf("%s#%03d", tenant, i), set("f", "q", 1000, strings.Repeat(tenant, 2000)))
		}
	}
	if _, err := r.CreateAuthorizedView(r.ctx, &adminpb.CreateAuthorizedViewRequest{
		Parent: fullName, AuthorizedViewId: "v", AuthorizedView: &adminpb.AuthorizedView{AuthorizedView: &adminpb.AuthorizedView_SubsetView_{
			SubsetView: &adminpb.AuthorizedView_SubsetView{RowPrefixes: [][]byte{[]byte("bob#")}},
		}},
	}); err != nil {
		t.Fatal(err)
	}
	all, err := r.SampleRowKeysAll(r.ctx, &bigtablepb.SampleRowKeysRequest{TableName: fullName})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := r.SampleRowKeysAll(r.ctx, &bigtablepb.SampleRowKeysRequest{AuthorizedViewName: fullName + "/authorizedViews/v"})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 5 || len(seen) < 2 || string(seen[len(seen)-1].RowKey) != "bob$" {
		t.Fatalf("got %d samples, and %d through the view; want several, and the last one at the end of the view", len(all), len(seen))
	}
	for _, s := range seen[:len(seen)-1] {
		if !strings.HasPrefix(string(s.RowKey), "bob#") {
			t.Errorf("a sample through the view has the key %q, want only keys below bob#", s.RowKey)
		}
	}
	whole, part := all[len(all)-1].OffsetBytes, seen[len(seen)-1].OffsetBytes
	if part*2 > whole {
		t.Errorf("samples through the view add up to %d of %d bytes, want about a third", part, whole)
	}
}

// A folder opens after a crash while its database was created.
func TestCrashWhileCreating(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("db", 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := fs.Create("db/MANIFEST-000001", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write([]byte("torn")); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	r := open(t, engine.Options{Dir: "db", FS: fs})
	r.create(t)
	apply(t, r, "row", set("f", "q", 1000, "v"))
	r = reopen(t, r, engine.Options{Dir: "db", FS: fs})
	if got := len(dump(t, r, bigtable.SingleRow("row"))); got != 1 {
		t.Errorf("got %d cells after reopening, want 1", got)
	}
}

// A pass deletes all expired cells of a row, also if their deletion needs more than one batch.
func TestGCOfALargeRow(t *testing.T) {
	testkit.Plain(t)
	r := open(t, engine.Options{})
	r.createWith(t, map[string]bigtable.Family{"f": {GCPolicy: bigtable.MaxVersionsPolicy(1)}})
	column := strings.Repeat("q", 4000)
	for range 2 {
		req := &bigtablepb.MutateRowRequest{TableName: fullName, RowKey: []byte("row")}
		for i := range 3000 {
			req.Mutations = append(req.Mutations, setCell("f", column, int64(i+1)*1000, "v"))
		}
		if _, err := r.MutateRow(r.ctx, req); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.RunGC(r.ctx); err != nil {
		t.Fatal(err)
	}
	if got := dump(t, r, bigtable.SingleRow("row")); len(got) != 1 || !strings.HasSuffix(got[0], "@3000000=v") {
		t.Errorf("got %d cells after the pass, want only the newest", len(got))
	}
}
