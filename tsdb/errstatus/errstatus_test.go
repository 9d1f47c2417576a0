package errstatus_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"math"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/diskerr"
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/spool"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/internal/store/ensure"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/errstatus"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// want is the expected response to a sentinel.
type want struct {
	err  error
	http int
	grpc codes.Code
}

// sentinels are all exported sentinels of this module.
var sentinels = map[string]want{
	"tsdb.ErrDamaged":           {tsdb.ErrDamaged, 500, codes.Internal},
	"embedded.ErrClaimed":       {embedded.ErrClaimed, 503, codes.Unavailable},
	"tsdb.ErrLocked":            {tsdb.ErrLocked, 503, codes.Unavailable},
	"codec.ErrCorrupt":          {codec.ErrCorrupt, 500, codes.Internal},
	"codec.ErrEncode":           {codec.ErrEncode, 400, codes.InvalidArgument},
	"codec.ErrUnknownTag":       {codec.ErrUnknownTag, 500, codes.Internal},
	"tsdb.ErrTooManyFollowers":  {tsdb.ErrTooManyFollowers, 503, codes.Unavailable},
	"limit.ErrExceeded":         {limit.ErrExceeded, 429, codes.ResourceExhausted},
	"retention.ErrNotAllowed":   {retention.ErrNotAllowed, 403, codes.PermissionDenied},
	"retention.ErrStale":        {retention.ErrStale, 409, codes.Aborted},
	"rollup.ErrTooManyMessages": {rollup.ErrTooManyMessages, 503, codes.Unavailable},
	"tenant.ErrForbidden":       {tenant.ErrForbidden, 403, codes.PermissionDenied},
	"tenant.ErrInvalid":         {tenant.ErrInvalid, 400, codes.InvalidArgument},
	"tenant.ErrNoCredentials":   {tenant.ErrNoCredentials, 401, codes.Unauthenticated},
	"tenant.ErrUnauthenticated": {tenant.ErrUnauthenticated, 401, codes.Unauthenticated},
	"tenants.ErrConflict":       {tenants.ErrConflict, 409, codes.Aborted},
	"tenants.ErrImpossible":     {tenants.ErrImpossible, 409, codes.FailedPrecondition},
	"tenants.ErrTakenOver":      {tenants.ErrTakenOver, 409, codes.Aborted},
	"transfer.ErrDamaged":       {transfer.ErrDamaged, 400, codes.InvalidArgument},
	"transfer.ErrKey":           {transfer.ErrKey, 400, codes.InvalidArgument},
	"transfer.ErrTenant":        {transfer.ErrTenant, 400, codes.InvalidArgument},
	"transfer.ErrVersion":       {transfer.ErrVersion, 400, codes.InvalidArgument},
	"tsdb.ErrBufferFull":        {tsdb.ErrBufferFull, 503, codes.Unavailable},
	"tsdb.ErrClosed":            {tsdb.ErrClosed, 503, codes.Unavailable},
	"tsdb.ErrCursor":            {tsdb.ErrCursor, 400, codes.InvalidArgument},
	"tsdb.ErrErased":            {tsdb.ErrErased, 410, codes.FailedPrecondition},
	"tsdb.ErrExists":            {tsdb.ErrExists, 409, codes.AlreadyExists},
	"tsdb.ErrExpired":           {tsdb.ErrExpired, 400, codes.OutOfRange},
	"tsdb.ErrForeignRow":        {tsdb.ErrForeignRow, 500, codes.Internal},
	"tsdb.ErrInvalid":           {tsdb.ErrInvalid, 400, codes.InvalidArgument},
	"tsdb.ErrLate":              {tsdb.ErrLate, 400, codes.OutOfRange},
	"tsdb.ErrNoTable":           {tsdb.ErrNoTable, 500, codes.Internal},
	"tsdb.ErrNoTenant":          {tsdb.ErrNoTenant, 500, codes.Internal},
	"tsdb.ErrNoView":            {tsdb.ErrNoView, 500, codes.Internal},
	"tsdb.ErrNotFound":          {tsdb.ErrNotFound, 404, codes.NotFound},
	"tsdb.ErrRejected":          {tsdb.ErrRejected, 503, codes.Unavailable},
	"tsdb.ErrRemoving":          {tsdb.ErrRemoving, 503, codes.Unavailable},
	"tsdb.ErrUnreadableEntry":   {tsdb.ErrUnreadableEntry, 500, codes.Internal},
	"tsdb.ErrTenantMismatch":    {tsdb.ErrTenantMismatch, 403, codes.PermissionDenied},
	"tsdb.ErrTooFarAhead":       {tsdb.ErrTooFarAhead, 400, codes.OutOfRange},
	"tsdb.ErrUndelivered":       {tsdb.ErrUndelivered, 503, codes.Unavailable},
	"tsdb.ErrUnknown":           {tsdb.ErrUnknown, 503, codes.Unavailable},
	"window.ErrTooManyFilled":   {window.ErrTooManyFilled, 400, codes.InvalidArgument},
}

// hidden are sentinels that are not exported and have a response of their own.
var hidden = map[string]want{
	"errtype.ErrRemains":                {errtype.ErrRemains, 500, codes.Internal},
	"errtype.ErrErasing":                {errtype.ErrErasing, 409, codes.Aborted},
	"errtype.ErrPlan":                   {errtype.ErrPlan, 409, codes.FailedPrecondition},
	"errtype.ErrCheckpoint":             {errtype.ErrCheckpoint, 400, codes.InvalidArgument},
	"diskerr.ErrStorage":                {diskerr.ErrStorage, 503, codes.Unavailable},
	"rollupadd.ErrAdded":                {rollupadd.ErrAdded, 409, codes.FailedPrecondition},
	"rollupadd.ErrMode":                 {rollupadd.ErrMode, 500, codes.Internal},
	"rollupadd.ErrTooManyStreams":       {rollupadd.ErrTooManyStreams, 503, codes.Unavailable},
	"clock.ErrAhead":                    {clock.ErrAhead, 500, codes.Internal},
	"tenancy.ErrDatasetDeleted":         {tenancy.ErrDatasetDeleted, 410, codes.FailedPrecondition},
	"buffer.ErrTimeout":                 {buffer.ErrTimeout, 504, codes.DeadlineExceeded},
	"spool.ErrDamaged":                  {spool.ErrDamaged, 500, codes.Internal},
	"spool.ErrLocked":                   {spool.ErrLocked, 503, codes.Unavailable},
	"tenancy.ErrNoAdmin":                {tenancy.ErrNoAdmin, 500, codes.Internal},
	"ensure.ErrNoConditionalAggregates": {ensure.ErrNoConditionalAggregates, 500, codes.Internal},
	"points.ErrNoMerge":                 {points.ErrNoMerge, 409, codes.FailedPrecondition},
	"tenancy.ErrSchemaConflict":         {tenancy.ErrSchemaConflict, 500, codes.Internal},
	"bt.ErrUnguarded":                   {bt.ErrUnguarded, 500, codes.Internal},
	"buffer.ErrClosed":                  {buffer.ErrClosed, 503, codes.Unavailable},
	"codecerr.ErrInvalid":               {codecerr.ErrInvalid, 500, codes.Internal},
	"codecerr.ErrReadOnly":              {codecerr.ErrReadOnly, 500, codes.Internal},
	"invalid.ErrGRPC":                   {invalid.ErrGRPC, 500, codes.Internal},
	"invalid.ErrHTTP":                   {invalid.ErrHTTP, 500, codes.Internal},
	"invalid.ErrLimits":                 {invalid.ErrLimits, 500, codes.Internal},
	"invalid.ErrOrder":                  {invalid.ErrOrder, 500, codes.Internal},
	"invalid.ErrPersonal":               {invalid.ErrPersonal, 400, codes.InvalidArgument},
	"invalid.ErrPolicy":                 {invalid.ErrPolicy, 500, codes.Internal},
	"invalid.ErrVersions":               {invalid.ErrVersions, 500, codes.Internal},
}

// exported returns the exported sentinels in this module's source, as "package.ErrName".
func exported(t *testing.T) (names []string) {
	t.Helper()
	root := filepath.Join("..", "..")
	for _, top := range []string{"codec", "gc", "tenant", "tsdb"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, decl := range file.Decls {
				vars, ok := decl.(*ast.GenDecl)
				if !ok || vars.Tok != token.VAR {
					continue
				}
				for _, spec := range vars.Specs {
					for _, name := range spec.(*ast.ValueSpec).Names {
						if strings.HasPrefix(name.Name, "Err") {
							names = append(names, file.Name.Name+"."+name.Name)
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(names) == 0 {
		t.Fatal("no sentinels found")
	}
	return names
}

// TestEachSentinelHasAResponse: a new sentinel must get its own response, and not become a 500 unnoticed.
func TestEachSentinelHasAResponse(t *testing.T) {
	names := exported(t)
	for _, name := range names {
		if _, ok := sentinels[name]; !ok {
			t.Errorf("%s has no expected response in this test: choose one, and add a rule", name)
		}
	}
	for name := range sentinels {
		if !slices.Contains(names, name) {
			t.Errorf("%s is in this test, but not exported", name)
		}
	}
	all := maps.Clone(sentinels)
	maps.Copy(all, hidden)
	for name, w := range all {
		for how, err := range map[string]error{"alone": w.err, "wrapped": fmt.Errorf("tsdb: table secret: %w", w.err)} {
			check(t, name+" "+how, err, w.http, w.grpc)
		}
	}
}

// check compares both responses with the wanted ones, and checks that they do not contain the error's text.
func check(t *testing.T, name string, err error, wantHTTP int, wantGRPC codes.Code) {
	t.Helper()
	r := errstatus.HTTP(err)
	w := httptest.NewRecorder()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r.Write(w, httptest.NewRequestWithContext(gone, "GET", "/", nil))
	s := status.Convert(errstatus.GRPC(err))
	if r.Status != wantHTTP || w.Code != wantHTTP || s.Code() != wantGRPC {
		t.Errorf("%s: HTTP %d, written as %d, and gRPC %v; want %d and %v", name, r.Status, w.Code, s.Code(), wantHTTP, wantGRPC)
	}
	if r.Detail == "" || s.Message() != r.Detail || !strings.Contains(w.Body.String(), r.Detail) {
		t.Errorf("%s: details %q, %q and %s differ, or are empty", name, r.Detail, s.Message(), w.Body)
	}
	if strings.Contains(w.Body.String()+s.String(), "secret") {
		t.Errorf("%s: the response contains the error's text: %s, %s", name, w.Body, s)
	}
}

func TestErrorsWithCauses(t *testing.T) {
	rejected := func(err error) error {
		return &tsdb.WriteError{Outcome: tsdb.Outcome{State: tsdb.Rejected, Attempts: 1, Err: err}}
	}
	lost := func(err error) error {
		return &tsdb.WriteError{Outcome: tsdb.Outcome{State: tsdb.Unknown, Attempts: 3, Err: err}}
	}
	batch := func(states ...tsdb.Outcome) error {
		b := &tsdb.BatchError{Total: 10}
		for i, o := range states {
			b.Failed = append(b.Failed, tsdb.Failure{Index: i, Outcome: o})
		}
		return b
	}
	late := tsdb.Outcome{State: tsdb.Rejected, Err: fmt.Errorf("%w: secret", tsdb.ErrLate)}
	over := func(id limit.ID, retry time.Duration) error {
		return &limit.Error{ID: id, Tenant: tenant.MustParse("secret"), RetryAfter: retry}
	}
	for name, c := range map[string]struct {
		err   error
		http  int
		grpc  codes.Code
		retry time.Duration
	}{
		"a late point and one that the disk refused": {batch(late, tsdb.Outcome{State: tsdb.Rejected, Err: errors.New("secret")}), 503, codes.Unavailable, time.Second},
		"a point that is too large and one too many": {batch(tsdb.Outcome{State: tsdb.Rejected, Err: over(limit.PointBytes, 0)}, tsdb.Outcome{State: tsdb.Rejected, Err: over(limit.PointsPerSecond, 3*time.Second)}), 429, codes.ResourceExhausted, 3 * time.Second},
		"no write":                               {(*tsdb.WriteError)(nil), 500, codes.Internal, 0},
		"a write that was refused":               {rejected(tsdb.ErrLate), 400, codes.OutOfRange, 0},
		"a write that Bigtable refused":          {rejected(status.Error(codes.InvalidArgument, "secret")), 500, codes.Internal, 0},
		"a write in an outage":                   {rejected(status.Error(codes.Unavailable, "secret")), 503, codes.Unavailable, time.Second},
		"a write whose answer was lost":          {lost(status.Error(codes.Unavailable, "secret")), 503, codes.Unavailable, time.Second},
		"a write past its deadline":              {lost(context.DeadlineExceeded), 504, codes.DeadlineExceeded, 0},
		"a lost write without interceptors":      {lost(bt.ErrUnguarded), 503, codes.Unavailable, time.Second},
		"points that are late":                   {batch(late, late), 400, codes.OutOfRange, 0},
		"one late, one whose answer was lost":    {batch(late, tsdb.Outcome{State: tsdb.Unknown, Err: errors.New("secret")}), 503, codes.Unavailable, time.Second},
		"one late, one in an outage":             {batch(late, tsdb.Outcome{State: tsdb.Rejected, Err: status.Error(codes.Unavailable, "secret")}), 503, codes.Unavailable, time.Second},
		"one late, one over a rate":              {batch(late, tsdb.Outcome{State: tsdb.Rejected, Err: over(limit.PointsPerSecond, time.Minute)}), 429, codes.ResourceExhausted, time.Minute},
		"a table that does not exist":            {fmt.Errorf("%w: %w", tsdb.ErrNoTable, status.Error(codes.NotFound, "secret")), 500, codes.Internal, 0},
		"a right that the program does not have": {status.Error(codes.PermissionDenied, "secret"), 500, codes.Internal, 0},
		"a deadline of the service":              {status.Error(codes.DeadlineExceeded, "secret"), 504, codes.DeadlineExceeded, 0},
		"limits that a call was given":           {fmt.Errorf("%w: Limits: %w", tsdb.ErrInvalid, invalid.ErrLimits), 400, codes.InvalidArgument, 0},
		"a policy that a call was given":         {fmt.Errorf("%w: %w", tsdb.ErrInvalid, invalid.ErrVersions), 400, codes.InvalidArgument, 0},
		"a request that was cancelled":           {fmt.Errorf("secret: %w", context.Canceled), 499, codes.Canceled, 0},
		"a store that closes":                    {fmt.Errorf("%w: secret: %w", tsdb.ErrClosed, context.Canceled), 503, codes.Unavailable, time.Second},
		"too many points":                        {over(limit.PointsPerSecond, 1500*time.Millisecond), 429, codes.ResourceExhausted, 1500 * time.Millisecond},
		"too many entities":                      {over(limit.Entities, 0), 429, codes.ResourceExhausted, 0},
		"a payload that is too large":            {over(limit.PointBytes, 0), 413, codes.InvalidArgument, 0},
		"a range that is too long":               {over(limit.RangeLength, 0), 400, codes.InvalidArgument, 0},
		"a schema of another tenant":             {&tsdb.ConflictError{Differences: []string{"dataset secret"}}, 500, codes.Internal, 0},
		"a point that does not decode":           {&tsdb.PointError{Entity: tsdb.NewEntity("secret"), Err: codec.ErrCorrupt}, 500, codes.Internal, 0},
		"an error of somebody else":              {errors.New("secret"), 500, codes.Internal, 0},
	} {
		check(t, name, c.err, c.http, c.grpc)
		if got := errstatus.HTTP(c.err).RetryAfter; got != c.retry {
			t.Errorf("%s: retry after %v, want %v", name, got, c.retry)
		}
		var asked time.Duration
		for _, d := range status.Convert(errstatus.GRPC(c.err)).Details() {
			asked = d.(*errdetails.RetryInfo).GetRetryDelay().AsDuration()
		}
		if asked != c.retry {
			t.Errorf("%s: gRPC says to retry after %v, want %v", name, asked, c.retry)
		}
	}
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	for after, want := range map[time.Duration]string{0: "", 1: "1", time.Second: "1", 1001 * time.Millisecond: "2", math.MaxInt64: "9223372037"} {
		w := httptest.NewRecorder()
		errstatus.Response{Status: 429, RetryAfter: after}.Write(w, nil)
		if got := w.Header().Get("Retry-After"); got != want {
			t.Errorf("after %v: Retry-After is %q, want %q", after, got, want)
		}
	}
}

func TestNoError(t *testing.T) {
	if r := errstatus.HTTP(nil); r != (errstatus.Response{Status: 200}) {
		t.Errorf("HTTP(nil) = %+v", r)
	}
	if err := errstatus.GRPC(nil); err != nil {
		t.Errorf("GRPC(nil) = %v", err)
	}
	w := httptest.NewRecorder()
	errstatus.Response{}.Write(w, nil)
	if w.Code != 500 {
		t.Errorf("the zero Response is written as %d, want 500", w.Code)
	}
}

// TestCancelled: a client that has gone gets 499, for the log. A client that is still there gets 503 and tries again.
func TestCancelled(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errors.New("the server stops"))
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		status int
	}{
		"the client has gone":        {gone, 499},
		"the server stops":           {stopped, 503},
		"the request's time is over": {late, 503},
		"a call of the server":       {t.Context(), 503},
	} {
		w := httptest.NewRecorder()
		errstatus.HTTP(context.Canceled).Write(w, httptest.NewRequestWithContext(c.ctx, "GET", "/", nil))
		if again := w.Header().Get("Retry-After"); w.Code != c.status || (again != "") != (c.status == 503) {
			t.Errorf("%s: status %d and Retry-After %q, want %d", name, w.Code, again, c.status)
		}
	}
	w := httptest.NewRecorder()
	if errstatus.HTTP(context.Canceled).Write(w, nil); w.Code != 503 {
		t.Errorf("without a request: status %d, want 503", w.Code)
	}
}
