package backup

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// The process that is killed finds here what it does, where, and before which change of the disk it ends.
const (
	killedDoes = "TIDEMARK_BACKUP_DOES"
	killedAt   = "TIDEMARK_BACKUP_AT"
	killedIn   = "TIDEMARK_BACKUP_IN"
)

func TestMain(m *testing.M) {
	does := map[string]func(root string) error{"make": make1, "restore": restore1, "unpack": unpack1}[os.Getenv(killedDoes)]
	if does == nil {
		os.Exit(m.Run())
	}
	left, _ := strconv.Atoi(os.Getenv(killedAt))
	step = func() {
		if left--; left < 0 {
			os.Exit(99)
		}
	}
	if does(os.Getenv(killedIn)) != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// stored is a journal of files.
type stored struct{}

func (stored) Dir() string    { return "/somewhere/journal" }
func (stored) Stream() string { return "0123" }
func (stored) Snapshot(f func(copyTo func(dir string) (spool.Stats, error)) error) error {
	return f(func(dir string) (spool.Stats, error) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return spool.Stats{}, err
		}
		return spool.Stats{Records: 7}, os.WriteFile(filepath.Join(dir, "journal.db"), []byte("records"), 0o600)
	})
}

// files are those of the folder in root/data.
var files = map[string]string{"1.sst": "one", "2.sst": "two", "MANIFEST-1": "manifest", "3.log": "log", "TIDEMARK": "tidemark 1"}

// checkpoint is that of the folder in root/data.
func checkpoint(root string) Checkpoint {
	return With([]Journal{stored{}}, func(context.Context) (string, func() error, error) {
		dir, err := os.MkdirTemp(root, "checkpoint-")
		for name := range files {
			err = errors.Join(err, os.Link(filepath.Join(root, "data", name), filepath.Join(dir, name)))
		}
		return dir, func() error { return os.RemoveAll(dir) }, err
	})
}

func make1(root string) error {
	_, _, err := Make(context.Background(), filepath.Join(root, "data"), filepath.Join(root, "backup"), checkpoint(root))
	return err
}

func restore1(root string) error {
	_, err := Restore(context.Background(), filepath.Join(root, "backup"), filepath.Join(root, "copy"), filepath.Join(root, "journals"))
	return err
}

func unpack1(root string) error {
	text, err := os.ReadFile(filepath.Join(root, "stream"))
	if err == nil {
		_, err = Unpack(context.Background(), bytes.NewReader(text), "", filepath.Join(root, "unpacked"))
	}
	return err
}

// world makes a folder with a backup and its stream.
func world(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, "data", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := make1(root); err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	if _, err := Pack(t.Context(), filepath.Join(root, "backup"), nil, &stream); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "stream"), stream.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestKilledAnywhere ends a process before each change of the disk, and then does the same again.
func TestKilledAnywhere(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(root string) error
		makes string
		check func(t *testing.T, root string)
	}{
		"make":    {make1, "backup", func(t *testing.T, root string) { whole(t, filepath.Join(root, "backup")) }},
		"restore": {restore1, "copy", restored},
		"unpack":  {unpack1, "unpacked", func(t *testing.T, root string) { whole(t, filepath.Join(root, "unpacked")) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := 0; ; at++ {
				root := world(t)
				if name == "make" {
					if err := os.RemoveAll(filepath.Join(root, "backup")); err != nil {
						t.Fatal(err)
					}
				}
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), killedDoes+"="+name, killedIn+"="+root, killedAt+"="+strconv.Itoa(at))
				err := cmd.Run()
				if err == nil {
					if at < 10 {
						t.Errorf("only %d changes of the disk", at)
					}
					return
				}
				if cmd.ProcessState.ExitCode() != 99 {
					t.Fatalf("change %d: %v", at, err)
				}
				_, missing := os.Stat(filepath.Join(root, c.makes))
				if err := c.do(root); missing != nil && err != nil || missing == nil && !errors.Is(err, fs.ErrExist) {
					t.Fatalf("again, after the end at change %d: %v; the folder: %v", at, err, missing)
				}
				c.check(t, root)
				if left, _ := filepath.Glob(filepath.Join(root, "*"+partial)); len(left) > 0 {
					t.Errorf("change %d leaves %v", at, left)
				}
			}
		})
	}
}

func whole(t *testing.T, dir string) {
	t.Helper()
	never := func(string) error { return nil }
	m, err := Verify(t.Context(), dir, never, never)
	if err != nil || len(m.Files) != len(files)+2 || len(m.Journals) != 1 || m.Journals[0].Records != 7 {
		t.Errorf("the backup is %+v, %v", m, err)
	}
}

// restored checks the folder, that the journal is there once, and that nobody else gets it.
func restored(t *testing.T, root string) {
	t.Helper()
	for name, text := range files {
		if got, err := os.ReadFile(filepath.Join(root, "copy", name)); err != nil || string(got) != text {
			t.Errorf("%s has %q, %v; want %q", name, got, err, text)
		}
	}
	if got, err := os.ReadFile(filepath.Join(root, "journals", "journal", "journal.db")); err != nil || string(got) != "records" {
		t.Errorf("the journal has %q, %v", got, err)
	}
	if _, err := Restore(t.Context(), filepath.Join(root, "backup"), filepath.Join(root, "copy2"), filepath.Join(root, "journals2")); !errors.Is(err, ErrClaimed) {
		t.Errorf("another copy gets the journals: %v", err)
	}
	if of, err := Origin(filepath.Join(root, "copy")); err != nil || of == nil || of.Dir != filepath.Join(root, "data") {
		t.Errorf("the folder is a copy of %+v, %v", of, err)
	}
}

// TestForgedStreams: names in a manifest stay in the folder.
func TestForgedStreams(t *testing.T) {
	sum := "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for _, text := range []string{
		``, `{}`, `[]`, `{"tidemark_backup":2}`,
		`{"tidemark_backup":1,"files":[{"name":"../x","bytes":0,"sha256":"` + sum + `"}]}`,
		`{"tidemark_backup":1,"files":[{"name":"data/../../x","bytes":0,"sha256":"` + sum + `"}]}`,
		`{"tidemark_backup":1,"files":[{"name":"/data/x","bytes":0,"sha256":"` + sum + `"}]}`,
		`{"tidemark_backup":1,"files":[{"name":"x","bytes":0,"sha256":"` + sum + `"}]}`,
		`{"tidemark_backup":1,"files":[{"name":"data/x","bytes":-1,"sha256":"` + sum + `"}]}`,
		`{"tidemark_backup":1,"files":[{"name":"data/x","bytes":0,"sha256":""}]}`,
		`{"tidemark_backup":1,"files":[{"name":"data/x","bytes":0,"sha256":"` + sum + `"},{"name":"data/x","bytes":0,"sha256":"` + sum + `"}]}`,
		`{"tidemark_backup":1,"journals":[{"stream":"../x"}]}`, `{"tidemark_backup":1,"journals":[{"stream":""}]}`, `{"tidemark_backup":1,"journals":[{"stream":"."}]}`,
	} {
		if m, err := parseManifest(bytes.NewReader([]byte(text))); err == nil {
			t.Errorf("%s is read as %+v", text, m)
		}
	}
}

// FuzzManifest: nothing panics, and no name leaves a backup.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"tidemark_backup":1,"id":"00","files":[{"name":"data/1.sst","bytes":3,"sha256":"7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseManifest(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, file := range m.Files {
			if !filepath.IsLocal(filepath.FromSlash(file.Name)) {
				t.Errorf("the name %q leaves the folder", file.Name)
			}
		}
	})
}
