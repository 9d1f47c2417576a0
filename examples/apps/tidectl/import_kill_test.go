package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/programtest"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

var importKills = flag.Int("import.kills", 3, "how often an import is killed")

// TestKilledImport: imports that are killed at any time go on with the same command. In the end each row is stored
// once, as it is in the file, and each bad line is reported once.
func TestKilledImport(t *testing.T) {
	const rows, bad = 30_000, 97
	file, dir, faults := write(t, "a.csv", manyRows(rows, bad)), filepath.Join(t.TempDir(), "d"), filepath.Join(t.TempDir(), "faults")
	flags := []string{file, "--route", "dataset=telemetry key=site,device time=ts,s", "--errors", faults}
	args := append([]string{"--dir", dir, "import", "--tenant", "acme"}, flags...)
	killed, most := 0, 400*time.Millisecond
	for range *importKills {
		cmd, stderr := programtest.New(t, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rand.N(most))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if st, err := loadedState(file); err == nil && st.Done { // it was faster
			_, _ = os.Remove(file+".import"), os.Remove(faults)
			most /= 2
			continue
		}
		if cmd.ProcessState.ExitCode() == exitFailed {
			t.Fatalf("an import that goes on fails: %s", stderr)
		}
		killed++
	}
	result, remarks, err := imports(t, dir, "", flags...)
	want(t, exitFailed, err, "the last import")
	if result.Records != rows || result.Refused != rows/bad || result.Points != rows-rows/bad {
		t.Errorf("after %d kills: %+v, %s", killed, result.importState, remarks)
	}
	var expected []string
	for i := range rows {
		if i%bad != bad-1 {
			expected = append(expected, fmt.Sprintf("berlin,t%d,%s,%d", i%10, time.Unix(int64(1767225600+i/10), 0).UTC().Format(time.RFC3339), i))
		}
	}
	found := map[string]int{}
	for line := range strings.Lines(exportOf(t, dir, "telemetry")) {
		found[strings.TrimRight(line, ",\n")]++
	}
	for _, line := range expected {
		if found[line] != 1 {
			t.Fatalf("after %d kills the point %s is stored %d times", killed, line, found[line])
		}
	}
	if len(found) != len(expected)+1 { // with the header
		t.Errorf("%d points are stored, want %d", len(found)-1, len(expected))
	}
	written, err := os.ReadFile(faults)
	if err != nil {
		t.Fatal(err)
	}
	for n := bad; n <= rows; n += bad {
		if got := bytes.Count(written, fmt.Appendf(nil, `"line":%d,`, n+1)); got != 1 {
			t.Errorf("line %d is reported %d times", n+1, got)
		}
	}
	_, remarks, err = imports(t, dir, "", flags...)
	if want(t, 0, err, "again"); !strings.Contains(remarks, "imported already") {
		t.Errorf("again: %s", remarks)
	}
}

func loadedState(file string) (*importState, error) {
	text, err := os.ReadFile(file + ".import")
	if err != nil {
		return nil, err
	}
	st := &importState{}
	return st, json.Unmarshal(text, st)
}

// TestStateOfAnotherImport: a state is only used for the same file, store, tenant, route and form.
func TestStateOfAnotherImport(t *testing.T) {
	file, dir := write(t, "a.csv", threeRows), filepath.Join(t.TempDir(), "d")
	if _, _, err := imports(t, dir, "", file, "--route", telemetry); err != nil {
		t.Fatal(err)
	}
	refuses := func(text, dir string, args ...string) {
		t.Helper()
		_, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir, "import", file}, args...)...)
		if want(t, exitFailed, err, text); err == nil || !strings.Contains(err.Error(), "differs in "+text) {
			t.Errorf("the error is %v, want one with %q", err, text)
		}
	}
	refuses("the store", filepath.Join(t.TempDir(), "other"), "--tenant", "acme", "--route", telemetry)
	refuses("the tenant", dir, "--tenant", "beta", "--route", telemetry)
	refuses("the route", dir, "--tenant", "acme", "--route", telemetry+" text=serial")
	refuses("how the file", dir, "--tenant", "acme", "--route", telemetry, "--comma", ",")
	for _, text := range []string{threeRows + "\n", strings.Replace(threeRows, "22", "23", 1)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		refuses("the file", dir, "--tenant", "acme", "--route", telemetry)
	}
}

// TestTwoFilesAtOnce: one command imports several files, and goes on with those that are not done.
func TestTwoFilesAtOnce(t *testing.T) {
	dir, faults := filepath.Join(t.TempDir(), "d"), filepath.Join(t.TempDir(), "faults")
	one, two := write(t, "one.csv", manyRows(7000, 7)), write(t, "two.ndjson", `{"ts":1,"site":"a","device":"b","x":1}`+"\n"+`{"ts":1767225600,"site":"a","device":"b","x":1}`)
	args := []string{"--dir", dir, "import", one, two, "--tenant", "acme", "--route", telemetry, "--errors", faults}
	out, _, err := tidectl(t, t.Context(), "", args...)
	if want(t, exitFailed, err, "import"); !strings.Contains(err.Error(), "1001 records") || strings.Count(out, "State ") != 2 {
		t.Errorf("two files: %v\n%s", err, out)
	}
	_, remarks, err := tidectl(t, t.Context(), "", args...)
	if want(t, 0, err, "again"); !strings.Contains(remarks, "two.ndjson is imported already") {
		t.Errorf("again: %s", remarks)
	}
	_ = os.Remove(two + ".import")
	_, remarks, err = tidectl(t, t.Context(), "", args[:len(args)-2]...)
	if want(t, exitFailed, err, "the second again"); !strings.Contains(remarks, "one.csv is imported already") {
		t.Errorf("the second again: %v\n%s", err, remarks)
	}
	if n := strings.Count(exportOf(t, dir, "telemetry"), "\n"); n != 6002 {
		t.Errorf("%d points are stored, want 6001", n-1)
	}
	if written, err := os.ReadFile(faults); err != nil || bytes.Count(written, []byte("\n")) != 1001 {
		t.Errorf("%d lines of errors, %v; want 1001", bytes.Count(written, []byte("\n")), err)
	}
}

// ending ends a server after some bytes have been read.
type ending struct {
	io.Reader
	left int
	end  func()
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p[:min(len(p), 4096)])
	if e.left -= n; e.left < 0 && e.end != nil {
		e.end()
		e.end = nil
	}
	return n, err
}

// TestStoreThatGoesAway: if the store goes away, the import stops, says how to go on, and goes on when it is back.
func TestStoreThatGoesAway(t *testing.T) {
	defer func(d time.Duration) { importTimeout = d }(importTimeout)
	importTimeout = 300 * time.Millisecond
	dir, state, text := t.TempDir(), filepath.Join(t.TempDir(), "state"), manyRows(30_000, 0)
	serve := func() (end func()) {
		server, err := embedded.NewServer(embedded.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("BIGTABLE_EMULATOR_HOST", lis.Addr().String())
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- server.Serve(ctx, lis) }()
		return func() {
			cancel()
			<-done
			_ = server.Close()
		}
	}
	args := []string{"--project", embedded.Project, "--instance", embedded.Instance, "--table", "tidemark", "import", "-", "--tenant", "acme", "--route", telemetry, "--state", state}
	var stdout, stderr bytes.Buffer
	err := run(t.Context(), args, streams{&ending{strings.NewReader(text), len(text) / 2, serve()}, &stdout, &stderr})
	if want(t, exitFailed, err, "the store goes away"); err == nil || !strings.Contains(err.Error(), "not all points are stored") || !strings.Contains(stderr.String(), "the same command goes on") {
		t.Errorf("%v, %s", err, stderr.String())
	}
	importTimeout = time.Minute
	end := serve()
	out, _, err := tidectl(t, t.Context(), text, args...)
	if want(t, 0, err, "the store is back"); !strings.Contains(out, "Stored   30000, as 30000 points") {
		t.Errorf("the store is back:\n%s", out)
	}
	end()
	if n := strings.Count(exportOf(t, dir, "telemetry"), "\n") - 1; n != 30_000 {
		t.Errorf("%d points are stored, want 30000", n)
	}
}

// TestImportKilledEarly: an import that was killed when it had opened the file of refused records, and before it saved
// a state, goes on. A file with lines that no state knows stays as it is.
func TestImportKilledEarly(t *testing.T) {
	file, dir, faults := write(t, "a.csv", manyRows(100, 7)), filepath.Join(t.TempDir(), "d"), filepath.Join(t.TempDir(), "faults")
	flags := []string{file, "--route", "dataset=telemetry key=site,device time=ts,s", "--errors", faults}
	if err := os.WriteFile(faults, []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := imports(t, dir, "", flags...)
	if want(t, exitFailed, err, "over another file"); !strings.Contains(err.Error(), "want a new file") {
		t.Error(err)
	}
	if err := os.Truncate(faults, 0); err != nil {
		t.Fatal(err)
	}
	result, remarks, err := imports(t, dir, "", flags...)
	if want(t, exitFailed, err, "over an empty file"); result.Refused != 100/7 {
		t.Errorf("%+v, %s", result.importState, remarks)
	}
}

// TestImportKilledBeforeItsFirstBatch: an import that was killed when it had written refused records, and before it had
// stored anything, goes on with the same command, and writes each refused record once.
func TestImportKilledBeforeItsFirstBatch(t *testing.T) {
	const rows = recordsAtOnce - 1
	dir, place := filepath.Join(t.TempDir(), "d"), t.TempDir()
	faults, state := filepath.Join(place, "faults"), filepath.Join(place, "state")
	flags := []string{"-", "--route", "dataset=telemetry key=site,device time=ts,s", "--errors", faults, "--state", state}
	cmd, stderr := programtest.New(t, append([]string{"--dir", dir, "import", "--tenant", "acme"}, flags...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text := manyRows(rows, 1)
	if _, err := io.WriteString(in, text); err != nil { // the input does not end
		t.Fatal(err, stderr)
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if info, err := os.Stat(faults); err == nil && info.Size() > 0 {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("no refused record is written: %s", stderr)
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	result, remarks, err := imports(t, dir, text, flags...)
	if want(t, exitFailed, err, "the import that goes on"); result.Records != rows || result.Refused != rows {
		t.Errorf("%+v, %s", result.importState, remarks)
	}
	written, err := os.ReadFile(faults)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(written, []byte("\n")); n != rows {
		t.Errorf("%d refused records are written, want %d", n, rows)
	}
}
