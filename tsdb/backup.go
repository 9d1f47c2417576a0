package tsdb

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Backup describes a backup of a store in a folder: see Store.Backup.
type Backup struct {
	// ID is different for each backup: 32 hexadecimal digits.
	ID string
	// Taken is when the backup was begun, by the clock of the machine.
	Taken time.Time
	// Host and Dir are the machine and the folder that it is a copy of.
	Host, Dir string
	// CopyOf is the ID of the backup from which that folder was restored. Empty if it was not.
	CopyOf string
	// Files and Bytes are the number and the size of all files.
	Files int
	Bytes int64
	// Added is the size of the files that the newest earlier backup beside it does not have. Only Store.Backup
	// reports it.
	Added int64
	// Journals are the writers' journals in it.
	Journals []BackupJournal
}

// BackupJournal is a journal in a backup.
type BackupJournal struct {
	// Stream identifies the journal: WriterStats.Journal.Stream.
	Stream string
	// Dir is the folder that it had.
	Dir string
	// Records are the points and events that were not delivered. DeadLetters were refused.
	Records, DeadLetters int
}

// Backup copies the folder of a store of package embedded into the new folder dir, while the store is in use. All
// writes that were acknowledged before are in it, and each later one is in it wholly or not at all. It has the journals
// of the open writers of this store and of the folder's owner, too. embedded.VerifyBackup checks it, and
// embedded.RestoreBackup makes a folder of it.
//
// On the folder's file system a backup is made of hard links: it takes no space until the store removes or merges its
// own files. On another one files are copied. Files that the newest backup beside dir has already are shared with it,
// and on the folder's file system not even read; others are read once, for their sums. So backups in one parent folder
// are incremental, and each is whole.
//
// Writes and reads go on meanwhile. If dir exists, the error matches fs.ErrExist, and nothing is changed. dir may not
// be in the store's folder. Its mode is 0700. A Backup that fails, or whose process ends, leaves no dir; the next one
// to dir removes the remains (dir with .partial at the end). On Cloud Bigtable and in memory the error matches
// ErrInvalid: there, use backups of the service (https://cloud.google.com/bigtable/docs/backups).
func (s *Store) Backup(ctx context.Context, dir string) (Backup, error) {
	if err := s.admit(); err != nil {
		return Backup{}, err
	}
	if err := ctxerr.Of(ctx); err != nil {
		return Backup{}, err
	}
	if s.backup == nil {
		return Backup{}, invalid.New(ErrInvalid, "store", "without a folder", "a store of package embedded in a folder")
	}
	if dir == "" {
		return Backup{}, invalid.New(ErrInvalid, "dir", `""`, "the name of a new folder")
	}
	return s.backup(ctx, dir)
}

// journals are the journals of open writers.
type journals struct {
	mu  sync.Mutex
	all []*journal.Journal
}

func (l *journals) add(j *journal.Journal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, j)
}

func (l *journals) remove(j *journal.Journal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(other *journal.Journal) bool { return other == j })
}

func (l *journals) list() []*journal.Journal {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}
