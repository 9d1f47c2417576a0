package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/cockroachdb/pebble/v2/vfs"

	watch "github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/engine"
)

// wrong is the machine's clock, shifted by an error.
type wrong struct{ by atomic.Int64 }

func (w *wrong) now() time.Time       { return time.Now().Add(time.Duration(w.by.Load())) }
func (w *wrong) set(by time.Duration) { w.by.Store(int64(by)) }

const year = 365 * 24 * hour

// collecting opens an engine in fs that collects garbage every minute, for use in a synctest bubble. stop closes it.
func collecting(t *testing.T, fs vfs.FS, w *wrong) (r *rig, stop func()) {
	t.Helper()
	e, err := engine.Open(engine.Options{Dir: "data", FS: fs, Clock: w.now, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r = dial(t, e)
	r.ctx = context.Background() // the rig's own context ends after a minute
	return r, func() {
		t.Helper()
		r.disconnect(t)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func (r *rig) wantCells(t *testing.T, when string, want int) {
	t.Helper()
	if got := dump(t, r, bigtable.InfiniteRange("")); len(got) != want {
		t.Errorf("%s: got %d cells, want %d: %q", when, len(got), want, got)
	}
}

// While the clock is ahead for some minutes, nothing that has not expired is deleted. Once the clock is right again,
// expired cells are deleted.
func TestClockAheadDeletesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := new(wrong)
		r, stop := collecting(t, vfs.NewMem(), w)
		defer stop()
		r.createWith(t, map[string]bigtable.Family{"f": {GCPolicy: bigtable.MaxAgePolicy(2 * hour)}})
		apply(t, r, "row", set("f", "old", time.Now().Add(-hour).UnixMilli()*1000, "v"))
		apply(t, r, "row", set("f", "new", time.Now().UnixMilli()*1000, "v"))
		time.Sleep(5 * time.Minute)
		w.set(4 * year)
		time.Sleep(5 * time.Minute)
		r.wantCells(t, "while the clock is ahead", 2)
		if err := r.RunGC(r.ctx); err == nil {
			t.Error("RunGC with a clock that is ahead: got nil, want an error")
		}
		w.set(0)
		time.Sleep(5 * time.Minute)
		r.wantCells(t, "with the clock right again", 2)
		time.Sleep(hour)
		r.wantCells(t, "an hour later", 1)
	})
}

// A clock that jumps ahead during a pass ends the pass.
func TestClockJumpsDuringAPass(t *testing.T) {
	w := new(wrong)
	r := open(t, engine.Options{Clock: w.now})
	for _, name := range []string{"t", "u"} {
		conf := &bigtable.TableConf{TableID: name, ColumnFamilies: map[string]bigtable.Family{"f": {GCPolicy: bigtable.MaxAgePolicy(hour)}}}
		if err := r.admin.CreateTableFromConf(r.ctx, conf); err != nil {
			t.Fatal(err)
		}
		if err := r.data.Open(name).Apply(r.ctx, "row", set("f", "q", time.Now().UnixMilli()*1000, "v")); err != nil {
			t.Fatal(err)
		}
	}
	err := r.CollectWithRests(r.ctx, func(context.Context, time.Duration) error {
		w.set(year)
		return nil
	})
	if err == nil {
		t.Error("a pass during which the clock jumped: got nil, want an error")
	}
	for _, name := range []string{"t", "u"} {
		if row, err := r.data.Open(name).ReadRow(r.ctx, "row"); err != nil || len(row) == 0 {
			t.Errorf("table %s: got row %v, %v; want the row", name, row, err)
		}
	}
}

// A folder stores the time. If the clock is ahead when the folder opens, nothing is deleted until the probation ends;
// then the engine trusts the clock.
func TestClockAheadAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, fs := new(wrong), vfs.NewMem()
		r, stop := collecting(t, fs, w)
		r.createWith(t, map[string]bigtable.Family{"f": {GCPolicy: bigtable.MaxAgePolicy(24 * hour)}})
		apply(t, r, "row", set("f", "q", time.Now().UnixMilli()*1000, "v"))
		time.Sleep(5 * time.Minute)
		stop()
		w.set(4 * year)
		r, stop = collecting(t, fs, w)
		time.Sleep(watch.Probation - time.Minute)
		r.wantCells(t, "ahead at the start", 1)
		stop()
		r, stop = collecting(t, fs, w) // a restart does not end the probation
		time.Sleep(watch.Probation - time.Minute)
		r.wantCells(t, "ahead at the second start", 1)
		w.set(0)
		time.Sleep(hour)
		r.wantCells(t, "set right", 1)
		stop()
		w.set(4 * year)
		r, stop = collecting(t, fs, w)
		time.Sleep(watch.Probation + 2*time.Minute)
		r.wantCells(t, "ahead permanently", 0)
		stop()
		w.set(0) // the clock was wrong all the time, and is right now
		r, stop = collecting(t, fs, w)
		apply(t, r, "row", set("f", "expired", time.Now().Add(-48*hour).UnixMilli()*1000, "v"))
		apply(t, r, "row", set("f", "fresh", time.Now().UnixMilli()*1000, "v"))
		time.Sleep(3 * time.Minute)
		r.wantCells(t, "set back", 1)
		time.Sleep(watch.Probation)
		stop()
		w.set(year)
		r, stop = collecting(t, fs, w)
		time.Sleep(5 * time.Minute)
		r.wantCells(t, "ahead of the lower time", 1)
		stop()
	})
}

// A folder without a stored time, such as one of an earlier version, is collected after the probation.
func TestFolderWithoutATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, fs := new(wrong), vfs.NewMem()
		r, stop := collecting(t, fs, w)
		r.createWith(t, map[string]bigtable.Family{"f": {GCPolicy: bigtable.MaxAgePolicy(24 * hour)}})
		apply(t, r, "row", set("f", "q", time.Now().Add(-48*hour).UnixMilli()*1000, "v"))
		stop()
		engine.ForgetTime(t, fs, "data")
		r, stop = collecting(t, fs, w)
		defer stop()
		time.Sleep(watch.Probation - time.Minute)
		r.wantCells(t, "before the end of the probation", 1)
		time.Sleep(3 * time.Minute)
		r.wantCells(t, "after it", 0)
	})
}
