package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
)

// write writes a file in a new folder.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// exportOf returns what a store has in a dataset of acme, as CSV without the columns that all points share.
func exportOf(t *testing.T, dir, dataset string) string {
	t.Helper()
	out, remarks, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--dataset", dataset, "--format", "csv", "--file", "-")
	if err != nil {
		t.Fatal(err, remarks)
	}
	return strings.NewReplacer(",keep,rec", "", ",class,tag", "", ",more,payload", "", ",,\n", "\n").Replace(out)
}

func imports(t *testing.T, dir, in string, args ...string) (result imported, remarks string, err error) {
	t.Helper()
	out, remarks, err := tidectl(t, t.Context(), in, append([]string{"--dir", dir, "-o", "json", "import", "--tenant", "acme"}, args...)...)
	if out != "" {
		if jerr := json.Unmarshal([]byte(out), &result); jerr != nil {
			t.Fatal(jerr, out)
		}
	}
	return result, remarks, err
}

const telemetry = "dataset=telemetry key=site,device time=ts,auto"

const threeRows = "ts,site,device,temp,on,serial\n2026-01-01T00:00:00Z,berlin,t1,21.5,true,007\n1767225660,berlin,t1,22,false,8\n1767225600000,berlin,t2,,true,9\n"

// TestImportFormats: the same points are stored from files of each format, packed or not, and again changes nothing.
func TestImportFormats(t *testing.T) {
	const want = "site,device,time,on,serial,temp\nberlin,t1,2026-01-01T00:01:00Z,false,8,22\nberlin,t1,2026-01-01T00:00:00Z,true,007,21.5\nberlin,t2,2026-01-01T00:00:00Z,true,9,\n"
	type row struct {
		Ts     int64    `parquet:"ts,timestamp(millisecond)"`
		Site   string   `parquet:"site"`
		Device string   `parquet:"device"`
		Temp   *float64 `parquet:"temp"`
		On     bool     `parquet:"on"`
		Serial string   `parquet:"serial"`
	}
	a, b := 21.5, 22.0
	var table bytes.Buffer
	if err := parquet.Write(&table, []row{{1767225600000, "berlin", "t1", &a, true, "007"}, {1767225660000, "berlin", "t1", &b, false, "8"}, {1767225600000, "berlin", "t2", nil, true, "9"}}); err != nil {
		t.Fatal(err)
	}
	json := `{"ts":"2026-01-01T00:00:00Z","site":"berlin","device":"t1","temp":21.5,"on":true,"serial":"007"}` + "\n\n" +
		`[{"ts":1767225660,"site":"berlin","device":"t1","temp":22,"on":false,"serial":8},{"ts":1767225600000,"site":"berlin","device":"t2","temp":null,"on":true,"serial":9}]` + "\n"
	lines := "# a comment\ntelemetry,site=berlin,device=t1 temp=21.5,on=true,serial=\"007\" 1767225600\ntelemetry,site=berlin,device=t1 temp=22i,on=f,serial=\"8\" 1767225660\n\ntelemetry,site=berlin,device=t2 on=t,serial=\"9\" 1767225600\n"
	semicolons := strings.NewReplacer(",", ";", ".", ",").Replace(threeRows)
	for _, test := range []struct {
		name, text string
		args       []string
	}{
		{"a.csv", threeRows, []string{"--route", telemetry + " text=serial"}},
		{"a.txt", threeRows, []string{"--route", telemetry + " text=serial", "--format", "csv"}},
		{"a", "\ufeff" + semicolons, []string{"--route", telemetry + " text=serial", "--decimal", ","}},
		{"a.csv", strings.ReplaceAll(threeRows, ",", "|"), []string{"--route", telemetry + " text=serial", "--comma", "|"}},
		{"a.tsv", strings.ReplaceAll(threeRows, ",", "\t"), []string{"--route", telemetry + " text=serial", "--comma", "tab"}},
		{"a.csv", strings.Replace(threeRows, "ts,site", "Zeit,Ort °", 1), []string{"--route", telemetry + " text=serial", "--columns", "Zeit=ts,Ort °=site"}},
		{"a.csv", strings.SplitN(threeRows, "\n", 2)[1], []string{"--route", telemetry + " text=serial", "--columns", "ts,site,device,temp,on,serial"}},
		{"a.ndjson", json, []string{"--route", telemetry + " text=serial"}},
		{"a", json, []string{"--route", telemetry + " text=serial"}},
		{"a.lp", lines, []string{"--route", "format=line key=site,device time=s"}},
		{"a", lines, []string{"--route", "format=line key=site,device time=s", "--format", "line"}},
		{"a.parquet", table.String(), []string{"--route", telemetry}},
		{"a", table.String(), []string{"--route", "dataset=telemetry key=site,device time=at", "--columns", "ts=at"}},
		{"a.csv.gz", zipped(t, threeRows), []string{"--route", telemetry + " text=serial"}},
		{"a.csv", zstandard(t, threeRows), []string{"--route", telemetry + " text=serial"}},
		{"-", threeRows, []string{"--route", telemetry + " text=serial"}},
		{"-", zipped(t, threeRows), []string{"--route", telemetry + " text=serial merge"}},
	} {
		dir, file, in := filepath.Join(t.TempDir(), "new"), test.name, test.text
		if file != "-" {
			file, in = write(t, test.name, test.text), ""
		}
		args := append([]string{file}, test.args...)
		for range 2 {
			result, remarks, err := imports(t, dir, in, args...)
			if err != nil || !result.Done || result.Points != 3 || result.Refused != 0 {
				t.Errorf("%s %q: %+v, %s, %v", test.name, test.args, result.importState, remarks, err)
			}
			if file != "-" {
				_ = os.Remove(file + ".import") // so that the file is really stored again
			}
		}
		if got := exportOf(t, dir, "telemetry"); got != want {
			t.Errorf("%s %q stores\n%s\nwant\n%s", test.name, test.args, got, want)
		}
	}
}

func zipped(t *testing.T, text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func zstandard(t *testing.T, text string) string {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestImportRoutes: the patterns of a file match the names of the files, and name parts of the key.
func TestImportRoutes(t *testing.T) {
	folder, dir := t.TempDir(), filepath.Join(t.TempDir(), "d")
	routes := write(t, "routes", "# files\n+/+/+/+/+/berlin/+device dataset=telemetry key=site,device time=ts,s\n+/# dataset=others key=device time=ts,s keep=x\n")
	_, _, err := imports(t, dir, "", filepath.Join(folder, "x.csv"), "--routes", routes)
	want(t, exitUsage, err, "a faulty route")
	routes = write(t, "routes", "+/+/+/berlin/+device dataset=telemetry key=site,device time=ts,s\nexport/+tenant/+dataset key=device time=ts,s\nold/# dataset=old key=device time=arrival\nn/# dataset=n key=device time=ts,s count=1h id=i\n")
	t.Chdir(folder)
	for name, text := range map[string]string{"a/b/c/berlin/t1.csv": "ts,site,x\n1767225600,north,1\n", "export/acme/power.csv": "ts,device,kw\n1767225600,m1,2\n", "export/beta/power.csv": "ts,device,kw\n1767225600,m1,2\n", "old/a.csv": "device\n1\n", "n/a.csv": "device\n1\n", "x.csv": "device\n1\n"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, dataset := range map[string]string{"a/b/c/berlin/t1.csv": "telemetry", "export/acme/power.csv": "power"} {
		if _, remarks, err := imports(t, dir, "", name, "--routes", routes); err != nil {
			t.Errorf("%s: %v, %s", name, err, remarks)
		}
		if got := exportOf(t, dir, dataset); !strings.Contains(got, "2026-01-01") {
			t.Errorf("%s stores %s", name, got)
		}
	}
	for name, text := range map[string]string{"export/beta/power.csv": "beta", "old/a.csv": "time=arrival", "n/a.csv": "counts", "x.csv": "no pattern"} {
		if _, _, err := imports(t, dir, "", name, "--routes", routes); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want an error with %q", name, err, text)
		}
	}
}

// TestDryRunOfImport: a dry run shows what would be stored and refused, and leaves no trace.
func TestDryRunOfImport(t *testing.T) {
	file, dir := write(t, "a.csv", threeRows+"never,berlin,t1,1,true,1\n1767225600,berlin,,1,true,1\n1,2\n"), filepath.Join(t.TempDir(), "d")
	result, _, err := imports(t, dir, "", file, "--route", telemetry, "--dry-run")
	want(t, exitFailed, err, "a dry run with refused lines")
	if st := result.importState; st.Records != 6 || st.Points != 3 || st.Refused != 3 || len(result.First) != 3 || len(result.Examples) != 3 || result.Examples[2].Line != 7 {
		t.Errorf("the result is %+v, %+v", result, result.importState)
	}
	if len(result.Datasets) != 1 || result.Datasets[0].In != "would be created" {
		t.Errorf("datasets %v", result.Datasets)
	}
	if first := result.First[0]; first.Entity != "berlin/t1" || string(first.Fields) != `{"on":true,"serial":"007","temp":21.5}` {
		t.Errorf("the first point is %+v", first)
	}
	for _, name := range []string{dir, file + ".import"} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("the dry run has made %s", name)
		}
	}
	out, _, err := tidectl(t, t.Context(), "", "--dir", dir, "import", file, "--tenant", "acme", "--route", telemetry, "--dry-run")
	if want(t, exitFailed, err, "as text"); !strings.Contains(out, "Would be stored  3, as 3 points") || !strings.Contains(out, "Line 7") {
		t.Errorf("as text:\n%s", out)
	}
	dir = filled(t, 1) // has a dataset temps by device
	good := write(t, "b.csv", "ts,device,x\n1767225600,a,1\n")
	result, _, err = imports(t, dir, "", good, "--route", "dataset=other key=device time=ts,s", "--dry-run")
	if want(t, 0, err, "a dry run into a store"); result.Datasets[0].In != "would be created" {
		t.Errorf("datasets %v", result.Datasets)
	}
	if out, _, _ := tidectl(t, t.Context(), "", "--dir", dir, "datasets", "list"); strings.Contains(out, "other") {
		t.Errorf("the dry run has made a dataset:\n%s", out)
	}
	if _, _, err = imports(t, dir, "", good, "--route", "dataset=temps key=device time=ts,s", "--dry-run"); err == nil || !strings.Contains(err.Error(), "temps") {
		t.Errorf("a dry run into a dataset with another codec: %v", err)
	}
	if _, _, err = imports(t, dir, "", good, "--route", "dataset=other key=device time=ts,s"); err != nil {
		t.Error(err)
	}
	result, _, err = imports(t, dir, "", good, "--route", "dataset=other key=device time=ts,s", "--dry-run")
	if want(t, 0, err, "a dry run into a dataset that is there"); result.Datasets[0].In != "exists" {
		t.Errorf("datasets %v", result.Datasets)
	}
}

// TestRefusedLines: they are counted and written with their reason, and all others are stored.
func TestRefusedLines(t *testing.T) {
	var text strings.Builder
	text.WriteString("ts,site,device,x\n")
	for i := range 20 {
		fmt.Fprintf(&text, "%d,berlin,t1,%d\nnever,berlin,t1,\"%d\n%s\"\n", 1767225600+i, i, i, strings.Repeat("y", 5000))
	}
	file, dir, faults := write(t, "a.csv", text.String()), filepath.Join(t.TempDir(), "d"), filepath.Join(t.TempDir(), "faults")
	out, _, err := tidectl(t, t.Context(), "", "--dir", dir, "import", file, "--tenant", "acme", "--route", telemetry)
	if want(t, exitFailed, err, "import"); strings.Count(out, "\nLine ") != shownRefusals || !strings.Contains(out, "20: its time is not accepted") {
		t.Errorf("without --errors:\n%s", out)
	}
	if n := strings.Count(exportOf(t, dir, "telemetry"), "berlin"); n != 20 {
		t.Errorf("%d points are stored, want 20", n)
	}
	_ = os.Remove(file + ".import")
	result, _, err := imports(t, dir, "", file, "--route", telemetry, "--errors", faults)
	want(t, exitFailed, err, "import with --errors")
	written, err := os.ReadFile(faults)
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Split(strings.TrimSpace(string(written)), "\n")
	var last struct {
		File, Reason, Text string
		Line               int
		Last               int `json:"last_line"`
	}
	if err := json.Unmarshal([]byte(list[len(list)-1]), &last); err != nil || len(list) != 20 || last.Line != 60 || last.Last != 61 || last.File != file ||
		len(last.Text) != maxErrorText || !strings.Contains(last.Reason, "RFC 3339") || result.Refused != 20 {
		t.Errorf("%d lines, the last is %+v, %v", len(list), last, err)
	}
	other := write(t, "b.csv", text.String())
	_, _, err = imports(t, dir, "", other, "--route", telemetry, "--errors", faults)
	if err == nil || !strings.Contains(err.Error(), "want a new file") {
		t.Errorf("the errors of another import are written over: %v", err)
	}
	if again, _ := os.ReadFile(faults); !bytes.Equal(again, written) {
		t.Error("the file of errors has changed")
	}
	// The store itself refuses a point that another series has.
	clash := write(t, "c.lp", "m,a=1,b=1 x=1 1\nm,a=1,b=2 x=1 1\nm,a=1 x=1 2\n")
	result, _, err = imports(t, dir, "", clash, "--route", "format=line key=a time=s", "--not-before", "1960-01-01")
	if want(t, exitFailed, err, "two series of one key"); result.Refused != 1 || result.Points != 2 {
		t.Errorf("two series of one key: %+v", result.importState)
	}
}

func TestWrongImports(t *testing.T) {
	file, dir := write(t, "a.csv", threeRows), filepath.Join(t.TempDir(), "d")
	for _, args := range [][]string{
		{},
		{file},
		{file, "--route", "dataset=a"},
		{file, "--route", telemetry, "--routes", file},
		{file, "--routes", file + ".none"},
		{file, "--route", telemetry, "--format", "xml"},
		{file, "--route", telemetry, "--comma", "ab"},
		{file, "--route", telemetry, "--comma", ""},
		{file, "--route", telemetry, "--decimal", ";"},
		{file, "--route", telemetry, "--columns", "a=b,c"},
		{file, "--route", telemetry, "--columns", "a="},
		{file, "--route", telemetry, "--format", "ndjson", "--columns", "a=b"},
		{file, "--route", telemetry, "--format", "parquet", "--columns", "a,b"},
		{file, "--route", telemetry, "--format", "ndjson", "--decimal", ","},
		{file, "--route", telemetry, "--keep", "sometimes"},
		{file, "--route", telemetry, "--not-before", "then"},
		{file, "--route", telemetry, "--state", "x", "--dry-run"},
		{file, file, "--route", telemetry, "--state", "x"},
		{file, "--route", telemetry, "--errors", ""},
		{file, "--route", telemetry, "--tenant", "a#b"},
		{file, "--route", telemetry, "--nonsense"},
	} {
		_, _, err := imports(t, dir, "", args...)
		want(t, exitUsage, err, strings.Join(args, " "))
	}
	for _, name := range []string{file + "x", t.TempDir(), write(t, "a.csv", "ts,site,device,site\n"), write(t, "a.parquet", "PAR1 and nothing more")} {
		if _, _, err := imports(t, dir, "", file, name, "--route", telemetry); err == nil {
			t.Errorf("%s is imported", name)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a wrong command line or file has made a store, and a dataset whose key has to stay")
	}
	for text, args := range map[string][]string{
		"time=arrival":  {file, "--route", "dataset=a key=device time=arrival"},
		"counts":        {file, "--route", "dataset=a key=device time=ts count=1h id=serial"},
		"beta":          {file, "--route", telemetry + " tenant=beta"},
		"format=line":   {file, "--route", telemetry, "--format", "line"},
		"it is csv":     {file, "--route", "format=line key=a time=s", "--format", "csv"},
		"has not":       {file, "--route", telemetry, "--columns", "none=x"},
		"want --format": {write(t, "a", "what\n"), "--route", telemetry},
		"a folder":      {t.TempDir(), "--route", telemetry},
		"no such file":  {file + "x", "--route", telemetry},
		"--columns is":  {write(t, "a.json", "{}"), "--route", telemetry, "--columns", "a=b"},
		"damaged":       {write(t, "a.csv", zipped(t, threeRows)[:30]), "--route", telemetry},
		"not end":       {write(t, "a.parquet", "PAR1 and nothing more"), "--route", telemetry},
		"another":       {write(t, "b.csv", threeRows), "--route", telemetry, "--state", write(t, "state", `{"version":1}`)},
		"not the state": {file, "--route", telemetry, "--state", write(t, "state", `{`)},
		"--keep":        {file, "--route", telemetry, "--keep", "maxage=30d"},
	} {
		if text == "--keep" { // the dataset is there with another class
			if _, _, err := imports(t, dir, "", file, "--route", telemetry); err != nil {
				t.Error(err)
			}
		}
		if _, _, err := imports(t, dir, "", args...); err == nil || !strings.Contains(err.Error(), text) || exitCode(err) == exitUsage {
			t.Errorf("%q: %v, want an error with %q", args, err, text)
		}
	}
	_, _, err := imports(t, dir, "", write(t, "a.csv", zipped(t, threeRows)[:30]), "--route", telemetry)
	want(t, exitDamaged, err, "a file that is cut off")
}

// interruptedAt cancels after some bytes have been read, as Ctrl-C does.
func interruptedAt(text string, after int, cancel func()) io.Reader {
	return &interrupting{Reader: strings.NewReader(text), after: after, cancel: cancel}
}

// TestInterruptedImportOfAFile: Ctrl-C ends an import after a batch, and the same command goes on.
func TestInterruptedImportOfAFile(t *testing.T) {
	text, dir, state := manyRows(20_000, 0), filepath.Join(t.TempDir(), "d"), filepath.Join(t.TempDir(), "state")
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr bytes.Buffer
	args := []string{"--dir", dir, "-o", "json", "import", "-", "--tenant", "acme", "--route", telemetry, "--state", state}
	err := run(ctx, args, streams{interruptedAt(text, len(text)/2, cancel), &stdout, &stderr})
	if want(t, exitInterrupted, err, "import"); !strings.Contains(stderr.String(), "the same command goes on") {
		t.Errorf("the message is %s", stderr.String())
	}
	result, remarks, err := imports(t, dir, text, "-", "--route", telemetry, "--state", state)
	if want(t, 0, err, "continued"); result.Records != 20_000 || result.Points != 20_000 || !strings.Contains(remarks, "goes on after record") {
		t.Errorf("continued: %+v, %s", result.importState, remarks)
	}
	if n := strings.Count(exportOf(t, dir, "telemetry"), "\n") - 1; n != 20_000 {
		t.Errorf("%d points are stored, want 20000", n)
	}
}

// manyRows returns rows of CSV. Each of the bad ones has no time.
func manyRows(n, bad int) string {
	var text strings.Builder
	text.WriteString("ts,site,device,x\n")
	for i := range n {
		if bad > 0 && i%bad == bad-1 {
			fmt.Fprintf(&text, "never,berlin,t%d,%d\n", i%10, i)
		} else {
			fmt.Fprintf(&text, "%d,berlin,t%d,%d\n", 1767225600+i/10, i%10, i)
		}
	}
	return text.String()
}

// TestRowsOfOnePlace: of rows with one key and time the last one is stored, with merge all their fields are, and a row
// without values stores nothing.
func TestRowsOfOnePlace(t *testing.T) {
	var text strings.Builder
	text.WriteString("ts,site,device,x,y\n1767225600,berlin,t1,1,1\n1767225601,berlin,t1,,\n")
	for i := range 6000 { // another batch
		fmt.Fprintf(&text, "%d,berlin,t2,%d,\n", 1767225600+i, i)
	}
	text.WriteString("1767225600,berlin,t1,2,\n1767225600,berlin,t1,3,\n")
	for words, fields := range map[string]string{"": "3", " merge": "3,1"} {
		dir := filepath.Join(t.TempDir(), "d")
		result, _, err := imports(t, dir, "", write(t, "a.csv", text.String()), "--route", telemetry+words)
		if err != nil || result.Blank != 1 || result.Refused != 0 {
			t.Errorf("%q: %+v, %v", words, result.importState, err)
		}
		got := exportOf(t, dir, "telemetry")
		if line := "berlin,t1,2026-01-01T00:00:00Z," + fields + "\n"; !strings.Contains(got, line) || strings.Count(got, "t1") != 1 {
			t.Errorf("%q stores %.200s, want %s", words, got, line)
		}
	}
}
