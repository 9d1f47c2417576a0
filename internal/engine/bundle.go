package engine

import (
	"cmp"
	"fmt"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// maxBundle bounds the descriptors of a bundle, which stay in memory.
const maxBundle = 4 << 20

// bundle is a schema bundle: descriptors of protobuf messages. It never changes after it is published.
type bundle struct{ message *adminpb.SchemaBundle }

// newBundle checks the descriptors of a request and makes a bundle of them. It keeps their bytes.
func newBundle(name string, of *adminpb.SchemaBundle) (*bundle, error) {
	if of.GetAvroSchema() != nil {
		return nil, unimplementedf("Avro schemas are not offered")
	}
	descriptors := of.GetProtoSchema().GetProtoDescriptors()
	if n := len(descriptors); n == 0 || n > maxBundle {
		return nil, invalidf("Field proto_descriptors has %d bytes, want 1 to %d", n, maxBundle)
	}
	b := &bundle{message: &adminpb.SchemaBundle{Name: name, Type: &adminpb.SchemaBundle_ProtoSchema{
		ProtoSchema: &adminpb.ProtoSchema{ProtoDescriptors: append([]byte(nil), descriptors...)},
	}}}
	if _, err := b.files(); err != nil {
		return nil, invalidf("Field proto_descriptors: %v", err)
	}
	return b, nil
}

// files parses the descriptors. They must be complete: each import is in the set.
func (b *bundle) files() (*protoregistry.Files, error) {
	set := new(descriptorpb.FileDescriptorSet)
	if err := proto.Unmarshal(b.message.GetProtoSchema().GetProtoDescriptors(), set); err != nil {
		return nil, err
	}
	if len(set.GetFile()) == 0 {
		return nil, fmt.Errorf("the set has no file")
	}
	return protodesc.NewFiles(set)
}

// replacedBy returns an error if next cannot describe what b does.
func (b *bundle) replacedBy(next *bundle) error {
	old, err := b.files()
	if err != nil {
		return fmt.Errorf("%w: schema bundle %s: %w", ErrDamaged, b.message.GetName(), err)
	}
	files, err := next.files()
	if err != nil {
		return err
	}
	old.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		err = eachMessage(f.Messages(), func(m protoreflect.MessageDescriptor) error {
			d, _ := files.FindDescriptorByName(m.FullName())
			now, ok := d.(protoreflect.MessageDescriptor)
			if !ok {
				return incompatible("message %s was removed", m.FullName())
			}
			return sameFields(m.Fields(), now.Fields())
		})
		return err == nil
	})
	return err
}

func eachMessage(of protoreflect.MessageDescriptors, fn func(protoreflect.MessageDescriptor) error) error {
	for i := range of.Len() {
		if err := cmp.Or(fn(of.Get(i)), eachMessage(of.Get(i).Messages(), fn)); err != nil {
			return err
		}
	}
	return nil
}

func sameFields(old, now protoreflect.FieldDescriptors) error {
	for i := range old.Len() {
		a := old.Get(i)
		b := now.ByNumber(a.Number())
		switch {
		case b == nil:
			return incompatible("field %s was removed", a.FullName())
		case b.Name() != a.Name(), b.Kind() != a.Kind(), b.IsList() != a.IsList(), typeName(a) != typeName(b):
			return incompatible("field %s (number %d) was changed", a.FullName(), a.Number())
		}
	}
	return nil
}

// typeName returns the name of a field's message or enum, and "" for other fields.
func typeName(f protoreflect.FieldDescriptor) protoreflect.FullName {
	if m := f.Message(); m != nil {
		return m.FullName()
	}
	if e := f.Enum(); e != nil {
		return e.FullName()
	}
	return ""
}

func incompatible(format string, args ...any) error {
	return status.Errorf(codes.FailedPrecondition, "The schema bundle is not backward compatible: "+format, args...)
}

func encodeBundle(m *adminpb.SchemaBundle) ([]byte, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{recordVersion}, m)
	if err != nil {
		return nil, fmt.Errorf("engine: encoding a schema bundle's record: %w", err)
	}
	return b, nil
}

// loadBundles reads the schema bundles of a table.
func (e *Engine) loadBundles(t *table) error {
	bundles := make(map[string]*bundle)
	err := e.eachRecord(keyBundles(t.id), func(id string, value []byte) error {
		if len(value) == 0 || value[0] != recordVersion {
			return fmt.Errorf("%w: schema bundle record of an unknown version", ErrDamaged)
		}
		m := new(adminpb.SchemaBundle)
		if err := proto.Unmarshal(value[1:], m); err != nil {
			return fmt.Errorf("%w: schema bundle record: %w", ErrDamaged, err)
		}
		bundles[id] = &bundle{message: m}
		return nil
	})
	if err != nil {
		return err
	}
	t.bundles.Store(&bundles)
	return nil
}
