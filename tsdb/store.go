package tsdb

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/ensure"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// Store is one open Bigtable table that holds the points of all tenants. Open, New and embedded.Open make one. It is safe
// for concurrent use.
type Store struct {
	core    *points.Table
	service *tenancy.ServiceClock
	cursors cursor.Box
	admin   func(context.Context) (*bigtable.AdminClient, error) // nil where the caller gave none
	keep    bool                                                 // the admin client is the caller's
	closers closers
	alone   bool // no other store can have the table open

	creating ensure.Turns // of the calls that create datasets for tenants
}

// Options are what a program that brings its own client may decide.
type Options struct {
	StoreOptions
	// Conditional is the client for conditional writes, of an app profile with single-cluster routing. Nil is the store's
	// own client.
	Conditional *bigtable.Client
	// Admin is the client by which Ensure creates tables and families. Nil is none: Ensure then returns ErrNoAdmin.
	Admin *bigtable.AdminClient
	// OnClose is called by Close, once, for a caller whose clients and connections end with the store.
	OnClose func() error
}

// New returns a store over a client that the program has already. The client stays the caller's to close, after the store.
//
// A client made without ClientConfig and DialOptions works, but hides how writes ended: what fails is then unknown, with
// ErrUnguardedClient, where it could have been known to be rejected.
func New(client *bigtable.Client, table string, opts Options) (*Store, error) {
	if client == nil {
		return nil, invalid.New(ErrInvalid, "client", "nil", "a *bigtable.Client")
	}
	if err := opts.check(table); err != nil {
		return nil, err
	}
	cursors, err := cursor.NewBox(opts.CursorKeys)
	if err != nil {
		return nil, err
	}
	conditional := opts.Conditional
	if conditional == nil {
		conditional = client
	}
	s := &Store{
		core: points.NewTable(&tenancy.Tenancy{
			Whole:         bt.New(client.OpenTable(table), conditional.OpenTable(table), opts.Timeouts.resolve()),
			Name:          table,
			Clock:         opts.Clock,
			Limits:        opts.Limits,
			RequireTenant: opts.RequireTenant,
		}, opts.Cache.open()),
		cursors: cursors,
	}
	if s.core.Clock == nil {
		s.core.Clock = time.Now
	}
	s.core.Time = clock.New(s.core.Clock, nil)
	s.service = tenancy.NewServiceClock(s.core.Tenancy)
	if opts.Views {
		s.core.Views = tenancy.OpenViews(client, conditional, table, opts.Timeouts.resolve())
	}
	s.core.Watch = opts.Telemetry.open(s)
	s.core.Time.Report(s.core.Watch.Clock)
	if err := s.core.Tenancy.Open(s.core.Cache.DropTenants, opts.ProfileLimits); err != nil {
		return nil, err
	}
	if opts.Admin != nil {
		s.admin = func(context.Context) (*bigtable.AdminClient, error) { return opts.Admin, nil }
		s.keep = true
	}
	if opts.OnClose != nil {
		s.closers = closers{opts.OnClose}
	}
	return s, nil
}

// check refuses what no store can be made of.
func (o Options) check(table string) error {
	if err := checkTable(table); err != nil {
		return err
	}
	return o.StoreOptions.check()
}

// Table returns the name of the store's table.
func (s *Store) Table() string {
	if s == nil || s.core == nil {
		return ""
	}
	return s.core.Name
}

// Ping reads one row of the store's own, which may be missing, and so finds out whether the table can be reached and read.
// Its error says what cannot: ErrNoTable, no permission, no connection within the timeout of reads.
func (s *Store) Ping(ctx context.Context) (err error) {
	ctx, op := s.begin(ctx, telemetry.Ping)
	defer func() { op.End(err) }()
	if err := s.admit(); err != nil {
		return err
	}
	_, err = s.core.Whole.Row(ctx, rowkey.FormatRow, bigtable.StripValueFilter())
	return s.core.Explain(err)
}

// admit refuses calls on a store that is closed, or was never opened.
func (s *Store) admit() error {
	if s == nil || s.core == nil {
		return errNoStore()
	}
	return s.core.Tenancy.AdmitOpen()
}

func errNoStore() error {
	return invalid.New(ErrInvalid, "store", "zero", "one from Open, New or package embedded")
}

// Close makes every later call fail with ErrClosed and closes the connections that Open made. Calls under way fail with
// the connection's error. A second Close does nothing and returns nil, and so does one of a store that was never opened, nil
// included: Close may be deferred before the error of opening is looked at.
func (s *Store) Close() error {
	if s == nil || s.core == nil || s.core.Closed.Swap(true) {
		return nil
	}
	s.core.Cache.Close()
	s.core.Tenancy.Close()
	s.core.Watch.Close()
	return s.closers.close()
}

// closers are closed last to first.
type closers []func() error

func (c closers) close() error {
	var errs []error
	for _, f := range slices.Backward(c) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// closeOnce closes c for a connection that its user may have closed already: a client closes the one that it was given.
func closeOnce(c io.Closer) func() error {
	return func() error {
		err := c.Close()
		if status.Code(err) == codes.Canceled {
			return nil
		}
		return err
	}
}
