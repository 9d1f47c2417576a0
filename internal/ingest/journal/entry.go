package journal

import (
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
)

// Entry is the part of a write that a buffer and a journal know. The type of a write embeds it, and its Item has that
// write as Work. After a write is given to the journal, nobody may touch its Entry until the buffer's Sender gets it,
// or its Caller gets an outcome.
type Entry struct {
	Item   buffer.Item
	Caller Caller // nil if nobody waits
	// Applied means that the table holds the write, whatever the outcome of its Item. A Sender sets it for a write that
	// was sent together with rejected ones.
	Applied bool

	noWait bool   // the caller does not wait for room
	record []byte // until it is synced
	seq    uint64 // its place among the enqueued writes; after the sync its sequence number in the journal
	bytes  int64  // of the record; they count towards the tenant's share
}

// Caller is called when its write has ended.
type Caller interface{ Ended(bt.Outcome) }

// Seq returns the sequence number of the write's record in the journal, for a Sender.
func (e *Entry) Seq() uint64 { return e.seq }

func (e *Entry) entry() *Entry { return e }

// entryOf returns the entry of an item.
func entryOf(it *buffer.Item) *Entry { return it.Work.(interface{ entry() *Entry }).entry() }
