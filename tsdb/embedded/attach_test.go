package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

const socket = "attach.sock"

// quick are timeouts for tests in which nobody answers.
var quick = tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Read: time.Second, Write: time.Second, Scan: time.Second}}

func attached(t *testing.T, opts embedded.Options) *tsdb.Store {
	t.Helper()
	opts.Attach = true
	store, err := embedded.New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("closing an attached store: %v", err)
		}
	})
	return store
}

func put(t *testing.T, store *tsdb.Store, n int) {
	t.Helper()
	if err := temps.For(store, acme).Put(t.Context(), roof, noon.Add(time.Duration(n)*time.Second), float64(n)); err != nil {
		t.Fatalf("point %d: %v", n, err)
	}
}

// latest checks that the newest point is number n.
func latest(t *testing.T, store *tsdb.Store, n int) {
	t.Helper()
	if p, err := temps.For(store, acme).Latest(t.Context(), roof); err != nil || p.Value != float64(n) {
		t.Errorf("the newest point is %v, %v; want number %d", p.Value, err, n)
	}
}

// TestAttach: an owner and an attached store see each other's points at once. Open still fails, as services that must
// run once need it.
func TestAttach(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	dir := t.TempDir()
	owner := open(t, dir)
	guest, err := embedded.New(t.Context(), embedded.Options{Dir: dir, Attach: true})
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < 10; n += 2 {
		put(t, owner, n)
		latest(t, guest, n)
		put(t, guest, n+1)
		latest(t, owner, n+1)
	}
	if _, err := embedded.Open(t.Context(), dir); !errors.Is(err, tsdb.ErrLocked) {
		t.Errorf("Open of a folder that another store has open: %v, want ErrLocked", err)
	}
	if err := guest.Ensure(t.Context(), temps, blobs); err != nil { // the admin API
		t.Errorf("Ensure through the owner: %v", err)
	}
	if err := errors.Join(guest.Close(), owner.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, socket)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket of a closed store: %v, want none", err)
	}
	alone := attached(t, embedded.Options{Dir: dir}) // no other process has the folder open
	latest(t, alone, 9)
}

// TestAttachSocketIsPrivate: the socket gives all access to the folder, so only its user may open it.
func TestAttachSocketIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes do not hold the permissions there")
	}
	dir := t.TempDir()
	owner := open(t, dir)
	defer owner.Close()
	for name, want := range map[string]fs.FileMode{socket: 0o600 | fs.ModeSocket, ".": 0o700 | fs.ModeDir} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
}

// TestAttachLongPath: a socket's name has at most 107 bytes on Linux and 103 elsewhere, a folder's has thousands.
func TestAttachLongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("a", 100), strings.Repeat("b", 200))
	for range 2 {
		owner := open(t, dir)
		guest, err := embedded.New(t.Context(), embedded.Options{Dir: dir, Attach: true})
		if err != nil {
			t.Fatal(err)
		}
		put(t, guest, 1)
		latest(t, owner, 1)
		if err := errors.Join(guest.Close(), owner.Close()); err != nil {
			t.Error(err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "tm*", "d")); len(left) > 0 {
		t.Errorf("links are left: %v", left)
	}
}

// TestAttachLargePoint: what a store accepts, its owner accepts.
func TestAttachLargePoint(t *testing.T) {
	testkit.Plain(t)
	frames := tsdb.MustDefine("frames", tsdb.Key("device"), codec.Bytes(), tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 1}})
	dir := t.TempDir()
	owner := open(t, dir)
	defer owner.Close()
	long := tsdb.Timeouts{Read: 2 * time.Minute, Write: 2 * time.Minute} // for a busy machine
	guest := attached(t, embedded.Options{Dir: dir, StoreOptions: tsdb.StoreOptions{Timeouts: long}})
	if err := guest.Ensure(t.Context(), frames); err != nil {
		t.Fatal(err)
	}
	repo := frames.For(guest, acme)
	points := make([]tsdb.Point[[]byte], 8)
	for i := range points {
		points[i] = tsdb.Point[[]byte]{Entity: roof, Time: noon.Add(time.Duration(i) * time.Second), Value: make([]byte, 10<<20-64)}
	}
	if _, err := repo.PutMany(t.Context(), points); err != nil {
		t.Errorf("points of 10 MiB: %v", err)
	}
	if err := repo.Put(t.Context(), roof, noon, points[0].Value); err != nil {
		t.Errorf("a point of 10 MiB: %v", err)
	}
	if got, err := repo.LatestN(t.Context(), roof, 10); err != nil || len(got) != len(points) {
		t.Errorf("reading them: %d points, %v; want %d", len(got), err, len(points))
	}
}

// TestAttachStaleSocket: the socket of an owner that was killed, or of a copied folder, stops nobody.
func TestAttachStaleSocket(t *testing.T) {
	dir := t.TempDir()
	owner := open(t, dir)
	put(t, owner, 1)
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	lis, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, socket)})
	if err != nil {
		t.Fatal(err)
	}
	lis.SetUnlinkOnClose(false)
	lis.Close()
	if _, err := os.Lstat(filepath.Join(dir, socket)); err != nil {
		t.Fatal(err)
	}
	again := attached(t, embedded.Options{Dir: dir}) // becomes the owner
	latest(t, attached(t, embedded.Options{Dir: dir}), 1)
	put(t, again, 2)
}

// TestAttachOwnerEnds: calls fail with what has happened, and work again with the next owner.
func TestAttachOwnerEnds(t *testing.T) {
	dir := t.TempDir()
	owner := open(t, dir)
	guest := attached(t, embedded.Options{Dir: dir, StoreOptions: quick})
	put(t, guest, 1)
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	err := temps.For(guest, acme).Put(t.Context(), roof, noon, 0)
	if status.Code(err) != codes.Unavailable && !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fmt.Sprint(err), "no process serves the folder "+dir) {
		t.Errorf("a write without an owner: %v, want Unavailable with the folder", err)
	}
	if _, err := temps.For(guest, acme).Latest(t.Context(), roof); err == nil || !strings.Contains(err.Error(), "no process serves the folder "+dir) {
		t.Errorf("a read without an owner: %v, want the folder", err)
	}
	next := open(t, dir)
	defer next.Close()
	put(t, guest, 2)
	latest(t, next, 2)
}

// TestAttachOwnerEndsDuringCalls: a restart of the owner within the timeout fails no call that can be repeated.
func TestAttachOwnerEndsDuringCalls(t *testing.T) {
	dir := t.TempDir()
	owner := open(t, dir)
	guest := attached(t, embedded.Options{Dir: dir})
	ctx, stop := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for g := range 4 {
		calls.Go(func() {
			repo := temps.For(guest, acme)
			entity := tsdb.NewEntity(fmt.Sprint("device-", g))
			for n := 0; ctx.Err() == nil; n++ {
				if err := repo.Put(t.Context(), entity, noon.Add(time.Duration(n)*time.Second), float64(n)); err != nil {
					t.Errorf("point %d: %v", n, err)
				}
				if p, err := repo.Latest(t.Context(), entity); err != nil || p.Value != float64(n) {
					t.Errorf("point %d reads as %v, %v", n, p.Value, err)
				}
			}
		})
	}
	for range 3 {
		time.Sleep(100 * time.Millisecond)
		if err := owner.Close(); err != nil {
			t.Error(err)
		}
		owner = open(t, dir)
	}
	stop()
	calls.Wait()
	if err := owner.Close(); err != nil {
		t.Error(err)
	}
}

// TestAttachTakeOver: of several attached stores one becomes the owner when theirs ends, and the others use it.
func TestAttachTakeOver(t *testing.T) {
	dir := t.TempDir()
	owner := open(t, dir)
	var guests []*tsdb.Store
	for range 3 {
		guests = append(guests, attached(t, embedded.Options{Dir: dir, TakeOver: true}))
	}
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for i, g := range guests {
		calls.Go(func() {
			for n := range 50 {
				put(t, g, 1000*i+n)
			}
		})
	}
	calls.Wait()
	for _, g := range guests {
		latest(t, g, 2049)
	}
	if _, err := embedded.Open(t.Context(), dir); !errors.Is(err, tsdb.ErrLocked) {
		t.Errorf("Open after a takeover: %v, want ErrLocked", err)
	}
}

// TestAttachRace: of processes that begin at once, one opens the folder, and the others attach to it.
func TestAttachRace(t *testing.T) {
	dir := t.TempDir()
	var begun sync.WaitGroup
	stores := make([]*tsdb.Store, 6)
	for i := range stores {
		begun.Go(func() {
			var err error
			if stores[i], err = embedded.New(t.Context(), embedded.Options{Dir: dir, Attach: true, TakeOver: true}); err != nil {
				t.Error(err)
			}
		})
	}
	begun.Wait()
	if t.Failed() {
		t.FailNow()
	}
	if err := stores[0].Ensure(t.Context(), temps); err != nil {
		t.Fatal(err)
	}
	for i, s := range stores {
		put(t, s, i)
		latest(t, stores[len(stores)-1-i], i)
	}
	for _, s := range stores { // the owner among them: the rest takes over
		latest(t, s, len(stores)-1)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAttachRefusals(t *testing.T) {
	for field, opts := range map[string]embedded.Options{
		"TakeOver":  {TakeOver: true},
		"Exclusive": {Attach: true, TakeOver: true, Exclusive: true},
	} {
		if _, err := embedded.New(t.Context(), opts); !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(fmt.Sprint(err), field) {
			t.Errorf("%+v: %v, want ErrInvalid with %s", opts, err, field)
		}
	}
}

// TestAttachExclusive: a folder that nobody may attach to has no socket. Who tries finds out why it fails.
func TestAttachExclusive(t *testing.T) {
	defer embedded.SetOwnerWait(50 * time.Millisecond)()
	dir := t.TempDir()
	owner, err := embedded.New(t.Context(), embedded.Options{Dir: dir, Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if _, err := os.Lstat(filepath.Join(dir, socket)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket: %v, want none", err)
	}
	_, err = embedded.New(t.Context(), embedded.Options{Dir: dir, Attach: true})
	if !errors.Is(err, tsdb.ErrLocked) || !strings.Contains(err.Error(), "no process serves the folder") {
		t.Errorf("attaching: %v, want ErrLocked with the reason", err)
	}
}

// TestAttachServer: the emulator's folder can be looked at, too.
func TestAttachServer(t *testing.T) {
	dir := t.TempDir()
	server, err := embedded.NewServer(embedded.Options{Dir: dir, Project: "p", Instance: "i"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	guest := attached(t, embedded.Options{Dir: dir})
	if err := guest.Ensure(t.Context(), temps); err != nil {
		t.Fatal(err)
	}
	put(t, guest, 1)
	latest(t, guest, 1)
}

// TestAttachMakesErasuresWait: an attached store may hold for a while that a tenant is not erased, also if it has read
// that through an earlier owner.
func TestAttachMakesErasuresWait(t *testing.T) {
	dir := t.TempDir()
	waits := func(store *tsdb.Store) (wait time.Duration) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		_, err := tenants.Erase(ctx, store, acme, tenants.EraseOptions{By: "test", Reason: "test", Progress: func(p tenants.Progress) {
			if wait = p.Waiting; wait > 0 {
				stop()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		return wait
	}
	owner := open(t, dir)
	if got := waits(owner); got != time.Second {
		t.Errorf("an erasure with one store waits for %v, want 1s", got)
	}
	attached(t, embedded.Options{Dir: dir})
	if got := waits(owner); got < 10*time.Second {
		t.Errorf("an erasure that began with one store waits for %v, want more than the 10s that a store holds marks", got)
	}
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	owner = open(t, dir)
	defer owner.Close()
	if err := owner.Ensure(t.Context(), temps); err != nil {
		t.Fatal(err)
	}
	if got := waits(owner); got < 10*time.Second {
		t.Errorf("an erasure after a restart waits for %v, want more than the 10s that a store holds marks", got)
	}
}
