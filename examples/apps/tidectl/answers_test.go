package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/adopt"
)

// TestMisspeltMeasure: a measure that no point has is answered with the field that it looks like, with what a point
// has, or with the kind that reads it.
func TestMisspeltMeasure(t *testing.T) {
	dir := metered(t, 5)
	const times = " --from 2026-06-01T12:00 --to 2026-06-01T13:00"
	const meter = " meters acme street=main meter=m2"
	for command, say := range map[string]string{
		"windows --every 1h --measure vlots" + times + meter:                                                   "did you mean volts?",
		"windows --every 1h --measure energy.kw:counter" + times + meter:                                       "did you mean energy.kwh?",
		"groups --every 1h --measure vlots" + times + " meters acme":                                           "did you mean volts?",
		"windows --every 1h --measure energy_kwh" + times + meter:                                              "did you mean energy.kwh?",
		"windows --every 1h --measure temperature" + times + meter:                                             "a point has energy.kwh, on, volts",
		"windows --every 1h --measure value" + times + " counts acme door=north":                               "leave out the name",
		"windows --every 1h --measure note --from 2026-06-01 --to 2026-06-02 meters acme street=side meter=m3": "--measure note:state",
	} {
		_, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir}, strings.Fields(command)...)...)
		if want(t, exitFailed, err, command); err != nil && !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want %q", command, err, say)
		}
	}
	for _, command := range []string{"-o csv range --measure vlots meters acme street=main", "tenants export acme --dataset meters --format csv --measure vlots --file -"} {
		_, remarks, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir}, strings.Fields(command)...)...)
		if want(t, 0, err, command); !strings.Contains(remarks, "did you mean volts?") {
			t.Errorf("%s says %q; want the field that was meant", command, remarks)
		}
	}
	command := "-o csv range --measure volts meters acme street=main"
	if _, remarks, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir}, strings.Fields(command)...)...); err != nil || remarks != "" {
		t.Errorf("%s says %q, %v", command, remarks, err)
	}
}

// TestSensibleDigits: text has the digits and units that people read, and CSV has all.
func TestSensibleDigits(t *testing.T) {
	dir := withRecords(t, codec.NewRecord(codec.Field{Name: "v", Value: codec.Float(20.333333333333332)}), codec.NewRecord(codec.Field{Name: "v", Value: codec.Float(1)}))
	const day, meter = " --from 2026-06-01 --to 2026-06-02", " records acme site=berlin meter=m1"
	for command, say := range map[string][2]string{
		"windows --every 1d --measure v --aggregate max" + day + meter: {" 20.3333 ", ",20.333333333333332,"},
	} {
		text, _, err := tidectl(t, t.Context(), "", strings.Fields("--dir "+dir+" "+command)...)
		if want(t, 0, err, command); !strings.Contains(text, say[0]) {
			t.Errorf("%s prints\n%s\nwant %q", command, text, say[0])
		}
		exact, _, err := tidectl(t, t.Context(), "", strings.Fields("--dir "+dir+" -o csv "+command)...)
		if want(t, 0, err, command); !strings.Contains(exact, say[1]) {
			t.Errorf("%s prints as CSV\n%s\nwant %q", command, exact, say[1])
		}
	}
	text, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "usage", "acme")
	if want(t, 0, err, "usage"); !strings.Contains(text, " B ") {
		t.Errorf("usage prints sizes without units:\n%s", text)
	}
	if exact, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "usage", "acme", "-o", "json"); err != nil || strings.Contains(exact, " B") {
		t.Errorf("usage as JSON: %s, %v", exact, err)
	}
}

// TestWholeAndLeading: queries of many entities answer for one, and latest for those with the same first key fields.
func TestWholeAndLeading(t *testing.T) {
	dir := metered(t, 9)
	const noon = " --from 2026-06-01T12:00 --to 2026-06-01T14:00"
	for _, tt := range []struct{ command, want, remark string }{
		{"-o csv latest meters acme street=main", "street,meter,time,tag,energy.kwh,on,volts,more,payload,error\nmain,\"m,1\",2026-06-01T14:00:00Z,json,108,true,230,,,\nmain,m2,2026-06-01T14:00:00Z,json,108,true,230,,,\n", ""},
		{"-o csv latest --entities 1 meters acme street=main", "street,meter,time,tag,energy.kwh,on,volts,more,payload,error\nmain,\"m,1\",2026-06-01T14:00:00Z,json,108,true,230,,,\n", "--entities shows more"},
		{"-o csv latest meters acme street=none", "street,meter,time,tag,more,payload,error\n", "no entity"},
		{"-o csv silent --since 2026-06-02 meters acme street=side meter=m3", "street,meter,last\nside,m3,2026-06-01T11:00:00Z\n", ""},
		{"-o csv silent --since 2026-06-01T11:00 meters acme street=side meter=m3", "street,meter,last\n", "sent its newest point at 2026-06-01T11:00:00Z"},
		{"-o csv silent --since 2026-06-02 meters acme street=side meter=m4", "street,meter,last\n", "no points"},
		{
			"-o csv groups --every 2h --measure energy.kwh:counter --aggregate increase" + noon + " meters acme street=main meter=m,1",
			"street,meter,start,end,entities,points,bad,partial,energy.kwh.increase,filled\nmain,\"m,1\",2026-06-01T12:00:00Z,2026-06-01T14:00:00Z,1,8,0,false,7,\n", "",
		},
		{
			"-o json groups --every 2h --measure volts --aggregate max" + noon + " meters acme street=main meter=m2",
			`{"key":{"meter":"m2","street":"main"},"entities":1,"buckets":[{"start":"2026-06-01T12:00:00Z","end":"2026-06-01T14:00:00Z","points":8,"entities":1,"values":{"volts":{"max":231}}}]}` + "\n", "",
		},
	} {
		out, remarks, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir}, strings.Fields(tt.command)...)...)
		if want(t, 0, err, tt.command); out != tt.want || !strings.Contains(remarks, tt.remark) || (tt.remark == "") != (remarks == "") {
			t.Errorf("%s prints\n%s\nand says %q; want\n%s\nand %q", tt.command, out, remarks, tt.want, tt.remark)
		}
	}
	for command, say := range map[string]string{
		"groups --every 1h --by street" + noon + " meters acme street=main meter=m2": "one entity",
		"latest meters acme meter=m2":                 "first key fields",
		"latest --entities 0 meters acme street=main": "--entities",
	} {
		_, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir}, strings.Fields(command)...)...)
		if want(t, exitUsage, err, command); err != nil && !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want %q", command, err, say)
		}
	}
}

// TestProgressHasATotal: the progress of an export and an erasure has the total, as that of an import has.
func TestProgressHasATotal(t *testing.T) {
	dir, file := filled(t, 1500), filepath.Join(t.TempDir(), "acme.ndjson")
	for _, tt := range []struct{ command, say string }{
		{"tenants export acme --file " + file, "/1500, "},
		{"tenants export beta --dataset temps --format csv --file " + file + ".csv", "/1500, "},
		{"tenants erase acme --yes", "/1500, "},
	} {
		_, remarks, err := tidectl(t, t.Context(), "", strings.Fields("--progress --dir "+dir+" "+tt.command)...)
		if want(t, 0, err, tt.command); !strings.Contains(remarks, tt.say) {
			t.Errorf("%s says %q; want %q", tt.command, remarks, tt.say)
		}
	}
	if _, remarks, err := tidectl(t, t.Context(), "", "--progress", "--dir", dir, "tenants", "export", "beta", "--from", "2026-01-01", "--file", file+".2"); err != nil || strings.Contains(remarks, "Counting") {
		t.Errorf("an export of some time counts all points: %q, %v", remarks, err)
	}
}

// TestCreateAbove: an import with --create into the folder above a store stores into that store, and says so. It
// refuses a folder above two stores.
func TestCreateAbove(t *testing.T) {
	above, file := t.TempDir(), filepath.Join(t.TempDir(), "acme.ndjson")
	dir := filepath.Join(above, "store")
	if err := os.Rename(filled(t, 3), dir); err != nil {
		t.Fatal(err)
	}
	_, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--file", file)
	want(t, 0, err, "export")
	run := func() (string, error) {
		out, remarks, err := tidectl(t, t.Context(), "", "--dir", above, "tenants", "import", "acme", "--create", "--file", file)
		return out + remarks, err
	}
	out, err := run()
	if _, serr := os.Stat(filepath.Join(above, storeMarker)); err != nil || serr == nil || !strings.Contains(out, "The store is in "+dir) {
		t.Errorf("import --create above a store: %s, %v; a store above it: %v", out, err, serr == nil)
	}
	if err := os.CopyFS(filepath.Join(above, "other"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	out, err = run()
	if _, serr := os.Stat(filepath.Join(above, storeMarker)); exitCode(err) != exitUsage || serr == nil {
		t.Errorf("import --create above two stores: %s, %v; a store above them: %v", out, err, serr == nil)
	}
}

// TestTotalOfCopy: the progress of a copy has a total that follows from the ranges that are done.
func TestTotalOfCopy(t *testing.T) {
	done, begun, next := adopt.Range{Done: true}, adopt.Range{After: []byte("k")}, adopt.Range{}
	for _, tt := range []struct {
		points int64
		ranges []adopt.Range
		want   int64
	}{
		{100, []adopt.Range{begun, next}, -1},
		{0, []adopt.Range{done, next}, -1},
		{100, []adopt.Range{done, next, next, next}, 400},
		{150, []adopt.Range{done, begun, next, next}, 400},
		{400, []adopt.Range{done, done, done, done}, 400},
	} {
		if got := pointsOfCopy(adopt.State{Points: tt.points, Ranges: tt.ranges}); got != tt.want {
			t.Errorf("%d points of %v: a total of %d, want %d", tt.points, tt.ranges, got, tt.want)
		}
	}
}
