package engine

import (
	"bytes"
	"context"

	"github.com/cockroachdb/pebble/v2"
)

const (
	compactShare = 8       // compact if it frees at least an eighth of the bytes that it writes
	compactBytes = 1 << 20 // a compaction that frees less is not worth it
)

// garbage describes deleted cells that may still be on disk. It is kept between passes, so that a table that loses a
// little in each pass gets its space back too. Only the running pass uses it.
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

// compact frees the space of deleted cells if that is worth the cost. Pebble itself merges other deletions as they
// reach its table files.
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
	remaining, err := c.remainingBytes(g.first, end)
	if err != nil {
		return err
	}
	if g.bytes < remaining/compactShare {
		return nil
	}
	if err := c.e.compact(ctx, g.first, end); err != nil {
		return err
	}
	*g = garbage{}
	return nil
}

// remainingBytes estimates the bytes of the remaining cells in a range. The pass counts them for the whole table; the
// table files give the range's part, because their sizes are those of compressed blocks.
func (c *collection) remainingBytes(from, to []byte) (int64, error) {
	lower, upper := tableRange(c.t.id)
	whole, err := c.e.diskUsage([]span{{lower, upper}})
	if err != nil || whole == 0 {
		return 0, err
	}
	part, err := c.e.diskUsage([]span{{from, to}})
	return int64(float64(c.live) * float64(part) / float64(whole)), err
}

// cleaner removes the files that Pebble no longer needs. Pebble keeps old logs to overwrite them, as many as ever
// existed at once, unless its cleaner says that it needs their contents, as an archiving cleaner does. Here each log
// begins in a new file (see pebblelog.FS), so kept logs would only take up disk space.
type cleaner struct {
	pebble.DeleteCleaner // deletes files; Clean is ambiguous otherwise
	keepsNoLogs
}

type keepsNoLogs struct{ pebble.ArchiveCleaner }
