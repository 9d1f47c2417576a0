package engine_test

import (
	"encoding/base64"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/internal/engine"
)

// A family has the value type that it was given, also after reopening. Only the type of an aggregate cannot change.
func TestValueTypes(t *testing.T) {
	o := engine.Options{Dir: t.TempDir()}
	r := open(t, o)
	text := bigtable.StringType{Encoding: bigtable.StringUtf8BytesEncoding{}}
	raw := bigtable.BytesType{Encoding: bigtable.RawBytesEncoding{}}
	number := bigtable.Int64Type{Encoding: bigtable.BigEndianBytesEncoding{}}
	sum := aggregate(bigtable.SumAggregator{})
	r.createWith(t, map[string]bigtable.Family{
		"text": {ValueType: text}, "raw": {ValueType: raw}, "number": {ValueType: number}, "f": {}, "g": {ValueType: raw}, "sum": sum,
	})
	for family, to := range map[string]bigtable.Type{"f": text, "g": number} {
		if err := r.admin.UpdateFamily(r.ctx, tableID, family, bigtable.Family{ValueType: to}); err != nil {
			t.Errorf("updating the type of family %s: got %v, want nil", family, err)
		}
	}
	const want = "Immutable fields 'value_type.aggregate_type.*' cannot be updated"
	for family, to := range map[string]bigtable.Family{"sum": {ValueType: text}, "text": sum} {
		if err := r.admin.UpdateFamily(r.ctx, tableID, family, to); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("updating the aggregate of family %s: got %v, want %q", family, err, want)
		}
	}
	apply(t, r, "row", set("number", "q", 1000, "no number")) // the engine does not check values against the type
	r = reopen(t, r, o)
	tbl, err := r.GetTable(r.ctx, &adminpb.GetTableRequest{Name: fullName, View: adminpb.Table_SCHEMA_VIEW})
	if err != nil {
		t.Fatal(err)
	}
	for family, want := range map[string]string{"text": "string", "raw": "bytes", "number": "int64", "f": "string", "g": "int64", "sum": "aggregate"} {
		v := tbl.ColumnFamilies[family].GetValueType()
		var got string
		switch {
		case v.GetStringType().GetEncoding().GetUtf8Bytes() != nil:
			got = "string"
		case v.GetBytesType().GetEncoding().GetRaw() != nil:
			got = "bytes"
		case v.GetInt64Type().GetEncoding().GetBigEndianBytes() != nil:
			got = "int64"
		case v.GetAggregateType() != nil:
			got = "aggregate"
		}
		if got != want {
			t.Errorf("family %s: got type %v, want %s", family, v, want)
		}
	}
}

// Samples through a view end where the view ends, so a program that splits the view at them gets no part outside it.
func TestViewSamplesEnd(t *testing.T) {
	r := open(t, engine.Options{})
	err := r.admin.CreateTableFromConf(r.ctx, &bigtable.TableConf{
		TableID: tableID, ColumnFamilies: map[string]bigtable.Family{"f": {}}, SplitKeys: []string{"r0", "r11", "r12", "r2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for id, tt := range map[string]struct{ prefixes, want []string }{
		"one":  {[]string{"r1"}, []string{"r11", "r12", "r2"}},
		"two":  {[]string{"r12", "r0"}, []string{"r0", "r12", "r13"}},
		"all":  {[]string{"r1", ""}, []string{"r0", "r11", "r12", "r2", ""}},
		"last": {[]string{"r1", "\xff"}, []string{"r11", "r12", ""}},
	} {
		view(t, r, id, tt.prefixes, nil)
		samples, err := r.SampleRowKeysAll(r.ctx, &bigtablepb.SampleRowKeysRequest{AuthorizedViewName: fullName + "/authorizedViews/" + id})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range samples {
			got = append(got, string(s.RowKey))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("samples of the view of %q: got %q, want %q", tt.prefixes, got, tt.want)
		}
	}
}

// Samples of a range end where the range ends, through a view too.
func TestRangeSamples(t *testing.T) {
	r := open(t, engine.Options{})
	err := r.admin.CreateTableFromConf(r.ctx, &bigtable.TableConf{
		TableID: tableID, ColumnFamilies: map[string]bigtable.Family{"f": {}}, SplitKeys: []string{"a", "b", "c", "d"},
	})
	if err != nil {
		t.Fatal(err)
	}
	view(t, r, "v", []string{"b", "c"}, nil)
	from := func(key string) *bigtablepb.RowRange {
		return &bigtablepb.RowRange{StartKey: &bigtablepb.RowRange_StartKeyClosed{StartKeyClosed: []byte(key)}}
	}
	after, to, through := from("b"), from("b"), from("a")
	after.StartKey = &bigtablepb.RowRange_StartKeyOpen{StartKeyOpen: []byte("b")}
	to.EndKey = &bigtablepb.RowRange_EndKeyOpen{EndKeyOpen: []byte("cc")}
	through.EndKey = &bigtablepb.RowRange_EndKeyClosed{EndKeyClosed: []byte("c")}
	for name, tt := range map[string]struct {
		rows       *bigtablepb.RowRange
		want, view string
	}{
		"all": {nil, "a b c d ", "b c d"}, "empty": {&bigtablepb.RowRange{}, "a b c d ", "b c d"}, "from": {from("c"), "c d ", "c d"},
		"after": {after, "c d ", "c d"}, "to": {to, "b c cc", "b c cc"}, "through": {through, "a b c", "b c"}, "outside": {from("x"), "", "d"},
	} {
		for req, want := range map[*bigtablepb.SampleRowKeysRequest]string{
			{TableName: fullName, RowRange: tt.rows}:                                 tt.want,
			{AuthorizedViewName: fullName + "/authorizedViews/v", RowRange: tt.rows}: tt.view,
		} {
			samples, err := r.SampleRowKeysAll(r.ctx, req)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range samples {
				got = append(got, string(s.RowKey))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s, view %q: got %q, want %q", name, req.AuthorizedViewName, got, want)
			}
		}
	}
}

// A network client that announces support for last scanned rows receives them while a scan finds nothing, and can
// resume there after a broken connection. Other clients receive none.
func TestScanReportsItsPosition(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	fillRows(t, r, 2000)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	r.Register(server)
	go func() { _ = server.Serve(lis) }()
	defer server.Stop()
	conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, tt := range []struct {
		knows    bool
		encoding *base64.Encoding
	}{{true, base64.URLEncoding}, {true, base64.RawURLEncoding}, {false, base64.URLEncoding}} {
		knows := tt.knows
		flags, err := proto.Marshal(&bigtablepb.FeatureFlags{LastScannedRowResponses: knows})
		if err != nil {
			t.Fatal(err)
		}
		ctx := metadata.AppendToOutgoingContext(r.ctx, "bigtable-features", tt.encoding.EncodeToString(flags))
		stream, err := bigtablepb.NewBigtableClient(conn).ReadRows(ctx, &bigtablepb.ReadRowsRequest{TableName: fullName, Filter: &bigtablepb.RowFilter{
			Filter: &bigtablepb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte("never")},
		}})
		if err != nil {
			t.Fatal(err)
		}
		positions := 0
		for {
			resp, err := stream.Recv()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(resp.LastScannedRowKey) > 0 {
				positions++
			}
		}
		if (positions > 0) != knows {
			t.Errorf("client with LastScannedRowResponses=%v: got %d responses with a last scanned row", knows, positions)
		}
	}
}

// Error texts begin with a capital letter, as those of the service do.
func TestErrorTextsBeginWithACapital(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	capital := regexp.MustCompile(`^[A-Z]`)
	_, noTable := r.GetTable(r.ctx, &adminpb.GetTableRequest{Name: parent + "/tables/x"})
	_, noRows := r.SampleRowKeysAll(r.ctx, &bigtablepb.SampleRowKeysRequest{})
	_, again := r.CreateTable(r.ctx, &adminpb.CreateTableRequest{Parent: parent, TableId: tableID})
	_, badID := r.CreateTable(r.ctx, &adminpb.CreateTableRequest{Parent: parent, TableId: "-"})
	_, noMutations := r.MutateRow(r.ctx, &bigtablepb.MutateRowRequest{TableName: fullName, RowKey: []byte("r")})
	_, noFamily := r.MutateRow(r.ctx, &bigtablepb.MutateRowRequest{
		TableName: fullName, RowKey: []byte("r"), Mutations: []*bigtablepb.Mutation{setCell("x", "q", 1000, "v")},
	})
	_, badFilter := r.NewReader(r.ctx, &bigtablepb.ReadRowsRequest{TableName: fullName, Filter: &bigtablepb.RowFilter{
		Filter: &bigtablepb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte("(")},
	}})
	_, badLimit := r.NewReader(r.ctx, &bigtablepb.ReadRowsRequest{TableName: fullName, RowsLimit: -1})
	for i, err := range []error{noTable, noRows, again, badID, noMutations, noFamily, badFilter, badLimit} {
		if err == nil || !capital.MatchString(status.Convert(err).Message()) {
			t.Errorf("error %d: got %v, want a text that begins with a capital letter", i, err)
		}
	}
}
