package tsdb_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestPutIfAbsentHasOneWinnerThroughAProxy: a proxy sends each call twice and returns the second response. One of
// several callers with different payloads still wins, and its payload is the stored one.
func TestPutIfAbsentHasOneWinnerThroughAProxy(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"plain": {}, "first wins": {FirstWins: true}, "head": {Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 50}},
		"head only": {Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 50, Only: true}},
	} {
		t.Run(name, func(t *testing.T) {
			s := readings(t, opts)
			store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
			repo := s.For(store, acme)
			conn.Inject(tsdbtest.Repeat().On(tsdbtest.CheckAndMutateRow))
			for i := range 20 {
				at := start.Add(time.Duration(i) * time.Second)
				var callers sync.WaitGroup
				var winner, winners atomic.Int64
				for v := range 4 {
					callers.Go(func() {
						stored, err := repo.PutIfAbsent(t.Context(), roof, at, reading{float64(v + 1)})
						if err != nil {
							t.Error(err)
						}
						if stored {
							winner.Store(int64(v + 1))
							winners.Add(1)
						}
					})
				}
				callers.Wait()
				p := must[tsdb.Point[reading]](t)(repo.Get(t.Context(), roof, at))
				if winners.Load() != 1 || p.Value.TempC != float64(winner.Load()) {
					t.Errorf("%d winners, the last is caller %d; stored is %v; want one winner, whose value is stored", winners.Load(), winner.Load(), p.Value)
				}
				if again, err := repo.PutIfAbsent(t.Context(), roof, at, p.Value); again || err != nil {
					t.Errorf("a later call with the stored payload = %v, %v; want false", again, err)
				}
			}
		})
	}
}

// TestMergeIsNotRejectedWhereItIsStored: a proxy sends a merge twice, and the row cannot be read afterwards, or only
// later. A stored merge is then never reported as rejected.
func TestMergeIsNotRejectedWhereItIsStored(t *testing.T) {
	for name, tt := range map[string]struct {
		reads tsdbtest.Fault
		want  tsdb.State
	}{
		"read":               {tsdbtest.Fault{}, tsdb.Stored},
		"read fails once":    {tsdbtest.Fail(codes.Internal).On(tsdbtest.ReadRows).Times(1), tsdb.Unknown},
		"no right to read":   {tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.ReadRows), tsdb.Unknown},
		"reads never answer": {tsdbtest.Delay(time.Hour).On(tsdbtest.ReadRows), tsdb.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			longBubble(t, func(t *testing.T) {
				s := merging(t, tsdb.SchemaOptions{})
				store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: time.Minute, Read: 10 * time.Second}}}, s)
				repo := s.For(store, acme)
				if err := repo.Put(t.Context(), roof, start.Add(time.Second), rec("b", 2)); err != nil {
					t.Fatal(err)
				}
				for i := range 2 {
					at := start.Add(time.Duration(i) * time.Second) // nothing is stored at first, and then a record to merge into
					if i == 1 && name != "read" {
						continue // the row is read before the repeated write
					}
					conn.Inject(tsdbtest.Repeat().On(tsdbtest.CheckAndMutateRow))
					conn.Inject(tt.reads)
					err := repo.Put(t.Context(), roof, at, rec("a", 1))
					conn.Clear()
					if got := state(t, err); got != tt.want {
						t.Errorf("write %d is %v (%v), want %v", i, got, err, tt.want)
					}
					if p, err := repo.Get(t.Context(), roof, at); err != nil || !strings.Contains(p.Value.String(), "a=1i") {
						t.Errorf("write %d: stored is %v, %v", i, p.Value, err)
					}
				}
			})
		})
	}
}

// TestRepeatedMergeThroughAWriter: a writer, which reads the row once for each attempt, also does not report a stored
// merge as rejected.
func TestRepeatedMergeThroughAWriter(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := merging(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		w := writer(t, store, tsdb.WriterOptions{DeliveryTimeout: time.Minute})
		conn.Inject(tsdbtest.Repeat().On(tsdbtest.CheckAndMutateRow))
		conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.ReadRows))
		got := make(chan tsdb.Outcome, 1)
		if err := s.For(store, acme).Via(w).EnqueueFunc(t.Context(), roof, start, rec("a", 1), func(o tsdb.Outcome) { got <- o }); err != nil {
			t.Fatal(err)
		}
		if o := <-got; o.State != tsdb.Unknown || errors.Is(o.Err, tsdb.ErrRejected) {
			t.Errorf("the outcome of a stored write that cannot be read is %v: %v", o.State, o.Err)
		}
	})
}
