package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// journaled returns options of a writer with a journal in a temporary folder.
func journaled(t *testing.T) tsdb.WriterOptions {
	t.Helper()
	return tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: filepath.Join(t.TempDir(), "journal")}}
}

func letters(t *testing.T, w *tsdb.Writer) (out []tsdb.DeadLetter) {
	t.Helper()
	for l, err := range w.DeadLetters(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

// TestJournalUnderEveryFault: after temporary faults, each acknowledged point is either stored or, if the service
// rejected it, a dead letter; never both, never neither.
func TestJournalUnderEveryFault(t *testing.T) {
	parallelIfSlow(t)
	for _, first := range []bool{false, true} {
		t.Run(fmt.Sprintf("first=%v", first), func(t *testing.T) {
			parallelIfSlow(t)
			bubble(t, func(t *testing.T) {
				s := readings(t, tsdb.SchemaOptions{FirstWins: first})
				store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: faultTimeout() / 2}}}, s)
				kinds, method := bulkFaults, tsdbtest.MutateRows
				if first {
					kinds, method = faults, tsdbtest.CheckAndMutateRow
				}
				w := writer(t, store, journaled(t))
				for i, f := range kinds {
					at := start.Add(time.Duration(i) * time.Second)
					pts := make([]tsdb.Point[reading], 5)
					for n := range pts {
						pts[n] = tsdb.Point[reading]{Entity: tsdb.NewEntity("berlin", fmt.Sprintf("d%d", n)), Time: at, Value: reading{float64(n)}}
					}
					inject(conn, method, f.fault)
					outcomes, err := s.For(store, acme).Via(w).EnqueueMany(t.Context(), pts)
					if err != nil || slices.ContainsFunc(outcomes, func(o tsdb.Outcome) bool { return o.State != tsdb.Journaled }) {
						t.Fatalf("%s: PutMany = %v, %v", f.name, outcomes, err)
					}
					time.Sleep(faultTimeout() / 4)
					conn.Clear()
					if err := w.Flush(t.Context()); err != nil {
						t.Fatalf("%s: %v", f.name, err)
					}
					there := rows(t, table)
					for n := range pts {
						key := fmt.Sprintf("acme#readings#berlin#d%d#%019d", n, (1<<63-1)-at.UnixNano())
						buried := slices.ContainsFunc(letters(t, w), func(l tsdb.DeadLetter) bool {
							return l.Entity == pts[n].Entity && l.Time.Equal(at) && l.Tenant == acme && l.Dataset == "readings"
						})
						// If the service refuses a whole call for lack of rights, the writer waits as in an outage.
						// Only the rejection of a row makes a dead letter.
						if buried || there[key] == nil {
							t.Errorf("%s, point %d: stored %v, dead letter %v; want stored and no dead letter", f.name, n, there[key] != nil, buried)
						}
					}
				}
				if st := w.Stats().Journal; st.Points != 0 {
					t.Errorf("the journal still holds %+v", st)
				}
			})
		})
	}
}

// TestJournalThroughAnOutage: the service is away for an hour, the producer continues, and the buffer is far smaller
// than the input. Memory stays bounded, no acknowledged point is missing, and points are sent in order.
func TestJournalThroughAnOutage(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
		opts := journaled(t)
		opts.BufferPoints = 200
		w := writer(t, store, opts)
		in := s.For(store, acme).Via(w)
		end := conn.Outage()
		const n = 720
		for i := range n {
			if err := in.Enqueue(t.Context(), roof, start.Add(time.Duration(i)*time.Second), reading{float64(i)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			if st := w.Stats(); st.BufferedPoints > opts.BufferPoints || st.Journal.Points != i+1 {
				t.Fatalf("after %d points: %+v", i+1, st)
			}
		}
		end()
		begin := time.Now()
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("delivery of all points took %v", took)
		}
		if there := len(rows(t, table)); there != n {
			t.Errorf("%d of %d points are stored", there, n)
		}
		if calls := conn.Counts().Calls[tsdbtest.MutateRows]; calls > 2200 {
			t.Errorf("%d requests, want at most 2200", calls)
		}
	})
}

// TestJournalIsDeliveredByTheNextWriter: the next writer, which does not know the schema, delivers the points in order.
func TestJournalIsDeliveredByTheNextWriter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Salts: 4, Retention: d90})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		opts := journaled(t)
		w := must[*tsdb.Writer](t)(store.NewWriter(opts))
		if _, err := store.NewWriter(opts); !errors.Is(err, tsdb.ErrLocked) {
			t.Errorf("a second writer on the same journal: %v, want ErrJournalLocked", err)
		}
		end := conn.Outage()
		now := time.Now()
		for i := range 10 {
			if err := s.For(store, acme).Via(w).Enqueue(t.Context(), roof, now.Add(time.Duration(i%2)*time.Second), reading{float64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		stream := w.Stats().Journal.Stream
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := w.Close(ctx); !errors.Is(err, tsdb.ErrUndelivered) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close with points left = %v, want ErrUndelivered", err)
		}
		if err := w.Close(t.Context()); !errors.Is(err, tsdb.ErrUndelivered) {
			t.Errorf("a second Close = %v", err)
		}
		end()
		w = writer(t, store, opts)
		if st := w.Stats().Journal; st.Points != 10 || st.Stream != stream || len(stream) != 32 {
			t.Errorf("the next writer finds stats %+v of stream %s", st, stream)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Errorf("Close with nothing left = %v, want nil", err)
		}
		for i, want := range []float64{8, 9} {
			if p, err := s.For(store, acme).Get(t.Context(), roof, now.Add(time.Duration(i)*time.Second)); err != nil || p.Value.TempC != want {
				t.Errorf("Latest = %v, %v; want %v", p.Value, err, want)
			}
		}
	})
}

// TestDeadLetters: points that the service rejects are kept as dead letters, which can be read and delivered later.
func TestDeadLetters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		opts := journaled(t)
		failed := make(chan tsdb.Undelivered, 10)
		opts.OnFailure = func(u tsdb.Undelivered) { failed <- u }
		w := writer(t, store, opts)
		in := s.For(store, acme).Via(w)
		conn.Inject(tsdbtest.FailEntries(codes.InvalidArgument, func(key string) bool { return strings.Contains(key, "poison") }))
		for _, d := range []string{"good", "poison1", "poison2"} {
			if err := in.Enqueue(t.Context(), tsdb.NewEntity("berlin", d), start, reading{7}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		dead := letters(t, w)
		if len(dead) != 2 || len(failed) != 2 {
			t.Fatalf("%d dead letters, OnFailure got %d", len(dead), len(failed))
		}
		for i, l := range dead {
			want := tsdb.NewEntity("berlin", fmt.Sprintf("poison%d", i+1))
			if l.Tenant != acme || l.Dataset != "readings" || l.Entity != want || !l.Time.Equal(start) ||
				string(l.Payload) != `{"temp_c":7}` || l.Attempts != 1 || !strings.Contains(l.Reason, "InvalidArgument") {
				t.Errorf("dead letter %+v", l)
			}
		}
		if err := w.Close(t.Context()); err != nil {
			t.Errorf("Close with dead letters: %v, want nil", err)
		}

		conn.Clear()
		w = writer(t, store, opts)
		if n, err := w.DropDeadLetters(t.Context(), dead[0].ID, 999); n != 1 || err != nil {
			t.Errorf("DropDeadLetters = %d, %v", n, err)
		}
		if n, err := w.RetryDeadLetters(t.Context(), dead[0].ID, dead[1].ID); n != 1 || err != nil {
			t.Errorf("RetryDeadLetters = %d, %v", n, err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := letters(t, w); len(left) != 0 {
			t.Errorf("dead letters left: %+v", left)
		}
		for d, want := range map[string]error{"good": nil, "poison1": tsdb.ErrNotFound, "poison2": nil} {
			if _, err := s.For(store, acme).Latest(t.Context(), tsdb.NewEntity("berlin", d)); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", d, err, want)
			}
		}
	})
}

// TestJournalPushesBack: a full journal accepts nothing more. TryEnqueue fails at once, Enqueue waits, and both work
// again when the service is back.
func TestJournalPushesBack(t *testing.T) {
	parallelIfSlow(t)
	bubble(t, func(t *testing.T) {
		s, err := tsdb.Define("blobs", tsdb.Key("id"), codec.Bytes(), tsdb.SchemaOptions{})
		if err != nil {
			t.Fatal(err)
		}
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
		opts := journaled(t)
		opts.Journal.MaxBytes = 16 << 20
		w := writer(t, store, opts)
		in := s.For(store, acme).Via(w)
		end := conn.Outage()
		taken := 0
		put := func(ctx context.Context, put func(context.Context, tsdb.Entity, time.Time, []byte) error) error {
			return put(ctx, tsdb.NewEntity("x"), start.Add(time.Duration(taken)*time.Second), make([]byte, 1<<20))
		}
		for err = put(t.Context(), in.TryEnqueue); err == nil; err = put(t.Context(), in.TryEnqueue) {
			taken++
		}
		if !errors.Is(err, tsdb.ErrBufferFull) || taken < 10 || taken > 16 {
			t.Errorf("after %d points of 1 MiB: %v", taken, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), faultTimeout())
		defer cancel()
		if err := put(ctx, in.Enqueue); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, tsdb.ErrRejected) {
			t.Errorf("Enqueue without room = %v", err)
		}
		if err := in.TryEnqueue(t.Context(), tsdb.NewEntity("x"), start.Add(-time.Second), make([]byte, 1<<20)); !errors.Is(err, tsdb.ErrBufferFull) {
			t.Errorf("TryEnqueue without room = %v, want ErrBufferFull", err)
		}
		waiting := make(chan error, 1)
		go func() { waiting <- put(t.Context(), in.Enqueue) }()
		end()
		if err := <-waiting; err != nil {
			t.Errorf("Enqueue with room again: %v", err)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(rows(t, table)); n != taken+1 {
			t.Errorf("%d of %d points are stored", n, taken+1)
		}
	})
}

// TestJournalIsFair: a tenant that floods, and whose points fill the disk, does not delay the delivery of another
// tenant.
func TestJournalIsFair(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		conn.Inject(tsdbtest.Delay(20 * time.Millisecond))
		opts := journaled(t)
		opts.BufferPoints, opts.BatchPoints, opts.InFlight = 100, 10, 2
		w := writer(t, store, opts)
		pts := make([]tsdb.Point[reading], 20_000/testkit.Stride(3))
		for i := range pts {
			pts[i] = tsdb.Point[reading]{Entity: roof, Time: start.Add(time.Duration(i) * time.Second)}
		}
		if _, err := s.For(store, acme).Via(w).EnqueueMany(t.Context(), pts); err != nil {
			t.Fatal(err)
		}
		quiet := s.For(store, tenant.MustParse("quiet"))
		for i := range 100 / testkit.Stride(3) {
			at := start.Add(time.Duration(i) * time.Second)
			if err := quiet.Via(w).Enqueue(t.Context(), roof, at, reading{1}); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			for {
				if p, err := quiet.Latest(t.Context(), roof); err == nil && p.Time.Equal(at) {
					break
				}
				if time.Since(begin) > time.Second {
					t.Fatalf("point %d is not stored after %v, with %d in the journal", i, time.Since(begin), w.Stats().Journal.Points)
				}
				time.Sleep(time.Millisecond)
			}
		}
		if left := w.Stats().Journal.Points; left < 10_000/testkit.Stride(3) {
			t.Errorf("only %d points of the flood are left, so the test proves nothing", left)
		}
	})
}

// TestJournalDeliversWhatPilesUp: points of several tenants arrive faster than they are delivered, so most are read
// back from disk. Each is delivered; of several writes of one point, the last one.
func TestJournalDeliversWhatPilesUp(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	opts := journaled(t)
	opts.BufferPoints = 500
	w := writer(t, store, opts)
	const n = 4000
	var producers sync.WaitGroup
	tenants := []tenant.ID{acme, tenant.MustParse("beta"), tenant.MustParse("gamma")}
	for _, id := range tenants {
		producers.Go(func() {
			in := s.For(store, id).Via(w)
			for i := range n {
				at := start.Add(time.Duration(i) * time.Microsecond)
				if i%10 == 0 {
					at = start.Add(-time.Second)
				}
				if err := in.EnqueueFunc(t.Context(), roof, at, reading{float64(i)}, func(o tsdb.Outcome) {
					if o.State != tsdb.Journaled {
						t.Errorf("%+v", o)
					}
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	producers.Wait()
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := w.Stats(); st.Journal.Points != 0 || st.Stored != 3*n {
		t.Errorf("%+v", st)
	}
	if got, want := len(rows(t, table)), 3*(n-n/10+1); got != want {
		t.Errorf("%d of %d points are stored", got, want)
	}
	for _, id := range tenants {
		if p, err := s.For(store, id).Get(t.Context(), roof, start.Add(-time.Second)); err != nil || p.Value.TempC != n-10 {
			t.Errorf("the overwritten point is %v, %v; want %d", p.Value, err, n-10)
		}
	}
}

func TestJournalOptionsAreChecked(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string]tsdb.JournalOptions{
		"too small": {Dir: t.TempDir(), MaxBytes: 1}, "no folder": {MaxBytes: 1 << 30},
	} {
		if _, err := store.NewWriter(tsdb.WriterOptions{Journal: opts}); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	if _, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: file}}); err == nil {
		t.Error("a file was accepted as the journal's folder")
	}
	w := writer(t, store, tsdb.WriterOptions{})
	if _, err := w.RetryDeadLetters(t.Context(), 1); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("RetryDeadLetters without a journal: %v, want ErrInvalid", err)
	}
	if _, err := w.DropDeadLetters(t.Context(), 1); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("DropDeadLetters without a journal: %v, want ErrInvalid", err)
	}
	for _, err := range w.DeadLetters(t.Context()) {
		if !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("DeadLetters without a journal: %v, want ErrInvalid", err)
		}
	}
}
