package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// meterRow is a row of an exported file, as another program reads it.
type meterRow struct {
	Street string    `parquet:"street"`
	Meter  string    `parquet:"meter"`
	Time   time.Time `parquet:"time,timestamp(nanosecond)"`
	Class  *string   `parquet:"class"`
	Tag    string    `parquet:"tag"`
	Volts  *float64  `parquet:"volts"`
	On     *string   `parquet:"on"`
	Bytes  []byte    `parquet:"payload"`
}

// readParquet reads a file, and checks the types of its columns.
func readParquet(t *testing.T, data []byte) []meterRow {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	schema := f.Schema().String()
	for _, column := range []string{
		"required int64 time (TIMESTAMP(isAdjustedToUTC=true,unit=NANOS));", "required binary street (STRING);", "optional double volts;",
		"optional binary on (STRING);", "optional binary payload;",
	} {
		if !strings.Contains(schema, column) {
			t.Errorf("the file has no column %q: %s", column, schema)
		}
	}
	rows, err := parquet.Read[meterRow](bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestParquet: an export and a range of points are read back, with typed columns.
func TestParquet(t *testing.T) {
	dir := metered(t, 3)
	file := filepath.Join(t.TempDir(), "meters.parquet")
	out, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--dataset", "meters", "--format", "parquet", "--file", file, "--measure", "volts,on:state")
	if want(t, 0, err, "export"); !strings.Contains(out, "7 points") {
		t.Errorf("the export prints %s", out)
	}
	exported, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ranged, _, err := tidectl(t, t.Context(), "", strings.Fields("--dir "+dir+" -o parquet range --limit 0 --oldest-first --measure volts --measure on:state meters acme")...)
	want(t, 0, err, "range")
	for name, data := range map[string][]byte{"export": exported, "range": []byte(ranged)} {
		var lines []string
		for _, r := range readParquet(t, data) {
			line := fmt.Sprint(r.Street, " ", r.Meter, " ", r.Time.UTC().Format(time.TimeOnly), " ", r.Tag, " ", len(r.Bytes))
			if r.Volts != nil {
				line += fmt.Sprint(" ", *r.Volts, " ", *r.On)
			}
			if name == "export" && (r.Class == nil || *r.Class == "") {
				t.Errorf("%s: no class", line)
			}
			lines = append(lines, line)
		}
		if got := strings.Join(lines, "\n"); len(lines) != 7 || !strings.Contains(got, `main m,1 12:15:00 json 0 231 false`) ||
			!strings.Contains(got, `side m3 11:00:00 json 0`) {
			t.Errorf("the %s has the rows\n%s", name, got)
		}
	}
	for command, say := range map[string]string{
		"tenants export acme --format parquet --file x":                                    "--dataset",
		"tenants export acme --format orc --file x":                                        "parquet",
		"tenants export acme --format json --dataset meters --measure volts --file x":      "--measure",
		"tenants export acme --format parquet --dataset meters --measure time --file x":    "time",
		"tenants export acme --format parquet --dataset meters --measure street --file x":  "street",
		"tenants export acme --format parquet --dataset meters --measure a:meter --file x": "a:meter",
		"-o parquet get meters acme street=main meter=m2":                                  "range",
		"range --measure volts meters acme":                                                "parquet",
	} {
		_, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir}, strings.Fields(command)...)...)
		if want(t, exitUsage, err, command); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want an error with %q", command, err, say)
		}
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("a refused export left a file")
	}
}

// TestParquetIsStreamed: row groups are written while points come, and a file without its end cannot be read.
func TestParquetIsStreamed(t *testing.T) {
	store, err := embedded.Open(t.Context(), metered(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	v, err := dynamic.Open(t.Context(), store, tenant.MustParse("acme"), "meters")
	if err != nil {
		t.Fatal(err)
	}
	measures, err := new(app).measuresOf([]string{"volts", "on:state", "noise:state"})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	sheet := newParquet(&file, "meters", tsdb.Nanoseconds)
	sheet.most = 40_000
	w, err := newTable(sheet, reader{}, v, measures, true)
	if err != nil {
		t.Fatal(err)
	}
	add := func(i int, tag string, payload []byte) {
		t.Helper()
		if err := w.add(dynamic.Point{Entity: tsdb.NewEntity("main", fmt.Sprint("m", i)), Time: monday.Add(time.Duration(i)), Tag: tag, Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 300 {
		noise := make([]byte, 500)
		_, _ = rand.Read(noise)
		add(i, "json", fmt.Appendf(nil, `{"volts":%d,"noise":"%x"}`, i, noise)) // which does not compress well
	}
	if file.Len() < 10_000 {
		t.Errorf("%d bytes are written after 300 points with row groups of 40,000 bytes", file.Len())
	}
	if _, err := parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len())); err == nil {
		t.Error("a file without its end can be read")
	}
	add(300, "acme.pos", []byte{0xff, 0})
	if err := w.end(nil); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.RowGroups()); n < 2 || n > 10 {
		t.Errorf("%d row groups", n)
	}
	rows := readParquet(t, file.Bytes())
	if len(rows) != 301 {
		t.Fatalf("%d rows, want 301", len(rows))
	}
	for i, r := range rows[:300] {
		if !r.Time.Equal(monday.Add(time.Duration(i))) || r.Volts == nil || *r.Volts != float64(i) || r.On != nil || r.Class != nil || len(r.Bytes) > 0 {
			t.Fatalf("row %d is %+v", i, r)
		}
	}
	if r := rows[300]; !bytes.Equal(r.Bytes, []byte{0xff, 0}) || r.Volts != nil {
		t.Errorf("a payload that is not JSON is %+v", r)
	}
}
