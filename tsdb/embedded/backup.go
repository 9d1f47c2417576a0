package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-go/tidemark/internal/backup"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/ingest/spool"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// ErrClaimed means that the journals of a backup were restored to another copy before. It matches tsdb.ErrLocked, too.
var ErrClaimed = backup.ErrClaimed

// VerifyBackup checks a backup that tsdb.Store.Backup or UnpackBackup made: it compares the SHA-256 of each file, and
// then opens a copy of the folder and of each journal, which it makes in the backup and removes. It reads all files
// once. A backup that is not what was written has an error that matches tsdb.ErrDamaged and names the file.
func VerifyBackup(ctx context.Context, dir string) (tsdb.Backup, error) {
	if err := check(ctx, "dir", dir); err != nil {
		return tsdb.Backup{}, err
	}
	m, err := backup.Verify(ctx, dir, openFolder, openJournal)
	return described(m, 0), wrapped(err)
}

// RestoreBackup makes the new folder dir from a backup, and checks each file. The folder remembers of which backup it
// is a copy: Backup.CopyOf of its own backups.
//
// If journalsDir is not empty, it also makes this new folder, with a folder in it for each journal of the backup, by
// the last part of its old name. A writer with the Journal delivers its points again, as after a crash: those that were
// delivered before the backup are not counted twice. If two copies of a folder deliver one journal to one place, later
// changes of its points may be undone. So only one copy gets the journals of a backup: the backup notes which, and for
// another one the error matches ErrClaimed. Give no journalsDir while the original program still has the journals.
//
// If a folder exists, the error matches fs.ErrExist, and nothing is changed. A RestoreBackup that fails leaves no dir.
// If its process ends, call it again with the same folders.
func RestoreBackup(ctx context.Context, from, dir, journalsDir string) (tsdb.Backup, error) {
	if err := errors.Join(check(ctx, "from", from), check(ctx, "dir", dir)); err != nil {
		return tsdb.Backup{}, err
	}
	m, err := backup.Restore(ctx, from, dir, journalsDir)
	return described(m, 0), wrapped(err)
}

// PackBackup writes a backup as a stream, for an object store: a tar archive, compressed by zstd. If earlier is not
// empty, it is a backup, or the BACKUP.json of one, whose files the stream leaves out. PackBackup checks the sum of
// each file.
func PackBackup(ctx context.Context, dir, earlier string, w io.Writer) (tsdb.Backup, error) {
	if err := check(ctx, "dir", dir); err != nil {
		return tsdb.Backup{}, err
	}
	if w == nil {
		return tsdb.Backup{}, invalid.New(tsdb.ErrInvalid, "w", "nil", "an io.Writer")
	}
	var base *backup.Manifest
	if earlier != "" {
		var err error
		if base, err = backup.Read(earlier); err != nil {
			return tsdb.Backup{}, wrapped(err)
		}
	}
	m, err := backup.Pack(ctx, dir, base, w)
	return described(m, 0), wrapped(err)
}

// UnpackBackup makes the new folder dir, a backup, from a stream of PackBackup, and checks the sum of each file.
// earlier is the backup, a folder, that the stream was made against; empty if the stream has all files. Errors are
// those of RestoreBackup.
func UnpackBackup(ctx context.Context, r io.Reader, earlier, dir string) (tsdb.Backup, error) {
	if err := check(ctx, "dir", dir); err != nil {
		return tsdb.Backup{}, err
	}
	if r == nil {
		return tsdb.Backup{}, invalid.New(tsdb.ErrInvalid, "r", "nil", "an io.Reader")
	}
	m, err := backup.Unpack(ctx, r, earlier, dir)
	return described(m, 0), wrapped(err)
}

func check(ctx context.Context, field, dir string) error {
	if err := ctxerr.Of(ctx); err != nil {
		return err
	}
	if dir == "" {
		return invalid.New(tsdb.ErrInvalid, field, `""`, "the name of a folder")
	}
	return nil
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("embedded: %w", err)
}

// backUp makes a backup of the folder from.
func backUp(ctx context.Context, from, dir string, checkpoint backup.Checkpoint) (tsdb.Backup, error) {
	m, added, err := backup.Make(ctx, from, dir, checkpoint)
	return described(m, added), wrapped(err)
}

func described(m *backup.Manifest, added int64) tsdb.Backup {
	if m == nil {
		return tsdb.Backup{}
	}
	b := tsdb.Backup{ID: m.ID, Taken: m.Taken, Host: m.Host, Dir: m.Dir, Files: len(m.Files), Added: added}
	for _, f := range m.Files {
		b.Bytes += f.Bytes
	}
	for _, j := range m.Journals {
		b.Journals = append(b.Journals, tsdb.BackupJournal{Stream: j.Stream, Dir: j.Dir, Records: j.Records, DeadLetters: j.DeadLetters})
	}
	if m.CopyOf != nil {
		b.CopyOf = m.CopyOf.ID
	}
	return b
}

func journalsOf(store *tsdb.Store) (out []backup.Journal) {
	for _, j := range inside.Of(store).Journals() {
		out = append(out, j)
	}
	return out
}

// openFolder opens a folder without collecting anything, and closes it.
func openFolder(dir string) error {
	e, err := engine.Open(engine.Options{Dir: dir, GCInterval: -1})
	if err != nil {
		return err
	}
	return e.Close()
}

func openJournal(dir string) error {
	s, err := spool.Open(dir, spool.Options{})
	if err != nil {
		return err
	}
	return s.Close()
}
