package engine_test

import (
	"cmp"
	"errors"
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

// crashed is a folder that a killed process left, and its newest log.
type crashed struct {
	dir, log string // log is a file name without the folder
	ends     []int  // the length of the log after each row
}

// crash writes one row after the other, each synced, and copies the folder while it is open.
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
	if err := os.CopyFS(c.dir, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return c
}

// opened opens a copy of the folder whose log edit has changed, and counts its rows.
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

// A machine that fails writes any of the sectors of the last record and not the others. The folder opens without that record.
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
					t.Errorf("%s: %s: %d rows and %v, want %d rows", name, what, n, err, len(sizes)-1)
				}
			}
		}
		// lose makes the sector at a byte what it was before the record was written.
		lose := func(log []byte, at int) { clear(log[max(at, from):min(at+sector, len(log))]) }
		step := sector * max(1, (to-from)/sector/25)
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
		t.Logf("%s: %d of %d tears are refused", name, refused, tears)
	}
}

// What was synced and is gone is damage, also where a hole of zeros looks like something that was never written: the store
// must not open with what stood before the hole.
func TestHoleInALog(t *testing.T) {
	testkit.Plain(t)
	for name, sizes := range map[string][]int{
		"small rows": slices.Repeat([]int{300}, 300),
		"large rows": slices.Repeat([]int{20_000}, 20),
		"both":       slices.Repeat([]int{20_000, 50, 70_000, 300}, 8),
	} {
		c := crash(t, sizes...)
		// The last record cannot be told from one that was never synced, and those that lie in its sector neither.
		last := c.ends[len(sizes)-2] / 4096 * 4096
		for _, hole := range []int{sector, 4096, block} {
			step := max(hole, last/40/hole*hole)
			for at := 0; at+hole <= last; at += step {
				n, err := c.opened(t, func(log []byte) []byte { clear(log[at : at+hole]); return log })
				if err == nil && n != len(sizes) {
					t.Errorf("%s: with %d zeros at byte %d, %d of %d rows are served", name, hole, at, n, len(sizes))
				} else if err != nil && !errors.Is(err, engine.ErrDamaged) {
					t.Errorf("%s: with %d zeros at byte %d: %v, want ErrDamaged", name, hole, at, err)
				}
			}
		}
	}
}

// Only the newest log may have a torn end: the one before was closed when it was begun.
func TestOlderLogMustBeWhole(t *testing.T) {
	older := crash(t, slices.Repeat([]int{500}, 50)...)
	n, err := older.opened(t, func(log []byte) []byte {
		newer := filepath.Join(older.dir, "000999.log")
		if err := os.WriteFile(newer, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return log[:older.ends[30]]
	})
	if err != nil || n != 31 { // it is the newest still: the copy was made before
		t.Errorf("the newest log, cut between two records: %d rows and %v, want 31", n, err)
	}
	for _, end := range []int{older.ends[30], older.ends[30] - 7} {
		n, err := older.opened(t, func(log []byte) []byte { return log[:end] })
		if !errors.Is(err, engine.ErrDamaged) {
			t.Errorf("an older log, cut to %d bytes: %d rows and %v, want ErrDamaged", end, n, err)
		}
	}
}

// A manifest is synced after each record: whatever follows a hole says that the hole was written.
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
			t.Errorf("with a sector of zeros at byte %d of %d, %d of 1500 rows are served", at, size, n)
		} else if err != nil && !errors.Is(err, engine.ErrDamaged) {
			t.Errorf("with a sector of zeros at byte %d: %v, want ErrDamaged", at, err)
		}
	}
}
