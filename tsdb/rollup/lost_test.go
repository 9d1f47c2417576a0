package rollup_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// twoDays keeps points for two days. Their rollups are kept for ever by default.
var twoDays = gc.Class{Name: "d2", Policy: gc.MaxAge(48 * time.Hour)}

// passAll makes one pass with a new worker.
func passAll(t *testing.T, o *one) {
	t.Helper()
	w, err := rollup.NewWorker(o.store, rollup.WorkerOptions{Tenants: only(acme)}, o.schema)
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := w.Pass(t.Context()); err != nil {
		t.Error(err)
	}
}

func rebuildAll(t *testing.T, o *one) {
	t.Helper()
	if _, err := rollup.For(o.hour, o.repo).Rebuild(t.Context(), tsdb.AllTime(), rollup.RebuildOptions{}); err != nil {
		t.Error(err)
	}
}

// TestStalledUntilPointsExpire: a worker or a rebuild reads a late point and stalls. The point is deleted, and the
// points of the bucket expire. A second worker removes the marks, because it can no longer compute the bucket. The
// first one must neither store the deleted point nor compute the bucket from the remaining points: nothing would ever
// correct it.
func TestStalledUntilPointsExpire(t *testing.T) {
	for name, stalled := range map[string]func(*testing.T, *one){"worker": passAll, "rebuild": rebuildAll} {
		for _, early := range []int{0, 1} { // points whose bucket is already stored
			t.Run(fmt.Sprint(name, " of a bucket of ", early), func(t *testing.T) {
				addBubble(t, func(t *testing.T) {
					var s stall
					o := newOne(t, rollup.Options{}, twoDays, s.dial())
					var want []float64
					if early > 0 {
						want = []float64{1}
						o.put(t, start, 1)
					}
					o.Set(start.Add(2 * time.Hour))
					o.pass(t)
					o.want(t, "stored before", o.stored(t), want...)
					late := start.Add(time.Minute)
					o.put(t, late, 100)
					o.Set(start.Add(40 * time.Hour))
					s.run = func() {
						if err := o.repo.Delete(t.Context(), roof, late); err != nil {
							t.Error(err)
						}
						o.Set(start.Add(50 * time.Hour))
						passAll(t, o)
					}
					stalled(t, o)
					o.want(t, "stored", o.stored(t), want...)
					o.want(t, "read", o.sums(t), want...)
				})
			})
		}
	}
}

// TestRebuildUntilPointsExpire: a rebuild of many entities takes so long that points of the last entities expire. Their
// buckets stay as they were stored.
func TestRebuildUntilPointsExpire(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		o := newOne(t, rollup.Options{}, twoDays)
		o.put(t, start, 1)
		other := tsdb.NewEntity("berlin", "attic")
		if err := o.repo.Put(t.Context(), other, start, reading{TempC: 2}); err != nil {
			t.Fatal(err)
		}
		o.Set(start.Add(2 * time.Hour))
		o.pass(t)
		o.Set(start.Add(47 * time.Hour))
		_, err := rollup.For(o.hour, o.repo).Rebuild(t.Context(), tsdb.AllTime(), rollup.RebuildOptions{OnEntity: func(rollup.Rebuilt) error {
			o.Set(start.Add(50 * time.Hour)) // the other entity is rebuilt after that
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		o.want(t, "stored", o.stored(t), 2, 1)
	})
}

// TestCoarserRollupsLearnOfWhatIsLost: a worker computes an hour and fails to mark its day. Before the next pass, the
// points of the hour expire. The day is still computed from the stored hour; it lacks only late points.
func TestCoarserRollupsLearnOfWhatIsLost(t *testing.T) {
	clockBubble(t, func(t *testing.T) {
		l := &lengthened{one: &one{clock: testkit.NewClock(start)}}
		l.declare(48 * time.Hour)
		l.store, l.conn = tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: l.Now}}, l.schema)
		l.open(t)
		midnight := l.day.Grid().Next(start)
		l.put(t, midnight, 1)
		l.Set(midnight.Add(26 * time.Hour))
		l.settle(t)
		l.wantDay(t, "stored", midnight, 1)
		l.put(t, midnight.Add(time.Minute), 1)
		l.Add(2 * time.Hour)
		l.conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.MutateRows))
		if _, err := l.worker.Pass(t.Context()); err == nil {
			t.Fatal("the pass that failed to mark the day returned no error")
		}
		l.conn.Clear()
		l.Set(midnight.Add(50 * time.Hour))
		l.settle(t)
		l.settle(t)
		l.wantDay(t, "after the points have expired", midnight, 2)
	})
}

// TestMarksOfWhatIsLostCostLittle: late points whose buckets can no longer be computed cost one read and one
// conditional write per row, whatever their number, and only once.
func TestMarksOfWhatIsLostCostLittle(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		o := newOne(t, rollup.Options{}, gc.Class{Name: "d9", Policy: gc.MaxAge(9 * 24 * time.Hour)})
		for i := range 100 { // in hours that share one or two rows
			o.put(t, start.Add(time.Duration(i)*time.Hour), 1)
		}
		o.Set(start.Add(20 * 24 * time.Hour))
		o.conn.Reset()
		if p := o.pass(t); p.Marks != 100 || p.Buckets != 0 {
			t.Fatalf("first pass %+v, want 100 marks and no bucket", p)
		}
		if c := o.conn.Counts().Calls; c[tsdbtest.CheckAndMutateRow] == 0 || c[tsdbtest.CheckAndMutateRow] > 2 || c[tsdbtest.ReadRows] > 5 {
			t.Errorf("requests %v, want a read and a conditional write for each of two rows at most", c)
		}
		o.Add(time.Hour)
		o.conn.Reset()
		if p := o.pass(t); p.Marks != 0 {
			t.Errorf("second pass %+v, want no marks", p)
		}
		if n := o.conn.Counts().Calls[tsdbtest.CheckAndMutateRow]; n != 0 {
			t.Errorf("a pass without marks made %d conditional writes, want 0", n)
		}
	})
}
