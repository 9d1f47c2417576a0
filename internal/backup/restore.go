package backup

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/diskerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/private"
)

// ErrClaimed says that the journals of a backup are restored already, to another copy.
var ErrClaimed = invalid.Under(diskerr.ErrLocked, "backup: its journals belong to another copy")

// Restore makes the folder dir from a backup, and checks each file's sum. If journalsDir is not empty, it also makes
// that folder, with the backup's journals in it, each by the last part of its folder's old name. Only one copy gets
// them.
func Restore(ctx context.Context, from, dir, journalsDir string) (*Manifest, error) {
	m, err := Read(from)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	r := restore{ctx, m, from}
	if journalsDir != "" {
		if err := r.refuse(dir, journalsDir); err != nil {
			return m, err
		}
	}
	err = fill(dir, func(temp string) error {
		if err := r.files(dataFolder+"/", temp, ""); err != nil {
			return err
		}
		if err := r.origin(temp); err != nil || journalsDir == "" || len(m.Journals) == 0 {
			return err
		}
		if err := r.claim(dir); err != nil { // last: what fails before leaves them to others
			return err
		}
		return r.journals(journalsDir)
	})
	return m, err
}

type restore struct {
	ctx  context.Context
	m    *Manifest
	from string
}

// files copies the files whose names begin with a prefix, except one.
func (r restore) files(prefix, to, except string) error {
	for _, f := range r.m.Files {
		name, ok := strings.CutPrefix(f.Name, prefix)
		if !ok || name == except {
			continue
		}
		if err := f.expect(copyFile(r.ctx, filepath.Join(r.from, filepath.FromSlash(f.Name)), filepath.Join(to, filepath.FromSlash(name)))); err != nil {
			return err
		}
	}
	return nil
}

// origin writes to a restored folder which backup it is a copy of.
func (r restore) origin(dir string) error {
	of := *r.m
	of.Files = nil
	return of.write(filepath.Join(dir, originName))
}

// refuse refuses folders that cannot be made, before a copy claims the journals.
func (r restore) refuse(dir, journalsDir string) error {
	err := cmp.Or(refuseInside(dir, journalsDir, "the store"), refuseInside(journalsDir, dir, "the journals"))
	if err == nil && len(r.m.Journals) > 0 && !r.restored(journalsDir) {
		err = refuseExisting(journalsDir)
	}
	return err
}

// restored reports whether a folder has the journals of the backup: the process that restored them has ended then.
func (r restore) restored(dir string) bool {
	of, err := Origin(dir)
	return err == nil && of != nil && of.ID == r.m.ID
}

// journals makes the folder of the journals, if it is not restored.
func (r restore) journals(dir string) error {
	if r.restored(dir) {
		return nil
	}
	names := map[string]bool{}
	return fill(dir, func(temp string) error {
		for _, j := range r.m.Journals {
			name := path.Base(filepath.ToSlash(j.Dir))
			if !plainName(name) || names[name] || name == lockName || name == originName {
				name = j.Stream
			}
			names[name] = true
			if err := r.files(journals+"/"+j.Stream+"/", filepath.Join(temp, name), journalName); err != nil {
				return err
			}
		}
		return r.origin(temp)
	})
}

// claim is who has the journals of a backup.
type claim struct {
	Host string    `json:"host"`
	Dir  string    `json:"dir"`
	Time time.Time `json:"time"`
}

// claim makes the journals those of a copy, or fails with ErrClaimed if they are those of another.
func (r restore) claim(dir string) (err error) {
	mine := claim{Dir: dir, Time: time.Now().UTC()}
	if mine.Host, err = os.Hostname(); err != nil {
		return err
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	unlock, err := lockFolder(r.from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	name := filepath.Join(r.from, claimName)
	switch was, err := os.ReadFile(name); {
	case err == nil:
		return mine.check(was, name)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.RemoveAll(name + partial); err != nil {
		return err
	}
	if _, err = writeFile(name+partial, bytes.NewReader(text)); err != nil {
		return err
	}
	step()
	if err := os.Rename(name+partial, name); err != nil {
		return err
	}
	step()
	return private.SyncFolder(r.from)
}

func (c claim) check(was []byte, name string) error {
	var other claim
	if err := json.Unmarshal(was, &other); err != nil {
		return damaged("%s: %v", name, err)
	}
	if other.Host == c.Host && other.Dir == c.Dir {
		return nil
	}
	return fmt.Errorf("%w: %s on %s, since %s; restore without journals, or remove %s if that copy never delivers them",
		ErrClaimed, other.Dir, other.Host, other.Time.Format(time.RFC3339), name)
}

// Verify checks the sums of a backup's files. Then it calls open with a copy of the store's folder, and openJournal
// with a copy of each journal. It makes the copies in the backup, and removes them.
func Verify(ctx context.Context, from string, open, openJournal func(dir string) error) (m *Manifest, err error) {
	if m, err = Read(from); err != nil {
		return nil, err
	}
	unlock, err := lockFolder(from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	temp := filepath.Join(from, "verify"+partial)
	if err := os.RemoveAll(temp); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	for _, f := range m.Files {
		at, to := filepath.Join(from, filepath.FromSlash(f.Name)), filepath.Join(temp, filepath.FromSlash(f.Name))
		made := copyFile
		if isTable(f.Name) { // an engine that opens it changes other files
			made = linkOrCopy
		}
		err = f.expect(made(ctx, at, to))
		if errors.Is(err, fs.ErrNotExist) {
			err = damaged("%s is missing", f.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := open(filepath.Join(temp, dataFolder)); err != nil {
		return nil, fmt.Errorf("opening a copy of %s: %w", from, err)
	}
	for _, j := range m.Journals {
		if err := openJournal(filepath.Join(temp, journals, j.Stream)); err != nil {
			return nil, fmt.Errorf("opening a copy of the journal %s: %w", j.Dir, err)
		}
	}
	return m, nil
}

// isTable reports whether a file never changes once it is written.
func isTable(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}
