// Package embedded opens a store in this process: nothing to install, no port, no network.
package embedded

import (
	"context"
	"errors"
	"time"

	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Options are what a store in this process may decide. The zero value is good.
type Options struct {
	// Table is the name of the table. Empty is "tidemark".
	Table string
	// Timeouts bound every call. Zero fields mean the defaults.
	Timeouts tsdb.Timeouts
	// Clock tells the time by which points expire and are late. Nil is time.Now.
	Clock func() time.Time
}

// OpenMemory opens an empty store in memory. It forgets everything when it is closed.
func OpenMemory(ctx context.Context) (*tsdb.Store, error) { return New(ctx, Options{}) }

// New opens a store as the options say.
func New(ctx context.Context, opts Options) (*tsdb.Store, error) {
	server, err := local.Open()
	if err != nil {
		return nil, err
	}
	store, err := connect(ctx, server, opts)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return store, nil
}

func connect(ctx context.Context, server *local.Server, opts Options) (*tsdb.Store, error) {
	conn, err := server.Dial(tsdb.DialOptions()...)
	if err != nil {
		return nil, err
	}
	client, admin, err := local.Clients(ctx, conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	table := opts.Table
	if table == "" {
		table = "tidemark"
	}
	store, err := tsdb.New(client, table, tsdb.Options{
		Admin:    admin,
		Timeouts: opts.Timeouts,
		Clock:    opts.Clock,
		OnClose:  func() error { return errors.Join(client.Close(), server.Close()) },
	})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return store, nil
}
