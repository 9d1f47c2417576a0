package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/programtest"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
)

func TestMain(m *testing.M) {
	programtest.RunMain(main)
	// The official client never closes one connection of its own if there is an emulator: see tsdb.Open.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("google.golang.org/grpc/internal/grpcsync.(*CallbackSerializer).run"),
		goleak.IgnoreAnyFunction("google.golang.org/grpc.(*addrConn).resetTransportAndUnlock"))
}

var temps = tsdb.MustDefine("temps", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{})

// filled returns the folder of a store in which acme and beta have points.
func filled(t *testing.T, points int) string {
	t.Helper()
	dir := t.TempDir()
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	err = store.Ensure(t.Context(), temps)
	for _, id := range []string{"acme", "beta"} {
		batch := make([]tsdb.Point[float64], points)
		for i := range batch {
			batch[i] = tsdb.Point[float64]{Entity: tsdb.NewEntity("roof"), Time: time.Unix(int64(1_780_000_000+i), 0), Value: float64(i)}
		}
		_, perr := temps.For(store, tenant.MustParse(id)).PutMany(t.Context(), batch)
		err = errors.Join(err, perr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// tidectl runs a command line in process.
func tidectl(t *testing.T, ctx context.Context, in string, args ...string) (out, remarks string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err = run(ctx, args, streams{strings.NewReader(in), &stdout, &stderr})
	return stdout.String(), stderr.String(), err
}

func want(t *testing.T, code int, err error, what string) {
	t.Helper()
	if exitCode(err) != code {
		t.Errorf("%s: exit code %d, %v; want %d", what, exitCode(err), err, code)
	}
}

func TestWrongCommandLines(t *testing.T) {
	dir := filled(t, 1)
	for _, args := range [][]string{
		{"tenants", "list"},
		{"--dir", dir, "nonsense"},
		{"--dir", dir, "tenants", "nonsense"},
		{"--dir", dir, "tenants", "list", "--nonsense"},
		{"--dir", dir, "tenants", "list", "acme"},
		{"--dir", dir, "tenants", "show"},
		{"--dir", dir, "tenants", "show", "a#b"},
		{"--dir", dir, "-o", "xml", "tenants", "list"},
		{"--dir", dir, "tenants", "export", "acme"},
		{"--dir", dir, "tenants", "export", "acme", "--file", "-", "--continue"},
		{"--dir", dir, "tenants", "export", "acme", "--file", "-", "--from", "yesterday"},
		{"--dir", dir, "tenants", "import", "acme", "--file", "-", "--continue", "{"},
		{"--dir", dir, "tenants", "erase", "acme", "--yes", "--dataset", "temps"},
	} {
		out, _, err := tidectl(t, t.Context(), "", args...)
		want(t, exitUsage, err, strings.Join(args, " ")+"\n"+out)
	}
	_, _, err := tidectl(t, t.Context(), "", "--dir", filepath.Join(dir, "none"), "tenants", "list")
	want(t, exitFailed, err, "a folder that is not there")
	_, _, err = tidectl(t, t.Context(), "", "--dir", filepath.Join(dir, "none"), "tenants", "import", "acme", "--file", "-", "--create", "--dry-run")
	want(t, exitFailed, err, "a dry run into a folder that is not there")
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a command that may not create a folder created it")
	}
	_, _, err = tidectl(t, t.Context(), "", "--help")
	want(t, 0, err, "--help")
}

func TestList(t *testing.T) {
	dir := filled(t, 1)
	out, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "list", "-o", "json")
	want(t, 0, err, "list")
	var names []string
	for l := range strings.Lines(out) {
		var row struct {
			Tenant string
			Rows   bool
		}
		if err := json.Unmarshal([]byte(l), &row); err != nil || !row.Rows {
			t.Errorf("%s: %v", l, err)
		}
		names = append(names, row.Tenant)
	}
	if out, _, _ := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "list"); out != "TENANT  NAME  ROWS  ERASED\nacme    -     true  -\nbeta    -     true  -\n" {
		t.Errorf("tenants list prints\n%s", out)
	}
	if strings.Join(names, " ") != "acme beta" {
		t.Errorf("the tenants are %v", names)
	}
	for range 2 {
		_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "onboard", "acme", "--name", "Acme, Inc.", "--limits", `{"points_per_second":5}`)
		want(t, 0, err, "onboard")
	}
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "onboard", "acme", "--name", "Other")
	want(t, exitFailed, err, "onboard with another profile")
	out, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "show", "acme")
	if want(t, 0, err, "show"); !strings.Contains(out, "Acme, Inc.") {
		t.Errorf("show prints %s", out)
	}
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "onboard", "beta", "--class", "temps=d1")
	if want(t, exitFailed, err, "onboard in a class that is not offered"); !strings.Contains(err.Error(), "temps (keep)") {
		t.Errorf("onboarding in a class that is not offered: %v", err)
	}
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "onboard", "beta", "--class", "temps=keep")
	want(t, 0, err, "onboard in a class")
	out, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "show", "beta")
	if want(t, 0, err, "show"); !strings.Contains(out, "Retention of temps  keep") || !strings.Contains(out, "Kept of temps       class keep: points never") {
		t.Errorf("show prints %s", out)
	}
	out, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "usage", "acme")
	if want(t, 0, err, "usage"); !strings.Contains(out, "temps") {
		t.Errorf("usage prints %s", out)
	}
}

// Points go from one store to an empty one, twice with the same result. A damaged file is refused, and the error names
// the line.
func TestExportAndImport(t *testing.T) {
	dir, file := filled(t, 2500), filepath.Join(t.TempDir(), "acme.ndjson")
	out, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--file", file, "-o", "json")
	if want(t, 0, err, "export"); !strings.Contains(out, `"points":2500`) {
		t.Errorf("export prints %s", out)
	}
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--file", file)
	want(t, exitFailed, err, "export over a file")
	_, remarks, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--file", file, "--continue")
	if want(t, 0, err, "continue a complete export"); !strings.Contains(remarks, "complete") {
		t.Errorf("the message is %s", remarks)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, int64(len(whole)*2/3)); err != nil {
		t.Fatal(err)
	}
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "import", "acme", "--file", file)
	want(t, exitDamaged, err, "import of a file that is cut off")
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--file", file, "--continue")
	want(t, 0, err, "continue")
	if again, _ := os.ReadFile(file); !bytes.Equal(again, whole) {
		t.Error("the continued file differs")
	}
	empty := filepath.Join(t.TempDir(), "made", "by", "import")
	_, _, err = tidectl(t, t.Context(), "", "--dir", empty, "tenants", "import", "acme", "--file", file)
	want(t, exitFailed, err, "import without --create")
	for range 2 {
		out, _, err = tidectl(t, t.Context(), string(whole), "--dir", empty, "tenants", "import", "acme", "--file", "-", "--create", "-o", "json")
		if want(t, 0, err, "import"); !strings.Contains(out, `"stored":2500`) {
			t.Errorf("import prints %s", out)
		}
	}
	_, _, err = tidectl(t, t.Context(), "", "--dir", empty, "tenants", "import", "beta", "--file", file)
	if want(t, exitFailed, err, "import into another tenant"); !errors.Is(err, transfer.ErrTenant) {
		t.Errorf("got %v", err)
	}
	damaged := bytes.Replace(whole, []byte("roof"), []byte("r0of"), 1)
	_, _, err = tidectl(t, t.Context(), string(damaged), "--dir", empty, "tenants", "import", "acme", "--file", "-")
	if want(t, exitDamaged, err, "import of a damaged file"); !strings.Contains(err.Error(), "line 2") {
		t.Errorf("import of a damaged file: %v, want its line", err)
	}
	back, _, err := tidectl(t, t.Context(), "", "--dir", empty, "tenants", "export", "acme", "--file", "-")
	if want(t, 0, err, "export to standard output"); strings.Count(back, `"roof"`) != 2500 {
		t.Errorf("the store has %d points", strings.Count(back, `"roof"`))
	}
}

// Ctrl-C ends an import after a whole block, and its message says how to continue.
func TestInterruptedImport(t *testing.T) {
	dir, empty := filled(t, 2500), t.TempDir()
	whole, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--file", "-")
	want(t, 0, err, "export")
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr bytes.Buffer
	in := &interrupting{Reader: strings.NewReader(whole), after: len(whole) * 3 / 4, cancel: cancel}
	args := []string{"--dir", empty, "tenants", "import", "acme", "--file", "-", "--create"}
	err = run(ctx, args, streams{in, &stdout, &stderr})
	want(t, exitInterrupted, err, "import")
	_, rest, ok := strings.Cut(stderr.String(), "--continue '")
	at, _, _ := strings.Cut(rest, "'")
	if !ok {
		t.Fatalf("the message is %s", stderr.String())
	}
	out, _, err := tidectl(t, t.Context(), whole, append(args, "-o", "json", "--continue", at)...)
	want(t, 0, err, "continued")
	var got transfer.Imported
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Before == 0 || got.Before+got.Stored != 2500 {
		t.Errorf("continued: %s, %v", out, err)
	}
}

// interrupting cancels after some bytes have been read.
type interrupting struct {
	*strings.Reader
	after  int
	cancel func()
}

func (i *interrupting) Read(p []byte) (int, error) {
	if i.Size()-int64(i.Len()) > int64(i.after) {
		i.cancel()
	}
	return i.Reader.Read(p)
}

// Nothing is erased without confirmation. An erased tenant is gone, and others are not affected.
func TestErase(t *testing.T) {
	dir := filled(t, 10)
	erase := []string{"--dir", dir, "tenants", "erase", "acme", "--settle", "1ns"}
	_, _, err := tidectl(t, t.Context(), "acme\n", erase...)
	want(t, exitRefused, err, "erase without a terminal")
	out, _, err := tidectl(t, t.Context(), "", append(erase, "--dry-run", "-o", "json")...)
	if want(t, 0, err, "dry run"); !strings.Contains(out, `"dry_run":true`) {
		t.Errorf("the output is %s", out)
	}
	out, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--file", "-")
	if want(t, 0, err, "export"); strings.Count(out, `"roof"`) != 10 {
		t.Error("a dry run erased points")
	}
	for range 2 {
		_, _, err = tidectl(t, t.Context(), "", append(erase, "--yes", "--by", "the tenant")...)
		want(t, 0, err, "erase")
	}
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--file", "-")
	if want(t, exitFailed, err, "export of an erased tenant"); !errors.Is(err, tsdb.ErrErased) {
		t.Errorf("got %v", err)
	}
	out, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "beta", "--file", "-")
	if want(t, 0, err, "export of another tenant"); strings.Count(out, `"roof"`) != 10 {
		t.Error("another tenant lost points")
	}
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "readmit", "acme")
	want(t, 0, err, "readmit")
}
