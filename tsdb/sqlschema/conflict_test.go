package sqlschema_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/sqlschema"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestConflicts: what cannot be in one bundle is named, with both sides, and the bundle stays as it was.
func TestConflicts(t *testing.T) {
	f := func(content string) protoreflect.FileDescriptor { return file(t, content) }
	enum := func(values string) protoreflect.FileDescriptor {
		return f(message("Reading") + " enum_type { name: \"E\" value { name: \"ZERO\" number: 0 } " + values + " }")
	}
	for name, tc := range map[string]struct {
		stored, declared protoreflect.FileDescriptor
		want             []string
	}{
		"name": {reading(t, field("1 string id")), reading(t, field("1 string key")), []string{
			"message fleet.Reading, field 1: it is string id in the bundle, and string key in this program",
		}},
		"type":        {reading(t, field("1 string id")), reading(t, field("1 bytes id")), []string{"field 1: it is string id in the bundle, and bytes id"}},
		"cardinality": {reading(t, field("1 string id")), reading(t, field("1 repeated-string id")), []string{"and repeated string id in this program"}},
		"number":      {reading(t, field("1 string id")), reading(t, field("2 string id")), []string{"field fleet.Reading.id: its number is 1 in the bundle, and 2"}},
		"swapped":     {reading(t, field("1 string a"), field("2 string b")), reading(t, field("2 string a"), field("1 string b")), []string{"field fleet.Reading.a: its number", "field fleet.Reading.b: its number"}},
		"all":         {reading(t, field("1 string a"), field("2 string b")), reading(t, field("1 bytes a"), field("2 bytes b")), []string{"field 1", "field 2"}},
		"nested": {
			f(message("Reading", `nested_type { name: "N" `+field("1 string a")+"}")), f(message("Reading", `nested_type { name: "N" `+field("1 bool a")+"}")),
			[]string{"message fleet.Reading.N, field 1: it is string a in the bundle, and bool a"},
		},
		"package": {reading(t), f(`package: "other" ` + message("Reading")), []string{`file fleet.proto: its package is "fleet" in the bundle, and "other" in this program`}},
		"syntax":  {reading(t), f(`syntax: "proto2" ` + message("Reading")), []string{"its syntax is proto3 in the bundle, and proto2"}},
		"default": {
			f(`syntax: "proto2" ` + message("Reading", `field { number: 1 name: "a" type: TYPE_INT32 label: LABEL_OPTIONAL default_value: "1" }`)),
			f(`syntax: "proto2" ` + message("Reading", `field { number: 1 name: "a" type: TYPE_INT32 label: LABEL_OPTIONAL default_value: "2" }`)),
			[]string{"field fleet.Reading.a: its default value"},
		},
		"features": {
			f(`syntax: "editions" edition: EDITION_2023 ` + message("Reading", field("1 string a"))),
			f(`syntax: "editions" edition: EDITION_2023 options { features { message_encoding: DELIMITED } } ` + message("Reading", field("1 string a"), `field { number: 2 name: "r" type: TYPE_MESSAGE type_name: ".fleet.Reading" label: LABEL_OPTIONAL }`)),
			[]string{"file fleet.proto: its features message_encoding or enum_type differ"},
		},
		"moved":        {f(`name: "a.proto" ` + message("Reading")), f(`name: "b.proto" ` + message("Reading")), []string{"do not fit together", "fleet.Reading"}},
		"enum number":  {enum(`value { name: "A" number: 1 }`), enum(`value { name: "A" number: 2 }`), []string{"enum fleet.E: A is 1 in the bundle, and 2"}},
		"enum renamed": {enum(`value { name: "A" number: 1 }`), enum(`value { name: "B" number: 1 }`), []string{"enum fleet.E: 1 is A in the bundle, and B"}},
		"extension": {
			f(`syntax: "proto2" ` + message("Reading", "extension_range { start: 100 end: 200 }") + ` extension { name: "x" extendee: ".fleet.Reading" number: 100 type: TYPE_INT32 label: LABEL_OPTIONAL }`),
			f(`syntax: "proto2" ` + message("Reading", "extension_range { start: 100 end: 200 }") + ` extension { name: "y" extendee: ".fleet.Reading" number: 100 type: TYPE_INT32 label: LABEL_OPTIONAL }`),
			[]string{"extension fleet.y: it is int32 x = 100 of fleet.Reading in the bundle, and int32 y"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, tsdbtest.Options{}, schema("readings", tc.stored))
			if err := sqlschema.Ensure(t.Context(), w.store, "payloads", schema("readings", tc.stored)); err != nil {
				t.Fatal(err)
			}
			before, err := w.admin.GetSchemaBundle(t.Context(), tsdbtest.Table, "payloads")
			if err != nil {
				t.Fatal(err)
			}
			err = sqlschema.Ensure(t.Context(), w.store, "payloads", schema("readings", tc.declared))
			conflict, ok := errors.AsType[*tsdb.ConflictError](err)
			if !ok || !errors.Is(err, tsdb.ErrSchemaConflict) || len(conflict.Differences) != len(tc.want) && name != "moved" {
				t.Fatalf("got %v, want a conflict with %d differences", err, len(tc.want))
			}
			for _, part := range append(tc.want, "schema bundle payloads: ") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want %q in it", err, part)
				}
			}
			after, err := w.admin.GetSchemaBundle(t.Context(), tsdbtest.Table, "payloads")
			if err != nil || !bytes.Equal(before.SchemaBundle, after.SchemaBundle) || before.Etag != after.Etag {
				t.Errorf("the bundle has changed: %v", err)
			}
		})
	}
}

// TestCompatible: changes that payloads and queries do not notice are no conflict, and write nothing.
func TestCompatible(t *testing.T) {
	one := reading(t, field("1 string id"))
	proto2 := func(label, more string) protoreflect.FileDescriptor {
		return file(t, `syntax: "proto2" `+message("Reading", `field { number: 1 name: "a" type: TYPE_INT32 label: LABEL_`+label+" }", "extension_range { start: 100 end: 200 }")+more)
	}
	for name, tc := range map[string]struct{ stored, declared protoreflect.FileDescriptor }{
		"options":    {one, file(t, `options { go_package: "x" } `+message("Reading", field("1 string id"), "options { deprecated: true }"))},
		"JSON name":  {one, reading(t, strings.Replace(field("1 string id"), "}", `json_name: "Key" }`, 1))},
		"optional":   {one, reading(t, strings.Replace(field("1 string id"), "}", `oneof_index: 0 proto3_optional: true }`, 1), `oneof_decl { name: "_id" }`)},
		"in a oneof": {one, reading(t, strings.Replace(field("1 string id"), "}", `oneof_index: 0 }`, 1), `oneof_decl { name: "key" }`)},
		"required":   {proto2("REQUIRED", ""), proto2("OPTIONAL", "")},
		"fewer":      {reading(t, field("1 string id"), field("2 string b")), one},
		"reserved":   {reading(t, field("1 string id"), field("2 string b")), reading(t, field("1 string id"), "reserved_range { start: 2 end: 3 }")},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, tsdbtest.Options{}, schema("readings", tc.stored))
			for _, f := range []protoreflect.FileDescriptor{tc.stored, tc.declared} {
				if err := sqlschema.Ensure(t.Context(), w.store, "payloads", schema("readings", f)); err != nil {
					t.Fatal(err)
				}
			}
			if w.made("UpdateSchemaBundle") > 0 {
				t.Error("the bundle was written again")
			}
		})
	}
}

// TestGrows: what the tests of upgrades do not add: enum values and aliases, extensions and their ranges, imports, nested types.
func TestGrows(t *testing.T) {
	dependency := file(t, `name: "dep.proto" `+message("Dep", field("1 string a")))
	public := file(t, `name: "public.proto" `+message("Public"))
	for name, tc := range map[string]struct {
		stored, declared protoreflect.FileDescriptor
		names            []protoreflect.FullName
	}{
		"enum values": {
			file(t, message("Reading")+` enum_type { name: "E" value { name: "ZERO" number: 0 } reserved_range { start: 1 end: 2 } }`),
			file(t, message("Reading")+` enum_type { name: "E" options { allow_alias: true } value { name: "ZERO" number: 0 } value { name: "NONE" number: 0 } value { name: "ONE" number: 1 } }`),
			[]protoreflect.FullName{"fleet.NONE", "fleet.ONE"},
		},
		"extensions": {
			file(t, `syntax: "proto2" `+message("Reading", "extension_range { start: 100 end: 200 }")),
			file(t, `syntax: "proto2" `+message("Reading", "extension_range { start: 100 end: 200 }", "extension_range { start: 300 end: 400 }")+
				` extension { name: "x" extendee: ".fleet.Reading" number: 301 type: TYPE_INT32 label: LABEL_OPTIONAL }`),
			[]protoreflect.FullName{"fleet.x"},
		},
		// As descriptor.proto grew: 1000, 1001 and 9990 became 1000 to 9994.
		"wider extension ranges": {
			file(t, `syntax: "proto2" `+message("Reading", "extension_range { start: 1000 end: 1001 }", "extension_range { start: 1001 end: 1002 }", "extension_range { start: 9990 end: 9991 }")),
			file(t, `syntax: "proto2" `+message("Reading", "extension_range { start: 1000 end: 9995 options { verification: DECLARATION declaration { number: 1000 full_name: \".fleet.x\" type: \"int32\" } } }")+
				` extension { name: "x" extendee: ".fleet.Reading" number: 1500 type: TYPE_INT32 label: LABEL_OPTIONAL }`),
			[]protoreflect.FullName{"fleet.x"},
		},
		"overlapping extension ranges": {
			file(t, `syntax: "proto2" `+message("Reading", "extension_range { start: 100 end: 200 }")+
				` extension { name: "a" extendee: ".fleet.Reading" number: 110 type: TYPE_INT32 label: LABEL_OPTIONAL }`),
			file(t, `syntax: "proto2" `+message("Reading", "extension_range { start: 150 end: 300 }")+
				` extension { name: "b" extendee: ".fleet.Reading" number: 250 type: TYPE_INT32 label: LABEL_OPTIONAL }`),
			[]protoreflect.FullName{"fleet.a", "fleet.b"},
		},
		"imports": {
			reading(t, field("1 string id")),
			file(t, `public_dependency: 1 `+message("Reading", field("1 string id"), `field { number: 2 name: "dep" type: TYPE_MESSAGE type_name: ".fleet.Dep" label: LABEL_OPTIONAL }`), dependency, public),
			[]protoreflect.FullName{"fleet.Dep.a", "fleet.Public", "fleet.Reading.dep"},
		},
		"oneof before optional fields": {
			reading(t, `field { number: 1 name: "a" type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 proto3_optional: true } oneof_decl { name: "_a" }`),
			reading(t, `field { number: 2 name: "b" type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 } oneof_decl { name: "o" }`),
			[]protoreflect.FullName{"fleet.Reading.a", "fleet.Reading.b", "fleet.Reading.o"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, tsdbtest.Options{}, schema("readings", tc.stored))
			for _, f := range []protoreflect.FileDescriptor{tc.stored, tc.declared, tc.stored} {
				if err := sqlschema.Ensure(t.Context(), w.store, "payloads", schema("readings", f)); err != nil {
					t.Fatal(err)
				}
			}
			if w.made("UpdateSchemaBundle") != 1 {
				t.Errorf("%d updates, want 1", w.made("UpdateSchemaBundle"))
			}
			files := w.stored(t, "payloads")
			for _, n := range tc.names {
				if _, err := files.FindDescriptorByName(n); err != nil {
					t.Errorf("the bundle lacks %s", n)
				}
			}
		})
	}
}
