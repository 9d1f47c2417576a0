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

// wrong is the machine's clock, and by how much it is wrong.
type wrong struct{ by atomic.Int64 }

func (w *wrong) now() time.Time       { return time.Now().Add(time.Duration(w.by.Load())) }
func (w *wrong) set(by time.Duration) { w.by.Store(int64(by)) }

const year = 365 * 24 * hour

// collecting opens an engine in fs that collects every minute, for a bubble. Stop closes it.
func collecting(t *testing.T, fs vfs.FS, w *wrong) (r *rig, stop func()) {
	t.Helper()
	e, err := engine.Open(engine.Options{Dir: "data", FS: fs, Clock: w.now, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r = dial(t, e)
	r.ctx = context.Background() // that of the rig ends after a minute
	return r, func() {
		t.Helper()
		r.disconnect(t)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func (r *rig) left(t *testing.T, when string, want int) {
	t.Helper()
	if got := dump(t, r, bigtable.InfiniteRange("")); len(got) != want {
		t.Errorf("%s: %d cells, want %d: %q", when, len(got), want, got)
	}
}

// What has not expired stays, however far ahead the clock is for some minutes; what has expired goes once the clock is right.
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
		r.left(t, "while the clock is ahead", 2)
		if err := r.RunGC(r.ctx); err == nil {
			t.Error("RunGC does not report that the clock is ahead")
		}
		w.set(0)
		time.Sleep(5 * time.Minute)
		r.left(t, "with the clock right again", 2)
		time.Sleep(hour)
		r.left(t, "an hour later", 1)
	})
}

// A clock that jumps during a pass ends the pass.
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
		t.Error("a pass does not report that the clock jumped")
	}
	for _, name := range []string{"t", "u"} {
		if row, err := r.data.Open(name).ReadRow(r.ctx, "row"); err != nil || len(row) == 0 {
			t.Errorf("the row of %s: %v, %v", name, row, err)
		}
	}
}

// A folder remembers the time, so that a clock which is wrong at the start deletes nothing; where it stays like that it is
// believed after the probation.
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
		r.left(t, "ahead at the start", 1)
		stop()
		r, stop = collecting(t, fs, w) // a restart is no proof
		time.Sleep(watch.Probation - time.Minute)
		r.left(t, "ahead at the second start", 1)
		w.set(0)
		time.Sleep(hour)
		r.left(t, "set right", 1)
		stop()
		w.set(4 * year)
		r, stop = collecting(t, fs, w)
		time.Sleep(watch.Probation + 2*time.Minute)
		r.left(t, "ahead for good", 0)
		stop()
		w.set(0) // what it was set to for long was wrong
		r, stop = collecting(t, fs, w)
		apply(t, r, "row", set("f", "expired", time.Now().Add(-48*hour).UnixMilli()*1000, "v"))
		apply(t, r, "row", set("f", "fresh", time.Now().UnixMilli()*1000, "v"))
		time.Sleep(3 * time.Minute)
		r.left(t, "set back", 1)
		time.Sleep(watch.Probation)
		stop()
		w.set(year)
		r, stop = collecting(t, fs, w)
		time.Sleep(5 * time.Minute)
		r.left(t, "ahead of the lower time", 1)
		stop()
	})
}

// A folder that no time was written to, as by an earlier version, is collected after the probation.
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
		r.left(t, "before the end of the probation", 1)
		time.Sleep(3 * time.Minute)
		r.left(t, "after it", 0)
	})
}
