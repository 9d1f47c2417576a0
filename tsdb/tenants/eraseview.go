package tenants

import (
	"context"
	"errors"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tsdb"
)

// viewStays starts the report's line about a view that could not be deleted.
const viewStays = "The tenant's authorized view "

// dropView deletes the tenant's view, because its name contains the tenant's name. If it cannot, the report says so.
func (e *erasure) dropView(ctx context.Context) error {
	rec := &e.rec
	listed := func(s string) bool { return strings.HasPrefix(s, viewStays) }
	if !rec.Ended.IsZero() && !slices.ContainsFunc(rec.Unreached, listed) {
		return nil // it is deleted, and no view is made for an erased tenant
	}
	rec.Unreached = slices.DeleteFunc(rec.Unreached, listed)
	err := e.deleteView(ctx)
	switch status.Code(err) {
	case codes.NotFound, codes.Unimplemented: // no view exists
		return nil
	case codes.PermissionDenied, codes.FailedPrecondition:
	default:
		if !errors.Is(err, tenancy.ErrNoAdmin) {
			return err
		}
	}
	rec.Unreached = append(rec.Unreached, viewStays+tsdb.ViewID(e.id)+", if there is one, as this program may not delete it. It holds no data; its name tells the tenant's.")
	return nil
}

// deleteView deletes the view with the admin API. It does not retry.
func (e *erasure) deleteView(ctx context.Context) error {
	admin, end, err := e.Admin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return e.Whole.Retry(ctx, func(ctx context.Context) (bool, error) {
		err := admin.DeleteAuthorizedView(ctx, e.Name, tsdb.ViewID(e.id))
		return err == nil, err
	})
}
