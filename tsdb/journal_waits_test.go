package tsdb_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// ofRow are the codes with which the service rejects a row for its content.
var ofRow = map[codes.Code]bool{codes.InvalidArgument: true, codes.OutOfRange: true}

// TestJournalWaitsForAllButTheRow: whatever the service returns for a while, for calls or single rows, only a rejection
// of a row's content makes a dead letter. An operator can fix everything else.
func TestJournalWaitsForAllButTheRow(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		for name, tt := range map[string]struct {
			opts  tsdb.SchemaOptions
			fault tsdbtest.Fault
		}{
			"calls":             {tsdb.SchemaOptions{}, tsdbtest.Fail(code).On(tsdbtest.MutateRows)},
			"rows":              {tsdb.SchemaOptions{}, tsdbtest.FailEntries(code, func(string) bool { return true })},
			"some rows":         {tsdb.SchemaOptions{}, tsdbtest.FailEntries(code, func(key string) bool { return strings.Contains(key, "d1") })},
			"conditional calls": {tsdb.SchemaOptions{FirstWins: true}, tsdbtest.Fail(code).On(tsdbtest.CheckAndMutateRow)},
			"reads of a merge":  {tsdb.SchemaOptions{Merge: true}, tsdbtest.Fail(code).On(tsdbtest.ReadRows)},
		} {
			t.Run(fmt.Sprintf("%s/%v", name, code), func(t *testing.T) {
				testkit.OneOf(t, code == codes.InvalidArgument || code == codes.Unavailable)
				longBubble(t, func(t *testing.T) { waits(t, tt.opts, tt.fault, !ofRow[code]) })
			})
		}
	}
}

func waits(t *testing.T, opts tsdb.SchemaOptions, fault tsdbtest.Fault, all bool) {
	const n = 20
	var put func(e tsdb.Entity) error
	var store *tsdb.Store
	var conn *tsdbtest.Conn
	var w *tsdb.Writer
	if opts.Merge {
		s := merging(t, opts)
		store, conn = tsdbtest.Open(t, tsdbtest.Options{}, s)
		w = writer(t, store, journaled(t))
		put = func(e tsdb.Entity) error {
			if err := s.For(store, acme).Put(t.Context(), e, start, rec("b", 2)); err != nil {
				return err
			}
			return s.For(store, acme).Via(w).Enqueue(t.Context(), e, start, rec("a", 1))
		}
	} else {
		s := readings(t, opts)
		store, conn = tsdbtest.Open(t, tsdbtest.Options{}, s)
		w = writer(t, store, journaled(t))
		put = func(e tsdb.Entity) error { return s.For(store, acme).Via(w).Enqueue(t.Context(), e, start, reading{1}) }
		conn.Inject(fault)
	}
	for i := range n {
		if err := put(tsdb.NewEntity("berlin", fmt.Sprint("d", i))); err != nil {
			t.Fatal(err)
		}
		if opts.Merge && i == 0 {
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			conn.Inject(fault)
		}
	}
	time.Sleep(30 * time.Second)
	conn.Clear()
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if dead := letters(t, w); all && len(dead) > 0 {
		t.Errorf("%d of %d points are dead letters: %s", len(dead), n, dead[0].Reason)
	} else if !all && len(dead) == 0 {
		t.Errorf("no dead letters, want some")
	}
	if st := w.Stats(); st.Journal.Points != 0 || int(st.Stored)+st.Journal.DeadLetters != n {
		t.Errorf("journal stats %+v", st)
	}
}

// TestJournalWaitsForAFamily: the column family of a class that is deployed before its Ensure does not exist yet. Its
// points wait, while points of other tenants in an existing class are stored.
func TestJournalWaitsForAFamily(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		old, other := readings(t, tsdb.SchemaOptions{Retention: d90}), tenant.MustParse("other")
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, old)
		s := readings(t, tsdb.SchemaOptions{Retention: gc.Class{Name: "d7", Policy: gc.MaxAge(7 * 24 * time.Hour)}, FormerClasses: []gc.Class{d90}})
		w := writer(t, store, journaled(t))
		now := time.Now()
		for i := range 20 {
			e := tsdb.NewEntity("berlin", fmt.Sprint("d", i))
			if err := s.For(store, acme).Via(w).Enqueue(t.Context(), e, now, reading{1}); err != nil {
				t.Fatal(err)
			}
			if err := old.For(store, other).Via(w).Enqueue(t.Context(), e, now, reading{1}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if st := w.Stats(); st.Stored != 20 || st.Journal.Points != 20 || st.Journal.DeadLetters != 0 || st.Down != nil {
			t.Errorf("stats without the family: %+v", st)
		}
		if err := store.Ensure(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st := w.Stats(); st.Stored != 40 || len(letters(t, w)) != 0 {
			t.Errorf("stats with the family: %+v", st)
		}
	})
}
