package sqlschema_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ofType is a codec whose payloads have the type m, which has no Go type in this program.
type ofType struct {
	codec.Codec[*durationpb.Duration]
	m protoreflect.MessageDescriptor
}

func (c ofType) Messages() map[string]protoreflect.MessageDescriptor {
	return map[string]protoreflect.MessageDescriptor{c.Tag(): c.m}
}

// file returns a file from its text form; what it lacks are the path fleet.proto, the package fleet and the syntax proto3.
func file(t testing.TB, content string, imports ...protoreflect.FileDescriptor) protoreflect.FileDescriptor {
	t.Helper()
	f := new(descriptorpb.FileDescriptorProto)
	if err := prototext.Unmarshal([]byte(content), f); err != nil {
		t.Fatal(err)
	}
	if f.Name == nil {
		f.Name = proto.String("fleet.proto")
	}
	if f.Package == nil {
		f.Package = proto.String("fleet")
	}
	if f.Syntax == nil {
		f.Syntax = proto.String("proto3")
	}
	known := new(protoregistry.Files)
	for _, i := range imports {
		f.Dependency = append(f.Dependency, i.Path())
		if err := known.RegisterFile(i); err != nil {
			t.Fatal(err)
		}
	}
	out, err := protodesc.NewFile(f, known)
	if err != nil {
		t.Fatalf("%s: %v", content, err)
	}
	return out
}

// schema returns a schema whose payloads are messages of the first type of a file.
func schema(name string, f protoreflect.FileDescriptor) tsdb.Dataset {
	c := ofType{codec.Proto[*durationpb.Duration](), f.Messages().Get(0)}
	return tsdb.MustDefine(name, tsdb.Key("truck"), codec.Codec[*durationpb.Duration](c), tsdb.SchemaOptions{})
}

// reading returns a file with the message fleet.Reading with the given fields.
func reading(t testing.TB, fields ...string) protoreflect.FileDescriptor {
	t.Helper()
	return file(t, message("Reading", fields...))
}

func message(name string, fields ...string) string {
	return fmt.Sprintf("message_type { name: %q %s }", name, strings.Join(fields, " "))
}

// field returns a field such as "2 string name".
func field(of string) string {
	var number int
	var kind, name string
	if _, err := fmt.Sscanf(of, "%d %s %s", &number, &kind, &name); err != nil {
		panic(err)
	}
	label := "LABEL_OPTIONAL"
	if of, ok := strings.CutPrefix(kind, "repeated-"); ok {
		kind, label = of, "LABEL_REPEATED"
	}
	return fmt.Sprintf("field { number: %d name: %q type: TYPE_%s label: %s }", number, name, strings.ToUpper(kind), label)
}

// world is a store whose admin calls are counted.
type world struct {
	store *tsdb.Store
	conn  *tsdbtest.Conn
	admin *bigtable.AdminClient // without the counts

	mu        sync.Mutex
	calls     map[string]int
	unchecked int                       // updates without an etag, or that ignore warnings
	before    func(method string) error // is called before each admin call of the store
}

func open(t testing.TB, opts tsdbtest.Options, datasets ...tsdb.Dataset) *world {
	t.Helper()
	w := &world{calls: make(map[string]int)}
	opts.DialOptions = append(opts.DialOptions, grpc.WithChainUnaryInterceptor(w.intercept))
	w.store, w.conn = tsdbtest.Open(t, opts, datasets...)
	_, w.admin = tsdbtest.Clients(t, w.conn)
	w.reset()
	return w
}

func (w *world) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if name, ok := strings.CutPrefix(method, "/google.bigtable.admin.v2.BigtableTableAdmin/"); ok {
		w.mu.Lock()
		w.calls[name]++
		if r, ok := req.(*adminpb.UpdateSchemaBundleRequest); ok && (r.GetSchemaBundle().GetEtag() == "" || r.GetIgnoreWarnings()) {
			w.unchecked++
		}
		before := w.before
		w.mu.Unlock()
		if before != nil {
			if err := before(name); err != nil {
				return err
			}
		}
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

func (w *world) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = make(map[string]int)
}

// made returns how often the store made an admin call.
func (w *world) made(method string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[method]
}

// stored returns the files of the bundle.
func (w *world) stored(t testing.TB, bundle string) *protoregistry.Files {
	t.Helper()
	info, err := w.admin.GetSchemaBundle(t.Context(), tsdbtest.Table, bundle)
	if err != nil {
		t.Fatal(err)
	}
	set := new(descriptorpb.FileDescriptorSet)
	if err := proto.Unmarshal(info.SchemaBundle, set); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range set.File { // a file comes after its imports, as protoc writes them
		for _, path := range f.Dependency {
			for _, later := range set.File[i:] {
				if later.GetName() == path {
					t.Errorf("%s is not after its import %s", f.GetName(), path)
				}
			}
		}
	}
	return files
}

// fields returns the fields of a stored message as text.
func (w *world) fields(t testing.TB, bundle, message string) string {
	t.Helper()
	d, err := w.stored(t, bundle).FindDescriptorByName(protoreflect.FullName(message))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range d.(protoreflect.MessageDescriptor).Fields().Len() {
		f := d.(protoreflect.MessageDescriptor).Fields().Get(i)
		text := fmt.Sprintf("%d %s %s", f.Number(), f.Kind(), f.Name())
		if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() {
			text += " of " + string(o.Name())
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func (w *world) put(t testing.TB, bundle string, descriptors []byte) {
	t.Helper()
	if err := w.admin.CreateSchemaBundle(t.Context(), &bigtable.SchemaBundleConf{
		TableID: tsdbtest.Table, SchemaBundleID: bundle, ProtoSchema: &bigtable.ProtoSchemaInfo{ProtoDescriptors: descriptors},
	}); err != nil {
		t.Fatal(err)
	}
}
