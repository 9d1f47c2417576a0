package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// budget is an error of the program itself.
type budget struct{ kind string }

func (budget) Error() string       { return "over the budget of acme" }
func (b budget) ErrorType() string { return b.kind }

// TestErrorsHaveTheirTypes checks that errors of every package have types of their own, and errors of the program the
// type that they name. The service's status takes precedence.
func TestErrorsHaveTheirTypes(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
	for want, err := range map[string]error{
		"retention.ErrStale":        retention.ErrStale,
		"retention.ErrNotAllowed":   retention.ErrNotAllowed,
		"retention.ErrImpossible":   errtype.ErrPlan,
		"rollup.ErrMode":            rollupadd.ErrMode,
		"rollup.ErrAdded":           rollupadd.ErrAdded,
		"rollup.ErrTooManyMessages": rollup.ErrTooManyMessages,
		"rollup.ErrTooManyStreams":  rollupadd.ErrTooManyStreams,
		"tenants.ErrErasing":        errtype.ErrErasing,
		"tenants.ErrConflict":       tenants.ErrConflict,
		"tenants.ErrTakenOver":      tenants.ErrTakenOver,
		"tenants.ErrRemains":        errtype.ErrRemains,
		"transfer.ErrDamaged":       transfer.ErrDamaged,
		"transfer.ErrVersion":       transfer.ErrVersion,
		"transfer.ErrTenant":        transfer.ErrTenant,
		"transfer.ErrContinue":      errtype.ErrCheckpoint,
		"transfer.ErrKey":           transfer.ErrKey,
		"tsdb.ErrErased":            tsdb.ErrErased,
		"tsdb.ErrInvalid":           tsdb.ErrInvalid,
		"billing.ErrBudget":         fmt.Errorf("%w: %w", tsdb.ErrRejected, budget{"billing.ErrBudget"}),
		"tsdb.ErrLate":              fmt.Errorf("%w: %w", tsdb.ErrLate, budget{}),
		"RESOURCE_EXHAUSTED":        errors.Join(budget{"billing.ErrBudget"}, status.Error(grpccodes.ResourceExhausted, "no")),
		"CANCELLED":                 context.Canceled,
		"DEADLINE_EXCEEDED":         fmt.Errorf("%w: %w", context.DeadlineExceeded, errors.New("the cause")),
		"transfer.File":             errtype.Foreign("transfer.File", status.Error(grpccodes.PermissionDenied, "another service's")),
		"disk.ErrQuota":             errtype.Foreign("transfer.File", budget{"disk.ErrQuota"}),
		telemetry.Other:             errors.New("unknown"),
	} {
		_, op := inside.Of(w.store).Watch().Begin(t.Context(), telemetry.TenantErase, telemetry.Subject{})
		op.End(fmt.Errorf("in one call: %w", err))
		if n := w.counted("db.client.operation.duration", "error.type="+want); n != 1 {
			t.Errorf("%s: got %d operations for the error %v", want, n, err)
		}
		w.forget()
	}
	if _, err := rollup.NewAdder(hour, w.repo, nil).AddMany(t.Context(), []tsdb.Point[float64]{{Entity: roof, Time: w.base}, {Entity: nobody, Time: w.base}}); !errors.Is(err, rollupadd.ErrMode) {
		t.Fatal(err)
	}
	if n := w.counted("db.client.operation.duration", "db.operation.name=BATCH rollup.Add", "error.type=rollup.ErrMode"); n != 1 {
		t.Errorf("got %d operations of another mode", n)
	}
}

// full is a file on another service that has no space left.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, status.Error(grpccodes.ResourceExhausted, "no room")
}

func (full) Read([]byte) (int, error) { return 0, status.Error(grpccodes.Unavailable, "no bucket") }

// TestFilesAreNotBigtable checks that an error of a transfer's file, from another service, does not count as a status
// of Bigtable.
func TestFilesAreNotBigtable(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
	if _, err := transfer.Export(t.Context(), w.store, acme, full{}, transfer.ExportOptions{}); status.Code(err) != grpccodes.ResourceExhausted {
		t.Error(err)
	}
	if _, err := transfer.Import(t.Context(), w.store, acme, full{}, transfer.ImportOptions{}); status.Code(err) != grpccodes.Unavailable {
		t.Error(err)
	}
	for _, name := range []string{"transfer.Export", "transfer.Import"} {
		found := w.points("db.client.operation.duration", "db.operation.name="+name, "error.type=transfer.File")
		if len(found) != 1 || found[0].attrs["db.response.status_code"] != "" {
			t.Errorf("%s: got %+v", name, found)
		}
	}
}
