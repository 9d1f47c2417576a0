package tenants

import (
	"context"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// room is a store's internals.
type room struct{ inside.Store }

// enterFor begins a call on one tenant. If the context carries a tenant, it must be the same. end ends the call, also
// after an error.
func enterFor(ctx context.Context, store *tsdb.Store, kind telemetry.Name, id tenant.ID) (_ context.Context, r room, end func(error), err error) {
	ctx, op := inside.Of(store).Watch().Begin(ctx, kind, telemetry.Subject{Tenant: id.String()})
	switch have, ok := tenant.FromContext(ctx); {
	case id.IsZero():
		err = invalid.New(tenant.ErrInvalid, "tenant", "empty", "a tenant from tenant.Parse")
	case ok && have != id:
		err = fmt.Errorf("%w: %s, the call is on %s", tsdb.ErrTenantMismatch, invalid.Quote(have.String()), id)
	default:
		r.Store, err = inside.Of(store).Internals()
	}
	return ctx, r, op.End, err
}

// enterForAll is enterFor for a call on all tenants. It fails if the context carries a tenant.
func enterForAll(ctx context.Context, store *tsdb.Store, kind telemetry.Name, id tenant.ID) (_ context.Context, r room, op *telemetry.Op, err error) {
	ctx, op = inside.Of(store).Watch().Begin(ctx, kind, telemetry.Subject{Tenant: id.String()})
	if have, ok := tenant.FromContext(ctx); ok {
		return ctx, r, op, fmt.Errorf("%w: %s, the call is on all tenants", tsdb.ErrTenantMismatch, invalid.Quote(have.String()))
	}
	r.Store, err = inside.Of(store).Internals()
	return ctx, r, op, err
}

// rows reads some rows of a range. It rejects rows outside the range before it reads their content.
func (r room) rows(ctx context.Context, rng rowkey.Range, filter bigtable.Filter, limit int64, visit func(*bt.Row)) error {
	read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: filter, Limit: limit, Long: limit != 1}
	for row, err := range r.Whole.Rows(ctx, read) {
		switch {
		case err != nil:
			return r.Explain(err)
		case row.Key() < rng.Start || row.Key() >= rng.Limit:
			return fmt.Errorf("%w: %s", tsdb.ErrForeignRow, r.Name)
		}
		visit(row)
	}
	return nil
}

// first returns the first key in a range; empty if there is none.
func (r room) first(ctx context.Context, rng rowkey.Range) (key string, err error) {
	if rng.Empty() {
		return "", nil
	}
	err = r.rows(ctx, rng, bt.KeysOnly(), 1, func(row *bt.Row) { key = row.Key() })
	return key, err
}

// page reads the first keys in a range.
func (r room) page(ctx context.Context, rng rowkey.Range, most int64) (keys []string, err error) {
	err = r.rows(ctx, rng, bt.KeysOnly(), most, func(row *bt.Row) { keys = append(keys, row.Key()) })
	return keys, err
}

// now returns the store's time with the precision of documents.
func (r room) now() time.Time { return r.Clock().UTC().Truncate(time.Millisecond) }

func checkText(field, text string, most int) error {
	switch {
	case len(text) > most:
		return invalid.New(tsdb.ErrInvalid, field, strconv.Itoa(len(text))+" bytes", fmt.Sprintf("at most %d bytes", most))
	case !utf8.ValidString(text):
		return invalid.New(tsdb.ErrInvalid, field, invalid.Quote(text), "valid UTF-8")
	}
	return nil
}
