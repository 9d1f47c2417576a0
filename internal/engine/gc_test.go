package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/engine"
)

// clock is a time that tests move.
type clock struct{ micros atomic.Int64 }

func (c *clock) now() time.Time          { return time.UnixMicro(c.micros.Load()) }
func (c *clock) advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

func TestGCRules(t *testing.T) {
	hour := int64(3_600_000_000)
	for _, tt := range []struct {
		name   string
		policy bigtable.GCPolicy
		want   string // hours of the cells that stay, of 1 to 5 at hour 6
	}{
		{"none", bigtable.NoGcPolicy(), "5 4 3 2 1"},
		{"age", bigtable.MaxAgePolicy(3 * time.Hour), "5 4 3"},
		{"versions", bigtable.MaxVersionsPolicy(2), "5 4"},
		{"union", bigtable.UnionPolicy(bigtable.MaxAgePolicy(3*time.Hour), bigtable.MaxVersionsPolicy(4)), "5 4 3"},
		{"intersection", bigtable.IntersectionPolicy(bigtable.MaxAgePolicy(3*time.Hour), bigtable.MaxVersionsPolicy(4)), "5 4 3 2"},
		{
			"nested", bigtable.UnionPolicy(
				bigtable.IntersectionPolicy(bigtable.MaxAgePolicy(2*time.Hour), bigtable.MaxVersionsPolicy(2)),
				bigtable.MaxAgePolicy(time.Hour*100)), "5 4",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c clock
			c.micros.Store(6 * hour)
			r := open(t, engine.Options{Clock: c.now})
			r.createWith(t, map[string]bigtable.Family{"f": {GCPolicy: tt.policy}, "g": {}})
			for h := range int64(5) {
				apply(t, r, "row", set("f", "q", (h+1)*hour, "v"))
				apply(t, r, "row", set("f", "other", 5*hour, "v"))
				apply(t, r, "row", set("g", "q", (h+1)*hour, "v"))
			}
			if err := r.RunGC(r.ctx); err != nil {
				t.Fatal(err)
			}
			var got []string
			row, err := r.data.Open(tableID).ReadRow(r.ctx, "row")
			if err != nil {
				t.Fatal(err)
			}
			for _, cell := range row["f"] {
				if cell.Column == "f:q" {
					got = append(got, fmt.Sprint(int64(cell.Timestamp)/hour))
				}
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("hours %s stay, want %s", s, tt.want)
			}
			if len(row["g"]) != 5 || len(row["f"]) != len(got)+1 {
				t.Errorf("cells of another family or column went too: %v", row)
			}
		})
	}
}

// A cell that is written again, newer, between two passes is kept by the second.
func TestGCKeepsWhatIsNew(t *testing.T) {
	var c clock
	c.micros.Store(time.Hour.Microseconds())
	r := open(t, engine.Options{Clock: c.now})
	r.createWith(t, map[string]bigtable.Family{"f": {GCPolicy: bigtable.MaxVersionsPolicy(1)}})
	stop := make(chan struct{})
	collected := make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				collected <- nil
				return
			default:
			}
			if err := r.RunGC(context.Background()); err != nil {
				collected <- err
				return
			}
		}
	}()
	// Each round, the only version of a cell is deleted and written again at the same timestamp, behind two newer ones that
	// go first. Whatever the collector saw in between, the row must end with the cell.
	for i := range 200 {
		row := fmt.Sprint("row", i%7)
		apply(t, r, row, set("f", "q", 1000, "old"))
		apply(t, r, row, set("f", "q", 2000, "new"))
		m := bigtable.NewMutation()
		m.DeleteCellsInFamily("f")
		apply(t, r, row, m)
		apply(t, r, row, set("f", "q", 1000, "again"))
		want := []string{row + " f:q@1000=again"}
		if got := dump(t, r, bigtable.SingleRow(row)); !slices.Equal(got, want) {
			t.Fatalf("round %d: %q, want %q", i, got, want)
		}
	}
	close(stop)
	if err := <-collected; err != nil {
		t.Fatal(err)
	}
}

// Expired cells, dropped families and dropped rows give their space on disk back.
func TestSpaceComesBack(t *testing.T) {
	var c clock
	c.micros.Store(time.Hour.Microseconds())
	dir := t.TempDir()
	r := open(t, engine.Options{Dir: dir, Clock: c.now, MemTableBytes: 1 << 20})
	r.createWith(t, map[string]bigtable.Family{"f": {GCPolicy: bigtable.MaxAgePolicy(time.Hour)}, "g": {}})
	fillNoise := func(family string) {
		t.Helper()
		for b := range 10 {
			var keys []string
			var muts []*bigtable.Mutation
			for i := range 2000 {
				keys = append(keys, fmt.Sprintf("row%d-%05d", b, i))
				muts = append(muts, set(family, "q", c.micros.Load(), noise(b*2000+i)))
			}
			if errs, err := r.data.Open(tableID).ApplyBulk(r.ctx, keys, muts); err != nil || errs != nil {
				t.Fatal(err, errs)
			}
		}
	}
	for name, give := range map[string]func(){
		"expired": func() { fillNoise("f"); c.advance(2 * time.Hour) },
		"dropped family": func() {
			fillNoise("g")
			if err := r.admin.DeleteColumnFamily(r.ctx, tableID, "g"); err != nil {
				t.Fatal(err)
			}
			if err := r.admin.CreateColumnFamily(r.ctx, tableID, "g"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		give()
		before := diskUsage(t, dir)
		if err := r.RunGC(r.ctx); err != nil {
			t.Fatal(err)
		}
		if got := len(dump(t, r, bigtable.InfiniteRange(""))); got != 0 {
			t.Errorf("%s: %d cells are left", name, got)
		}
		after := before
		for range 100 {
			if after = diskUsage(t, dir); after < before/2 {
				break
			}
			time.Sleep(20 * time.Millisecond) // files go in the background
		}
		if after >= before/2 {
			t.Errorf("%s: %d bytes of tables before, %d after", name, before, after)
		}
	}
}

func noise(i int) string {
	var b strings.Builder
	x := uint64(i)*2654435761 + 1
	for range 40 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		fmt.Fprintf(&b, "%016x", x)
	}
	return b.String()
}

func diskUsage(t *testing.T, dir string) int64 {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			total += info.Size()
		}
	}
	return total
}

func TestGCRunsInTheBackground(t *testing.T) {
	var c clock
	c.micros.Store(time.Hour.Microseconds())
	r := open(t, engine.Options{Clock: c.now, GCInterval: time.Millisecond})
	r.createWith(t, map[string]bigtable.Family{"f": {GCPolicy: bigtable.MaxAgePolicy(time.Minute)}})
	apply(t, r, "row", set("f", "q", 1000, "v"))
	for range 1000 {
		if len(dump(t, r, bigtable.InfiniteRange(""))) == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("an expired cell is still there after a second of passes")
}
