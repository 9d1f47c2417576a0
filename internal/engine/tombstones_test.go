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

// inBubble runs a test on an engine in a bubble, where time passes only while everything waits.
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

// change applies one mutation to each of the rows from one number to another.
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

// first reads the first row of the table and returns how many of the storage's points that took.
func first(t *testing.T, r *rig, reversed bool) uint64 {
	t.Helper()
	n, err := r.PointsRead(r.ctx, &bigtablepb.ReadRowsRequest{TableName: fullName, RowsLimit: 1, Reversed: reversed})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Ten seconds after many rows were deleted, or overwritten, a read of what stays costs as much as it did before: nothing of
// what is gone is stepped over, whether it was in memory or in table files.
func TestReadsForgetWhatIsGone(t *testing.T) {
	testkit.Plain(t)
	const rows = 1500
	full := set("f", "q", 1000, "v")
	for name, tt := range map[string]struct {
		fill, do func(t *testing.T, r *rig)
	}{
		"rows": {do: func(t *testing.T, r *rig) { change(t, r, 0, rows, deleteRow()) }},
		"rows one by one": {do: func(t *testing.T, r *rig) {
			for i := range rows {
				apply(t, r, fmt.Sprintf("row%07d", i), deleteRow())
			}
			first(t, r, false) // finds those after the last flush: they are too few for one
		}},
		"rows in table files": {fill: func(t *testing.T, r *rig) {
			change(t, r, 0, rows, full)
			if err := r.Flush(); err != nil {
				t.Fatal(err)
			}
		}, do: func(t *testing.T, r *rig) { change(t, r, 0, rows, deleteRow()) }},
		"conditionally": {do: func(t *testing.T, r *rig) {
			for i := range rows {
				m := bigtable.NewCondMutation(bigtable.PassAllFilter(), deleteRow(), nil)
				apply(t, r, fmt.Sprintf("row%07d", i), m)
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
			if err := r.Flush(); err != nil {
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
				apply(t, r, "sky", full) // after all others
				tt.do(t, r)
				time.Sleep(10 * time.Second)
				for _, reversed := range []bool{false, true} {
					// Two live rows, and versions that the last writes left.
					if n := first(t, r, reversed); n > 10 {
						t.Errorf("a read of one row (reversed: %v) steps over %d points", reversed, n)
					}
				}
			})
		})
	}
}

// However much is deleted and read, there is at most one cleanup in five seconds, with two flushes.
func TestCleanupsRest(t *testing.T) {
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
			t.Errorf("%d flushes in %d seconds", n, seconds)
		}
	})
}
