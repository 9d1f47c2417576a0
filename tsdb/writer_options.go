package tsdb

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/tenant"
)

// WriterOptions are what a writer may decide. The zero value is good for most programs.
type WriterOptions struct {
	// BatchPoints closes a batch at that many points. Zero is 1,000, where the cost of a request no longer shows beside
	// that of its rows; at most 5,000.
	BatchPoints int
	// BatchBytes closes a batch at about that many bytes. Zero is 4 MiB, at most 8 MiB: what a server can take in at once
	// without holding up others.
	BatchBytes int
	// Linger is how long a point waits for others to share its request, where nothing else closes the batch. Zero is 5 ms,
	// about the time of a request, so that waiting at most doubles it. Negative is none: a point goes as soon as a request
	// may be made.
	Linger time.Duration

	// BufferPoints and BufferBytes bound what the writer holds, from Enqueue until the point has ended and whoever waits for it
	// was told. Zero is 100,000 points and 64 MiB (about 500 bytes a small point, with what the writer keeps for it); BufferBytes is
	// at least 16 MiB, so that the largest point finds room. A tenant alone takes at most 7/8 of it, and several that flood leave room for the others.
	BufferPoints int
	BufferBytes  int64
	// InFlight is how many requests may be under way at most. Zero is 16. The writer begins with 4, adds while requests do not
	// get slower, and takes back where the service is slow or asks for less.
	InFlight int
	// DeliveryTimeout is how long after Enqueue a point may still be sent. Zero is two minutes. A point whose time is over is
	// rejected if it was never sent, and else unknown, with ErrDeliveryTimeout. With a journal points are kept instead,
	// and it is not used.
	DeliveryTimeout time.Duration

	// Journal puts a journal on disk under the writer. Zero is none.
	Journal JournalOptions

	// Admit is asked before each point is taken, with the bytes that it takes; its error rejects the point and is wrapped by
	// the WriteError. It may wait, until ctx ends. Limits per tenant belong here. It is called by many goroutines at once. Nil admits all.
	Admit func(ctx context.Context, id tenant.ID, bytes int) error
	// OnFailure is told of each point that was taken and ended without being stored, before anyone else is; with a journal, of
	// each that became a dead letter. It is called on
	// one goroutine, and slows the writer down where it is slow. Nil is for nobody; Stats counts them anyhow.
	OnFailure func(Undelivered)
}

func (o WriterOptions) check() error {
	atMost := func(name string, v, most int) error {
		if v < 0 || v > most {
			return invalid.New(ErrInvalid, name, fmt.Sprint(v), fmt.Sprintf("0 for the default, or 1 to %d", most))
		}
		return nil
	}
	for _, err := range []error{
		atMost("BatchPoints", o.BatchPoints, 5000),
		atMost("BatchBytes", o.BatchBytes, bt.MaxBytes),
		atMost("BufferPoints", o.BufferPoints, 1<<30),
		atMost("InFlight", o.InFlight, 1000),
	} {
		if err != nil {
			return err
		}
	}
	if o.BufferBytes != 0 && o.BufferBytes < leastBuffer {
		return invalid.New(ErrInvalid, "BufferBytes", fmt.Sprint(o.BufferBytes), fmt.Sprintf("0 for the default, or at least %d", leastBuffer))
	}
	if o.DeliveryTimeout < 0 {
		return invalid.New(ErrInvalid, "DeliveryTimeout", o.DeliveryTimeout.String(), "0 for the default, or more")
	}
	return o.Journal.check()
}

const leastBuffer = 16 << 20

// aloneBatch is how many conditional writes are taken at once, and sent one by one, insertWidth at a time.
const aloneBatch = 4 * points.InsertWidth

func (o WriterOptions) buffer(request time.Duration) buffer.Options {
	return buffer.Options{
		BatchEntries:   cmp.Or(o.BatchPoints, 1000),
		BatchBytes:     cmp.Or(o.BatchBytes, 4<<20),
		BatchMutations: bt.MaxMutations,
		AloneEntries:   aloneBatch,
		Linger:         max(0, cmp.Or(o.Linger, 5*time.Millisecond)),
		BufferEntries:  cmp.Or(o.BufferPoints, 100_000),
		BufferBytes:    cmp.Or(o.BufferBytes, 64<<20),
		InFlight:       cmp.Or(o.InFlight, 16),
		Request:        request,
		Delivery:       cmp.Or(o.DeliveryTimeout, 2*time.Minute),
	}
}
