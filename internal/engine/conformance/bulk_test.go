package conformance

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// An invalid entry gets its own status, and the other entries are stored.
func TestBulkWithABadEntry(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.create("t", "a")
		rows := []string{"r1", "r2", "r3"}
		errs, err := tbl.ApplyBulk(e.ctx, rows, []*bigtable.Mutation{set("a:p@1=x"), set("none:p@1=x"), set("a:p@1=z")})
		if err != nil {
			t.Fatalf("one invalid entry fails the whole request: %v", err)
		}
		if len(errs) != 3 || errs[0] != nil || errs[1] == nil || errs[2] != nil {
			t.Errorf("got outcomes %v, want one for each entry", errs)
		}
		want(t, e.all(tbl), "r1 a:p@1=x; r3 a:p@1=z", "the good rows are not stored as written")
	})
}

func TestBulkStatuses(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultCodes)
		tbl := e.create("t", "a")
		entry := func(row string, ms ...*bigtablepb.Mutation) *bigtablepb.MutateRowsRequest_Entry {
			return &bigtablepb.MutateRowsRequest_Entry{RowKey: []byte(row), Mutations: ms}
		}
		got := e.bulk(&bigtablepb.MutateRowsRequest{TableName: tableName("t"), Entries: []*bigtablepb.MutateRowsRequest_Entry{
			entry("good", setCell("a", "q", 1000, "v")),
			entry("", setCell("a", "q", 1000, "v")),
			entry("family", setCell("x", "q", 1000, "v")),
			entry("time", setCell("a", "q", 1, "v")),
			entry("nothing"),
			entry("unset", &bigtablepb.Mutation{}),
			nil,
			entry("last", setCell("a", "q", 1000, "v")),
		}})
		wantCodes := []codes.Code{
			codes.OK, codes.InvalidArgument, codes.NotFound, codes.InvalidArgument,
			codes.InvalidArgument, codes.InvalidArgument, codes.InvalidArgument, codes.OK,
		}
		want(t, fmt.Sprint(got), fmt.Sprint(wantCodes), "entries got each other's outcomes")
		want(t, e.all(tbl), "good a:q@1=v; last a:q@1=v", "the good rows are not stored as written")
	})
}

// bulk sends one MutateRows request and returns each entry's code, in the entries' order.
func (e *env) bulk(req *bigtablepb.MutateRowsRequest) []codes.Code {
	e.Helper()
	stream, err := e.data.MutateRows(e.ctx, req)
	if err != nil {
		e.Fatal(err)
	}
	out := make([]codes.Code, len(req.Entries))
	seen := 0
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			e.Fatal(err)
		}
		for _, entry := range resp.Entries {
			out[entry.Index] = codes.Code(entry.GetStatus().GetCode())
			seen++
		}
	}
	if seen != len(out) {
		e.Errorf("a request of %d entries got %d outcomes", len(out), seen)
	}
	return out
}

// Entries of one row in one request are applied in order, so the last one wins. Clients other than the SDK rely on it.
func TestBulkSameRowTwiceKeepsOrder(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.create("t", "a")
		var rows []string
		var muts []*bigtable.Mutation
		for i := range 50 {
			m := bigtable.NewMutation()
			m.DeleteRow()
			m.Set("a", "p", ms(1), fmt.Appendf(nil, "%d", i))
			rows, muts = append(rows, "r", fmt.Sprintf("s%d", i)), append(muts, m, set("a:p@1=x"))
		}
		if errs, err := tbl.ApplyBulk(e.ctx, rows, muts); err != nil || errs != nil {
			t.Fatal(errs, err)
		}
		want(t, e.scan(tbl, bigtable.SingleRow("r")), "r a:p@1=49", "an earlier entry of the row won")
	})
}

func TestBulkIsMany(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.create("t", "a")
		n := 5000 / testkit.Stride(5)
		rows, muts := make([]string, n), make([]*bigtable.Mutation, n)
		for i := range n {
			rows[i], muts[i] = fmt.Sprintf("r%05d", i), set("a:p@1=x", "a:q@1=y")
		}
		if errs, err := tbl.ApplyBulk(e.ctx, rows, muts); err != nil || errs != nil {
			t.Fatal(errs, err)
		}
		got := 0
		err := tbl.ReadRows(e.ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
			if r.Key() != rows[got] || len(r["a"]) != 2 {
				t.Errorf("row %d: got %s", got, showRow(r))
			}
			got++
			return !t.Failed()
		})
		if err != nil || got != n {
			t.Errorf("got %d of %d rows: %v", got, n, err)
		}
	})
}
