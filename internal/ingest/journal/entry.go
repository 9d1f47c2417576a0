package journal

import (
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
)

// Entry is what a buffer and a journal know of a write. The type of a write embeds it, and its Item has that write as Work.
// It is left alone from the moment it is given to the journal until the buffer's Sender gets it, or its Caller an outcome.
type Entry struct {
	Item   buffer.Item
	Caller Caller // nil where nobody waits
	// Applied says that the table holds the write, whatever the outcome of its Item. A Sender sets it for a write that it sent
	// together with others that were rejected.
	Applied bool

	noWait bool   // its caller does not wait for room
	record []byte // until it is synced
	seq    uint64 // its number among those that were enqueued, and once it is synced its number in the journal
	bytes  int64  // of its record, which count towards the tenant's share
}

// Caller is told how its write ended.
type Caller interface{ Ended(bt.Outcome) }

// Seq returns the number of the write's record in the journal, for a Sender.
func (e *Entry) Seq() uint64 { return e.seq }

func (e *Entry) entry() *Entry { return e }

// entryOf returns the entry of an item.
func entryOf(it *buffer.Item) *Entry { return it.Work.(interface{ entry() *Entry }).entry() }
