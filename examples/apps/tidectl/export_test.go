package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// TestKeyOfAnExport: an export with a key can only be imported with that key.
func TestKeyOfAnExport(t *testing.T) {
	dir, keys := filled(t, 100), t.TempDir()
	key, other := filepath.Join(keys, "key"), filepath.Join(keys, "other")
	for name, text := range map[string]string{key: strings.Repeat("k", 32), other: strings.Repeat("o", 32)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "acme.ndjson")
	_, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--file", file, "--key-file", key)
	want(t, 0, err, "export")
	imported := func(file string, more ...string) (string, error) {
		into := filepath.Join(t.TempDir(), "store")
		out, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", into, "tenants", "import", "acme", "--create", "--file", file}, more...)...)
		return out, err
	}
	if out, err := imported(file, "--key-file", key); err != nil || !strings.Contains(out, "100") {
		t.Errorf("import with its key: %s, %v", out, err)
	}
	for what, args := range map[string][]string{"without the key": nil, "with another key": {"--key-file", other}} {
		if out, err := imported(file, args...); exitCode(err) == 0 {
			t.Errorf("an import %s: %s", what, out)
		}
	}
	plain := filepath.Join(t.TempDir(), "plain.ndjson")
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--file", plain)
	want(t, 0, err, "export without a key")
	if out, err := imported(plain, "--key-file", key); exitCode(err) == 0 {
		t.Errorf("import with a key of an export without one, which anybody can make: %s", out)
	}
}

// TestExportIsSynced: an export fails if its file cannot be synced. A pipe accepts every byte, and cannot be synced.
func TestExportIsSynced(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := finish(w, "pipe", nil); err == nil {
		t.Error("an export that is not on disk succeeds, want an error")
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file is still open: %v", err)
	}
}

// TestUsageShowsOneTenant: a tenant's usage and export do not name datasets in which only other tenants have rows.
func TestUsageShowsOneTenant(t *testing.T) {
	dir := filled(t, 3)
	secret := tsdb.MustDefine("secret-project", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{})
	func() {
		store, err := embedded.Open(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		if err := errors.Join(store.Ensure(t.Context(), secret),
			secret.For(store, tenant.MustParse("beta")).Put(t.Context(), tsdb.NewEntity("roof"), time.Unix(1_780_000_000, 0), 1)); err != nil {
			t.Fatal(err)
		}
	}()
	for _, command := range []string{"usage acme", "usage acme --exact", "usage acme -o json", "export acme --file -"} {
		out, remarks, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir, "tenants"}, strings.Fields(command)...)...)
		want(t, 0, err, command)
		if !strings.Contains(out, "temps") || strings.Contains(out+remarks, "secret") {
			t.Errorf("%s prints %s and %s", command, out, remarks)
		}
	}
	out, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "usage", "beta")
	if want(t, 0, err, "usage of its tenant"); !strings.Contains(out, "secret-project") {
		t.Errorf("the output is %s", out)
	}
}

// TestImportOfAnotherFile: import of a file that is no export says so, and which files it takes. It does not say that
// the file is damaged.
func TestImportOfAnotherFile(t *testing.T) {
	for what, text := range map[string]string{
		"CSV": "time;device\n2026-06-01;roof\n", "one word": "hello", "Parquet": "PAR1\x15\x04\x15\x10", "gzip": "\x1f\x8b\x08\x00" + strings.Repeat("x", 100), "JSON": `{"device":"roof"}` + "\n",
		"nothing": "", "a line with a sum": `{"dataset":"temps","crc":"00000000"}` + "\n",
	} {
		_, _, err := tidectl(t, t.Context(), text, "--dir", t.TempDir(), "tenants", "import", "acme", "--create", "--file", "-")
		if want(t, exitDamaged, err, what); err == nil || strings.Contains(err.Error(), "damaged") || strings.Contains(err.Error(), "crc is") || !strings.Contains(err.Error(), `import takes what "tenants export" writes`) {
			t.Errorf("import of %s: %v", what, err)
		}
	}
	for _, cut := range []string{"{", `{"tidemark":"exp`, `{"tidemark":"export","version":1`} {
		_, _, err := tidectl(t, t.Context(), cut, "--dir", t.TempDir(), "tenants", "import", "acme", "--create", "--file", "-")
		if want(t, exitDamaged, err, cut); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("import of an export that is cut off at %s: %v", cut, err)
		}
	}
}

// TestProgress: progress is shown with its count and rate on standard error where it is asked for, and never among the
// results.
func TestProgress(t *testing.T) {
	dir, file := filled(t, 1500), filepath.Join(t.TempDir(), "acme.ndjson")
	for _, command := range []string{"tenants export acme --file " + file, "tenants import acme --file " + file} {
		out, remarks, err := tidectl(t, t.Context(), "", strings.Fields("--progress --dir "+dir+" "+command)...)
		want(t, 0, err, command)
		if !strings.Contains(remarks, "ing") || !strings.Contains(remarks, "/s") || strings.Contains(out, "\r") {
			t.Errorf("%s prints %q and %q", command, out, remarks)
		}
	}
	if _, remarks, _ := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "import", "acme", "--file", file); remarks != "" {
		t.Errorf("without --progress an import prints %q", remarks)
	}
}
