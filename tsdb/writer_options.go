package tsdb

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/tenant"
)

// WriterOptions configure a writer. The zero value is good for most programs.
type WriterOptions struct {
	// BatchPoints is the maximum number of points in a batch. Zero is 1,000, the maximum 5,000. Larger batches hardly
	// reduce the cost per point.
	BatchPoints int
	// BatchBytes is the approximate maximum size of a batch. Zero is 4 MiB, the maximum 8 MiB; larger requests would
	// delay others on the server.
	BatchBytes int
	// Linger is how long a point waits for others to share its request. Zero is 5 ms, about the time of one request. A
	// negative Linger means no wait: a point is sent as soon as a request may start. Without a journal, a point waits
	// at most half of DeliveryTimeout.
	Linger time.Duration

	// BufferPoints and BufferBytes bound the points in memory, from Enqueue until the point has an outcome and its
	// caller has it. Zero is 100,000 points and 64 MiB (a small point takes about 500 bytes). The minimum of
	// BufferBytes is 16 MiB, which holds the largest point. A tenant alone uses at most 7/8 of the buffer; several
	// tenants that flood it leave space for the others. What the writer remembers for sinks with OnChange uses up to
	// one and a half times as many bytes again.
	BufferPoints int
	BufferBytes  int64
	// InFlight is the maximum number of requests under way. Zero is 16. The writer starts with 4, adds more while
	// latency does not rise, and reduces them if the service is slow or refuses requests as too many.
	InFlight int
	// FlowControl makes the writer send fewer bytes a second while Bigtable asks for it, so that a backfill leaves
	// reads and other writers the cluster. Bigtable calls it batch write flow control:
	// https://cloud.google.com/bigtable/docs/writes#flow-control. It needs an app profile that routes to a single
	// cluster. Points wait longer then, so set a Journal or a longer DeliveryTimeout. Put and PutMany are not slowed
	// down. False means that the writer neither asks for this advice nor follows it.
	FlowControl bool
	// DeliveryTimeout is how long after Enqueue a point may be sent. Zero is two minutes. After it the point is
	// Rejected if it was never sent, otherwise Unknown. With a journal it does not apply: points are kept.
	DeliveryTimeout time.Duration

	// Journal adds a journal on disk. Zero is none.
	Journal JournalOptions

	// Admit is called before each point is taken, with the point's size in bytes. If it returns an error, the point is
	// rejected with a WriteError that wraps it. It may wait until ctx ends. Use it for limits per tenant. Many
	// goroutines call it at once. Nil admits all.
	Admit func(ctx context.Context, id tenant.ID, bytes int) error
	// OnFailure is called for each point that was taken but not stored, before its caller gets the outcome; with a
	// journal, for each new dead letter. It is called for one point at a time; a slow OnFailure slows the writer. Nil
	// means that only Stats counts these points.
	OnFailure func(Undelivered)
}

func (o WriterOptions) check() error {
	atMost := func(name string, v, most int) error {
		return invalid.Range(ErrInvalid, name, v, 0, most, fmt.Sprintf("0 for the default, or 1 to %d", most))
	}
	return cmp.Or(
		atMost("BatchPoints", o.BatchPoints, 5000),
		atMost("BatchBytes", o.BatchBytes, bt.MaxBytes),
		atMost("BufferPoints", o.BufferPoints, 1<<30),
		atMost("InFlight", o.InFlight, 1000),
		atLeast("BufferBytes", o.BufferBytes, leastBuffer),
		invalid.Range(ErrInvalid, "DeliveryTimeout", o.DeliveryTimeout, 0, 0, orDefault),
		o.Journal.check(),
	)
}

// atLeast refuses sizes below least, except 0.
func atLeast(name string, v, least int64) error {
	return invalid.Range(ErrInvalid, name, cmp.Or(v, least), least, 0, fmt.Sprintf("0 for the default, or at least %d", least))
}

// leastBuffer and the same size of a journal hold the largest point.
const leastBuffer = 16 << 20

func (o WriterOptions) buffer(request time.Duration) buffer.Options {
	o.DeliveryTimeout = cmp.Or(o.DeliveryTimeout, 2*time.Minute)
	o.Linger = max(0, cmp.Or(o.Linger, 5*time.Millisecond))
	if o.Journal.Dir == "" {
		o.Linger = min(o.Linger, o.DeliveryTimeout/2) // the rest is for requests
	}
	return buffer.Options{
		BatchEntries:   cmp.Or(o.BatchPoints, 1000),
		BatchBytes:     cmp.Or(o.BatchBytes, 4<<20),
		BatchMutations: bt.MaxMutations,
		AloneEntries:   4 * points.InsertWidth, // conditional writes, sent one by one, points.InsertWidth at a time
		Linger:         o.Linger,
		BufferEntries:  cmp.Or(o.BufferPoints, 100_000),
		BufferBytes:    o.bufferBytes(),
		InFlight:       cmp.Or(o.InFlight, 16),
		FlowControl:    o.FlowControl,
		Request:        request,
		Delivery:       o.DeliveryTimeout,
	}
}

// bufferBytes also bounds what the writer remembers for sinks with OnChange.
func (o WriterOptions) bufferBytes() int64 { return cmp.Or(o.BufferBytes, 64<<20) }

// JournalOptions configure a writer's journal. The zero value is no journal.
//
// With a journal, a point is acknowledged as Journaled once it is on disk and synced; points that arrive at the same
// time share a sync. The writer delivers points later, in the order of the journal, and retries as often as necessary.
// An outage of the service, a crash of the program or a restart of the machine loses no acknowledged point and counts
// none twice. The journal does not report the delivery of single points; Writer.Flush waits until all are delivered or
// are dead letters.
//
// A point that is rejected because of its content becomes a dead letter (Writer.DeadLetters) and stays in the journal.
// The writer waits for any other failure to end or be fixed, including a missing table, family, view or permission. If
// a tenant or an entity is erased (package tenants), its points and dead letters are dropped and counted in
// JournalStats.Erased. This includes those from before the erasure of an entity or a tenant that was readmitted.
//
// Only one writer at a time can use the folder. It first delivers the points that it finds there.
type JournalOptions struct {
	// Dir is the folder of the journal, on a local disk. It is created if it does not exist. It holds tenant names and
	// payloads unencrypted, so it gets mode 0700 and its files 0600, even if it existed. A folder that other users can
	// write to is refused unless it is empty, and so is a symbolic link as the folder or in it; parents may be links.
	// Empty means no journal.
	Dir string
	// MaxBytes bounds the points and dead letters in the journal; the file takes about twice as much. While the journal
	// or a tenant's share of it is full, Enqueue waits and TryEnqueue returns ErrBufferFull. A tenant may use at most
	// seven times the free bytes, so a tenant alone can use 7/8 of the journal. Zero is 1 GiB; the minimum is 16 MiB,
	// which holds the largest point.
	MaxBytes int64
}

// ErrUndelivered means that acknowledged points are still in the journal. The next writer that opens it delivers them.
var ErrUndelivered = journal.ErrUndelivered

func (o JournalOptions) check() error {
	if err := atLeast("Journal.MaxBytes", o.MaxBytes, leastBuffer); err != nil {
		return err
	}
	if o.MaxBytes != 0 && o.Dir == "" {
		return invalid.New(ErrInvalid, "Journal.Dir", "empty", "a folder, where other options of the journal are set")
	}
	return nil
}
