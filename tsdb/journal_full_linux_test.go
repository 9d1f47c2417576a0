package tsdb_test

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestBatchOnAFullDisk: points of a batch reach the disk in several groups. On a full disk a group that needs more room
// is rejected, and a later one that needs less is accepted: each point has its own outcome. What was rejected is not
// stored later.
func TestBatchOnAFullDisk(t *testing.T) {
	if overTCP() {
		t.Skip("the disk is the same")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m,mode=700"); err != nil {
		t.Skipf("cannot mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	s := blobs(t)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	w := must[*tsdb.Writer](t)(store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: dir}}))
	end := conn.Outage() // nothing leaves the journal
	e := tsdb.NewEntity("a")
	points, large := make([]tsdb.Point[[]byte], 20), make([]byte, 4<<20) // as large as the disk
	for i := range points {
		points[i] = tsdb.Point[[]byte]{Entity: e, Time: start.Add(time.Duration(i) * time.Second), Value: []byte("last")}
		if i < len(points)-1 {
			points[i].Value = large
		}
	}
	outcomes, err := repo.Via(w).EnqueueMany(t.Context(), points)
	var want []time.Time
	rejected := 0
	for i, o := range outcomes {
		switch {
		case o.State == tsdb.Journaled:
			want = append(want, points[i].Time)
		case o.State == tsdb.Rejected && errors.Is(o.Err, syscall.ENOSPC):
			rejected++
		default:
			t.Errorf("point %d is %v, %v", i, o.State, o.Err)
		}
	}
	if rejected != 19 || outcomes[19].State != tsdb.Journaled {
		t.Errorf("%d points before the last one are rejected, and the last one is %v, %v", rejected, outcomes[19].State, outcomes[19].Err)
	}
	if bad, ok := errors.AsType[*tsdb.BatchError](err); !ok || len(bad.Failed) != rejected {
		t.Errorf("%v, want an error of the %d points that were rejected", err, rejected)
	}
	end()
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []time.Time
	for p, err := range repo.Range(t.Context(), e, tsdb.AllTime(), tsdb.OldestFirst) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p.Time)
	}
	if !slices.EqualFunc(got, want, time.Time.Equal) {
		t.Errorf("%d points are stored, want the %d that the journal has accepted:\n%v\n%v", len(got), len(want), got, want)
	}
}
