package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// inBubble runs a test on an engine in a synctest bubble.
func inBubble(t *testing.T, o engine.Options, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.GCInterval = -1
		e, err := engine.Open(o)
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
		test(t, r)
	})
}

// change applies a mutation to each row with a number in [from, to).
func change(t *testing.T, r *rig, from, to int, m *bigtable.Mutation) {
	t.Helper()
	var keys []string
	var muts []*bigtable.Mutation
	for i := from; i < to; i++ {
		keys = append(keys, fmt.Sprintf("row%07d", i))
		muts = append(muts, m)
	}
	if errs, err := r.data.Open(tableID).ApplyBulk(r.ctx, keys, muts); err != nil || errs != nil {
		t.Fatal(err, errs)
	}
}

func deleteRow() *bigtable.Mutation {
	m := bigtable.NewMutation()
	m.DeleteRow()
	return m
}

// first reads the first row of the table, and returns how many of Pebble's points the read stepped over.
func first(t *testing.T, r *rig, reversed bool) uint64 {
	t.Helper()
	n, err := r.PointsRead(r.ctx, &bigtablepb.ReadRowsRequest{TableName: fullName, RowsLimit: 1, Reversed: reversed})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Ten seconds after many rows were deleted or overwritten, a read costs as much as before: it steps over no deleted
// points, whether they were in memory or in table files.
func TestReadsSkipNoDeletedPoints(t *testing.T) {
	testkit.Plain(t)
	const rows = 1500
	full := set("f", "q", 1000, "v")
	// Where writes of single rows follow the deletions that cause a flush, the case waits for the flush first. A flush
	// between the last writes would leave less than a read asks a compaction for.
	for name, tt := range map[string]struct {
		fill, do func(t *testing.T, r *rig)
	}{
		"rows": {do: func(t *testing.T, r *rig) { change(t, r, 0, rows, deleteRow()) }},
		"rows one by one": {do: func(t *testing.T, r *rig) {
			for i := range rows {
				apply(t, r, fmt.Sprintf("row%07d", i), deleteRow())
				if i+1 == engine.DeletionsPerFlush {
					synctest.Wait()
				}
			}
			first(t, r, false) // reads over the last deletions, too few to cause a flush themselves
		}},
		"rows in table files": {fill: func(t *testing.T, r *rig) {
			change(t, r, 0, rows, full)
			if err := r.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, do: func(t *testing.T, r *rig) { change(t, r, 0, rows, deleteRow()) }},
		"conditionally": {do: func(t *testing.T, r *rig) {
			for i := range rows {
				m := bigtable.NewCondMutation(bigtable.PassAllFilter(), deleteRow(), nil)
				apply(t, r, fmt.Sprintf("row%07d", i), m)
				if i+1 == engine.DeletionsPerFlush {
					synctest.Wait()
				}
			}
			first(t, r, false)
		}},
		"long rows": {fill: func(t *testing.T, r *rig) {
			for i := range 10 {
				m := bigtable.NewMutation()
				for c := range 1000 {
					m.Set("f", fmt.Sprint(c), 1000, []byte("v"))
				}
				change(t, r, i, i+1, m)
			}
		}, do: func(t *testing.T, r *rig) { change(t, r, 0, rows, deleteRow()) }},
		"dropped": {do: func(t *testing.T, r *rig) {
			if err := r.admin.DropRowRange(r.ctx, tableID, "row"); err != nil {
				t.Fatal(err)
			}
		}},
		"overwritten": {do: func(t *testing.T, r *rig) {
			change(t, r, 1, rows, deleteRow())
			synctest.Wait()
			for range rows {
				apply(t, r, "row0000000", full)
			}
			first(t, r, false)
		}},
		"few, and read": {do: func(t *testing.T, r *rig) {
			change(t, r, 0, 500, deleteRow())
			first(t, r, false)
		}},
		"few, and tested": {do: func(t *testing.T, r *rig) {
			for range 500 {
				apply(t, r, "row0000000", full)
			}
			apply(t, r, "row0000000", bigtable.NewCondMutation(bigtable.PassAllFilter(), full, nil))
		}},
		"few among many, and read": {fill: func(t *testing.T, r *rig) {
			change(t, r, 0, 4*rows, full)
			if err := r.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			change(t, r, 0, rows, full)
		}, do: func(t *testing.T, r *rig) {
			change(t, r, 0, 500, deleteRow())
			first(t, r, false)
		}},
		"at the end": {do: func(t *testing.T, r *rig) {
			change(t, r, 1, rows, deleteRow())
			change(t, r, rows, rows+500, full)
			change(t, r, rows, rows+500, deleteRow())
			first(t, r, true)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, engine.Options{}, func(t *testing.T, r *rig) {
				r.create(t)
				if tt.fill == nil {
					change(t, r, 0, rows, full)
				} else {
					tt.fill(t, r)
				}
				apply(t, r, "sky", full) // sorts after all other rows
				tt.do(t, r)
				time.Sleep(10 * time.Second)
				for _, reversed := range []bool{false, true} {
					// Two live rows, and versions that the last writes replaced.
					if n := first(t, r, reversed); n > 10 {
						t.Errorf("a read of one row (reversed: %v) steps over %d points, want at most 10", reversed, n)
					}
				}
			})
		})
	}
}

// There is at most one cleanup in five seconds, with two flushes, however much is deleted and read.
func TestCleanupsAreRare(t *testing.T) {
	testkit.Plain(t)
	inBubble(t, engine.Options{MemTableBytes: 64 << 20}, func(t *testing.T, r *rig) {
		r.create(t)
		const seconds = 20
		for range seconds {
			change(t, r, 0, 1000, set("f", "q", 1000, "v"))
			change(t, r, 0, 1000, deleteRow())
			first(t, r, false)
			time.Sleep(time.Second)
		}
		if n := r.Flushes(); n < 3 || n > 2*(seconds/5+1) {
			t.Errorf("got %d flushes in %d seconds, want 3 to 10", n, seconds)
		}
	})
}
