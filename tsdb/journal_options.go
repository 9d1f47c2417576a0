package tsdb

import (
	"fmt"

	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/ingest/spool"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// JournalOptions are what a writer's journal may decide. The zero value is no journal.
//
// With a journal a point is acknowledged once it is on disk and synced; points that come at the same time share a sync. It
// is delivered later, in the order of the journal, as often as it takes: an outage of the service, a crash of the program
// and a restart of the machine lose nothing that was acknowledged, and nothing is counted twice. A point that is
// rejected for what it holds goes to the dead letters (Writer.DeadLetters), which are part of the journal. All else is waited
// for, as it passes or an operator can fix it: a missing table, column family, view or right, too. Points and dead letters of a tenant or
// entity that is erased meanwhile (package tenants) are dropped, and counted in JournalStats.Erased. So are those from before the erasure of one that was readmitted.
//
// Outcomes of points then say Journaled and not Stored: nobody is told when a point is delivered. Writer.Flush waits until
// all are, or are dead letters.
//
// One writer at a time has the folder. Points that it finds there from before are delivered first.
type JournalOptions struct {
	// Dir is the folder of the journal, made where it does not exist. It is on one local disk, and holds tenants' names and
	// payloads as they are. So it has mode 0700 and its files have 0600, also where it existed before. A folder that others can
	// write is refused, unless it is empty, and so is a symbolic link as the folder or in it; parents may be links. Empty is no
	// journal.
	Dir string
	// MaxBytes bounds points and dead letters in the journal, without the file's own overhead of about as much again. While
	// it is full, or a tenant's share of it, Enqueue waits and TryEnqueue returns ErrBufferFull. A tenant's points and dead letters take
	// at most seven times the bytes that are free: 7/8 where they are all that there is. Zero is 1 GiB; at least 16 MiB, so that the largest point finds room.
	MaxBytes int64
}

// The errors of a journal, to tell apart with errors.Is.
var (
	// ErrJournalLocked: another process, or another writer of this one, has the journal's folder.
	ErrJournalLocked = spool.ErrLocked
	// ErrJournalDamaged: what is in the journal's folder is not what was written. Nothing of it is delivered, and nothing is
	// lost silently: the error names file and place.
	ErrJournalDamaged = spool.ErrDamaged
	// ErrUndelivered: points that are acknowledged are not delivered yet. They are in the journal, and the next writer that opens it
	// delivers them.
	ErrUndelivered = journal.ErrUndelivered
)

const leastJournal = 16 << 20

func (o JournalOptions) check() error {
	if o.MaxBytes != 0 && o.MaxBytes < leastJournal {
		return invalid.New(ErrInvalid, "Journal.MaxBytes", fmt.Sprint(o.MaxBytes), fmt.Sprintf("0 for the default, or at least %d", leastJournal))
	}
	if o.MaxBytes != 0 && o.Dir == "" {
		return invalid.New(ErrInvalid, "Journal.Dir", "empty", "a folder, where other options of the journal are set")
	}
	return nil
}
