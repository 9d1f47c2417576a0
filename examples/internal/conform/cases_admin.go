package conform

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

func age(d time.Duration) *adminpb.GcRule {
	return &adminpb.GcRule{Rule: &adminpb.GcRule_MaxAge{MaxAge: durationpb.New(d)}}
}

func versionsOf(n int32) *adminpb.GcRule {
	return &adminpb.GcRule{Rule: &adminpb.GcRule_MaxNumVersions{MaxNumVersions: n}}
}

// families makes families in the scratch table, and compares what is stored with what was asked for.
func (e *env) families(want map[string]*adminpb.ColumnFamily, same func(want, got *adminpb.ColumnFamily) bool) (string, error) {
	req := &adminpb.ModifyColumnFamiliesRequest{Name: e.path(e.table)}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		req.Modifications = append(req.Modifications, &adminpb.ModifyColumnFamiliesRequest_Modification{
			Id: name, Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Create{Create: proto.CloneOf(want[name])},
		})
	}
	if _, err := e.admin.ModifyColumnFamilies(e.adminAt("name", req.Name), req); err != nil {
		got, err := code(err)
		return cmp.Or(got, "refused"), err
	}
	table, err := e.admin.GetTable(e.adminAt("name", req.Name), &adminpb.GetTableRequest{Name: req.Name, View: adminpb.Table_FULL})
	if err != nil {
		return "", err
	}
	var other []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got := table.GetColumnFamilies()[name]; !same(want[name], got) {
			other = append(other, fmt.Sprintf("%s is {%s}", name, prototext.MarshalOptions{}.Format(got)))
		}
	}
	if len(other) > 0 {
		return oneLine(strings.Join(other, ", ")), nil
	}
	return "as given", nil
}

var adminTests = []test{
	{
		name: "policies/stored", claim: "GC rules are stored as they were given", source: adminAPI + "#gcrule", want: "as given",
		see: func(e *env) (string, error) {
			rule := func(r *adminpb.GcRule) *adminpb.ColumnFamily { return &adminpb.ColumnFamily{GcRule: r} }
			return e.families(map[string]*adminpb.ColumnFamily{
				"g_age": rule(age(36*time.Hour + time.Second)), "g_versions": rule(versionsOf(3)),
				"g_union": rule(&adminpb.GcRule{Rule: &adminpb.GcRule_Union_{Union: &adminpb.GcRule_Union{Rules: []*adminpb.GcRule{age(time.Hour), versionsOf(1)}}}}),
				"g_both": rule(&adminpb.GcRule{Rule: &adminpb.GcRule_Intersection_{Intersection: &adminpb.GcRule_Intersection{Rules: []*adminpb.GcRule{
					age(time.Hour), versionsOf(1),
				}}}}),
				"g_never": rule(nil),
			}, func(want, got *adminpb.ColumnFamily) bool {
				// a rule that is not set means never, and so may an empty one
				return got != nil && (proto.Equal(want.GetGcRule(), got.GetGcRule()) || want.GetGcRule() == nil && got.GetGcRule().GetRule() == nil)
			})
		},
	},
	{
		name: "types/stored", claim: "families keep the value types that they were given", source: adminAPI + "#type", want: "as given",
		see: func(e *env) (string, error) {
			kind := func(k *adminpb.Type) *adminpb.ColumnFamily { return &adminpb.ColumnFamily{ValueType: k} }
			number := &adminpb.Type{Kind: &adminpb.Type_Int64Type{Int64Type: &adminpb.Type_Int64{Encoding: &adminpb.Type_Int64_Encoding{
				Encoding: &adminpb.Type_Int64_Encoding_BigEndianBytes_{BigEndianBytes: &adminpb.Type_Int64_Encoding_BigEndianBytes{}},
			}}}}
			return e.families(map[string]*adminpb.ColumnFamily{
				"t_bytes": kind(&adminpb.Type{Kind: &adminpb.Type_BytesType{BytesType: &adminpb.Type_Bytes{Encoding: &adminpb.Type_Bytes_Encoding{
					Encoding: &adminpb.Type_Bytes_Encoding_Raw_{Raw: &adminpb.Type_Bytes_Encoding_Raw{}},
				}}}}),
				"t_text": kind(&adminpb.Type{Kind: &adminpb.Type_StringType{StringType: &adminpb.Type_String{Encoding: &adminpb.Type_String_Encoding{
					Encoding: &adminpb.Type_String_Encoding_Utf8Bytes_{Utf8Bytes: &adminpb.Type_String_Encoding_Utf8Bytes{}},
				}}}}),
				"t_number": kind(number),
			}, func(want, got *adminpb.ColumnFamily) bool {
				return proto.Equal(want.GetValueType(), got.GetValueType())
			})
		},
	},
	{
		name: "types/aggregate", claim: "a family that aggregates says how, with its input and its state", source: adminAPI + "#type", want: "sum of int64 in int64", aggregates: true,
		see: func(e *env) (string, error) {
			table, err := e.admin.GetTable(e.adminAt("name", e.path(e.table)), &adminpb.GetTableRequest{Name: e.path(e.table), View: adminpb.Table_FULL})
			if err != nil {
				return "", err
			}
			a := table.GetColumnFamilies()[sums].GetValueType().GetAggregateType()
			if a.GetSum() != nil && a.GetInputType().GetInt64Type() != nil && a.GetStateType().GetInt64Type() != nil {
				return "sum of int64 in int64", nil
			}
			return oneLine(prototext.MarshalOptions{}.Format(a)), nil
		},
	},
	{
		name: "tables/missing", claim: "GetTable of a table that does not exist is NotFound", source: adminAPI + "#gettablerequest", want: "NotFound",
		see: func(e *env) (string, error) {
			name := e.path(e.table + "-none")
			_, err := e.admin.GetTable(e.adminAt("name", name), &adminpb.GetTableRequest{Name: name})
			return code(err)
		},
	},
	{
		name: "tables/existing", claim: "a table that exists is not made again", source: adminAPI + "#createtablerequest", want: "AlreadyExists",
		see: func(e *env) (string, error) { return code(e.tables.CreateTable(e.ctx, e.table)) },
	},
	{
		name: "tables/existing family", claim: "a family that exists is not made again", source: adminAPI + "#modifycolumnfamiliesrequest", want: "AlreadyExists",
		see: func(e *env) (string, error) { return code(e.tables.CreateColumnFamily(e.ctx, e.table, plain)) },
	},
	{
		name: "samples/table", claim: "sampled keys rise, and so do their offsets; the last key is empty", source: dataAPI + "#samplerowkeysresponse", want: "rising, then the end",
		see: func(e *env) (string, error) {
			if err := e.write("r", set("v")); err != nil {
				return "", err
			}
			stream, err := e.data.SampleRowKeys(e.at(), &bigtablepb.SampleRowKeysRequest{TableName: e.path(e.table), AppProfileId: e.profile()})
			if err != nil {
				return "", err
			}
			samples, err := received(stream)
			if err != nil || len(samples) == 0 {
				return "no samples", err
			}
			for i, s := range samples[1:] {
				if last := len(s.RowKey) == 0 && i == len(samples)-2; !last && string(s.RowKey) <= string(samples[i].RowKey) || s.OffsetBytes < samples[i].OffsetBytes {
					return fmt.Sprintf("%.40q at %d after %.40q at %d", s.RowKey, s.OffsetBytes, samples[i].RowKey, samples[i].OffsetBytes), nil
				}
			}
			if last := samples[len(samples)-1]; len(last.RowKey) > 0 {
				return fmt.Sprintf("the last key is %.40q", last.RowKey), nil
			}
			return "rising, then the end", nil
		},
	},
}

func received(stream bigtablepb.Bigtable_SampleRowKeysClient) (all []*bigtablepb.SampleRowKeysResponse, err error) {
	for {
		s, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
}

// viewRows is the prefix of the rows of the view, which has all columns of one family.
const viewRows = "view#"

// seen runs a case of the view, with a row in it and one outside.
func seen(see func(e *env, view bigtable.TableAPI) (string, error)) func(e *env) (string, error) {
	return func(e *env) (string, error) {
		if e.view != nil {
			got, err := code(e.view)
			return "the view was refused: " + got, err
		}
		e.prefix = viewRows + e.prefix
		if err := errors.Join(e.write("in", set("in")), e.send("outside", nil, set("outside"))); err != nil {
			return "", err
		}
		return see(e, e.cond.OpenAuthorizedView(e.table, viewID))
	}
}

func mutation(family, value string) *bigtable.Mutation {
	m := bigtable.NewMutation()
	m.Set(family, "q", 1000, []byte(value))
	return m
}

var viewTests = []test{
	{
		name: "views/read", claim: "a read of everything returns the rows of the view alone", source: viewPage, want: "true",
		see: seen(func(e *env, view bigtable.TableAPI) (string, error) {
			keys, err := e.keysOf(view, bigtable.InfiniteRange(""))
			inside := len(keys) > 0
			for _, k := range keys {
				inside = inside && (strings.HasPrefix(e.prefix+k, viewRows) && k != "outside")
			}
			return fmt.Sprint(inside), err
		}),
	},
	{
		name: "views/row outside", claim: "a row outside of the view is read as nothing", source: viewPage, want: "OK, nothing",
		see: seen(func(e *env, view bigtable.TableAPI) (string, error) {
			r, err := view.ReadRow(e.ctx, "outside")
			if got, err := code(err); err != nil || r == nil {
				return got + ", nothing", err
			}
			return "the row", nil
		}),
	},
	{
		name: "views/write", claim: "a row of the view can be written", source: viewPage, want: "OK: f:q=new",
		see: seen(func(e *env, view bigtable.TableAPI) (string, error) {
			return e.after("in", view.Apply(e.ctx, e.prefix+"in", mutation(plain, "new")))
		}),
	},
	{
		name: "views/write outside", claim: "a row outside of the view cannot be written", source: viewPage, want: "PermissionDenied",
		see: seen(func(e *env, view bigtable.TableAPI) (string, error) {
			return code(view.Apply(e.ctx, "outside", mutation(plain, "new")))
		}),
	},
	{
		name: "views/other family", claim: "a family outside of the view cannot be written", source: viewPage, want: "PermissionDenied", aggregates: true,
		see: seen(func(e *env, view bigtable.TableAPI) (string, error) {
			m := bigtable.NewMutation()
			m.AddIntToCell(sums, "n", 1000, 1)
			return code(view.Apply(e.ctx, e.prefix+"in", m))
		}),
	},
	{
		name: "views/delete family", claim: "a family that is wholly in the view can be deleted from a row", source: viewPage, want: "OK: nothing",
		see: seen(func(e *env, view bigtable.TableAPI) (string, error) {
			m := bigtable.NewMutation()
			m.DeleteCellsInFamily(plain)
			return e.after("in", view.Apply(e.ctx, e.prefix+"in", m))
		}),
	},
	{
		name: "views/conditional", claim: "a conditional write goes through the view", source: viewPage, want: "OK: f:q=new",
		see: seen(func(e *env, view bigtable.TableAPI) (string, error) {
			return e.after("in", view.Apply(e.ctx, e.prefix+"in", bigtable.NewCondMutation(bigtable.PassAllFilter(), mutation(plain, "new"), nil)))
		}),
	},
	{
		name: "views/samples", claim: "the last sampled key of a view is where its rows end", source: viewPage, want: "view$",
		see: seen(func(e *env, view bigtable.TableAPI) (string, error) {
			keys, err := view.SampleRowKeys(e.ctx)
			if err != nil || len(keys) == 0 {
				got, err := code(err)
				return got + ", no samples", err
			}
			return keys[len(keys)-1], nil
		}),
	},
	{
		name: "views/missing", claim: "a view that does not exist is NotFound", source: errorPage, want: "NotFound",
		see: func(e *env) (string, error) {
			_, err := e.cond.OpenAuthorizedView(e.table, "none").ReadRow(e.ctx, viewRows)
			return code(err)
		},
	},
	{
		name: "views/stored", claim: "a view is stored as it was given", source: adminAPI + "#authorizedview", want: "rows view#, all columns of c_f",
		see: seen(func(e *env, _ bigtable.TableAPI) (string, error) {
			info, err := e.tables.AuthorizedViewInfo(e.ctx, e.table, viewID)
			if err != nil {
				got, err := code(err)
				return got, err
			}
			v, ok := info.AuthorizedView.(*bigtable.SubsetViewInfo)
			if !ok {
				return "not a subset", nil
			}
			var columns []string
			for name, f := range v.FamilySubsets {
				if len(f.Qualifiers) == 0 && len(f.QualifierPrefixes) == 1 && len(f.QualifierPrefixes[0]) == 0 {
					name = "all columns of " + name
				}
				columns = append(columns, name)
			}
			return fmt.Sprintf("rows %s, %s", v.RowPrefixes[0], strings.Join(columns, " ")), nil
		}),
	},
}
