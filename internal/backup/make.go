package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// Journal is a journal that is in use.
type Journal interface {
	// Dir is the absolute name of the journal's folder.
	Dir() string
	// Stream is the journal's identity.
	Stream() string
	// Snapshot calls f with a function that copies the journal as it was when Snapshot was called.
	Snapshot(f func(copyTo func(dir string) (spool.Stats, error)) error) error
}

// Checkpoint makes a folder with the files of a store's folder, as of one moment, and in it those of its owner's
// journals. release removes it.
type Checkpoint func(context.Context) (dir string, release func() error, err error)

// With returns a checkpoint that has journals, too. They are older than the rest by the time that the checkpoint takes:
// what is delivered meanwhile may be in both, and is in at least one.
func With(list []Journal, checkpoint Checkpoint) Checkpoint {
	if len(list) == 0 {
		return checkpoint
	}
	j, next := list[0], With(list[1:], checkpoint)
	return func(ctx context.Context) (dir string, release func() error, err error) {
		err = j.Snapshot(func(copyTo func(string) (spool.Stats, error)) (err error) {
			if dir, release, err = next(ctx); err != nil {
				return err
			}
			if err := addJournal(dir, j, copyTo); err != nil {
				return errors.Join(fmt.Errorf("copying the journal %s: %w", j.Dir(), err), release())
			}
			return nil
		})
		if errors.Is(err, spool.ErrClosed) && release == nil { // its writer was closed meanwhile
			return next(ctx)
		}
		return dir, release, err
	}
}

// addJournal copies a journal, and adds a file that describes it.
func addJournal(in string, j Journal, copyTo func(string) (spool.Stats, error)) error {
	to := filepath.Join(in, journals, j.Stream())
	has, err := copyTo(to)
	if err != nil {
		return err
	}
	text, err := json.Marshal(Copied{Stream: j.Stream(), Dir: j.Dir(), Records: has.Records, DeadLetters: has.Dead})
	if err == nil {
		_, err = writeFile(filepath.Join(to, journalName), bytes.NewReader(text))
	}
	return err
}

// Make makes the backup dir of the store's folder from. added is the size of the files that no backup beside dir has.
func Make(ctx context.Context, from, dir string, checkpoint Checkpoint) (m *Manifest, added int64, err error) {
	if err := refuseExisting(dir); err != nil {
		return nil, 0, err
	}
	if m, err = newManifest(from); err != nil {
		return nil, 0, err
	}
	if err := refuseInside(m.Dir, dir, "the store"); err != nil {
		return nil, 0, err
	}
	staged, release, err := checkpoint(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, release()) }()
	err = fill(dir, func(temp string) error {
		c := copier{ctx: ctx, m: m, from: staged, to: temp, earlier: earlier(dir, m)}
		defer func() { added = c.added }()
		if err := c.all(); err != nil {
			return err
		}
		return m.write(filepath.Join(temp, manifestName))
	})
	return m, added, err
}

// refuseInside refuses a folder that is another one, or in it.
func refuseInside(folder, dir, whose string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if rel, err := filepath.Rel(folder, dir); err == nil && filepath.IsLocal(rel) {
		return &fs.PathError{Op: "create", Path: dir, Err: errors.New("is in the folder of " + whose + "; choose a folder outside of it")}
	}
	return nil
}

func (m *Manifest) write(name string) error {
	text, err := m.encode()
	if err == nil {
		_, err = writeFile(name, bytes.NewReader(text))
	}
	return err
}

// base is an earlier backup.
type base struct {
	dir string
	m   *Manifest
}

// earlier returns the newest backup of the same folder beside dir, or the zero base.
func earlier(dir string, of *Manifest) base {
	beside := filepath.Dir(filepath.Clean(dir))
	entries, _ := os.ReadDir(beside) // without any, nothing is shared
	made := map[string]time.Time{}
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(beside, e.Name(), manifestName)); err == nil && !strings.HasSuffix(e.Name(), partial) {
			made[e.Name()] = info.ModTime()
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(made), func(a, b string) int { return made[b].Compare(made[a]) }) {
		at := filepath.Join(beside, name)
		if m, err := Read(at); err == nil && m.Host == of.Host && m.Dir == of.Dir {
			return base{at, m}
		}
	}
	return base{}
}

// copier copies a checkpoint into a backup.
type copier struct {
	ctx      context.Context
	m        *Manifest
	from, to string
	earlier  base
	added    int64 // bytes that take space
}

func (c *copier) all() error {
	err := filepath.WalkDir(c.from, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == lockName && filepath.Dir(name) == c.from {
			return err
		}
		rel, err := filepath.Rel(c.from, name)
		if err != nil {
			return err
		}
		if rel = filepath.ToSlash(rel); !strings.HasPrefix(rel, journals+"/") {
			rel = dataFolder + "/" + rel
		}
		if err := ctxerr.Of(c.ctx); err != nil {
			return err
		}
		f, err := c.file(name, rel)
		c.m.Files = append(c.m.Files, f)
		return err
	})
	slices.SortFunc(c.m.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	if err == nil {
		err = c.journals()
	}
	return err
}

// file copies a file, by a link if it can. Of a file that an earlier backup shares, the sum is known.
func (c *copier) file(from, name string) (f File, err error) {
	to, was, old := filepath.Join(c.to, filepath.FromSlash(name)), File{}, ""
	if c.earlier.m != nil {
		was, _ = c.earlier.m.find(name)
		old = filepath.Join(c.earlier.dir, filepath.FromSlash(name))
	}
	shared := was.Name != "" && same(old, from)
	switch linked := link(from, to) == nil; {
	case linked && shared:
		return was, nil
	case linked:
		f, err = sumFile(c.ctx, to)
	case was.Name != "": // on another file system
		if f, err = sumFile(c.ctx, from); err == nil && was.expect(f, nil) == nil && link(old, to) == nil {
			return was, nil
		}
		fallthrough
	default:
		f, err = copyFile(c.ctx, from, to)
	}
	f.Name = name
	c.added += f.Bytes
	return f, err
}

// same reports whether two names are those of one file.
func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// journals describes the journals in the manifest.
func (c *copier) journals() error {
	for _, f := range c.m.Files {
		if path.Base(f.Name) != journalName {
			continue
		}
		text, err := os.ReadFile(filepath.Join(c.to, filepath.FromSlash(f.Name)))
		if err != nil {
			return err
		}
		var j Copied
		if err := json.Unmarshal(text, &j); err != nil {
			return err
		}
		c.m.Journals = append(c.m.Journals, j)
	}
	return nil
}
