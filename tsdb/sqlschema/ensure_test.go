package sqlschema_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/sqlschema"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestEnsure: the bundle has the messages of all codecs with their imports, each file once, and a second call writes nothing.
func TestEnsure(t *testing.T) {
	structs := tsdb.MustDefine("structs", tsdb.Key("id"), codec.Proto[*structpb.Struct](), tsdb.SchemaOptions{})
	durations := file(t, `name: "trip.proto" service { name: "S" } message_type { name: "Trip" reserved_range { start: 5 end: 9 } reserved_name: "gone"
		field { name: "took" number: 1 type: TYPE_MESSAGE type_name: ".google.protobuf.Duration" label: LABEL_OPTIONAL } }`, durationpb.File_google_protobuf_duration_proto)
	stops := file(t, `name: "stop.proto" message_type { name: "Stop"
		field { name: "took" number: 1 type: TYPE_MESSAGE type_name: ".google.protobuf.Duration" label: LABEL_OPTIONAL } }`, durationpb.File_google_protobuf_duration_proto)
	datasets := []tsdb.Dataset{structs, schema("trips", durations), schema("stops", stops)}
	w := open(t, tsdbtest.Options{}, datasets...)
	if err := sqlschema.Ensure(t.Context(), w.store, "payloads", datasets...); err != nil {
		t.Fatal(err)
	}
	files := w.stored(t, "payloads")
	if got := files.NumFiles(); got != 4 {
		t.Errorf("the bundle has %d files, want 4: struct, trip, stop, and duration once", got)
	}
	for _, name := range []protoreflect.FullName{"google.protobuf.Struct", "google.protobuf.Duration", "fleet.Trip", "fleet.Stop"} {
		if _, err := files.FindDescriptorByName(name); err != nil {
			t.Errorf("SQL cannot read %s: %v", name, err)
		}
	}
	if d, err := files.FindDescriptorByName("fleet.Trip"); err == nil && d.(protoreflect.MessageDescriptor).ReservedRanges().Len() > 0 {
		t.Error("the bundle has reserved numbers, which would refuse fields of older programs")
	}
	if _, err := files.FindDescriptorByName("fleet.S"); err == nil {
		t.Error("the bundle has a service")
	}
	w.reset()
	for range 2 {
		if err := sqlschema.Ensure(t.Context(), w.store, "payloads", datasets[1], datasets[0]); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.made("GetSchemaBundle"); got != 2 || w.made("UpdateSchemaBundle")+w.made("CreateSchemaBundle") > 0 {
		t.Errorf("two more calls made %v, want a read each and no write", w.calls)
	}
	if err := sqlschema.Ensure(t.Context(), w.store, "unused"); err != nil || w.made("CreateSchemaBundle") > 0 {
		t.Errorf("without datasets: %v, %v, want nothing", err, w.calls)
	}
}

// TestRollingUpgrade: in whatever order programs of three versions start, the bundle ends with the fields of all.
func TestRollingUpgrade(t *testing.T) {
	versions := []protoreflect.FileDescriptor{
		reading(t, field("1 string id"), field("2 double temp"), field("3 int64 old")),
		reading(t, field("1 string id"), field("2 double temp"), "reserved_range { start: 3 end: 4 }", field("4 bytes raw")),
		reading(t, field("1 string id"), "reserved_range { start: 3 end: 5 }", "oneof_decl { name: \"load\" }",
			`field { number: 5 name: "full" type: TYPE_BOOL label: LABEL_OPTIONAL oneof_index: 0 }`, "nested_type { name: \"N\" }",
			"enum_type { name: \"E\" value { name: \"ZERO\" number: 0 } }", field("2 double temp")),
	}
	want := map[string]bool{"1 string id": true, "2 double temp": true, "3 int64 old": true, "4 bytes raw": true, "5 bool full of load": true}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}, {1, 0, 2}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			w := open(t, tsdbtest.Options{}, schema("readings", versions[0]))
			for _, v := range append(order, order...) {
				if err := sqlschema.Ensure(t.Context(), w.store, "payloads", schema("readings", versions[v])); err != nil {
					t.Fatalf("version %d: %v", v, err)
				}
			}
			if n := w.made("CreateSchemaBundle") + w.made("UpdateSchemaBundle"); n > 3 {
				t.Errorf("%d writes, want one for each version at most", n)
			}
			fields := w.fields(t, "payloads", "fleet.Reading")
			for f := range want {
				if !strings.Contains(fields, f) {
					t.Errorf("the bundle lacks %s: %s", f, fields)
				}
			}
			if got := strings.Count(fields, ", ") + 1; got != len(want) {
				t.Errorf("the bundle has %s", fields)
			}
			for _, name := range []protoreflect.FullName{"fleet.Reading.N", "fleet.Reading.E"} {
				if _, err := w.stored(t, "payloads").FindDescriptorByName(name); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestConcurrent: programs that start at once add all that they declare, in any order of their writes.
func TestConcurrent(t *testing.T) {
	w := open(t, tsdbtest.Options{}, schema("readings", reading(t, field("1 string id"))))
	const programs = 6
	var all sync.WaitGroup
	for i := range programs {
		d := schema("readings", reading(t, field("1 string id"), field(fmt.Sprintf("%d int64 f%d", 10+i, i))))
		all.Go(func() {
			if err := sqlschema.Ensure(t.Context(), w.store, "payloads", d); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := strings.Count(w.fields(t, "payloads", "fleet.Reading"), "int64"); got != programs {
		t.Errorf("the bundle has the fields of %d programs, want %d", got, programs)
	}
}

// TestFasterProgram: between the read and the write of a call, another program creates, updates or deletes the bundle.
func TestFasterProgram(t *testing.T) {
	mine, other := schema("readings", reading(t, field("1 string id"))), schema("readings", reading(t, field("2 string other")))
	for name, tc := range map[string]struct {
		exists bool
		at     string
		do     func(ctx context.Context, w *world, other *world) error
	}{
		"created": {false, "CreateSchemaBundle", func(ctx context.Context, w, o *world) error {
			return sqlschema.Ensure(ctx, o.store, "payloads", other)
		}},
		"updated": {true, "UpdateSchemaBundle", func(ctx context.Context, w, o *world) error {
			return sqlschema.Ensure(ctx, o.store, "payloads", schema("readings", reading(t, field("3 string third"))))
		}},
		"deleted": {true, "UpdateSchemaBundle", func(ctx context.Context, w, o *world) error {
			return w.admin.DeleteSchemaBundle(ctx, tsdbtest.Table, "payloads")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, tsdbtest.Options{}, mine)
			client, admin := tsdbtest.Clients(t, w.conn)
			store, err := tsdb.New(client, tsdbtest.Table, tsdb.Options{Admin: admin})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			if tc.exists {
				if err := sqlschema.Ensure(t.Context(), w.store, "payloads", other); err != nil {
					t.Fatal(err)
				}
			}
			var once sync.Once
			w.before = func(method string) (err error) {
				if method == tc.at {
					once.Do(func() { err = tc.do(t.Context(), w, &world{store: store}) })
				}
				return err
			}
			if err := sqlschema.Ensure(t.Context(), w.store, "payloads", mine); err != nil {
				t.Fatal(err)
			}
			if w.unchecked > 0 {
				t.Error("an update could overwrite that of another program")
			}
			fields := w.fields(t, "payloads", "fleet.Reading")
			if !strings.Contains(fields, "id") || name == "updated" && !strings.Contains(fields, "third") || name == "created" && !strings.Contains(fields, "other") {
				t.Errorf("the bundle has %s", fields)
			}
		})
	}
}

// TestErrors: what cannot be stored is refused before anything is sent; errors of the service come with the bundle's name.
func TestErrors(t *testing.T) {
	good := schema("readings", reading(t, field("1 string id")))
	jsons := tsdb.MustDefine("jsons", tsdb.Key("id"), codec.JSON[int](), tsdb.SchemaOptions{})
	packed := tsdb.MustDefine("packed", tsdb.Key("id"), zstd.Wrap(codec.Proto[*durationpb.Duration](), zstd.Options{}), tsdb.SchemaOptions{})
	same := schema("others", reading(t, field("1 bytes id")))
	huge := schema("huge", file(t, fmt.Sprintf(`options { go_package: %q } message_type { name: "M" }`, strings.Repeat("x", sqlschema.MaxSize))))
	w := open(t, tsdbtest.Options{}, good)
	for name, tc := range map[string]struct {
		bundle   string
		datasets []tsdb.Dataset
		want     []string
	}{
		"no name":           {"", []tsdb.Dataset{good}, []string{"bundle", "1 to 50"}},
		"a name with -":     {"a-b", []tsdb.Dataset{good}, []string{`"a-b"`}},
		"a name with digit": {"1a", []tsdb.Dataset{good}, []string{`"1a"`}},
		"a long name":       {strings.Repeat("a", 51), []tsdb.Dataset{good}, []string{"1 to 50"}},
		"nil dataset":       {"a", []tsdb.Dataset{nil}, []string{"dataset"}},
		"zero dataset":      {"a", []tsdb.Dataset{new(tsdb.Schema[int])}, []string{"dataset"}},
		"no message":        {"a", []tsdb.Dataset{good, jsons}, []string{"dataset jsons", "json", "codec.Proto"}},
		"compressed":        {"a", []tsdb.Dataset{packed}, []string{"dataset packed", "pb+zstd", "without compression"}},
		"two contents":      {"a", []tsdb.Dataset{good, same}, []string{"fleet.proto", "readings and others"}},
		"too large":         {"a", []tsdb.Dataset{huge}, []string{"schema bundle a", "4194304"}},
	} {
		err := sqlschema.Ensure(t.Context(), w.store, tc.bundle, tc.datasets...)
		if _, ok := errors.AsType[*tsdb.InvalidError](err); !ok || !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
			continue
		}
		for _, part := range tc.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q in it", name, err, part)
			}
		}
	}
	if got := w.made("CreateSchemaBundle"); got > 0 {
		t.Errorf("%d bundles were created", got)
	}
	acme := tenant.NewContext(t.Context(), tenant.MustParse("acme"))
	if err := sqlschema.Ensure(acme, w.store, "a", good); !errors.Is(err, tsdb.ErrTenantMismatch) {
		t.Errorf("for a tenant: %v, want ErrTenantMismatch", err)
	}
	if err := sqlschema.Ensure(t.Context(), nil, "a", good); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("a nil store: %v, want ErrInvalid", err)
	}
	for _, code := range []codes.Code{codes.PermissionDenied, codes.Unimplemented} {
		w.before = func(method string) error { return status.Error(code, "no") }
		if err := sqlschema.Ensure(t.Context(), w.store, "a", good); status.Code(err) != code || !strings.Contains(err.Error(), "schema bundle a of table") {
			t.Errorf("%v of the service: %v", code, err)
		}
	}
	failed := false
	w.before = func(method string) error {
		if failed = !failed; failed && method == "CreateSchemaBundle" {
			return status.Error(codes.Unavailable, "later")
		}
		return nil
	}
	if err := sqlschema.Ensure(t.Context(), w.store, "a", good); err != nil {
		t.Errorf("a service that is unavailable for a moment: %v", err)
	}
	w.before = nil
	empty := open(t, tsdbtest.Options{})
	if err := sqlschema.Ensure(t.Context(), empty.store, "a", good); !errors.Is(err, tsdb.ErrNoTable) {
		t.Errorf("without a table: %v, want ErrNoTable", err)
	}
	client, _ := tsdbtest.Clients(t, w.conn)
	plain, err := tsdb.New(client, tsdbtest.Table, tsdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if err := sqlschema.Ensure(t.Context(), plain, "a", good); !errors.Is(err, tsdb.ErrNoAdmin) {
		t.Errorf("without an admin client: %v, want ErrNoAdmin", err)
	}
}

// TestRandomPrograms: random versions of one message, where a number always means the same field, never conflict, and in any order
// the bundle ends with all of their fields.
func TestRandomPrograms(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	kinds := []string{"string", "int64", "double", "repeated-bytes", "bool"}
	for range 20 {
		w := open(t, tsdbtest.Options{}, schema("readings", reading(t, field("1 string id"))))
		all := map[int]bool{}
		for range 5 {
			var content, group, synthetic []string
			decls := 0
			grouped := r.IntN(2) == 0 // whether the even numbers are in a oneof in this version
			for n := 1; n <= 12; n++ {
				if r.IntN(2) == 0 {
					continue
				}
				all[n] = true
				f := strings.TrimSuffix(field(fmt.Sprintf("%d %s f%d", n, kinds[n%len(kinds)], n)), "}")
				switch {
				case strings.Contains(f, "REPEATED"):
					content = append(content, f+"}")
				case grouped && n%2 == 0:
					group, decls = append(group, f+"oneof_index: 0 }"), 1
				case n%3 == 0:
					synthetic = append(synthetic, fmt.Sprintf("oneof_decl { name: \"_f%d\" } %s", n, f))
				default:
					content = append(content, f+"}")
				}
			}
			at := r.IntN(len(content) + 1)
			content = slices.Insert(content, at, group...)
			if decls == 1 {
				content = append(content, `oneof_decl { name: "group" }`)
			}
			for i, f := range synthetic {
				content = append(content, fmt.Sprintf("%s proto3_optional: true oneof_index: %d }", f, decls+i))
			}
			if err := sqlschema.Ensure(t.Context(), w.store, "payloads", schema("readings", reading(t, content...))); err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(content, "\n"))
			}
		}
		fields := w.fields(t, "payloads", "fleet.Reading")
		if got := strings.Count(fields, ",") + 1; got != len(all) {
			t.Fatalf("seed %d: the bundle has %d fields, want %d: %s", seed, got, len(all), fields)
		}
	}
}

// TestForeignBundle: a bundle of protoc, with comments and reserved numbers, is completed; one that holds no messages is left alone.
func TestForeignBundle(t *testing.T) {
	d := schema("readings", reading(t, field("1 string id"), field("2 double temp")))
	w := open(t, tsdbtest.Options{}, d)
	f := protodesc.ToFileDescriptorProto(reading(t, field("1 string id"), "reserved_range { start: 2 end: 3 }", `reserved_name: "temp"`))
	f.SourceCodeInfo = &descriptorpb.SourceCodeInfo{Location: []*descriptorpb.SourceCodeInfo_Location{{LeadingComments: proto.String("comment"), Span: []int32{0, 0, 0}}}}
	b, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{f}})
	if err != nil {
		t.Fatal(err)
	}
	w.put(t, "payloads", b)
	if err := sqlschema.Ensure(t.Context(), w.store, "payloads", d); err != nil {
		t.Fatal(err)
	}
	if got, want := w.fields(t, "payloads", "fleet.Reading"), "1 string id, 2 double temp"; got != want {
		t.Errorf("the bundle has %s, want %s", got, want)
	}
}
