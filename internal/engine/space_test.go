package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

const hour = time.Hour

// fillNoise writes rows of about 2,400 bytes that do not compress, timestamped by the clock.
func fillNoise(t *testing.T, r *rig, c *clock, family, prefix string, rows int) {
	t.Helper()
	spreadNoise(t, r, c, family, prefix, rows, 1)
}

// spreadNoise is fillNoise with a step between the numbers of the rows.
func spreadNoise(t *testing.T, r *rig, c *clock, family, prefix string, rows, step int) {
	t.Helper()
	for from := 0; from < rows; from += 2000 {
		var keys []string
		var muts []*bigtable.Mutation
		for i := from; i < min(from+2000, rows); i++ {
			keys = append(keys, fmt.Sprintf("%s-%05d", prefix, i*step))
			muts = append(muts, set(family, "q", c.micros.Load(), noise(i+len(prefix)*7919)))
		}
		if errs, err := r.data.Open(tableID).ApplyBulk(r.ctx, keys, muts); err != nil || errs != nil {
			t.Fatal(err, errs)
		}
	}
}

func noise(i int) string {
	b := make([]byte, 0, 2400)
	for x := uint64(i)*2654435761 + 1; len(b) < cap(b); {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return string(b)
}

// folderSize returns the total size of all files in a folder: tables, logs and the rest.
func folderSize(t *testing.T, dir string) (total int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return total
}

// wantFolder waits until a folder is at most limit bytes large: files are removed in the background.
func wantFolder(t *testing.T, what, dir string, limit int64) {
	t.Helper()
	var size int64
	for range 1500 {
		if size = folderSize(t, dir); size <= limit {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%s: got a folder of %d bytes, want at most %d", what, size, limit)
}

// Expired and deleted cells, and dropped families, free their disk space, including that of logs. That holds if all
// cells expire at once, if each pass deletes too little for a compaction of its own, and if everything is still in
// memory. The folder is then nearly as small as that of an empty store.
func TestSpaceIsFreed(t *testing.T) {
	const nearlyEmpty = 1 << 20
	for name, tt := range map[string]struct {
		memory uint64
		give   func(t *testing.T, r *rig, c *clock)
	}{
		"at once": {1 << 20, func(t *testing.T, r *rig, c *clock) {
			fillNoise(t, r, c, "f", "row", 5000)
			c.advance(2 * hour)
			collect(t, r)
		}},
		"a little in each pass": {0, func(t *testing.T, r *rig, c *clock) {
			for i := range 30 {
				fillNoise(t, r, c, "f", fmt.Sprint("row", i), 200)
				c.advance(time.Minute)
			}
			c.advance(hour - 30*time.Minute)
			for range 31 {
				c.advance(time.Minute)
				collect(t, r)
			}
		}},
		"in memory": {0, func(t *testing.T, r *rig, c *clock) {
			fillNoise(t, r, c, "f", "row", 1000)
			c.advance(2 * hour)
			collect(t, r)
		}},
		"deleted by a client": {1 << 20, func(t *testing.T, r *rig, c *clock) {
			fillNoise(t, r, c, "f", "row", 5000)
			var keys []string
			var muts []*bigtable.Mutation
			for i := range 5000 {
				keys = append(keys, fmt.Sprintf("row-%05d", i))
				muts = append(muts, deleteRow())
			}
			if errs, err := r.data.Open(tableID).ApplyBulk(r.ctx, keys, muts); err != nil || errs != nil {
				t.Fatal(err, errs)
			}
		}},
		"dropped family": {1 << 20, func(t *testing.T, r *rig, c *clock) {
			fillNoise(t, r, c, "g", "row", 5000)
			if err := r.admin.DeleteColumnFamily(r.ctx, tableID, "g"); err != nil {
				t.Fatal(err)
			}
			if err := r.admin.CreateColumnFamily(r.ctx, tableID, "g"); err != nil {
				t.Fatal(err)
			}
			collect(t, r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c clock
			c.micros.Store(hour.Microseconds())
			dir := t.TempDir()
			r := open(t, engine.Options{Dir: dir, Clock: c.now, Steady: c.steady, MemTableBytes: tt.memory, NoSync: true})
			r.createWith(t, map[string]bigtable.Family{"f": {GCPolicy: bigtable.MaxAgePolicy(hour)}, "g": {}})
			tt.give(t, r, &c)
			if got := len(dump(t, r, bigtable.InfiniteRange(""))); got != 0 {
				t.Errorf("got %d cells, want 0", got)
			}
			wantFolder(t, name, dir, nearlyEmpty)
		})
	}
}

// Space is freed after reopening if a crash, or Close, came between the deletion of cells and their compaction.
func TestSpaceIsFreedAfterReopening(t *testing.T) {
	var c clock
	c.micros.Store(hour.Microseconds())
	dir := t.TempDir()
	o := engine.Options{Dir: dir, Clock: c.now, Steady: c.steady, NoSync: true}
	r := open(t, o)
	r.createWith(t, map[string]bigtable.Family{"f": {GCPolicy: bigtable.MaxAgePolicy(hour)}})
	fillNoise(t, r, &c, "f", "row", 3000)
	r = reopen(t, r, o)
	c.advance(2 * hour)
	ctx, cancel := context.WithCancel(r.ctx)
	rests := 0
	err := r.CollectWithRests(ctx, func(ctx context.Context, _ time.Duration) error {
		if rests++; rests == 1 { // all rows are deleted, and nothing is compacted
			cancel()
		}
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || r.Uncompacted(fullName) == 0 {
		t.Fatalf("a pass that ended before its compaction: got %v, %d bytes to compact; want Canceled and some bytes", err, r.Uncompacted(fullName))
	}
	reopen(t, r, o)
	wantFolder(t, "after reopening", dir, 1<<20)
}

// If little has expired between much that stays, the engine does not rewrite all of it: the cost of freeing space is in
// proportion to the space. It counts the bytes still to free, and compacts when they are enough.
func TestSmallGarbageWaitsForCompaction(t *testing.T) {
	testkit.Plain(t)
	var c clock
	c.micros.Store(hour.Microseconds())
	r := open(t, engine.Options{Dir: t.TempDir(), Clock: c.now, Steady: c.steady, MemTableBytes: 1 << 20, NoSync: true})
	r.createWith(t, map[string]bigtable.Family{"f": {GCPolicy: bigtable.MaxAgePolicy(hour)}, "g": {}})
	fillNoise(t, r, &c, "g", "row", 6000) // 14 MB that stay
	for i := range 3 {
		spreadNoise(t, r, &c, "f", "row", 320, 18) // 0.8 MB in between that go
		c.advance(2 * hour)
		collect(t, r)
		waiting := r.Uncompacted(fullName)
		if i < 2 && waiting < int64(i+1)*700_000 {
			t.Errorf("pass %d: got %d bytes that wait for a compaction, want those of all passes", i, waiting)
		}
		if i == 2 && waiting != 0 {
			t.Errorf("pass %d: got %d bytes that wait for a compaction, want 0", i, waiting)
		}
	}
	// A key range that loses most of its data is compacted alone.
	fillNoise(t, r, &c, "f", "aaa", 600)
	c.advance(2 * hour)
	collect(t, r)
	if waiting := r.Uncompacted(fullName); waiting != 0 {
		t.Errorf("got %d bytes that wait for a compaction of the emptied range, want 0", waiting)
	}
}

// A pass works in pieces. Between them it rests, and nothing is locked.
func TestGCRests(t *testing.T) {
	var c clock
	c.micros.Store(hour.Microseconds())
	r := open(t, engine.Options{Clock: c.now, Steady: c.steady})
	r.createWith(t, map[string]bigtable.Family{"f": {GCPolicy: bigtable.MaxAgePolicy(hour)}})
	fillRows(t, r, 10_000)
	c.advance(2 * hour)
	rests := 0
	err := r.CollectWithRests(r.ctx, func(ctx context.Context, _ time.Duration) error {
		rests++
		for i := range 100 { // some of these rows were cleaned already
			apply(t, r, fmt.Sprintf("row%07d", i*100), set("f", "q", c.micros.Load(), "new"))
		}
		return r.admin.UpdateFamily(ctx, tableID, "f", bigtable.Family{GCPolicy: bigtable.MaxAgePolicy(hour)})
	})
	if err != nil {
		t.Fatal(err)
	}
	if rests < 4 { // 10,000 rows in pieces of 4,096, and one at the end
		t.Errorf("got %d rests in a pass over 10,000 rows, want at least 4", rests)
	}
	if got := len(dump(t, r, bigtable.InfiniteRange(""))); got != 100 {
		t.Errorf("got %d cells, want the 100 that were written meanwhile", got)
	}
}

// A pass runs soon after Open, so stores that are only open for short times are collected too.
func TestGCBeginsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.Open(engine.Options{GCInterval: hour})
		if err != nil {
			t.Fatal(err)
		}
		r := dial(t, e)
		defer func() {
			r.disconnect(t)
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}()
		r.createWith(t, map[string]bigtable.Family{"f": {GCPolicy: bigtable.MaxAgePolicy(hour)}})
		apply(t, r, "row", set("f", "q", 1000, "v"))
		time.Sleep(10 * time.Second)
		if got := dump(t, r, bigtable.InfiniteRange("")); len(got) != 0 {
			t.Errorf("ten seconds after opening, got %q, want no cells", got)
		}
	})
}

func collect(t *testing.T, r *rig) {
	t.Helper()
	if err := r.RunGC(r.ctx); err != nil {
		t.Fatal(err)
	}
}
