//go:build unix

package private_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemark-go/tidemark/internal/private"
)

// noUmask lets files get the modes that a program asks for. Tests that use it are not parallel: the umask is the
// process's.
func noUmask(t *testing.T) {
	old := syscall.Umask(0)
	t.Cleanup(func() { syscall.Umask(old) })
}

func modeOf(t *testing.T, name string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func folder(t *testing.T, dir string, mode fs.FileMode) string {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, name string, mode fs.FileMode) string {
	t.Helper()
	if err := os.WriteFile(name, []byte("text"), mode); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestFolderIsMade with its parents, for its owner alone.
func TestFolderIsMade(t *testing.T) {
	noUmask(t)
	parent := filepath.Join(t.TempDir(), "parent")
	dir := filepath.Join(parent, "data")
	if err := private.Folder(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{parent, dir} {
		if got := modeOf(t, name); got != 0o700 {
			t.Errorf("%s has mode %#o", name, got)
		}
	}
}

// TestFolderIsTightened: what others could read they cannot any more; what the owner may do stays.
func TestFolderIsTightened(t *testing.T) {
	noUmask(t)
	for _, mode := range []fs.FileMode{0o755, 0o750, 0o711, 0o700} {
		dir := folder(t, filepath.Join(t.TempDir(), "data"), mode)
		files := map[string]fs.FileMode{"a": 0o644, "b": 0o666, "c": 0o400, "d": 0o600}
		for name, mode := range files {
			write(t, filepath.Join(dir, name), mode)
		}
		sub := folder(t, filepath.Join(dir, "sub"), 0o777)
		if err := private.Folder(dir + "/"); err != nil {
			t.Fatalf("%#o: %v", mode, err)
		}
		for name, want := range map[string]fs.FileMode{dir: 0o700, sub: 0o700} {
			if got := modeOf(t, name); got != want {
				t.Errorf("%s has mode %#o, want %#o", name, got, want)
			}
		}
		for name, mode := range files {
			if got := modeOf(t, filepath.Join(dir, name)); got != mode&^0o077 {
				t.Errorf("%s had mode %#o and has %#o", name, mode, got)
			}
		}
	}
}

// TestFolderThatOthersWrite is refused with its mode, unless there is nothing in it that could be somebody else's.
func TestFolderThatOthersWrite(t *testing.T) {
	noUmask(t)
	for mode, text := range map[fs.FileMode]string{0o775: "0775", 0o777: "0777", 0o702: "0702", 0o777 | fs.ModeSticky: "01777"} {
		for _, holds := range []bool{true, false} {
			dir := folder(t, filepath.Join(t.TempDir(), "data"), mode)
			if holds {
				write(t, filepath.Join(dir, "a"), 0o600)
			}
			err := private.Folder(dir)
			if !holds && mode&fs.ModeSticky == 0 {
				if err != nil || modeOf(t, dir) != 0o700 {
					t.Errorf("an empty one with mode %s: %v, has mode %#o now", text, err, modeOf(t, dir))
				}
				continue
			}
			refusal, ok := errors.AsType[*fs.PathError](err)
			if !ok || refusal.Path != dir || !strings.Contains(err.Error(), "mode "+text) || !strings.Contains(err.Error(), "0700") {
				t.Errorf("mode %s: got %v, want an error with folder, mode and what is allowed", text, err)
			}
			if got := modeOf(t, dir); got != mode.Perm() {
				t.Errorf("mode %s: the refused folder has mode %#o now", text, got)
			}
		}
	}
}

// TestLinksAreNotFollowed, wherever they point: nothing behind them changes.
func TestLinksAreNotFollowed(t *testing.T) {
	noUmask(t)
	outside := folder(t, filepath.Join(t.TempDir(), "outside"), 0o755)
	target := write(t, filepath.Join(outside, "file"), 0o644)
	for name, build := range map[string]func(t *testing.T, parent string) (dir string){
		"the folder": func(t *testing.T, parent string) string {
			link(t, outside, filepath.Join(parent, "data"))
			return filepath.Join(parent, "data")
		},
		"the folder with a slash": func(t *testing.T, parent string) string {
			link(t, outside, filepath.Join(parent, "data"))
			return filepath.Join(parent, "data") + "/"
		},
		"the folder, to nothing": func(t *testing.T, parent string) string {
			link(t, filepath.Join(outside, "missing"), filepath.Join(parent, "data"))
			return filepath.Join(parent, "data")
		},
		"a file": func(t *testing.T, parent string) string {
			dir := folder(t, filepath.Join(parent, "data"), 0o700)
			link(t, target, filepath.Join(dir, "lock"))
			return dir
		},
		"a file, to nothing": func(t *testing.T, parent string) string {
			dir := folder(t, filepath.Join(parent, "data"), 0o700)
			link(t, filepath.Join(outside, "missing"), filepath.Join(dir, "lock"))
			return dir
		},
		"not a folder": func(t *testing.T, parent string) string { return write(t, filepath.Join(parent, "data"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := private.Folder(build(t, t.TempDir())); err == nil {
				t.Error("it was accepted")
			} else if _, ok := errors.AsType[*fs.PathError](err); !ok {
				t.Errorf("got %v, want an error with the path", err)
			}
			entries, _ := os.ReadDir(outside)
			if len(entries) != 1 || modeOf(t, outside) != 0o755 || modeOf(t, target) != 0o644 {
				t.Errorf("outside of the folder: %v, modes %#o and %#o", entries, modeOf(t, outside), modeOf(t, target))
			}
		})
	}
	parent := t.TempDir()
	real := folder(t, filepath.Join(parent, "real"), 0o755)
	link(t, real, filepath.Join(parent, "link"))
	if err := private.Folder(filepath.Join(parent, "link", "data")); err != nil {
		t.Errorf("below a linked parent: %v", err)
	}
}

func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

// TestRefusedFolderKeepsItsRights: a folder that is refused for a link in it is left as it was, with all that it holds.
func TestRefusedFolderKeepsItsRights(t *testing.T) {
	noUmask(t)
	dir := folder(t, filepath.Join(t.TempDir(), "data"), 0o755)
	sub := folder(t, filepath.Join(dir, "a"), 0o755)
	link(t, sub, filepath.Join(dir, "b"))
	if err := private.Folder(dir); err == nil {
		t.Error("a folder with a link is not refused")
	}
	for _, name := range []string{dir, sub} {
		if got := modeOf(t, name); got != 0o755 {
			t.Errorf("%s has mode %#o", name, got)
		}
	}
}

// All new names have to survive a power loss, not only the last one: otherwise a folder would be lost with its parents.
func TestParentsOfNewFolders(t *testing.T) {
	base := t.TempDir()
	for _, tt := range []struct {
		dir  string
		want []string
	}{
		{"a", []string{"."}},
		{"a/b/c", []string{"a/b", "a", "."}},
	} {
		var want []string
		for _, parent := range tt.want {
			want = append(want, filepath.Join(base, parent))
		}
		if got := private.ChangedBy(filepath.Join(base, tt.dir)); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", tt.dir, got, want)
		}
	}
}
