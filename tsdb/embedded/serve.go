package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tsdb"
)

const (
	// Project and Instance are the names under which a store of this package has its table. A Server accepts any
	// other names, too: they have tables of their own, except the names in its Options, which have the store's
	// tables.
	Project  = local.Project
	Instance = local.Instance

	maxRequest  = 256 << 20       // the largest row
	drainPeriod = 5 * time.Second // for calls in progress when a server stops
)

// Server offers a folder to Bigtable clients of other processes and languages, which reach it with
// BIGTABLE_EMULATOR_HOST. It has no authentication and no encryption: a client that can reach the listener can do
// everything, so listen on the loopback interface. A Server is safe for concurrent use. The zero Server serves
// nothing.
type Server struct {
	server *local.Server
	grpc   *grpc.Server
	close  func() error
}

// NewServer opens the folder in opts, or creates it, as New does. The folder belongs to the server until Close.
// NewServer ignores Table, Timeouts, Attach and TakeOver. Errors are those of Open.
func NewServer(opts Options) (*Server, error) {
	renamed, err := opts.instanceNames()
	if err = errors.Join(err, opts.absolute()); err != nil {
		return nil, err
	}
	server, err := opts.openHere()
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	options := append(renamed.options(), grpc.MaxRecvMsgSize(maxRequest), grpc.MaxSendMsgSize(maxRequest))
	options = append(options, opts.ServerOptions...)
	s := &Server{server: server, grpc: grpc.NewServer(options...)}
	server.Register(s.grpc)
	s.close = sync.OnceValue(func() error {
		s.grpc.Stop()
		return s.server.Close()
	})
	return s, nil
}

// Serve serves the clients that connect to lis until ctx ends. Then it accepts no more calls, waits a few seconds for
// calls in progress, closes lis and the folder, and returns nil. It returns an error if the listener fails first, or
// if closing the folder fails.
func (s *Server) Serve(ctx context.Context, lis net.Listener) error {
	switch {
	case s == nil || s.grpc == nil:
		return invalid.New(tsdb.ErrInvalid, "server", "the zero value", "a server from NewServer")
	case lis == nil:
		return invalid.New(tsdb.ErrInvalid, "listener", "nil", "a net.Listener")
	}
	if ctx == nil {
		return ctxerr.Of(ctx)
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		hard := time.AfterFunc(drainPeriod, s.grpc.Stop)
		defer hard.Stop()
		s.grpc.GracefulStop()
	})
	err := s.grpc.Serve(lis)
	if !stop() {
		<-stopped
	}
	if ctx.Err() != nil || errors.Is(err, grpc.ErrServerStopped) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("embedded: serving: %w", err)
	}
	return errors.Join(err, s.Close())
}

// Close ends all calls and closes the folder. A second Close returns the result of the first. Closing the zero Server
// or nil does nothing.
func (s *Server) Close() error {
	if s == nil || s.close == nil {
		return nil
	}
	return s.close()
}
