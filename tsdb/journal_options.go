package tsdb

import (
	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/ingest/spool"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// JournalOptions configure a writer's journal. The zero value is no journal.
//
// With a journal, a point is acknowledged as Journaled once it is on disk and synced; points that arrive at the same time
// share a sync. The writer delivers points later, in the order of the journal, and retries as often as necessary. An outage
// of the service, a crash of the program or a restart of the machine loses no acknowledged point and counts none twice. The
// journal does not report the delivery of single points; Writer.Flush waits until all are delivered or are dead letters.
//
// A point that is rejected because of its content becomes a dead letter (Writer.DeadLetters) and stays in the journal. The
// writer waits for any other failure to end or be fixed, including a missing table, family, view or permission. If a tenant
// or an entity is erased (package tenants), its points and dead letters are dropped and counted in JournalStats.Erased. This
// includes those from before the erasure of an entity or a tenant that was readmitted.
//
// Only one writer at a time can use the folder. It first delivers the points that it finds there.
type JournalOptions struct {
	// Dir is the folder of the journal, on a local disk. It is created if it does not exist. It holds tenant names and
	// payloads unencrypted, so it gets mode 0700 and its files 0600, even if it existed. A folder that other users can write
	// to is refused unless it is empty, and so is a symbolic link as the folder or in it; parents may be links. Empty means
	// no journal.
	Dir string
	// MaxBytes bounds the points and dead letters in the journal; the file takes about twice as much. While the journal or a
	// tenant's share of it is full, Enqueue waits and TryEnqueue returns ErrBufferFull. A tenant may use at most seven times
	// the free bytes, so a tenant alone can use 7/8 of the journal. Zero is 1 GiB; the minimum is 16 MiB, which holds the
	// largest point.
	MaxBytes int64
}

// Sentinels of journals, to compare with errors.Is.
var (
	// ErrJournalLocked means that another process, or another writer of this process, uses the journal's folder.
	ErrJournalLocked = spool.ErrLocked
	// ErrJournalDamaged means that the journal's files are damaged. The error names the file and the place. Nothing of the
	// journal is delivered, and nothing is lost silently.
	ErrJournalDamaged = spool.ErrDamaged
	// ErrUndelivered means that acknowledged points are still in the journal. The next writer that opens it delivers them.
	ErrUndelivered = journal.ErrUndelivered
)

func (o JournalOptions) check() error {
	if err := atLeast("Journal.MaxBytes", o.MaxBytes, leastBuffer); err != nil {
		return err
	}
	if o.MaxBytes != 0 && o.Dir == "" {
		return invalid.New(ErrInvalid, "Journal.Dir", "empty", "a folder, where other options of the journal are set")
	}
	return nil
}
