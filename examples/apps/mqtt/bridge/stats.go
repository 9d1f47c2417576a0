package bridge

import (
	"sync/atomic"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
)

// Stats are what a bridge has done so far, in messages.
type Stats struct {
	Received    uint64 // from the broker, with those that it sent again
	Repeated    uint64 // of these, marked by the broker as sent before
	Stored      uint64 // acknowledged because all their points are stored
	Journaled   uint64 // acknowledged because all their points are in the journal
	Counted     uint64 // acknowledged because they are counted in a rollup
	DeadLetters uint64 // acknowledged because they are published to the dead-letter topic
	Ignored     uint64 // acknowledged because they store nothing: dead letters, empty messages, and nothing but null
	Lost        uint64 // of QoS 0, for which there was no space or no store: nobody sends them again
	Points      uint64 // of the messages Stored and Journaled
	Unchanged   uint64 // of these points, left out because they say nothing new
	Waiting     int    // received and not yet acknowledged
	Connections uint64 // made to the broker

	LeftOut map[inbound.LeftOut]uint64 // fields that no point has: see inbound.Datasets.LeftOut
}

type counters struct {
	received, repeated, stored, journaled, counted, deadLetters, ignored, lost, points, connections atomic.Uint64
	waiting                                                                                         atomic.Int64
}

// Stats returns the statistics. It is cheap, and may be called at any time.
func (b *Bridge) Stats() Stats {
	c := &b.counters
	return Stats{
		Received: c.received.Load(), Repeated: c.repeated.Load(), Stored: c.stored.Load(), Journaled: c.journaled.Load(),
		Counted: c.counted.Load(), DeadLetters: c.deadLetters.Load(), Ignored: c.ignored.Load(), Lost: c.lost.Load(),
		Points: c.points.Load(), Unchanged: b.sink.Writer.Stats().Unchanged, Waiting: int(c.waiting.Load()), Connections: c.connections.Load(),
		LeftOut: b.datasets.LeftOut(),
	}
}
