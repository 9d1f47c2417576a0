package main

import (
	"errors"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/examples/internal/infile"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// FuzzParse: no line makes the parser panic, and every accepted line can be stored: text in UTF-8, at least one field,
// and a key.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"cpu,host=a x=1 1767225600000000000", `cpu,host=a,zone=b f=1.5,i=-3i,u=4u,s="a \"b\"",t=t`, "cpu,host=\xff x=1", "cpu x=1", "# c", "",
		`cpu,host=a\ b\,c\=d x="\\" -9223372036854775808`, "cpu,host=a x=1e400", "cpu,host=a x=99999999999999999999i", "cpu,host= x=1", "cpu,host=a tag:x=1", "cpu,host=a,host=b x=1", "cpu,host=a x=1 9223372036854775808",
	} {
		f.Add(seed, int64(time.Second))
	}
	store, _ := tsdbtest.Open(f, tsdbtest.Options{})
	ds, err := inbound.NewDatasets(f.Context(), store, inbound.Keys{"cpu": {"host", inbound.OtherTags}}, inbound.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, unit int64) {
		if unit < 1 || unit > int64(time.Hour) || len(text) > maxLine {
			return
		}
		p, err := ds.ParseLine(t.Context(), acme, []byte(text), inbound.Clock{Unit: time.Duration(unit), Now: start})
		if err != nil {
			if _, ok := errors.AsType[*inbound.Error](err); !ok && !errors.Is(err, inbound.ErrBlank) {
				t.Fatalf("%q: error %v, want one that blames the line", text, err)
			}
			return
		}
		if infile.Blank([]byte(text)) {
			t.Fatalf("%q is a point, but was skipped as blank", text)
		}
		fields := 0
		for name, v := range p.Record.All() {
			fields++
			if s, ok := v.Str(); !utf8.ValidString(name) || ok && !utf8.ValidString(s) {
				t.Fatalf("%q: the field %q is %v, which is not UTF-8", text, name, v)
			}
		}
		if fields == 0 || p.Dataset.Name() != "cpu" {
			t.Fatalf("%q: %d fields of %v", text, fields, p.Dataset)
		}
	})
}
