package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/tidemark-go/tidemark/internal/engine"
)

// descriptors returns a serialized set with one file, which has the given content in text format.
func descriptors(t *testing.T, content string) []byte {
	t.Helper()
	set := new(descriptorpb.FileDescriptorSet)
	if err := prototext.Unmarshal([]byte(fmt.Sprintf(`file { name: "a.proto" package: "p" syntax: "proto3" %s }`, content)), set); err != nil {
		t.Fatal(err)
	}
	b, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	oneField  = `message_type { name: "M" field { name: "a" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL } }`
	twoFields = `message_type { name: "M" field { name: "a" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL } field { name: "b" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL } }`
)

func bundleConf(id string, descriptors []byte, etag string) bigtable.SchemaBundleConf {
	return bigtable.SchemaBundleConf{
		TableID: tableID, SchemaBundleID: id, Etag: etag, ProtoSchema: &bigtable.ProtoSchemaInfo{ProtoDescriptors: descriptors},
	}
}

func createBundle(r *rig, id string, descriptors []byte) error {
	conf := bundleConf(id, descriptors, "")
	return r.admin.CreateSchemaBundle(r.ctx, &conf)
}

func updateBundle(r *rig, id string, descriptors []byte, etag string, force bool) error {
	return r.admin.UpdateSchemaBundle(r.ctx, bigtable.UpdateSchemaBundleConf{SchemaBundleConf: bundleConf(id, descriptors, etag), IgnoreWarnings: force})
}

// TestSchemaBundles through the official client: they are stored as given, replaced with etags, listed and deleted.
func TestSchemaBundles(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	first, second := descriptors(t, oneField), descriptors(t, twoFields)
	for _, id := range []string{"b", "a"} {
		if err := createBundle(r, id, first); err != nil {
			t.Fatal(err)
		}
	}
	if err := createBundle(r, "a", first); status.Code(err) != codes.AlreadyExists {
		t.Errorf("a second bundle of one name: %v, want AlreadyExists", err)
	}
	if got, err := r.admin.SchemaBundles(r.ctx, tableID); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("bundles are %q (%v), want a and b", got, err)
	}
	page, err := r.ListSchemaBundles(r.ctx, &adminpb.ListSchemaBundlesRequest{Parent: fullName, PageSize: 1})
	if err != nil || len(page.SchemaBundles) != 1 || page.NextPageToken == "" {
		t.Errorf("a page of one bundle is %v (%v)", page, err)
	}
	before, err := r.admin.GetSchemaBundle(r.ctx, tableID, "a")
	if err != nil || !bytes.Equal(before.SchemaBundle, first) || before.Etag == "" {
		t.Fatalf("read %+v (%v), want what was stored, and an etag", before, err)
	}
	if err := updateBundle(r, "a", second, before.Etag, false); err != nil {
		t.Fatal(err)
	}
	if err := updateBundle(r, "a", second, before.Etag, false); status.Code(err) != codes.Aborted {
		t.Errorf("an update with an old etag: %v, want Aborted", err)
	}
	after, err := r.admin.GetSchemaBundle(r.ctx, tableID, "a")
	if err != nil || !bytes.Equal(after.SchemaBundle, second) || after.Etag == before.Etag {
		t.Errorf("read %+v (%v), want the update with another etag", after, err)
	}
	if _, err := r.Engine.DeleteSchemaBundle(r.ctx, &adminpb.DeleteSchemaBundleRequest{Name: fullName + "/schemaBundles/a", Etag: before.Etag}); status.Code(err) != codes.Aborted {
		t.Errorf("a deletion with an old etag: %v, want Aborted", err)
	}
	if err := r.admin.DeleteSchemaBundle(r.ctx, tableID, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.admin.GetSchemaBundle(r.ctx, tableID, "a"); status.Code(err) != codes.NotFound {
		t.Errorf("a deleted bundle: %v, want NotFound", err)
	}
	if err := r.admin.DeleteSchemaBundle(r.ctx, tableID, "a"); status.Code(err) != codes.NotFound {
		t.Errorf("deleting a bundle twice: %v, want NotFound", err)
	}
	if got, err := r.admin.SchemaBundles(r.ctx, tableID); err != nil || !slices.Equal(got, []string{"b"}) {
		t.Errorf("bundles are %q (%v), want b", got, err)
	}
}

// TestSchemaBundlesOnDisk: bundles survive the process, and end with their table.
func TestSchemaBundlesOnDisk(t *testing.T) {
	dir := t.TempDir()
	r := open(t, engine.Options{Dir: dir})
	r.create(t)
	want := descriptors(t, oneField)
	if err := createBundle(r, "a", want); err != nil {
		t.Fatal(err)
	}
	r = reopen(t, r, engine.Options{Dir: dir})
	if got, err := r.admin.GetSchemaBundle(r.ctx, tableID, "a"); err != nil || !bytes.Equal(got.SchemaBundle, want) {
		t.Errorf("after reopening: %+v (%v)", got, err)
	}
	if err := r.admin.DeleteTable(r.ctx, tableID); err != nil {
		t.Fatal(err)
	}
	if _, err := r.admin.SchemaBundles(r.ctx, tableID); status.Code(err) != codes.NotFound {
		t.Errorf("bundles of a deleted table: %v, want NotFound", err)
	}
	r.create(t)
	for range 2 {
		if got, err := r.admin.SchemaBundles(r.ctx, tableID); err != nil || len(got) > 0 {
			t.Errorf("a new table of the same name has bundles %q (%v)", got, err)
		}
		r = reopen(t, r, engine.Options{Dir: dir})
	}
}

// TestSchemaBundlesRefused: what the engine does not store, and the bundle that stays as it was.
func TestSchemaBundlesRefused(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	first := descriptors(t, twoFields)
	for name, tc := range map[string]struct {
		id          string
		descriptors []byte
	}{
		"no name":                {"", first},
		"a name with a slash":    {"a/b", first},
		"a long name":            {strings.Repeat("a", 51), first},
		"no descriptors":         {"a", nil},
		"no file":                {"a", []byte{}},
		"no descriptor set":      {"a", []byte("text")},
		"an import that misses":  {"a", descriptors(t, `dependency: "b.proto"`)},
		"a type that misses":     {"a", descriptors(t, `message_type { name: "M" field { name: "a" number: 1 type: TYPE_MESSAGE type_name: ".p.N" label: LABEL_OPTIONAL } }`)},
		"two fields of a number": {"a", descriptors(t, strings.Replace(twoFields, "number: 2", "number: 1", 1))},
		"over 4 MiB":             {"a", append(slices.Clone(first), make([]byte, 4<<20)...)},
	} {
		_, err := r.CreateSchemaBundle(r.ctx, &adminpb.CreateSchemaBundleRequest{Parent: fullName, SchemaBundleId: tc.id, SchemaBundle: &adminpb.SchemaBundle{
			Type: &adminpb.SchemaBundle_ProtoSchema{ProtoSchema: &adminpb.ProtoSchema{ProtoDescriptors: tc.descriptors}},
		}})
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v, want InvalidArgument", name, err)
		}
	}
	avro := &adminpb.SchemaBundle{Type: &adminpb.SchemaBundle_AvroSchema{AvroSchema: &adminpb.AvroSchema{JsonSchemas: []string{"{}"}}}}
	if _, err := r.CreateSchemaBundle(r.ctx, &adminpb.CreateSchemaBundleRequest{Parent: fullName, SchemaBundleId: "a", SchemaBundle: avro}); status.Code(err) != codes.Unimplemented {
		t.Errorf("an Avro schema: %v, want Unimplemented", err)
	}
	if err := createBundle(r, "a", first); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"without the message": "", "without a field": oneField,
		"a renamed field": strings.Replace(twoFields, `"b"`, `"c"`, 1), "a field of another type": strings.Replace(twoFields, "TYPE_STRING", "TYPE_BYTES", 1),
		"a repeated field": strings.Replace(twoFields, "TYPE_STRING label: LABEL_OPTIONAL", "TYPE_STRING label: LABEL_REPEATED", 1),
	} {
		if err := updateBundle(r, "a", descriptors(t, content), "", false); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "p.M") {
			t.Errorf("%s: %v, want FailedPrecondition with the name", name, err)
		}
	}
	for path, want := range map[string]codes.Code{"name": codes.InvalidArgument, "proto_schema": codes.OK, "proto_schema.proto_descriptors": codes.OK} {
		_, err := r.UpdateSchemaBundle(r.ctx, &adminpb.UpdateSchemaBundleRequest{UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{path}}, SchemaBundle: &adminpb.SchemaBundle{
			Name: fullName + "/schemaBundles/a", Type: &adminpb.SchemaBundle_ProtoSchema{ProtoSchema: &adminpb.ProtoSchema{ProtoDescriptors: first}},
		}})
		if status.Code(err) != want {
			t.Errorf("update_mask %s: %v, want %v", path, err, want)
		}
	}
	if got, err := r.admin.GetSchemaBundle(r.ctx, tableID, "a"); err != nil || !bytes.Equal(got.SchemaBundle, first) {
		t.Errorf("after refused updates: %+v (%v)", got, err)
	}
	if err := updateBundle(r, "a", descriptors(t, oneField), "", true); err != nil {
		t.Errorf("an update that ignores warnings: %v", err)
	}
	for name, see := range map[string]func(ctx context.Context, name string) error{
		"get": func(ctx context.Context, name string) error {
			_, err := r.GetSchemaBundle(ctx, &adminpb.GetSchemaBundleRequest{Name: name})
			return err
		},
		"delete": func(ctx context.Context, name string) error {
			_, err := r.DeleteSchemaBundle(ctx, &adminpb.DeleteSchemaBundleRequest{Name: name})
			return err
		},
	} {
		if err := see(r.ctx, fullName); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s of a name that is no bundle's: %v, want InvalidArgument", name, err)
		}
		if err := see(r.ctx, parent+"/tables/none/schemaBundles/a"); status.Code(err) != codes.NotFound {
			t.Errorf("%s in a missing table: %v, want NotFound", name, err)
		}
	}
}
