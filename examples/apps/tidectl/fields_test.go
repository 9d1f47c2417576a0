package main

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// forms are the formats of payloads in the tests of fields.
var forms = []string{"json", "rec", "i64", "str", "json+zstd", "rec+zstd", "i64+zstd", "str+zstd"}

// fieldStore returns the folder of a store with a dataset for each form. Each has the numbers, a minute apart, in a
// field that payloads of one value have as themselves.
func fieldStore(t *testing.T, numbers ...int64) string {
	t.Helper()
	dir := t.TempDir()
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, form := range forms {
		tag, zipped := strings.CutSuffix(form, zstd.Suffix)
		c := codec.Tagged(tag, codec.Bytes())
		if zipped {
			c = zstd.Wrap(c, zstd.Options{})
		}
		s := tsdb.MustDefine(datasetOf(form), tsdb.Key("meter"), c, tsdb.SchemaOptions{})
		if err := store.Ensure(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		for i, n := range numbers {
			text := strconv.FormatInt(n, 10)
			var payload []byte
			var err error
			switch tag {
			case "json":
				payload = []byte(`{"nested":{"n":` + text + `},"null":null}`)
			case "rec":
				payload, err = codec.Append(codec.Records(), nil, codec.NewRecord(codec.Field{Name: "nested.n", Value: codec.Int(n)}))
			case "i64":
				payload, err = codec.Append(codec.Int64(), nil, n)
			case "str":
				payload = []byte(text)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := s.For(store, tenant.MustParse("acme")).Put(t.Context(), tsdb.NewEntity("m1"), monday.Add(time.Duration(i)*time.Minute), payload); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func datasetOf(form string) string { return strings.ReplaceAll(form, "+", "-") }

// TestFieldsAreExact: integers that a float64 does not hold are not rounded, whatever the payloads are, also as text
// and as states.
func TestFieldsAreExact(t *testing.T) {
	dir := fieldStore(t, 9007199254740993, 9007199254740995, 9007199254740994)
	for _, form := range forms {
		field := "nested.n"
		if strings.HasPrefix(form, "i64") || strings.HasPrefix(form, "str") {
			field = ""
		}
		run := func(want string, args ...string) {
			t.Helper()
			out, remarks, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir}, args...)...)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if last := lines[len(lines)-1]; err != nil || !strings.Contains(last, want) {
				t.Errorf("%s: %s: got %s, %v (%s); want %s", form, strings.Join(args, " "), last, err, remarks, want)
			}
		}
		points := []string{datasetOf(form), "acme", "meter=m1", "--from", "2026-06-01T12:00:00Z", "--to", "2026-06-01T13:00:00Z"}
		with := func(command string, more ...string) []string {
			return append(append([]string{command}, points...), more...)
		}
		hour := []string{"--every", "1h"}
		run(",9007199254740993,9007199254740995,9007199254740993,9007199254740994,1,", append(with("windows", "-o", "csv", "--measure", field), append(hour, "--aggregate", "min,max,first,last,delta")...)...)
		run(`"first":9007199254740993,"increase":9007199254740996,"last":9007199254740994`, append(with("windows", "-o", "json", "--measure", field+":counter"), append(hour, "--aggregate", "first,last,increase")...)...)
		run(`{"state":"9007199254740993","time_s":60,"entered":0}`, append(with("windows", "-o", "json", "--measure", field+":state"), hour...)...)
		run(`"max":9007199254740995,"min":9007199254740993`, "groups", datasetOf(form), "acme", "-o", "json", "--from", "2026-06-01T12:00:00Z", "--to", "2026-06-01T13:00:00Z", "--measure", field, "--every", "1h", "--aggregate", "min,max")
	}
}

// TestNullFieldsAreNone: a field that is null or absent is neither a number nor a state.
func TestNullFieldsAreNone(t *testing.T) {
	dir := fieldStore(t, 1, 2)
	for _, kind := range []string{"", ":counter", ":state"} {
		_, _, err := tidectl(t, t.Context(), "", "--dir", dir, "windows", "json", "acme", "meter=m1", "--from", "2026-06-01T12:00:00Z", "--to", "2026-06-01T13:00:00Z", "--every", "1h", "--measure", "null"+kind)
		if err == nil || !strings.Contains(err.Error(), `in the field "null"`) {
			t.Errorf("a field that is null%s: %v, want that no point has it", kind, err)
		}
	}
}
