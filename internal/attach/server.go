// Package attach lets other processes use a folder through its owner: the process that has it open. The owner listens
// at a socket in the folder, and speaks Bigtable's API there.
package attach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/private"
)

// Engine is what the owner serves.
type Engine interface {
	Register(r grpc.ServiceRegistrar)
	// Sync returns when all acknowledged writes are on disk.
	Sync(ctx context.Context) error
	// Wrote returns a number that changes with each write, and whether there was a write since the given number.
	Wrote(since uint64) (now uint64, wrote bool)
	// Checkpoint makes a folder with a copy of the folder, and of the journals of its owner. release removes it.
	Checkpoint(ctx context.Context) (dir string, release func() error, err error)
}

const (
	maxConns   = 16 // connections; a process usually has one
	drainTime  = time.Second
	acceptWait = 100 * time.Millisecond // after a failure, such as too many open files or a full disk
	silentTime = 30 * time.Second       // after which the owner checks that a client still answers, which it has to in as long again
)

// usedName is the file in the folder that says that a process has attached once. Its contents are empty.
const usedName = "attached"

// Server serves a folder. Until a process attaches, it costs a socket and a goroutine that sleeps.
type Server struct {
	dir    string
	lis    net.Listener
	secret []byte
	engine Engine
	conns  atomic.Int64
	done   chan struct{}
	ctx    context.Context // ends with Close
	stop   context.CancelFunc

	mu   sync.Mutex
	grpc *grpc.Server // nil until a process attaches
}

// Serve serves the folder. The caller has its lock, and closes the server before it gives the lock up. It returns an
// error if the file system has no sockets.
func Serve(dir string, e Engine) (*Server, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	lis, secret, err := listen(dir)
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	s := &Server{dir: dir, lis: lis, secret: secret, engine: e, done: make(chan struct{})}
	s.ctx, s.stop = context.WithCancel(context.Background())
	go s.accept()
	return s, nil
}

// Used reports whether a process has ever attached to the folder. It may hold what it has read from an earlier owner.
func Used(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, usedName))
	return !errors.Is(err, os.ErrNotExist)
}

// accept waits for the first process, and makes the gRPC server that serves it and all others.
func (s *Server) accept() {
	defer close(s.done)
	for s.ctx.Err() == nil {
		conn, err := s.lis.Accept()
		if err == nil {
			if err = s.note(); err == nil {
				s.serve(conn)
				return
			}
			_ = conn.Close()
		}
		_ = ctxerr.Wait(s.ctx, acceptWait)
	}
}

// note stores that a process has attached.
func (s *Server) note() error {
	file, err := os.OpenFile(filepath.Join(s.dir, usedName), os.O_CREATE, private.FileMode)
	if err != nil {
		return err
	}
	return file.Close()
}

func (s *Server) serve(first net.Conn) {
	lis := &listener{Listener: s.lis, s: s, first: first}
	defer lis.close()
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	s.grpc = s.newServer()
	s.mu.Unlock()
	_ = s.grpc.Serve(lis)
}

func (s *Server) newServer() *grpc.Server {
	b := newBounds(s.engine)
	srv := grpc.NewServer(
		grpc.Creds(greeter{insecure.NewCredentials(), s}), grpc.ConnectionTimeout(helloTime),
		grpc.MaxConcurrentStreams(maxCalls), grpc.MaxRecvMsgSize(maxRequest), grpc.MaxSendMsgSize(maxResponse),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: silentTime, Timeout: silentTime}),
		grpc.UnaryInterceptor(b.unary), grpc.StreamInterceptor(b.stream),
	)
	s.engine.Register(srv)
	srv.RegisterService(&folderService, &folderServer{engine: s.engine, turn: make(chan struct{}, 1)})
	return srv
}

// Close removes the socket, gives calls under way a second, and ends the others: their clients do not know the outcome.
func (s *Server) Close() error {
	err := unlink(s.dir)
	if errors.Is(err, os.ErrNotExist) { // somebody has cleaned up
		err = nil
	}
	s.mu.Lock()
	s.stop()
	srv := s.grpc
	s.mu.Unlock()
	if srv != nil {
		hard := time.AfterFunc(drainTime, srv.Stop)
		srv.GracefulStop()
		hard.Stop()
	}
	_ = s.lis.Close()
	<-s.done
	return err
}

// listener counts connections. The first one was accepted before.
type listener struct {
	net.Listener
	s     *Server
	first net.Conn
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.first, error(nil)
	if l.first = nil; conn == nil {
		conn, err = l.Listener.Accept()
	}
	if err != nil {
		return nil, err
	}
	return &counted{Conn: conn, s: l.s, number: l.s.conns.Add(1)}, nil
}

// close closes the first connection if Close of the server was faster than gRPC.
func (l *listener) close() {
	if l.first != nil {
		_ = l.first.Close()
	}
}

// counted is a connection that counts until it is closed.
type counted struct {
	net.Conn
	s      *Server
	number int64 // of the connections that were open, with this one
	once   sync.Once
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.once.Do(func() { c.s.conns.Add(-1) })
	return c.Conn.Close()
}

// greeter says hello before gRPC.
type greeter struct {
	credentials.TransportCredentials
	s *Server
}

// ServerHandshake implements credentials.TransportCredentials.
func (g greeter) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	refused := ""
	if c, ok := conn.(*counted); ok && c.number > maxConns {
		refused = fmt.Sprintf("it serves %d connections, which is its limit", maxConns)
	}
	stop := context.AfterFunc(g.s.ctx, func() { _ = conn.Close() })
	defer stop()
	if err := answer(conn, g.s.secret, refused); err != nil {
		return nil, nil, err
	}
	return g.TransportCredentials.ServerHandshake(conn)
}

// Clone implements credentials.TransportCredentials.
func (g greeter) Clone() credentials.TransportCredentials { return g }
