package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// blobs returns a schema whose points can be of any size.
func blobs(t *testing.T) *tsdb.Schema[[]byte] {
	t.Helper()
	return must[*tsdb.Schema[[]byte]](t)(tsdb.Define("blobs", tsdb.Key("id"), codec.Bytes(), tsdb.SchemaOptions{}))
}

// TestFlushWaitsForWhatWasOffered: Flush also waits for points that are not synced yet, and returns after every
// callback has been called.
func TestFlushWaitsForWhatWasOffered(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	w := writer(t, store, journaled(t))
	in := s.For(store, acme).Via(w)
	var callbacks atomic.Int64
	for i := range 300 {
		n := 1 + i%5
		for k := range n {
			err := in.EnqueueFunc(t.Context(), roof, start.Add(time.Duration(10*i+k)*time.Second), reading{}, func(tsdb.Outcome) { callbacks.Add(1) })
			if err != nil {
				t.Fatal(err)
			}
		}
		before := callbacks.Load()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		err := w.Flush(ctx)
		cancel()
		if err != nil {
			t.Fatalf("Flush %d = %v", i, err)
		}
		if st := w.Stats(); callbacks.Swap(0) != int64(n) || st.Journal.Points != 0 {
			t.Fatalf("after Flush %d: %d of %d callbacks called, stats %+v", i, before, n, st)
		}
	}
}

// TestManyFlushAtOnce: parallel calls of Flush all return.
func TestManyFlushAtOnce(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	w := writer(t, store, journaled(t))
	in := s.For(store, acme).Via(w)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // enough for hundreds of slow syncs
	defer cancel()
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 150 {
				err := in.Enqueue(ctx, tsdb.NewEntity("berlin", fmt.Sprint(g)), start.Add(time.Duration(i)*time.Second), reading{})
				if err == nil {
					err = w.Flush(ctx)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestJournalNearlyFull: of several points at once, those that fit are accepted. TryEnqueue fails at once for the
// others.
func TestJournalNearlyFull(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := blobs(t)
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		opts := journaled(t)
		opts.Journal.MaxBytes = 16 << 20
		w := writer(t, store, opts)
		in := s.For(store, acme).Via(w)
		defer conn.Outage()()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		var waited, tried atomic.Int64
		for i := range 60 {
			all.Go(func() {
				begin, put := time.Now(), in.Enqueue
				if i%2 == 0 {
					put = in.TryEnqueue
				}
				err := put(ctx, tsdb.NewEntity("x"), start.Add(time.Duration(i)*time.Second), make([]byte, 600<<10))
				took := time.Since(begin)
				switch {
				case err == nil && i%2 == 0:
					tried.Add(1)
				case err == nil:
					waited.Add(1)
				case i%2 == 0 && (!errors.Is(err, tsdb.ErrBufferFull) || took > time.Second):
					t.Errorf("TryEnqueue = %v after %v", err, took)
				case i%2 != 0 && (!errors.Is(err, context.DeadlineExceeded) || took != time.Minute):
					t.Errorf("Put = %v after %v", err, took)
				}
			})
		}
		all.Wait()
		if n := waited.Load() + tried.Load(); n < 20 || n > 27 {
			t.Errorf("%d points of 600 KiB were accepted by a journal of 16 MiB", n)
		}
	})
}

// TestJournalHasRoomForSmallOnes: a point that does not fit into the journal does not block others once its caller has
// given up.
func TestJournalHasRoomForSmallOnes(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := blobs(t)
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		opts := journaled(t)
		opts.Journal.MaxBytes = 16 << 20
		w := writer(t, store, opts)
		in := s.For(store, acme).Via(w)
		defer conn.Outage()()
		put := func(ctx context.Context, i int, size int) error {
			return in.Enqueue(ctx, tsdb.NewEntity("x"), start.Add(time.Duration(i)*time.Second), make([]byte, size))
		}
		if err := put(t.Context(), 0, 9<<20); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		small := make(chan error, 1)
		go func() {
			time.Sleep(500 * time.Millisecond)
			small <- put(t.Context(), 2, 1000)
		}()
		if err := put(ctx, 1, 9<<20); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, tsdb.ErrRejected) {
			t.Errorf("a large point without room: %v", err)
		}
		begin := time.Now()
		if err := <-small; err != nil || time.Since(begin) > time.Second {
			t.Errorf("a small point with room: %v after %v", err, time.Since(begin))
		}
	})
}

// TestJournalThatFails: if the disk fails, every call returns an error and none waits for ever. Points in memory are
// still delivered.
func TestJournalThatFails(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	opts := journaled(t)
	opts.BufferPoints = 10
	w := must[*tsdb.Writer](t)(store.NewWriter(opts))
	in := s.For(store, acme).Via(w)
	end := conn.Outage()
	for i := range 50 {
		if err := in.Enqueue(t.Context(), roof, start.Add(time.Duration(i)*time.Second), reading{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(opts.Journal.Dir, "journal.db"), 0); err != nil {
		t.Fatal(err)
	}
	end()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := w.Flush(ctx); !errors.Is(err, tsdb.ErrDamaged) {
		t.Errorf("Flush = %v", err)
	}
	if err := in.Enqueue(ctx, roof, start, reading{}); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Put = %v", err)
	}
	if err := in.TryEnqueue(ctx, roof, start, reading{}); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("TryEnqueue = %v", err)
	}
	if err := w.Close(ctx); !errors.Is(err, tsdb.ErrUndelivered) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close = %v", err)
	}
}

// TestImpatientClose: a Close whose context ends also ends a Close without a deadline and a waiting Flush.
func TestImpatientClose(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		opts := journaled(t)
		opts.BufferPoints = 3
		w := writer(t, store, opts)
		defer conn.Outage()()
		for i := range 10 {
			if err := s.For(store, acme).Via(w).Enqueue(t.Context(), roof, start.Add(time.Duration(i)*time.Second), reading{}); err != nil {
				t.Fatal(err)
			}
		}
		flushed, closed := make(chan error), make(chan error)
		go func() { flushed <- w.Flush(context.Background()) }()
		go func() { closed <- w.Close(context.Background()) }()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if err := w.Close(ctx); !errors.Is(err, tsdb.ErrUndelivered) {
			t.Errorf("the second Close = %v", err)
		}
		if err := <-closed; !errors.Is(err, tsdb.ErrUndelivered) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the first Close = %v", err)
		}
		if err := <-flushed; !errors.Is(err, buffer.ErrClosed) {
			t.Errorf("Flush = %v", err)
		}
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("the calls took %v", took)
		}
		if err := w.Flush(t.Context()); !errors.Is(err, buffer.ErrClosed) {
			t.Errorf("Flush after Close = %v", err)
		}
	})
}

// TestCloseDoesNotWaitForFunctions: a hanging callback does not block a Close whose context has ended.
func TestCloseDoesNotWaitForFunctions(t *testing.T) {
	for _, which := range []string{"callbacks", "OnFailure"} {
		t.Run(which, func(t *testing.T) {
			longBubble(t, func(t *testing.T) {
				s := readings(t, tsdb.SchemaOptions{})
				store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
				conn.Inject(tsdbtest.FailEntries(codes.InvalidArgument, func(string) bool { return true }))
				hang := make(chan struct{})
				opts := journaled(t)
				callbacks := func(tsdb.Outcome) {}
				if which == "callbacks" {
					callbacks = func(tsdb.Outcome) { <-hang }
				} else {
					opts.OnFailure = func(tsdb.Undelivered) { <-hang }
				}
				w := must[*tsdb.Writer](t)(store.NewWriter(opts))
				if err := s.For(store, acme).Via(w).EnqueueFunc(t.Context(), roof, start, reading{}, callbacks); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				begin := time.Now()
				if err := w.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Close = %v", err)
				}
				if took := time.Since(begin); took > 3*time.Second {
					t.Errorf("Close took %v", took)
				}
				close(hang)
			})
		})
	}
}

// TestStoreClosedBeforeItsWriter: with a journal, points are kept; without one, they are rejected. Close returns.
func TestStoreClosedBeforeItsWriter(t *testing.T) {
	for _, journal := range []bool{true, false} {
		t.Run(fmt.Sprintf("journal=%v", journal), func(t *testing.T) {
			s := readings(t, tsdb.SchemaOptions{})
			store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
			opts := tsdb.WriterOptions{}
			if journal {
				opts = journaled(t)
			}
			w := must[*tsdb.Writer](t)(store.NewWriter(opts))
			defer conn.Outage()()
			if err := s.For(store, acme).Via(w).Enqueue(t.Context(), roof, start, reading{}); err != nil {
				t.Fatal(err)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			err := w.Close(ctx)
			var ue *tsdb.UndeliveredError
			if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, tsdb.ErrUndelivered) != journal || errors.As(err, &ue) == journal {
				t.Errorf("Close = %v", err)
			}
		})
	}
}

// TestWriterOverAnUnguardedClient: without the interceptors the writer still waits during an outage. A refused point is
// unknown, because the client may have sent it before; it is not sent for ever.
func TestWriterOverAnUnguardedClient(t *testing.T) {
	for _, journal := range []bool{true, false} {
		t.Run(fmt.Sprintf("journal=%v", journal), func(t *testing.T) {
			longBubble(t, func(t *testing.T) {
				s := readings(t, tsdb.SchemaOptions{})
				_, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
				client, _ := tsdbtest.Clients(t, conn)
				store := must[*tsdb.Store](t)(tsdb.New(client, tsdbtest.Table, tsdb.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: 5 * time.Second}}}))
				t.Cleanup(func() { _ = store.Close() }) // ends the background reads
				opts := tsdb.WriterOptions{}
				if journal {
					opts = journaled(t)
				}
				failed := make(chan tsdb.Undelivered, 10)
				opts.OnFailure = func(u tsdb.Undelivered) { failed <- u }
				w := writer(t, store, opts)
				in := s.For(store, acme).Via(w)
				end := conn.Outage()
				if err := in.Enqueue(t.Context(), roof, start, reading{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				end()
				if err := w.Flush(t.Context()); err != nil || len(rows(t, table)) != 1 {
					t.Errorf("after an outage of a minute: %v, %d rows", err, len(rows(t, table)))
				}
				conn.Inject(tsdbtest.FailEntries(codes.InvalidArgument, func(key string) bool { return strings.Contains(key, "poison") }))
				if err := in.Enqueue(t.Context(), tsdb.NewEntity("berlin", "poison"), start, reading{}); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := w.Flush(ctx); err != nil {
					t.Fatalf("Flush = %v", err)
				}
				if len(failed) != 1 {
					t.Fatalf("%d points failed", len(failed))
				}
				if u := <-failed; u.Outcome.State != tsdb.Unknown || !errors.Is(u.Outcome.Err, bt.ErrUnguarded) {
					t.Errorf("undelivered %+v", u)
				}
			})
		})
	}
}

// TestManySchemasInOneJournal: new schemas describe one dataset differently, continuously and in parallel.
func TestManySchemasInOneJournal(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	opts := journaled(t)
	w := must[*tsdb.Writer](t)(store.NewWriter(opts))
	end := conn.Outage()
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 30 {
				var o tsdb.SchemaOptions
				switch i % 3 {
				case 1:
					o.FirstWins = true
				case 2:
					o.Precision = tsdb.Microseconds
				}
				in := readings(t, o).For(store, acme).Via(w)
				if err := in.Enqueue(t.Context(), tsdb.NewEntity("berlin", fmt.Sprint(g)), start.Add(time.Duration(i)*time.Second), reading{float64(i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Close(ctx); !errors.Is(err, tsdb.ErrUndelivered) {
		t.Errorf("Close = %v", err)
	}
	end()
	w = writer(t, store, opts)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for g := range 8 {
		e := tsdb.NewEntity("berlin", fmt.Sprint(g))
		for i := range 30 {
			if i%3 == 2 {
				continue // another precision means another row
			}
			if p, err := s.For(store, acme).Get(t.Context(), e, start.Add(time.Duration(i)*time.Second)); err != nil || p.Value.TempC != float64(i) {
				t.Errorf("%d, %d: %v, %v", g, i, p.Value, err)
			}
		}
	}
}

// TestCloseThatHasNothingToKeep: if everything is delivered, Close returns nil, even if its context has ended. A
// program that treats any other error than ErrUndelivered as a loss would raise a false alarm.
func TestCloseThatHasNothingToKeep(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	opts := journaled(t)
	for i := range 5 {
		w := writer(t, store, opts)
		if i > 0 {
			if err := s.For(store, acme).Via(w).Enqueue(t.Context(), roof, start.Add(time.Duration(i)*time.Second), reading{1}); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(over); err != nil {
			t.Errorf("round %d: Close with nothing left = %v, want nil", i, err)
		}
	}
}

// TestJournalOfAClosedWriter: each call about the journal of a closed writer fails with ErrClosed.
func TestJournalOfAClosedWriter(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	w := writer(t, store, journaled(t))
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"DeadLetters": func() (failed error) {
			for _, failed = range w.DeadLetters(t.Context()) {
			}
			return failed
		},
		"RetryDeadLetters": func() error { _, err := w.RetryDeadLetters(t.Context(), 1); return err },
		"DropDeadLetters":  func() error { _, err := w.DropDeadLetters(t.Context(), 1); return err },
		"ScrubJournal":     func() error { return w.ScrubJournal(t.Context()) },
	} {
		if err := call(); !errors.Is(err, tsdb.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
}
