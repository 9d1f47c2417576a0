package attach

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an engine that does what a test wants.
type fake struct {
	bigtablepb.UnimplementedBigtableServer
	writing  atomic.Bool
	syncs    atomic.Int64
	syncFail error
	write    func()
	copies   atomic.Int64 // checkpoints that are not released
}

func (f *fake) Checkpoint(context.Context) (string, func() error, error) {
	f.copies.Add(1)
	return "/elsewhere/somewhere", func() error { f.copies.Add(-1); return nil }, nil
}

func (f *fake) Register(r grpc.ServiceRegistrar) { bigtablepb.RegisterBigtableServer(r, f) }

func (f *fake) Sync(context.Context) error {
	f.syncs.Add(1)
	return f.syncFail
}

func (f *fake) Wrote(uint64) (uint64, bool) { return 0, f.writing.Load() }

func (f *fake) MutateRow(context.Context, *bigtablepb.MutateRowRequest) (*bigtablepb.MutateRowResponse, error) {
	if f.write != nil {
		f.write()
	}
	return &bigtablepb.MutateRowResponse{}, nil
}

func serve(t *testing.T, e Engine) (dir string, s *Server) {
	t.Helper()
	dir = t.TempDir()
	s, err := Serve(dir, e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return dir, s
}

// over runs both parts of a hello, each with its own secret.
func over(t *testing.T, mine, owners []byte, refused string, see func(net.Conn) net.Conn) (client, owner error) {
	t.Helper()
	a, b := net.Pipe()
	done := make(chan error)
	go func() {
		err := answer(b, owners, refused)
		if err != nil {
			_ = b.Close()
		}
		done <- err
	}()
	client = greet(t.Context(), see(a), mine)
	_ = a.Close()
	err := <-done
	_ = b.Close()
	return client, err
}

func plain(c net.Conn) net.Conn { return c }

func TestHello(t *testing.T) {
	secret := nonce()
	if client, owner := over(t, secret, secret, "", plain); client != nil || owner != nil {
		t.Errorf("two processes of one folder: %v, %v", client, owner)
	}
	if client, owner := over(t, nonce(), secret, "", plain); !errors.Is(client, errProof) || owner == nil {
		t.Errorf("an owner that does not know the secret: %v, %v; the client must notice", client, owner)
	}
	if client, owner := over(t, secret, secret, "no room", plain); !errors.Is(client, ErrRefused) || !strings.Contains(client.Error(), "no room") || owner == nil {
		t.Errorf("a full owner: %v, %v", client, owner)
	}
	a, b := net.Pipe()
	done := make(chan error)
	go func() { done <- answer(b, secret, "") }()
	if err := send(a, hello{Nonce: nonce()}); err != nil {
		t.Fatal(err)
	}
	if _, err := receive(a); err != nil {
		t.Fatal(err)
	}
	if err := send(a, hello{Proof: nonce()}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, errProof) {
		t.Errorf("a client that does not know the secret: %v, want it to be refused", err)
	}
	_, _ = a.Close(), b.Close()
}

// newer is a connection to a process of the next version.
type newer struct{ net.Conn }

func (c newer) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	copy(p[:n], bytes.ReplaceAll(p[:n], []byte("1"), []byte("2"))) // the version is the first number
	return n, err
}

func TestHelloVersions(t *testing.T) {
	client, _ := over(t, nil, nil, "", func(c net.Conn) net.Conn { return newer{c} })
	if !errors.Is(client, ErrRefused) || !strings.Contains(client.Error(), "attaches by version 2, this one by version 1") {
		t.Errorf("an owner of a newer version: %v, want ErrRefused with both versions", client)
	}
}

// TestHelloHostile: who says nothing, or too much, ends with an error, and takes no memory.
func TestHelloHostile(t *testing.T) {
	for _, text := range []string{"", "\n", "{}\n", "x\n", `{"tidemark":1,"nonce":5}` + "\n", strings.Repeat("{", 1<<20)} {
		if err := answer(conn{strings.NewReader(text)}, nonce(), ""); err == nil {
			t.Errorf("hello %.20q is accepted", text)
		}
	}
}

type conn struct{ io.Reader }

func (conn) Write(p []byte) (int, error)      { return len(p), nil }
func (conn) Close() error                     { return nil }
func (conn) LocalAddr() net.Addr              { return nil }
func (conn) RemoteAddr() net.Addr             { return nil }
func (conn) SetDeadline(time.Time) error      { return nil }
func (conn) SetReadDeadline(time.Time) error  { return nil }
func (conn) SetWriteDeadline(time.Time) error { return nil }

// TestConnections: the owner serves a number of connections, says so to the next, and serves it when one has ended.
func TestConnections(t *testing.T) {
	dir, _ := serve(t, new(fake))
	var conns []net.Conn
	for range maxConns {
		c, err := Dial(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	if _, err := Dial(t.Context(), dir); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "16 connections") {
		t.Errorf("one connection too many: %v, want ErrRefused with the limit", err)
	}
	_ = conns[0].Close()
	var err error
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if conns[0], err = Dial(t.Context(), dir); err == nil {
			break
		}
	}
	if err != nil {
		t.Errorf("after a connection has ended: %v", err)
	}
	for _, c := range conns {
		_ = c.Close()
	}
}

// TestCloseBesideSilentClients: processes that connect and say nothing do not hold up the owner's end.
func TestCloseBesideSilentClients(t *testing.T) {
	dir, s := serve(t, new(fake))
	for range 3 {
		c, _, err := dialOwner(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	time.Sleep(50 * time.Millisecond) // the server accepts them
	began := time.Now()
	if err := s.Close(); err != nil || time.Since(began) > helloTime/2 {
		t.Errorf("Close beside silent clients takes %v, %v", time.Since(began), err)
	}
}

// TestWritesAreBounded: however many writes processes have under way, the engine has a few of them at a time.
func TestWritesAreBounded(t *testing.T) {
	var now, most atomic.Int64
	e := &fake{write: func() {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		time.Sleep(time.Millisecond)
		now.Add(-1)
	}}
	dir, _ := serve(t, e)
	var calls sync.WaitGroup
	for range 3 {
		cc, err := Conn(func(ctx context.Context) (net.Conn, error) { return Dial(ctx, dir) })
		if err != nil {
			t.Fatal(err)
		}
		defer cc.Close()
		for range 40 {
			calls.Go(func() {
				if _, err := bigtablepb.NewBigtableClient(cc).MutateRow(t.Context(), &bigtablepb.MutateRowRequest{}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	calls.Wait()
	if got := most.Load(); got != maxWrites {
		t.Errorf("%d writes at a time, want %d", got, maxWrites)
	}
	if got := e.syncs.Load(); got != 120 {
		t.Errorf("%d syncs for 120 writes", got)
	}
}

// TestFailedSync: a write that may not be on disk has an unknown outcome.
func TestFailedSync(t *testing.T) {
	b := newBounds(&fake{syncFail: io.ErrClosedPipe})
	_, err := b.unary(t.Context(), &bigtablepb.MutateRowRequest{}, nil, func(context.Context, any) (any, error) { return nil, nil })
	if status.Code(err) != codes.Unavailable {
		t.Errorf("a write whose sync fails: %v, want Unavailable", err)
	}
	err = b.stream(nil, rows{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: bigtablepb.Bigtable_MutateRows_FullMethodName},
		func(_ any, s grpc.ServerStream) error { return s.SendMsg(nil) })
	if status.Code(err) != codes.Unavailable {
		t.Errorf("a bulk write whose sync fails: %v, want Unavailable", err)
	}
}

// rows is a stream of rows to a client that takes them at once.
type rows struct {
	grpc.ServerStream
	ctx context.Context
}

func (r rows) Context() context.Context { return r.ctx }
func (r rows) SendMsg(any) error        { return nil }

// export reads everything in responses that take 2 ms of work each.
func export(b *bounds, ctx context.Context, responses int, working *atomic.Int64) (most int64, err error) {
	err = b.stream(nil, rows{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: bigtablepb.Bigtable_ReadRows_FullMethodName}, func(_ any, s grpc.ServerStream) error {
		for range responses {
			most = max(most, working.Add(1))
			time.Sleep(2 * time.Millisecond)
			working.Add(-1)
			if err := s.SendMsg(nil); err != nil {
				return err
			}
		}
		return nil
	})
	return most, err
}

// TestLongReadsRest: beside writes, a process that asks for everything gets a fifth of the time, and a short read all.
func TestLongReadsRest(t *testing.T) {
	for _, tt := range []struct {
		writing   bool
		responses int
		want      time.Duration
	}{
		{false, 1000, 2 * time.Second},
		{true, 2, 4 * time.Millisecond},
		{true, 1000, 2*time.Second + 998*8*time.Millisecond}, // the first two are short
	} {
		synctest.Test(t, func(t *testing.T) {
			e := new(fake)
			e.writing.Store(tt.writing)
			began := time.Now()
			if _, err := export(newBounds(e), t.Context(), tt.responses, new(atomic.Int64)); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(began); got != tt.want {
				t.Errorf("writing %v, %d responses: %v, want %v", tt.writing, tt.responses, got, tt.want)
			}
		})
	}
}

// TestLongReadsTakeTurns: of many processes that ask for everything, one works at a time, and one that gives up gives
// its turn up.
func TestLongReadsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBounds(new(fake))
		var working atomic.Int64
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := export(b, short, 1000, &working); status.Code(err) != codes.DeadlineExceeded {
					t.Errorf("a read that waits for its turn until its deadline: %v", err)
				}
			})
		}
		all.Wait()
		began := time.Now()
		var long sync.WaitGroup
		for range 10 {
			long.Go(func() {
				if _, err := export(b, t.Context(), 103, &working); err != nil {
					t.Error(err)
				}
			})
		}
		long.Wait()
		if got := time.Since(began); got < 2*time.Second { // 10 times 100 responses
			t.Errorf("ten exports of 200 ms take %v together, want them one after the other", got)
		}
		if len(b.turn) != 0 {
			t.Error("nobody reads, and the turn is taken")
		}
	})
}
