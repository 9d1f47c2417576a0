// Package local runs a Bigtable in this process, on the engine, and dials it.
package local

import (
	"context"
	"errors"
	"sync/atomic"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/internal/attach"
	"github.com/tidemark-go/tidemark/internal/backup"
	"github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/engine/inproc"
)

// Project and Instance are the names of a Server's instance. They could be any names.
const (
	Project  = "local"
	Instance = "local"
)

// Server is a Bigtable in this process.
type Server struct {
	engine   *engine.Engine
	shared   *attach.Server                          // nil if no other process can attach
	journals atomic.Pointer[func() []backup.Journal] // of the store that owns the folder
}

// Open opens an engine with opts.
func Open(opts engine.Options) (*Server, error) {
	e, err := engine.Open(opts)
	if err != nil {
		return nil, err
	}
	return &Server{engine: e}, nil
}

// Register registers the data API and the table admin API of s.
func (s *Server) Register(r grpc.ServiceRegistrar) { s.engine.Register(r) }

// Share lets other processes attach to the server's folder, until Close. Call it once, before others use s.
func (s *Server) Share(dir string) (err error) {
	s.shared, err = attach.Serve(dir, s)
	return err
}

// AddJournals makes checkpoints have the journals that f returns.
func (s *Server) AddJournals(f func() []backup.Journal) { s.journals.Store(&f) }

// Checkpoint returns a folder with the files of the server's folder, as of one moment, and copies of its journals.
// release removes it.
func (s *Server) Checkpoint(ctx context.Context) (dir string, release func() error, err error) {
	var list []backup.Journal
	if f := s.journals.Load(); f != nil {
		list = (*f)()
	}
	return backup.With(list, s.engine.Checkpoint)(ctx)
}

// Sync returns when all acknowledged writes are on disk.
func (s *Server) Sync(ctx context.Context) error { return s.engine.Sync(ctx) }

// Wrote is that of the engine.
func (s *Server) Wrote(since uint64) (now uint64, wrote bool) { return s.engine.Wrote(since) }

// Watch returns the server's watch over its clock.
func (s *Server) Watch() *clock.Watch { return s.engine.Watch() }

// Dial returns a connection to the server, through the interceptors in opts, the first one outermost.
func (s *Server) Dial(opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return inproc.Dial(s.engine, opts...)
}

// Collect removes at once the cells that the families' GC rules no longer keep.
func (s *Server) Collect(ctx context.Context) error { return s.engine.RunGC(ctx) }

// Close waits for running calls and stops the server. If it has a folder, all data is then durable.
func (s *Server) Close() error {
	var err error
	if s.shared != nil { // first: the folder's lock protects the socket
		err = s.shared.Close()
	}
	return errors.Join(err, s.engine.Close())
}

// Clients returns the official clients over a connection that Dial returned. Closing the data client closes conn.
func Clients(ctx context.Context, conn *grpc.ClientConn) (*bigtable.Client, *bigtable.AdminClient, error) {
	client, err := bigtable.NewClientWithConfig(ctx, Project, Instance,
		bigtable.ClientConfig{DisableSession: true, MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
	if err != nil {
		return nil, nil, err
	}
	admin, err := bigtable.NewAdminClient(ctx, Project, Instance, option.WithGRPCConn(conn))
	if err != nil {
		_ = client.Close()
		return nil, nil, err
	}
	return client, admin, nil
}
