package conformance

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

func TestUnknownTable(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.client.Open("none")
		wantCode(t, tbl.ReadRows(e.ctx, bigtable.InfiniteRange(""), func(bigtable.Row) bool { return true }), codes.NotFound, "a read")
		wantCode(t, tbl.Apply(e.ctx, "r", set("f:q@1=v")), codes.NotFound, "a write")
		_, err := tbl.ApplyBulk(e.ctx, []string{"r"}, []*bigtable.Mutation{set("f:q@1=v")})
		wantCode(t, err, codes.NotFound, "a bulk write")
		wantCode(t, tbl.Apply(e.ctx, "r", bigtable.NewCondMutation(bigtable.PassAllFilter(), set("f:q@1=v"), nil)), codes.NotFound, "a conditional mutation")
		m := bigtable.NewReadModifyWrite()
		m.Increment("f", "q", 1)
		_, err = tbl.ApplyReadModifyWrite(e.ctx, "r", m)
		wantCode(t, err, codes.NotFound, "a read-modify-write")
		_, err = tbl.SampleRowKeys(e.ctx)
		wantCode(t, err, codes.NotFound, "sampling")
	})
}

// offered are the methods that a backend must implement. All others of both services answer Unimplemented.
var offered = map[protoreflect.FullName]string{
	"google.bigtable.v2.Bigtable": "ReadRows SampleRowKeys MutateRow MutateRows CheckAndMutateRow PingAndWarm ReadModifyWriteRow",
	"google.bigtable.admin.v2.BigtableTableAdmin": "CreateTable ListTables GetTable UpdateTable DeleteTable ModifyColumnFamilies " +
		"DropRowRange GenerateConsistencyToken CheckConsistency CreateAuthorizedView ListAuthorizedViews GetAuthorizedView " +
		"UpdateAuthorizedView DeleteAuthorizedView",
}

// eachMethod calls visit for every method of both services.
func eachMethod(t testing.TB, visit func(m protoreflect.MethodDescriptor, offered bool)) {
	t.Helper()
	for service, names := range offered {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(service)
		if err != nil {
			t.Fatal(err)
		}
		methods := d.(protoreflect.ServiceDescriptor).Methods()
		for i := range methods.Len() {
			m := methods.Get(i)
			visit(m, strings.Contains(" "+names+" ", " "+string(m.Name())+" "))
		}
	}
}

// message returns an empty message. The types of both services are linked in.
func message(d protoreflect.MessageDescriptor) proto.Message {
	mt, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		panic(err)
	}
	return mt.New().Interface()
}

// call sends one request to a method and returns the error that it ends with.
func (e *env) call(ctx context.Context, m protoreflect.MethodDescriptor, req proto.Message) error {
	method := "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
	if !m.IsStreamingServer() && !m.IsStreamingClient() {
		return e.conn.Invoke(ctx, method, req, message(m.Output()))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	desc := &grpc.StreamDesc{ServerStreams: m.IsStreamingServer(), ClientStreams: m.IsStreamingClient()}
	stream, err := e.conn.NewStream(ctx, desc, method)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(req); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		if err := stream.RecvMsg(message(m.Output())); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// A method that is not implemented answers Unimplemented. An empty request to an implemented one gets an answer.
// Neither ends the process.
func TestEveryMethodAnswers(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultNil)
		tbl := e.create("t", "f")
		e.put(tbl, "r", "f:q@1=v")
		eachMethod(t, func(m protoreflect.MethodDescriptor, has bool) {
			err := e.call(e.ctx, m, message(m.Input()))
			switch code := status.Code(err); {
			case !has && code != codes.Unimplemented:
				t.Errorf("%s is not implemented: got %v, want Unimplemented", m.Name(), err)
			case has && m.Name() == "PingAndWarm":
				if err != nil {
					t.Errorf("%s: got %v", m.Name(), err)
				}
			case has && code != codes.InvalidArgument && code != codes.NotFound:
				t.Errorf("empty %s: got %v", m.Name(), err)
			}
		})
		want(t, e.all(tbl), "r f:q@1=v", "an empty request changed something")
	})
}

// Messages in which a required part is empty.
func TestEmptyParts(t *testing.T) {
	name, row := tableName("t"), []byte("r")
	hollow := []*bigtablepb.Mutation{
		{},
		{Mutation: &bigtablepb.Mutation_SetCell_{}},
		{Mutation: &bigtablepb.Mutation_AddToCell_{}},
		{Mutation: &bigtablepb.Mutation_MergeToCell_{}},
		{Mutation: &bigtablepb.Mutation_DeleteFromColumn_{}},
		{Mutation: &bigtablepb.Mutation_DeleteFromFamily_{}},
		{Mutation: &bigtablepb.Mutation_AddToCell_{AddToCell: &bigtablepb.Mutation_AddToCell{FamilyName: "sum"}}},
		{Mutation: &bigtablepb.Mutation_AddToCell_{AddToCell: &bigtablepb.Mutation_AddToCell{
			FamilyName:      "sum",
			ColumnQualifier: &bigtablepb.Value{}, Timestamp: &bigtablepb.Value{}, Input: &bigtablepb.Value{},
		}}},
		nil,
	}
	each(t, func(t *testing.T, e *env) {
		e.needs(faultNil)
		tbl := e.aggregates("t")
		for i, m := range hollow {
			if m == nil && e.backend.name == "tcp" {
				continue // such a message cannot arrive over the network
			}
			muts := []*bigtablepb.Mutation{m}
			_, err := e.data.MutateRow(e.ctx, &bigtablepb.MutateRowRequest{TableName: name, RowKey: row, Mutations: muts})
			if err == nil {
				t.Errorf("empty mutation %d: got nil, want an error", i)
			}
			_, err = e.data.CheckAndMutateRow(e.ctx, &bigtablepb.CheckAndMutateRowRequest{TableName: name, RowKey: row, FalseMutations: muts})
			if err == nil {
				t.Errorf("empty mutation %d with a condition: got nil, want an error", i)
			}
			e.bulk(&bigtablepb.MutateRowsRequest{TableName: name, Entries: []*bigtablepb.MutateRowsRequest_Entry{
				{RowKey: row, Mutations: muts}, {},
			}})
		}
		_, err := e.data.ReadModifyWriteRow(e.ctx, &bigtablepb.ReadModifyWriteRowRequest{
			TableName: name, RowKey: row,
			Rules: []*bigtablepb.ReadModifyWriteRule{{FamilyName: "plain"}},
		})
		wantCode(t, err, codes.InvalidArgument, "an empty rule is accepted")
		err = e.readError(&bigtablepb.ReadRowsRequest{
			TableName: name, Rows: &bigtablepb.RowSet{RowRanges: []*bigtablepb.RowRange{{
				StartKey: &bigtablepb.RowRange_StartKeyOpen{}, EndKey: &bigtablepb.RowRange_EndKeyClosed{},
			}}},
			Filter: &bigtablepb.RowFilter{Filter: &bigtablepb.RowFilter_Condition_{}},
		})
		wantCode(t, err, codes.InvalidArgument, "an empty condition is accepted")
		_, err = e.tables.ModifyColumnFamilies(e.ctx, &adminpb.ModifyColumnFamiliesRequest{
			Name:          name,
			Modifications: []*adminpb.ModifyColumnFamiliesRequest_Modification{{Id: "x"}},
		})
		wantCode(t, err, codes.InvalidArgument, "an empty modification is accepted")
		_, err = e.tables.CreateTable(e.ctx, &adminpb.CreateTableRequest{Parent: instanceName, TableId: "u", Table: &adminpb.Table{
			ColumnFamilies: map[string]*adminpb.ColumnFamily{"f": {ValueType: &adminpb.Type{Kind: &adminpb.Type_AggregateType{}}}},
		}})
		wantCode(t, err, codes.InvalidArgument, "an empty aggregate is accepted")
		want(t, e.all(tbl), "", "an empty request changed something")
	})
}
