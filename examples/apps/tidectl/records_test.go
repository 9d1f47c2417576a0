package main

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// withRecords returns the folder of a store in which a meter of acme has the records, a minute apart.
func withRecords(t *testing.T, records ...codec.Record) string {
	t.Helper()
	dir := t.TempDir()
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := tsdb.MustDefine("records", tsdb.Key("site", "meter"), codec.Records(), tsdb.SchemaOptions{})
	if err := store.Ensure(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for i, r := range records {
		if err := s.For(store, tenant.MustParse("acme")).Put(t.Context(), tsdb.NewEntity("berlin", "m1"), monday.Add(time.Duration(i)*time.Minute), r); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// twoRecords are records with a field of each kind, and with names that have dots and commas or are those of other
// columns.
func twoRecords() (first, second codec.Record) {
	first = codec.NewRecord(
		codec.Field{Name: "motor.temp_c", Value: codec.Float(61.5)}, codec.Field{Name: "wh", Value: codec.Int(9007199254740993)}, codec.Field{Name: "on", Value: codec.Bool(true)},
		codec.Field{Name: "note", Value: codec.Str("a,\u202eb")}, codec.Field{Name: "time", Value: codec.Uint(math.MaxUint64)}, codec.Field{Name: "x,y", Value: codec.Int(-1)},
	)
	for name, v := range first.All() {
		if name != "note" {
			second = second.With(name, v)
		}
	}
	return first, second.With("motor.temp_c", codec.Int(62)).With("wh", codec.Int(9007199254740995))
}

// TestRecordsAreFields: every command shows the fields of records, not their bytes.
func TestRecordsAreFields(t *testing.T) {
	first, second := twoRecords()
	dir := withRecords(t, first, second)
	file := func(format string) string {
		return filepath.Join(t.TempDir(), "records."+format)
	}
	run := func(args string) string {
		t.Helper()
		out, remarks, err := tidectl(t, t.Context(), "", strings.Fields("--dir "+dir+" "+args)...)
		if err != nil && !errors.Is(err, errNothingComes) {
			t.Fatalf("%s: %v\n%s", args, err, remarks)
		}
		return out
	}
	const entity = " records acme site=berlin meter=m1"
	const fields = `{"motor.temp_c":61.5,"note":"a,\u202eb","on":true,"time":18446744073709551615,"wh":9007199254740993,"x,y":-1}`
	for _, command := range []string{"get" + entity, "range records acme", "latest records acme", "latest" + entity, "watch --from 2026-06-01" + entity} {
		got := run(command)
		want := fields
		if strings.HasPrefix(command, "latest") {
			want = `{"motor.temp_c":62,"on":true,"time":18446744073709551615,"wh":9007199254740995,"x,y":-1}`
		}
		if !strings.Contains(got, "  rec  "+want+"\n") {
			t.Errorf("%s prints\n%s, want the fields %s", command, got, want)
		}
	}
	if got := run("get -o json" + entity); !strings.Contains(got, `"tag":"rec","json":`+strings.ReplaceAll(fields, `\u202e`, "\u202e")+"}\n") {
		t.Errorf("get -o json prints %s", got)
	}
	const columns = "motor.temp_c,note,on,field.time,wh,\"x,y\",more,payload"
	const row = "61.5,\"a,\u202eb\",true,18446744073709551615,9007199254740993,-1,,"
	if got := run("get -o csv" + entity); !strings.HasPrefix(got, "site,meter,time,tag,"+columns+",error\n") || !strings.HasSuffix(got, "berlin,m1,2026-06-01T12:00:00Z,rec,"+row+",\n") {
		t.Errorf("get -o csv prints\n%s", got)
	}
	if got := run("tenants export acme --dataset records --format csv --file -"); !strings.HasPrefix(got, "site,meter,time,class,tag,"+columns+"\n") || !strings.HasSuffix(got, "berlin,m1,2026-06-01T12:00:00Z,keep,rec,"+row+"\n") {
		t.Errorf("the export as CSV is\n%s", got)
	}
	if got := run("tenants export acme --dataset records --format json --file -"); strings.Count(got, "\n") != 2 || !strings.Contains(got, `"class":"keep","tag":"rec","json":`+strings.ReplaceAll(fields, `\u202e`, "\u202e")+"}\n") {
		t.Errorf("the export as JSON is\n%s", got)
	}
	if got := run("range -o csv --measure wh --measure on:state records acme"); got != "site,meter,time,tag,wh,on,payload,error\nberlin,m1,2026-06-01T12:01:00Z,rec,9007199254740995,true,,\nberlin,m1,2026-06-01T12:00:00Z,rec,9007199254740993,true,,\n" {
		t.Errorf("range with measures prints\n%s", got)
	}

	name := file("parquet")
	run("tenants export acme --dataset records --format parquet --file " + name)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	want := `message records {
	required binary site (STRING);
	required binary meter (STRING);
	required int64 time (TIMESTAMP(isAdjustedToUTC=true,unit=NANOS));
	optional binary class (STRING);
	required binary tag (STRING);
	optional double motor.temp_c;
	optional binary note (STRING);
	optional boolean on;
	optional int64 field.time (INT(64,false));
	optional int64 wh (INT(64,true));
	optional int64 x,y (INT(64,true));
	optional binary more (JSON);
	optional binary payload;
}`
	if got := f.Schema().String(); got != want {
		t.Errorf("the schema is\n%s\nwant\n%s", got, want)
	}
	rows := f.RowGroups()[0].Rows()
	defer rows.Close()
	got := make([]parquet.Row, 2)
	if n, _ := rows.ReadRows(got); n != 2 || got[0][9].Int64() != 9007199254740995 || got[0][5].Double() != 62 || !got[0][6].IsNull() || got[1][8].Uint64() != math.MaxUint64 || got[1][5].Double() != 61.5 {
		t.Errorf("%d rows are %v", n, got)
	}
}

// TestFieldsBehindTheSample: columns are decided by the first points. What comes later and has no column, or does not
// fit, is in more.
func TestFieldsBehindTheSample(t *testing.T) {
	first, _ := twoRecords()
	store, err := embedded.Open(t.Context(), withRecords(t, first))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	v := viewOf(t, store, "records")
	for form, want := range map[string]string{
		"csv":     "site,meter,time,class,tag,n,more,payload\na,b,2026-06-01T12:00:00Z,,json,1,,\na,b,2026-06-01T12:00:00Z,,json,1.5,\"{\"\"new\"\":\"\"x\"\"}\",\na,b,2026-06-01T12:00:00Z,,json,,,\na,b,2026-06-01T12:00:00Z,,other,,,AQI=\n",
		"parquet": `1 <null> <null>|<null> {"n":1.5,"new":"x"} <null>|<null> <null> <null>|<null> <null> ` + "\x01\x02",
	} {
		var out bytes.Buffer
		var to sheet = newCSV(&out)
		if form == "parquet" {
			to = newParquet(&out, "records", tsdb.Nanoseconds)
		}
		table, err := newTable(to, reader{}, v, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		table.most = 1
		for _, payload := range []string{`{"n":1}`, `{"n":1.5,"new":"x"}`, `{"n":null}`, "\x01\x02"} {
			p := point("json", payload)
			if payload[0] != '{' {
				p.Tag = "other"
			}
			if err := table.add(p); err != nil {
				t.Fatal(err)
			}
		}
		if err := table.end(nil); err != nil {
			t.Fatal(err)
		}
		got := out.String()
		if form == "parquet" {
			got = lastCells(t, out.Bytes(), 3)
		}
		if got != want {
			t.Errorf("%s is\n%s\nwant\n%s", form, got, want)
		}
	}
}

func viewOf(t *testing.T, store *tsdb.Store, dataset string) *dynamic.View {
	t.Helper()
	v, err := dynamic.Open(t.Context(), store, tenant.MustParse("acme"), dataset)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func point(tag, payload string) dynamic.Point {
	return dynamic.Point{Entity: tsdb.NewEntity("a", "b"), Time: monday, Tag: tag, Payload: []byte(payload)}
}

// lastCells returns the last cells of each row of a Parquet file.
func lastCells(t *testing.T, data []byte, n int) string {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	rows := f.RowGroups()[0].Rows()
	defer rows.Close()
	got := make([]parquet.Row, f.NumRows())
	if _, err := rows.ReadRows(got); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	var lines []string
	for _, row := range got {
		var cells []string
		for _, v := range row[len(row)-n:] {
			cells = append(cells, v.String())
		}
		lines = append(lines, strings.Join(cells, " "))
	}
	return strings.Join(lines, "|")
}
