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
	// Project and Instance are the names under which a store of this package, served or not, has its table. A Server
	// answers under any other names too, with tables of their own, or with the store's under those in its Options.
	Project  = local.Project
	Instance = local.Instance

	maxRequest  = 256 << 20       // the largest row
	drainPeriod = 5 * time.Second // for the calls under way when a server stops
)

// Server offers a folder to Bigtable clients of other processes and languages: what they reach over
// BIGTABLE_EMULATOR_HOST. There is no authentication and no encryption: whoever can reach the listener can do everything,
// so let it be of the loopback interface. A Server is safe for concurrent use; its zero value serves nothing.
type Server struct {
	server *local.Server
	grpc   *grpc.Server
	close  func() error
}

// NewServer opens the folder in opts, or makes one there, as New does; the folder is the server's until Close. Table and
// Timeouts are not used. Its error matches ErrLocked, ErrDamaged or ErrStorage where that is the reason.
func NewServer(opts Options) (*Server, error) {
	renamed, err := opts.instanceNames()
	if err != nil {
		return nil, err
	}
	server, err := local.Open(opts.engine())
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	options := append(renamed.options(), grpc.MaxRecvMsgSize(maxRequest), grpc.MaxSendMsgSize(maxRequest))
	s := &Server{server: server, grpc: grpc.NewServer(options...)}
	server.Register(s.grpc)
	s.close = sync.OnceValue(func() error {
		s.grpc.Stop()
		return s.server.Close()
	})
	return s, nil
}

// Serve answers the clients that connect to lis until ctx ends: then it takes no more, gives the calls under way a few
// seconds, closes lis and the folder, and returns nil. It returns an error if the listener fails first, and if the folder
// does not close well.
func (s *Server) Serve(ctx context.Context, lis net.Listener) error {
	switch {
	case s == nil || s.grpc == nil:
		return invalid.New(tsdb.ErrInvalid, "server", "zero", "one from NewServer")
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

// Close ends all calls and closes the folder. Closing again returns what the first time did. The zero Server and nil have nothing
// to close.
func (s *Server) Close() error {
	if s == nil || s.close == nil {
		return nil
	}
	return s.close()
}
