package tsdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/ensure"
	"github.com/tidemark-go/tidemark/internal/store/fieldlist"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// Store is one open Bigtable table with the points of all tenants. Open, New and embedded.Open make one. It is safe for
// concurrent use. Calls on the zero Store or nil fail with ErrInvalid, except Close.
type Store struct {
	storeGate

	core    *points.Table
	admin   func(context.Context) (*bigtable.AdminClient, error) // nil for none
	keep    bool                                                 // the caller closes the admin client
	closers closers

	creating ensure.Turns // for calls that create datasets for tenants
	changes  memories
	journals journals                                              // of open writers
	backup   func(ctx context.Context, dir string) (Backup, error) // nil for a store that is not in a folder
}

// Options configure a store of New.
type Options struct {
	StoreOptions
	// Conditional is the client for conditional writes, with an app profile with single-cluster routing. Nil is the
	// store's client.
	Conditional *bigtable.Client
	// Bulk is the client for bulk reads: see Config.BulkAppProfile. Nil is the store's client.
	Bulk *bigtable.Client
	// Admin is the client with which Ensure and EnsureView create tables, families and views. If it is nil, they fail.
	Admin *bigtable.AdminClient
	// OnClose is called once by Close, for example to close clients and connections. Its error is returned by Close.
	OnClose func() error
}

// New returns a store that uses the program's client. The program closes the client, after the store.
//
// Make the client with ClientConfig and DialOptions. Without them the store works, but a write that fails after it was
// sent is always unknown.
func New(client *bigtable.Client, table string, opts Options) (*Store, error) {
	if client == nil {
		return nil, invalid.New(ErrInvalid, "client", "nil", "a *bigtable.Client")
	}
	if err := cmp.Or(checkTable(table), opts.check()); err != nil {
		return nil, err
	}
	cursors, err := cursor.NewBox(opts.CursorKeys)
	if err != nil {
		return nil, err
	}
	conditional, bulk := cmp.Or(opts.Conditional, client), cmp.Or(opts.Bulk, client)
	s := &Store{
		core: &points.Table{Cache: opts.Cache.open(), Cursors: cursors, Tenancy: &tenancy.Tenancy{
			Whole:         bt.New(client.OpenTable(table), conditional.OpenTable(table), bulk.OpenTable(table), opts.Timeouts.resolve()),
			Name:          table,
			Clock:         opts.Clock,
			Limits:        opts.Limits,
			RequireTenant: opts.RequireTenant,
		}},
	}
	if s.core.Clock == nil {
		s.core.Clock = time.Now
	}
	s.core.Time = clock.New(s.core.Clock, nil)
	if opts.Views {
		s.core.Views = tenancy.OpenViews(client, conditional, bulk, table, opts.Timeouts.resolve())
	}
	s.core.Watch = opts.Telemetry.open(s)
	s.core.Time.Report(s.core.Watch.Clock)
	s.core.Fields = fieldlist.Open(s.core.Tenancy)
	if err := s.core.Tenancy.Open(s.dropTenants, opts.ProfileLimits); err != nil {
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

// Ping reports whether the table can be reached and read. Its error says why not: ErrNoTable, a missing permission, or
// no connection within the read timeout. It costs one request for one row, which need not exist.
func (s *Store) Ping(ctx context.Context) (err error) {
	ctx, op := s.begin(ctx, telemetry.Ping)
	defer func() { op.End(err) }()
	if err := s.admit(); err != nil {
		return err
	}
	_, err = s.core.Whole.Row(ctx, rowkey.FormatRow, bigtable.StripValueFilter())
	return s.core.Explain(err)
}

// Datasets returns the datasets in the table's catalogue, of all programs, as a sequence in the order of their names.
// Package dynamic describes them, and makes schemas that read their points. Each iteration costs a request per 1,000
// datasets. An entry that is damaged, or that a newer program wrote, is yielded as a nil Dataset with an error that
// names it and matches ErrUnreadableEntry, and the sequence continues. Any other error is the last pair.
func (s *Store) Datasets(ctx context.Context) iter.Seq2[Dataset, error] {
	return func(yield func(Dataset, error) bool) {
		ctx, op := s.begin(ctx, telemetry.Datasets)
		err, stopped := s.admit(), false
		defer func() { op.End(err) }()
		if err == nil {
			err = s.core.Explain(catalog.Walk(ctx, s.core.Whole, func(e catalog.Entry, err error) bool {
				var d *dataset.Dataset
				if err == nil {
					d, err = dataset.FromCatalog(e.Dataset)
				}
				if err != nil {
					stopped = !yield(nil, fmt.Errorf("%w: %w", ErrUnreadableEntry, err))
				} else {
					op.Returned(1)
					stopped = !yield(struct{ Dataset }{&Schema[int]{d: *d}}, nil) // no *Schema, whose values would be unknown
				}
				return !stopped
			}))
		}
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}

// admit returns an error if the store is closed or was never opened.
func (s *Store) admit() error {
	if s == nil || s.core == nil {
		return invalid.New(ErrInvalid, "store", "the zero value", "a store from Open, New or package embedded")
	}
	return s.core.Tenancy.AdmitOpen()
}

// Close makes every later call fail with ErrClosed, and closes the connections that Open made. Calls under way fail
// with the connection's error. If the store has noted new fields (dynamic.FieldsOf), it writes them first, for up to
// three seconds. Closing twice, or closing a nil or zero Store, returns nil, so Close can be deferred before the error
// of Open is checked.
func (s *Store) Close() error {
	if s == nil || s.core == nil || s.core.Closed.Swap(true) {
		return nil
	}
	s.core.Feed.Close()
	s.core.Fields.Close()
	s.core.Cache.Close()
	s.core.Tenancy.Close()
	s.core.Watch.Close()
	return s.closers.close()
}

// closers are closed in reverse order.
type closers []func() error

func (c closers) close() error {
	var errs []error
	for _, f := range slices.Backward(c) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// closeOnce closes c, which a client that used it may have closed already.
func closeOnce(c io.Closer) func() error {
	return func() error {
		if err := c.Close(); status.Code(err) != codes.Canceled {
			return err
		}
		return nil
	}
}
