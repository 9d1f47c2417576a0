//go:build unix

package engine_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/engine"
)

// TestFolderIsPrivate checks that other users of the machine cannot read the folder or its files, whatever the umask
// and the modes that they had before.
func TestFolderIsPrivate(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "parent", "data")
	o := engine.Options{Dir: dir, MemTableBytes: 64 << 10}
	r := open(t, o)
	r.create(t)
	for i := range 200 { // enough for several logs and table files
		apply(t, r, string(rune('a'+i)), set("f", "q", 1000, strings.Repeat("v", 1000)))
	}
	checkModes(t, dir)
	r.disconnect(t)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	checkModes(t, dir)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".sst") {
			tables++
		}
		if err := os.Chmod(filepath.Join(dir, f.Name()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if tables == 0 {
		t.Error("got no table file to check, want at least one")
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	open(t, o)
	checkModes(t, dir)
}

// TestUnsafeFolder checks that a folder that others can write to, or with a symbolic link in it, does not open, and
// that no file outside it changes.
func TestUnsafeFolder(t *testing.T) {
	for _, name := range []string{"LOCK", "TIDEMARK", "LOGS"} {
		dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
		if err := os.WriteFile(victim, []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(victim, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		refused(t, dir, "symbolic link")
		if text, err := os.ReadFile(victim); err != nil || string(text) != "mine" {
			t.Errorf("%s: the link's target holds %.20q (%v), want it unchanged", name, text, err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "planted"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, "mode 0777")
}

func refused(t *testing.T, dir, why string) {
	t.Helper()
	e, err := engine.Open(engine.Options{Dir: dir, GCInterval: -1})
	if err == nil {
		_ = e.Close()
		t.Errorf("%s: got nil, want an error", dir)
	} else if !errors.Is(err, engine.ErrStorage) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want an ErrStorage with the folder and %q", err, why)
	}
}

func checkModes(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the engine has removed it
		}
		// The engine creates a file in its private folder and then sets the file's mode.
		for end := time.Now().Add(10 * time.Second); err == nil && info.Mode().Perm()&0o077 != 0; info, err = os.Lstat(name) {
			if time.Now().After(end) {
				t.Errorf("%s has mode %v, want no access for others", name, info.Mode())
				return nil
			}
			time.Sleep(time.Millisecond)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
