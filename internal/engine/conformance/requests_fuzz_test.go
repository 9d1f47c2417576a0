package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Whatever bytes a client sends, the process survives, the answer has a code that fits the request, and the table stays
// readable.
func FuzzRequests(f *testing.F) {
	var methods []protoreflect.MethodDescriptor
	eachMethod(f, func(m protoreflect.MethodDescriptor, has bool) {
		if has {
			methods = append(methods, m)
		}
	})
	seed := func(name string, msgs ...proto.Message) {
		for i, m := range methods {
			if string(m.Name()) != name {
				continue
			}
			for _, msg := range msgs {
				b, err := proto.Marshal(msg)
				if err != nil {
					f.Fatal(err)
				}
				f.Add(uint8(i), b)
			}
		}
	}
	muts := []*bigtablepb.Mutation{
		setCell("plain", "q", 1000, "v"), addToCell("sum", "n", 1000, 5), mergeToCell("max", "n", 0, encode(3)),
		deleteRange("plain", "q", 0, 5000),
	}
	seed("MutateRow", &bigtablepb.MutateRowRequest{RowKey: []byte("r"), Mutations: muts})
	seed("MutateRows", &bigtablepb.MutateRowsRequest{Entries: []*bigtablepb.MutateRowsRequest_Entry{{RowKey: []byte("r"), Mutations: muts}, {}}})
	seed("CheckAndMutateRow", &bigtablepb.CheckAndMutateRowRequest{
		RowKey: []byte("r"), TrueMutations: muts,
		PredicateFilter: &bigtablepb.RowFilter{Filter: &bigtablepb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte(`v\C*`)}},
	})
	seed("ReadModifyWriteRow", &bigtablepb.ReadModifyWriteRowRequest{RowKey: []byte("r"), Rules: []*bigtablepb.ReadModifyWriteRule{
		{FamilyName: "plain", ColumnQualifier: []byte("q"), Rule: &bigtablepb.ReadModifyWriteRule_AppendValue{AppendValue: []byte("x")}},
	}})
	seed("ReadRows", &bigtablepb.ReadRowsRequest{
		RowsLimit: 2, Reversed: true, Rows: &bigtablepb.RowSet{
			RowKeys:   [][]byte{[]byte("r")},
			RowRanges: []*bigtablepb.RowRange{{StartKey: &bigtablepb.RowRange_StartKeyOpen{StartKeyOpen: []byte("a")}}},
		},
		Filter: &bigtablepb.RowFilter{Filter: &bigtablepb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: 1}},
	})

	e := open(f, backend{name: "inproc", dial: dialInProcess})
	e.ctx = context.Background()
	tbl := e.aggregates("t")
	e.put(tbl, "r", "plain:q@1=v")
	f.Fuzz(func(t *testing.T, n uint8, b []byte) {
		m := methods[int(n)%len(methods)]
		req := message(m.Input())
		if proto.Unmarshal(b, req) != nil {
			return
		}
		if n < 200 { // most requests name existing objects
			aim(m, req.ProtoReflect())
		}
		ctx, cancel := context.WithTimeout(e.ctx, 10*time.Second)
		defer cancel()
		switch err := e.call(ctx, m, req); status.Code(err) {
		case codes.OK, codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition, codes.Unimplemented, codes.AlreadyExists,
			codes.PermissionDenied, codes.Aborted, codes.ResourceExhausted:
		default:
			t.Fatalf("%s: got an unexpected code: %v; the request: %v", m.Name(), err, req)
		}
		if err := tbl.ReadRows(ctx, bigtable.InfiniteRange(""), func(bigtable.Row) bool { return true }); err != nil && status.Code(err) != codes.NotFound {
			t.Fatalf("reading the table after %s with %v: got %v, want nil or NotFound", m.Name(), req, err)
		}
	})
}

// aim makes a request name the table, its view or its instance.
func aim(m protoreflect.MethodDescriptor, req protoreflect.Message) {
	to := map[protoreflect.Name]string{"table_name": tableName("t"), "name": tableName("t"), "parent": instanceName}
	if strings.Contains(string(m.Name()), "AuthorizedView") {
		to["name"], to["parent"] = tableName("t")+"/authorizedViews/v", tableName("t")
	}
	if m.Name() == "DeleteTable" {
		to["name"] = tableName("none")
	}
	for name, value := range to {
		if field := req.Descriptor().Fields().ByName(name); field != nil && field.Kind() == protoreflect.StringKind {
			req.Set(field, protoreflect.ValueOfString(value))
		}
	}
}
