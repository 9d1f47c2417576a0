// Package backup copies a store's folder while it is in use, checks copies, and restores them.
//
// A backup is a folder of mode 0700. It has
//
//   - BACKUP.json, which lists all files with their SHA-256;
//   - data, the files of the store's folder, as of one moment;
//   - journals, with a folder for each journal, which has its stream as its name. journal.json in it describes it;
//   - claim.json, once its journals are restored: it says to which copy;
//   - LOCK, which is locked while a process writes in the folder.
//
// Table files and other files of a backup never change. Those of one file system are shared, by hard links, between
// the store's folder and all its backups.
package backup

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/diskerr"
)

// version is the version of the form of backups.
const version = 1

const (
	manifestName = "BACKUP.json"
	claimName    = "claim.json"
	originName   = "copy.json" // in a restored folder: the manifest of its backup, without files
	journalName  = "journal.json"
	dataFolder   = "data"
	journals     = "journals"

	maxManifest = 256 << 20 // bytes: about a million files
)

// Manifest says what a backup has.
type Manifest struct {
	Version  int       `json:"tidemark_backup"`
	ID       string    `json:"id"`
	Taken    time.Time `json:"taken"`
	Host     string    `json:"host"`
	Dir      string    `json:"dir"`
	CopyOf   *Manifest `json:"copy_of,omitempty"` // the backup that the store's folder was restored from
	Files    []File    `json:"files,omitempty"`
	Journals []Copied  `json:"journals,omitempty"`
}

// Copied is a journal in a backup.
type Copied struct {
	Stream      string `json:"stream"`
	Dir         string `json:"dir"` // it had
	Records     int    `json:"records"`
	DeadLetters int    `json:"dead_letters"`
}

// File is a file of a backup. Its name has slashes on all systems.
type File struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Sum   string `json:"sha256"`
}

// newManifest describes a backup of the folder dir that is taken now.
func newManifest(dir string) (*Manifest, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	id := make([]byte, 16)
	rand.Read(id) // never fails
	m := &Manifest{Version: version, ID: hex.EncodeToString(id), Taken: time.Now().UTC().Truncate(time.Millisecond), Host: host, Dir: dir}
	m.CopyOf, err = Origin(dir)
	return m, err
}

// Origin returns the backup that a store's folder was restored from, or nil if it was not.
func Origin(dir string) (*Manifest, error) {
	m, err := readManifest(filepath.Join(dir, originName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return m, err
}

// Read returns the manifest of a backup: a folder, or its BACKUP.json alone.
func Read(dir string) (*Manifest, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return readManifest(dir)
	}
	m, err := readManifest(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not a backup: %w", dir, err)
	}
	return m, err
}

func readManifest(name string) (*Manifest, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	m, err := parseManifest(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// parseManifest reads a manifest that may be forged: its names stay inside of a backup.
func parseManifest(r io.Reader) (*Manifest, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxManifest {
		return nil, damaged("it has more than %d bytes", maxManifest)
	}
	m := &Manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, damaged("%v", err)
	}
	if m.Version < 1 || m.Version > version {
		return nil, fmt.Errorf("a backup of version %d; this program knows %d", m.Version, version)
	}
	for i, f := range m.Files {
		top, _, _ := strings.Cut(f.Name, "/")
		if !filepath.IsLocal(filepath.FromSlash(f.Name)) || top != dataFolder && top != journals || f.Bytes < 0 || len(f.Sum) != 64 {
			return nil, damaged("file %d is %q with %d bytes and the sum %q", i, f.Name, f.Bytes, f.Sum)
		}
		if i > 0 && m.Files[i-1].Name >= f.Name {
			return nil, damaged("the files are not in order at %q", f.Name)
		}
	}
	for _, j := range m.Journals {
		if !plainName(j.Stream) {
			return nil, damaged("a journal has the stream %q", j.Stream)
		}
	}
	return m, nil
}

// plainName reports whether a name can be that of a file in a folder.
func plainName(name string) bool {
	return filepath.IsLocal(name) && filepath.Base(name) == name && name != "."
}

func (m *Manifest) encode() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetIndent("", " ")
	err := enc.Encode(m)
	return out.Bytes(), err
}

// find returns the file with a name.
func (m *Manifest) find(name string) (File, bool) {
	i, ok := slices.BinarySearchFunc(m.Files, name, func(f File, name string) int { return strings.Compare(f.Name, name) })
	if !ok {
		return File{}, false
	}
	return m.Files[i], true
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{diskerr.ErrDamaged}, args...)...)
}
