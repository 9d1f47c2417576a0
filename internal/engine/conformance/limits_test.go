package conformance

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// Keys, qualifiers and values at their limit are stored. Larger ones are refused with InvalidArgument.
func TestSizeLimits(t *testing.T) {
	const key, qualifier = 4 << 10, 16 << 10
	each(t, func(t *testing.T, e *env) {
		e.needs(faultLimits)
		tbl := e.create("t", "f")
		long := strings.Repeat("k", key)
		m := bigtable.NewMutation()
		m.Set("f", strings.Repeat("q", qualifier), ms(1), []byte("v"))
		e.apply(tbl, long, m)
		r, err := tbl.ReadRow(e.ctx, long)
		if err != nil || len(r["f"]) != 1 || len(r["f"][0].Column) != qualifier+2 {
			t.Errorf("reading a row at the limits: got %d cells, %v", len(r["f"]), err)
		}
		wantCode(t, tbl.Apply(e.ctx, long+"k", set("f:q@1=v")), codes.InvalidArgument, "a key over the limit is accepted")
		err = tbl.Apply(e.ctx, long+"k", bigtable.NewCondMutation(bigtable.PassAllFilter(), nil, set("f:q@1=v")))
		wantCode(t, err, codes.InvalidArgument, "a key over the limit is accepted by a conditional mutation")
		rmw := bigtable.NewReadModifyWrite()
		rmw.AppendValue("f", "q", []byte("v"))
		_, err = tbl.ApplyReadModifyWrite(e.ctx, long+"k", rmw)
		wantCode(t, err, codes.InvalidArgument, "a key over the limit is accepted by a read-modify-write")
		wide := bigtable.NewMutation()
		wide.Set("f", strings.Repeat("q", qualifier+1), ms(1), []byte("v"))
		wantCode(t, tbl.Apply(e.ctx, "r", wide), codes.InvalidArgument, "a qualifier over the limit is accepted")
		rmw = bigtable.NewReadModifyWrite()
		rmw.AppendValue("f", strings.Repeat("q", qualifier+1), []byte("v"))
		_, err = tbl.ApplyReadModifyWrite(e.ctx, "r", rmw)
		wantCode(t, err, codes.InvalidArgument, "a qualifier over the limit is accepted by a read-modify-write")
	})
}

func TestCellLimit(t *testing.T) {
	testkit.Plain(t)
	if testing.Short() {
		t.Skip("allocates 200 MiB")
	}
	each(t, func(t *testing.T, e *env) {
		e.needs(faultLimits)
		tbl := e.create("t", "f")
		m := bigtable.NewMutation()
		m.Set("f", "q", ms(1), bytes.Repeat([]byte("x"), 100<<20+1))
		wantCode(t, tbl.Apply(e.ctx, "r", m), codes.InvalidArgument, "a cell over 100 MiB is accepted")
		want(t, e.all(tbl), "", "a refused cell was stored")
	})
}

func TestMutationCountLimit(t *testing.T) {
	testkit.Plain(t)
	const most = 100_000
	entries := func(n int) []*bigtablepb.MutateRowsRequest_Entry {
		m := setCell("f", "q", 1000, "v")
		return []*bigtablepb.MutateRowsRequest_Entry{
			{RowKey: []byte("a"), Mutations: repeat(m, n-n/2)}, {RowKey: []byte("b"), Mutations: repeat(m, n/2)},
		}
	}
	each(t, func(t *testing.T, e *env) {
		e.needs(faultLimits)
		tbl := e.create("t", "f")
		if got := e.bulk(&bigtablepb.MutateRowsRequest{TableName: tableName("t"), Entries: entries(most)}); fmt.Sprint(got) != "[OK OK]" {
			t.Errorf("a request at the limit: got %v, want nil", got)
		}
		stream, err := e.data.MutateRows(e.ctx, &bigtablepb.MutateRowsRequest{TableName: tableName("t"), Entries: entries(most + 1)})
		if err == nil {
			_, err = stream.Recv()
		}
		wantCode(t, err, codes.InvalidArgument, "a bulk request over the limit is accepted")
		_, err = e.data.MutateRow(e.ctx, &bigtablepb.MutateRowRequest{
			TableName: tableName("t"), RowKey: []byte("c"),
			Mutations: repeat(setCell("f", "q", 1000, "v"), most+1),
		})
		wantCode(t, err, codes.InvalidArgument, "a row mutation over the limit is accepted")
		want(t, e.all(tbl), "a f:q@1=v; b f:q@1=v", "a refused request was stored, or an accepted one was not")
	})
}

func repeat[T any](v T, n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func TestRowSetLimit(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultLimits)
		e.create("t", "f")
		keys := func(n int) *bigtablepb.RowSet {
			out := &bigtablepb.RowSet{}
			for i := range n {
				out.RowKeys = append(out.RowKeys, fmt.Appendf(nil, "%01000d", i))
			}
			return out
		}
		want(t, e.rawKeys(&bigtablepb.ReadRowsRequest{TableName: tableName("t"), Rows: keys(500)}), "", "rows of 500 kB of keys")
		wantCode(t, e.readError(&bigtablepb.ReadRowsRequest{TableName: tableName("t"), Rows: keys(530)}),
			codes.InvalidArgument, "a row set over 512 KiB is taken")
	})
}

// readError sends a raw request and returns the error that it ends with.
func (e *env) readError(req *bigtablepb.ReadRowsRequest) error {
	stream, err := e.data.ReadRows(e.ctx, req)
	for err == nil {
		_, err = stream.Recv()
	}
	return err
}

func TestRefusedReads(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultLimits)
		e.create("t", "f")
		closed := func(start, end string) *bigtablepb.RowSet {
			return &bigtablepb.RowSet{RowRanges: []*bigtablepb.RowRange{{
				StartKey: &bigtablepb.RowRange_StartKeyClosed{StartKeyClosed: []byte(start)},
				EndKey:   &bigtablepb.RowRange_EndKeyClosed{EndKeyClosed: []byte(end)},
			}}}
		}
		for name, req := range map[string]*bigtablepb.ReadRowsRequest{
			"a range that ends before it starts": {Rows: closed("b", "a")},
			"an empty key":                       {Rows: &bigtablepb.RowSet{RowKeys: [][]byte{{}}}},
			"a negative limit":                   {RowsLimit: -1},
		} {
			req.TableName = tableName("t")
			wantCode(t, e.readError(req), codes.InvalidArgument, name+" is accepted")
		}
	})
}
