package engine_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

const (
	sector = 512
	block  = 32 << 10
)

// crashed is the folder of a killed process, with its newest log.
type crashed struct {
	dir, log string // log is a file name without the folder
	ends     []int  // the length of the log after each row
}

var tearPlaces = flag.Int("engine.tears", 5, "at how many places of a record or a log the log is torn")

// crash writes rows of the given sizes, syncs each, and copies the folder while it is open.
func crash(t *testing.T, sizes ...int) crashed {
	t.Helper()
	dir := t.TempDir()
	r := open(t, engine.Options{Dir: dir})
	r.create(t)
	var c crashed
	newest := func() string {
		return slices.MaxFunc(files(t, dir, "*.log"), func(a, b string) int { return cmp.Compare(a, b) })
	}
	for i, size := range sizes {
		value := ""
		for n := 0; len(value) < size; n++ {
			value += noise(i*1000 + n)
		}
		apply(t, r, fmt.Sprintf("row%05d", i), set("f", "q", 1000, value[:size]))
		c.ends = append(c.ends, int(sizeOf(t, newest())))
	}
	c.dir, c.log = filepath.Join(t.TempDir(), "db"), filepath.Base(newest())
	testkit.CopyOpen(t, c.dir, dir)
	return c
}

// opened opens a copy of the folder in which edit has changed the log, and counts its rows.
func (c crashed) opened(t *testing.T, edit func(log []byte) []byte) (rows int, err error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "db")
	if err := os.CopyFS(dir, os.DirFS(c.dir)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, c.log)
	log, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, edit(log), 0o644); err != nil {
		t.Fatal(err)
	}
	return openAndCount(t, dir)
}

// A machine that fails during a write may store any of the last record's sectors and lose the others. The folder opens
// without that record.
func TestLastRecordTornAtSectors(t *testing.T) {
	testkit.Plain(t)
	for name, last := range map[string]int{"sectors": 6000, "blocks": 3 * block, "short": 700} {
		sizes := append(slices.Repeat([]int{900}, 20), last)
		c := crash(t, sizes...)
		from, to := c.ends[len(sizes)-2], c.ends[len(sizes)-1]
		tears, refused := 0, 0
		try := func(what string, edit func(log []byte) []byte) {
			tears++
			if n, err := c.opened(t, edit); err != nil || n != len(sizes)-1 {
				if refused++; refused < 4 {
					t.Errorf("%s: %s: got %d rows, %v, want %d rows", name, what, n, err, len(sizes)-1)
				}
			}
		}
		// lose restores the sector at a byte to its state before the record was written.
		lose := func(log []byte, at int) { clear(log[max(at, from):min(at+sector, len(log))]) }
		step := sector * max(1, (to-from)/sector / *tearPlaces)
		for at := from / sector * sector; at < to; at += step {
			try(fmt.Sprintf("without the sector at %d", at), func(log []byte) []byte { lose(log, at); return log })
			try(fmt.Sprintf("with nothing from byte %d on", at), func(log []byte) []byte {
				for s := at; s < to; s += sector {
					lose(log, s)
				}
				return log
			})
			if at+sector < to {
				try(fmt.Sprintf("cut at %d", at+sector), func(log []byte) []byte { return log[:at+sector] })
			}
			if to-from > 2*sector {
				try(fmt.Sprintf("with only the sector at %d", at), func(log []byte) []byte {
					for s := from / sector * sector; s < to; s += sector {
						if s != at {
							lose(log, s)
						}
					}
					return log
				})
			}
		}
		t.Logf("%s: %d of %d torn logs failed", name, refused, tears)
	}
}

// If synced records are missing, the folder is damaged, even if the hole of zeros looks like space that was never
// written. The engine must not open with only the records before the hole.
func TestHoleInALog(t *testing.T) {
	testkit.Plain(t)
	for name, sizes := range map[string][]int{
		"small rows": slices.Repeat([]int{300}, 300),
		"large rows": slices.Repeat([]int{20_000}, 20),
		"both":       slices.Repeat([]int{20_000, 50, 70_000, 300}, 8),
	} {
		c := crash(t, sizes...)
		// A lost last record looks like one that was never synced. The same is true of other records in its sector.
		last := c.ends[len(sizes)-2] / 4096 * 4096
		for _, hole := range []int{sector, 4096, block} {
			step := max(hole, last / *tearPlaces / hole * hole)
			for at := 0; at+hole <= last; at += step {
				n, err := c.opened(t, func(log []byte) []byte { clear(log[at : at+hole]); return log })
				if err == nil && n != len(sizes) {
					t.Errorf("%s: with %d zeros at byte %d: got %d rows, want %d or ErrDamaged", name, hole, at, n, len(sizes))
				} else if err != nil && !errors.Is(err, engine.ErrDamaged) {
					t.Errorf("%s: with %d zeros at byte %d: got %v, want ErrDamaged", name, hole, at, err)
				}
			}
		}
	}
}

// Only the newest log may end in the middle of a record: an older log was closed before the next one was created.
func TestOlderLogMustBeWhole(t *testing.T) {
	older := crash(t, slices.Repeat([]int{500}, 50)...)
	n, err := older.opened(t, func(log []byte) []byte {
		newer := filepath.Join(older.dir, "000999.log")
		if err := os.WriteFile(newer, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return log[:older.ends[30]]
	})
	if err != nil || n != 31 { // still the newest log: the copy was made before the edit
		t.Errorf("the newest log, cut between two records: got %d rows, %v, want 31", n, err)
	}
	for _, end := range []int{older.ends[30], older.ends[30] - 7} {
		n, err := older.opened(t, func(log []byte) []byte { return log[:end] })
		if !errors.Is(err, engine.ErrDamaged) {
			t.Errorf("an older log, cut to %d bytes: got %d rows, %v, want ErrDamaged", end, n, err)
		}
	}
}

// A manifest is synced after each record. So if a record follows a hole, the hole was once written, and the folder is
// damaged.
func TestHoleInTheManifest(t *testing.T) {
	dir := t.TempDir()
	o := engine.Options{Dir: dir, MemTableBytes: 64 << 10}
	r := open(t, o)
	r.create(t)
	for i := range 1500 {
		apply(t, r, fmt.Sprintf("row%05d", i), set("f", "q", 1000, noise(i)))
	}
	r.disconnect(t)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Base(slices.Max(files(t, dir, "MANIFEST-*")))
	size := int(sizeOf(t, filepath.Join(dir, manifest)))
	c := crashed{dir: dir, log: manifest}
	for at := 0; at+sector <= size; at += max(1, size/40/sector) * sector {
		n, err := c.opened(t, func(log []byte) []byte { clear(log[at : at+sector]); return log })
		if err == nil && n != 1500 {
			t.Errorf("with a sector of zeros at byte %d of %d: got %d rows, want 1500 or ErrDamaged", at, size, n)
		} else if err != nil && !errors.Is(err, engine.ErrDamaged) {
			t.Errorf("with a sector of zeros at byte %d: got %v, want ErrDamaged", at, err)
		}
	}
}
