package tsdb_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/diskerr"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/internal/proof/faultdisk"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// openOn returns a store on a simulated disk, and a function that crashes it: only synced data remains. With network,
// calls use gRPC, so that they end with their contexts even while the engine waits for the disk.
func openOn(t *testing.T, disk vfs.FS, network bool, datasets ...tsdb.Dataset) *tsdb.Store {
	t.Helper()
	server := must[*local.Server](t)(local.Open(engine.Options{FS: disk, GCInterval: -1}))
	t.Cleanup(func() { _ = server.Close() }) // reports a failure of the disk
	conn := must[*grpc.ClientConn](t)(server.Dial(tsdb.DialOptions()...))
	if network {
		_ = conn.Close()
		lis := bufconn.Listen(1 << 20)
		srv := grpc.NewServer()
		server.Register(srv)
		go func() { _ = srv.Serve(lis) }()
		t.Cleanup(srv.Stop)
		conn = must[*grpc.ClientConn](t)(grpc.NewClient("passthrough:///disk", append(tsdb.DialOptions(),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))...))
	}
	client, admin, err := local.Clients(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	store := must[*tsdb.Store](t)(tsdb.New(client, "t", tsdb.Options{
		StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Read: 2 * time.Second, Write: 2 * time.Second}},
		Admin:        admin,
		OnClose:      client.Close,
	}))
	t.Cleanup(func() { _ = store.Close() })
	if err := store.Ensure(t.Context(), datasets...); err != nil {
		t.Fatal(err)
	}
	return store
}

// onDisk runs a test with a simulated clock and disk.
func onDisk(t *testing.T, test func(t *testing.T, disk *faultdisk.Disk)) {
	t.Helper()
	if overTCP() {
		t.Skip("the test opens its own store and network")
	}
	synctest.Test(t, func(t *testing.T) {
		disk := faultdisk.New()
		defer disk.Release()
		test(t, disk)
	})
}

// TestRepeatedPutWaitsForTheDisk: a Put that finds its point already stored must not return nil before that point is
// synced.
func TestRepeatedPutWaitsForTheDisk(t *testing.T) {
	first, merges := readings(t, tsdb.SchemaOptions{FirstWins: true}), merging(t, tsdb.SchemaOptions{})
	heads := merging(t, tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 3}})
	for name, c := range map[string]struct {
		dataset tsdb.Dataset
		put     func(ctx context.Context, s *tsdb.Store) error
		get     func(ctx context.Context, s *tsdb.Store) error
	}{
		"first wins": {
			first,
			func(ctx context.Context, s *tsdb.Store) error {
				return first.For(s, acme).Put(ctx, roof, start, reading{1})
			},
			func(ctx context.Context, s *tsdb.Store) error {
				_, err := first.For(s, acme).Get(ctx, roof, start)
				return err
			},
		},
		"merge": {
			merges,
			func(ctx context.Context, s *tsdb.Store) error {
				return merges.For(s, acme).Put(ctx, roof, start, rec("a", 1))
			},
			func(ctx context.Context, s *tsdb.Store) error {
				_, err := merges.For(s, acme).Get(ctx, roof, start)
				return err
			},
		},
		"merge with heads": {
			heads,
			func(ctx context.Context, s *tsdb.Store) error {
				return heads.For(s, acme).Put(ctx, roof, start, rec("a", 1))
			},
			func(ctx context.Context, s *tsdb.Store) error {
				_, err := heads.For(s, acme).Latest(ctx, roof)
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onDisk(t, func(t *testing.T, disk *faultdisk.Disk) {
				store := openOn(t, disk, false, c.dataset)
				disk.Hang()
				var answered atomic.Int32
				errs := make(chan error, 2)
				for range 2 {
					go func() {
						err := c.put(t.Context(), store)
						if err == nil {
							answered.Add(1)
						}
						errs <- err
					}()
					synctest.Wait()
				}
				if n := answered.Load(); n > 0 {
					t.Errorf("%d writes returned nil while the sync hangs, want 0", n)
				}
				if err := c.get(t.Context(), store); !errors.Is(err, tsdb.ErrNotFound) {
					t.Errorf("read while the sync hangs: %v, want ErrNotFound", err)
				}
				crashed := openOn(t, disk.Crash(), false, c.dataset)
				if err := c.get(t.Context(), crashed); !errors.Is(err, tsdb.ErrNotFound) {
					t.Fatalf("the point survives a crash at this time (%v), so the test proves nothing", err)
				}
				disk.Release()
				for range 2 {
					if err := <-errs; err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				}
				if err := c.put(t.Context(), store); err != nil {
					t.Errorf("after the sync: %v, want nil", err)
				}
				if err := c.get(t.Context(), store); err != nil {
					t.Errorf("read after the sync: %v", err)
				}
			})
		})
	}
}

// TestFailedDiskIsReported: once the disk has failed, no Put returns nil, whatever is in memory. Each fails at once
// with the disk's own error.
func TestFailedDiskIsReported(t *testing.T) {
	merges, first := merging(t, tsdb.SchemaOptions{}), must[*tsdb.Schema[reading]](t)(
		tsdb.Define("firsts", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{FirstWins: true}))
	last := must[*tsdb.Schema[reading]](t)(tsdb.Define("lasts", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{}))
	for _, network := range []bool{false, true} {
		onDisk(t, func(t *testing.T, disk *faultdisk.Disk) {
			store := openOn(t, disk, network, merges, first, last)
			old := start.Add(-time.Hour)
			if err := last.For(store, acme).Put(t.Context(), roof, old, reading{1}); err != nil {
				t.Fatal(err)
			}
			w := must[*tsdb.Writer](t)(store.NewWriter(journaled(t)))
			disk.Fail()
			began := time.Now()
			for range 2 {
				for i, call := range []func() error{
					func() error { return merges.For(store, acme).Put(t.Context(), roof, start, rec("a", 1)) },
					func() error { return first.For(store, acme).Put(t.Context(), roof, start, reading{1}) },
					func() error { return last.For(store, acme).Put(t.Context(), roof, start, reading{1}) },
				} {
					name := []string{"merging Put", "first Put", "Put"}[i]
					err := call()
					if grpcstatus.Code(err) != codes.DataLoss {
						t.Errorf("network %v: %s: %v, want DataLoss", network, name, err)
					}
					if !network && (!errors.Is(err, diskerr.ErrStorage) || !errors.Is(err, syscall.EMFILE)) {
						t.Errorf("%s: %v, want ErrStorage and EMFILE", name, err)
					}
				}
			}
			if _, err := merges.For(store, acme).Get(t.Context(), roof, start); !errors.Is(err, tsdb.ErrNotFound) {
				t.Errorf("network %v: read of what is not on disk: %v, want ErrNotFound", network, err)
			}
			if took := time.Since(began); took > 0 {
				t.Errorf("network %v: the calls retried for %v, want no retry", network, took)
			}
			if _, err := last.For(store, acme).Get(t.Context(), roof, old); err != nil {
				t.Errorf("network %v: read of a point stored before the failure: %v", network, err)
			}
			// A journal keeps its points until the store works again.
			for _, s := range []*tsdb.Schema[reading]{first, last} {
				if err := s.For(store, acme).Via(w).Enqueue(t.Context(), roof, start.Add(time.Hour), reading{2}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
			if got := letters(t, w); len(got) != 0 {
				t.Errorf("network %v: the failed disk made dead letters: %v", network, got)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_ = w.Close(ctx) // the points stay in the journal
		})
	}
}

// TestStreamWaitsForTheDisk: a retry of an event that finds the unsynced mark of the first attempt must not treat the
// event as counted: the journal would drop it, and a crash would lose it.
func TestStreamWaitsForTheDisk(t *testing.T) {
	counts := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[reading]{
		{Name: "temp", Of: func(r reading) (float64, bool) { return r.TempC, true }, Max: 100},
	}, rollup.Options{Mode: rollup.ByStream})
	s := readings(t, tsdb.SchemaOptions{Rollups: []tsdb.Rollup{counts}})
	onDisk(t, func(t *testing.T, disk *faultdisk.Disk) {
		counted := func(store *tsdb.Store) int64 {
			t.Helper()
			b, err := rollup.For(counts, s.For(store, acme)).Total(t.Context(), roof, tsdb.Between(start, start.Add(time.Hour)))
			if err != nil {
				t.Fatal(err)
			}
			return b.Points
		}
		store := openOn(t, disk, true, s)
		w := must[*tsdb.Writer](t)(store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: filepath.Join(t.TempDir(), "journal")}}))
		defer func() { _ = w.Close(context.Background()) }()
		repo := s.For(store, acme)
		disk.Hang()
		if err := rollup.NewAdder(counts, repo, w).Add(t.Context(), roof, start, reading{20}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // enough for many attempts
		defer cancel()
		if err := w.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush while the sync hangs: %v: the journal has dropped the event", err)
		}
		if n := counted(openOn(t, disk.Crash(), false, s)); n != 0 {
			t.Fatalf("after a crash at this time the event counts %d times, so the test proves nothing", n)
		}
		disk.Release()
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := counted(store); n != 1 {
			t.Errorf("after the sync the event counts %d times, want 1", n)
		}
	})
}
