package conform

import (
	"bytes"
	"cmp"
	"errors"
	"strings"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// bundle is a schema bundle of one case.
type bundle struct {
	*env
	id string
}

// descriptors returns a set with one file and one message, whose fields have the numbers 1, 2 and so on.
func descriptors(fields ...string) []byte {
	m := &descriptorpb.DescriptorProto{Name: proto.String("Reading")}
	for i, name := range fields {
		m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{
			Name: proto.String(name), JsonName: proto.String(name), Number: proto.Int32(int32(i + 1)),
			Type: descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		})
	}
	b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: proto.String("conform.proto"), Package: proto.String("conform"), Syntax: proto.String("proto3"), MessageType: []*descriptorpb.DescriptorProto{m},
	}}})
	return b
}

// onBundle runs a case with a bundle, whose message has the fields a and b, and deletes the bundle.
func onBundle(see func(b bundle) (string, error)) func(e *env) (string, error) {
	return func(e *env) (_ string, err error) {
		if status.Code(e.view) == codes.Unimplemented {
			return "", skipped("no authorized views, so no schema bundles: the official fake does not answer such calls, but panics")
		}
		b := bundle{e, "conform_" + strings.NewReplacer("#", "_", ".", "_").Replace(strings.Trim(e.prefix, "#"))}
		conf := b.conf(descriptors("a", "b"), "")
		if err := e.tables.CreateSchemaBundle(e.ctx, &conf); err != nil {
			got, err := code(err)
			return "the bundle was refused: " + got, err
		}
		defer func() {
			if e := e.tables.DeleteSchemaBundle(e.ctx, e.table, b.id); status.Code(e) != codes.NotFound {
				err = errors.Join(err, e)
			}
		}()
		return see(b)
	}
}

func (b bundle) conf(descriptors []byte, etag string) bigtable.SchemaBundleConf {
	return bigtable.SchemaBundleConf{
		TableID: b.table, SchemaBundleID: b.id, Etag: etag, ProtoSchema: &bigtable.ProtoSchemaInfo{ProtoDescriptors: descriptors},
	}
}

// update replaces the descriptors and says what is stored then: those of before, or those of the update.
func (b bundle) update(etag string, fields ...string) (string, error) {
	err := b.tables.UpdateSchemaBundle(b.ctx, bigtable.UpdateSchemaBundleConf{SchemaBundleConf: b.conf(descriptors(fields...), etag)})
	have, readErr := b.tables.GetSchemaBundle(b.ctx, b.table, b.id)
	switch {
	case readErr != nil:
		return "", readErr
	case bytes.Equal(have.SchemaBundle, descriptors(fields...)) && err == nil:
		return "replaced", nil
	case bytes.Equal(have.SchemaBundle, descriptors("a", "b")) && err != nil:
		if status.Code(err) == codes.Unknown {
			return "refused", nil // the client hides the code of an operation that has failed
		}
		return "refused: " + status.Code(err).String(), nil
	}
	return "neither as before nor as after", err
}

var bundleTests = []test{
	{
		name: "bundles/stored", claim: "a schema bundle is stored as it was given, with an etag", source: bundlePage, want: "as given, with an etag",
		see: onBundle(func(b bundle) (string, error) {
			have, err := b.tables.GetSchemaBundle(b.ctx, b.table, b.id)
			if err != nil {
				return code(err)
			}
			if bytes.Equal(have.SchemaBundle, descriptors("a", "b")) && have.Etag != "" {
				return "as given, with an etag", nil
			}
			return "other bytes, or no etag", nil
		}),
	},
	{
		name: "bundles/grow", claim: "a bundle is replaced by one with more fields, without ignoring warnings", source: adminAPI + "#updateschemabundlerequest", want: "replaced",
		see: onBundle(func(b bundle) (string, error) { return b.update("", "a", "b", "c") }),
	},
	{
		name: "bundles/shrink", claim: "a bundle is not replaced by one with fewer fields", source: adminAPI + "#updateschemabundlerequest", want: "refused: FailedPrecondition",
		see: onBundle(func(b bundle) (string, error) { return b.update("", "a") }),
	},
	{
		name: "bundles/etag", claim: "an update with an old etag changes nothing", source: adminAPI + "#schemabundle", want: "refused: Aborted",
		see: onBundle(func(b bundle) (string, error) {
			before, err := b.tables.GetSchemaBundle(b.ctx, b.table, b.id)
			if err != nil {
				return "", err
			}
			if got, err := b.update(before.Etag, "a", "b", "c"); err != nil || got != "replaced" {
				return "with the right etag: " + got, err
			}
			err = b.tables.UpdateSchemaBundle(b.ctx, bigtable.UpdateSchemaBundleConf{SchemaBundleConf: b.conf(descriptors("a", "b", "c", "d"), before.Etag)})
			have, readErr := b.tables.GetSchemaBundle(b.ctx, b.table, b.id)
			if readErr != nil || !bytes.Equal(have.SchemaBundle, descriptors("a", "b", "c")) {
				return "replaced", readErr
			}
			return "refused: " + status.Code(err).String(), nil
		}),
	},
	{
		name: "bundles/twice", claim: "a bundle that exists is not made again", source: adminAPI + "#createschemabundlerequest", want: "AlreadyExists",
		see: onBundle(func(b bundle) (string, error) {
			conf := b.conf(descriptors("a"), "")
			return code(b.tables.CreateSchemaBundle(b.ctx, &conf))
		}),
	},
	{
		name: "bundles/deleted", claim: "a deleted bundle is NotFound, and not in the list", source: bundlePage, want: "listed; then NotFound and not listed",
		see: onBundle(func(b bundle) (string, error) {
			before, err := b.tables.SchemaBundles(b.ctx, b.table)
			if err := cmp.Or(err, b.tables.DeleteSchemaBundle(b.ctx, b.table, b.id)); err != nil {
				return "", err
			}
			_, gone := b.tables.GetSchemaBundle(b.ctx, b.table, b.id)
			after, err := b.tables.SchemaBundles(b.ctx, b.table)
			if err != nil {
				return "", err
			}
			return listed(before, b.id) + "; then " + status.Code(gone).String() + " and " + listed(after, b.id), nil
		}),
	},
}

func listed(ids []string, id string) string {
	for _, have := range ids {
		if have == id {
			return "listed"
		}
	}
	return "not listed"
}
