package history

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// counters count events: at most once each, by message, and by the stream of a journal.
type counters struct {
	schema  *tsdb.Schema[int64]
	rollups [modes]*rollup.Rollup[int64]
	journal *tsdb.Writer

	mu                    sync.Mutex
	acknowledged, unknown [modes]int64
}

const (
	once = iota
	byMessage
	byStream
	modes
)

var modeNames = [modes]string{"once", "message", "stream"}

func newCounters() *counters {
	c := &counters{}
	measure := []rollup.Measure[int64]{{Name: "n", Of: func(n int64) (float64, bool) { return float64(n), true }, Max: 10}}
	var all []tsdb.Rollup
	for i, mode := range []rollup.Mode{rollup.Once, rollup.ByMessage, rollup.ByStream} {
		c.rollups[i] = rollup.MustDefine(modeNames[i], window.Every(time.Hour), measure, rollup.Options{Mode: mode})
		all = append(all, c.rollups[i])
	}
	c.schema = tsdb.MustDefine("events", tsdb.Key("device"), codec.Int64(), tsdb.SchemaOptions{Rollups: all})
	return c
}

var counted = tsdb.NewEntity("counter")

// begin starts a client for each mode.
func (c *counters) begin(ctx context.Context, w *world, load *sync.WaitGroup) {
	var err error
	c.journal, err = w.nodes[0].store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: filepath.Join(w.t.TempDir(), "journal")}})
	w.must(err)
	for mode := range modes {
		load.Go(func() {
			chance := newDice(w.seed, uint64(200+mode))
			for n := 0; pause(ctx, chance.millis(60)); n++ {
				node := w.nodes[chance.intN(stores)]
				if mode == byStream {
					node = w.nodes[0]
				}
				err := c.add(w.t.Context(), mode, c.schema.For(node.store, acme), fmt.Sprintf("message-%d", n/2)) // each message twice
				c.note(mode, n, err)
				w.explain(err)
			}
		})
	}
}

func (c *counters) add(ctx context.Context, mode int, repo *tsdb.Repository[int64], message string) (err error) {
	at := start
	switch mode {
	case once:
		return rollup.NewAdder(c.rollups[mode], repo, nil).Add(ctx, counted, at, 1)
	case byStream:
		return rollup.NewAdder(c.rollups[mode], repo, c.journal).Add(ctx, counted, at, 1)
	}
	for range 20 { // as a queue that delivers a message until it is acknowledged
		if _, err = rollup.NewAdder(c.rollups[mode], repo, nil).AddMessage(ctx, message, counted, at, 1); err == nil {
			break
		}
	}
	return err
}

// note records the outcome of the n-th event.
func (c *counters) note(mode, n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case mode == byMessage && n%2 == 1: // the message again
	case err == nil:
		c.acknowledged[mode]++
	case mode == byMessage || !errors.Is(err, tsdb.ErrRejected):
		c.unknown[mode]++
	}
}

// check compares the sums, without faults.
func (c *counters) check(w *world) {
	w.slowly(c.journal.Flush)
	w.must(c.journal.Close(w.t.Context()))
	for mode, r := range c.rollups {
		buckets, err := collect(rollup.For(r, c.schema.For(w.nodes[0].store, acme)).Buckets(w.t.Context(), counted, tsdb.AllTime()))
		if err != nil {
			w.fail("reading %s: %v", modeNames[mode], err)
		}
		got := int64(0)
		for _, b := range buckets {
			got += b.Points
		}
		if least, most := c.acknowledged[mode], c.acknowledged[mode]+c.unknown[mode]; got < least || got > most {
			w.fail("%s: got %d events, want %d to %d", modeNames[mode], got, least, most)
		}
	}
}
