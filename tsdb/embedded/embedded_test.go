package embedded_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	temps = tsdb.MustDefine("temps", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{})
	acme  = tenant.MustParse("acme")
	roof  = tsdb.NewEntity("roof-7")
	noon  = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
)

func open(t *testing.T, dir string) *tsdb.Store {
	t.Helper()
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Ensure(t.Context(), temps); err != nil {
		t.Fatal(err)
	}
	return store
}

func TestFolderKeepsItsPoints(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	for n := range 3 {
		store := open(t, dir)
		points, err := temps.For(store, acme).LatestN(t.Context(), roof, 10)
		if err != nil || len(points) != n {
			t.Fatalf("after opening %d times: %v, %v", n+1, points, err)
		}
		if err := temps.For(store, acme).Put(t.Context(), roof, noon.Add(time.Duration(n)), float64(n)); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFolderIsOpenedOnce(t *testing.T) {
	dir := t.TempDir()
	store := open(t, dir)
	defer store.Close()
	if _, err := embedded.Open(t.Context(), dir); !errors.Is(err, tsdb.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second Open of a folder: %v, want ErrLocked with the folder's name", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := embedded.Open(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "New opens") {
		t.Errorf("Open without a folder: %v, want an error that names New", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.Open(t.Context(), file); err == nil {
		t.Error("Open of a file succeeds, want an error")
	}
	if _, err := embedded.New(t.Context(), embedded.Options{Table: "a/b"}); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("a bad table name: %v, want ErrInvalid", err)
	}
}

func TestDamageIsReported(t *testing.T) {
	dir := t.TempDir()
	if err := open(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	manifests, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatal(manifests, err)
	}
	for _, m := range manifests {
		if err := os.Remove(m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := embedded.Open(t.Context(), dir); !errors.Is(err, tsdb.ErrDamaged) {
		t.Errorf("Open of a folder without its manifest: %v, want ErrDamaged", err)
	}
}
