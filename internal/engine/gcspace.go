package engine

import (
	"bytes"
	"context"

	"github.com/cockroachdb/pebble/v2"
)

const (
	compactShare = 8       // a compaction is due when what it gives back is an eighth of what it has to write
	compactBytes = 1 << 20 // less is not worth one
)

// garbage is what was deleted from a table and may still be on disk. It is kept over passes, so that a table that loses a
// little with each gets its space back too, and is only touched by the one that collects.
type garbage struct {
	bytes       int64
	first, last []byte // keys of the first and the last cell
}

func (g *garbage) add(key []byte, value int) {
	g.bytes += int64(len(key) + value)
	if g.first == nil || bytes.Compare(key, g.first) < 0 {
		g.first = append(g.first[:0], key...)
	}
	if bytes.Compare(key, g.last) > 0 {
		g.last = append(g.last[:0], key...)
	}
}

// compact gives the space of the deleted cells back, where it is enough: what it costs is in proportion to what it gives.
// Deletions that wait for more are merged by Pebble itself as they reach its table files.
func (c *collection) compact(ctx context.Context) error {
	g := &c.t.garbage
	if g.bytes < compactBytes {
		return nil
	}
	if err := c.e.enterWrite(ctx); err != nil {
		return err
	}
	defer c.e.leave()
	end := append(bytes.Clone(g.last), 0)
	beside, err := c.beside(g.first, end)
	if err != nil {
		return err
	}
	if g.bytes < beside/compactShare {
		return nil
	}
	if err := c.e.compact(ctx, g.first, end); err != nil {
		return err
	}
	*g = garbage{}
	return nil
}

// beside estimates the bytes of the cells that stay in a range. They are counted for the whole table; the part that is in
// the range is taken from the table files, whose sizes are those of compressed blocks.
func (c *collection) beside(from, to []byte) (int64, error) {
	lower, upper := tableRange(c.t.id)
	whole, err := c.e.diskUsage([]span{{lower, upper}})
	if err != nil || whole == 0 {
		return 0, err
	}
	part, err := c.e.diskUsage([]span{{from, to}})
	return int64(float64(c.live) * float64(part) / float64(whole)), err
}

// cleaner removes the files that Pebble has no more use for. Pebble keeps old logs to write over them, as many as it ever had
// at once, except where its cleaner says that it needs what they hold, as the one that archives does. Here each log begins in
// a new file (see pebblelog.FS), so those that are kept would only take up the disk.
type cleaner struct {
	pebble.DeleteCleaner // cleans, as it is the nearer of the two
	keepsNoLogs
}

type keepsNoLogs struct{ pebble.ArchiveCleaner }
