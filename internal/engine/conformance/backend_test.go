package conformance

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/bigtable/bttest"
	"go.uber.org/goleak"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	instanceName = "projects/p/instances/i"
	maxMessage   = 256 << 20
)

// backend is an implementation of Bigtable to test.
type backend struct {
	name string
	dial func(t testing.TB, c *clock) server
	// faults are the known faults of the backend, each with its reason, which a skipped test prints.
	faults map[fault]string
}

// server is a running backend.
type server struct {
	conn *grpc.ClientConn
	// collect runs garbage collection. It is nil if the backend cannot run it on demand.
	collect func() error
	stop    func()
}

// fault names a behaviour that some backend gets wrong.
type fault string

const (
	faultAtomicity    fault = "a failed mutation leaves nothing"
	faultMinMax       fault = "min and max families"
	faultCodes        fault = "status codes of refused writes"
	faultLimits       fault = "limits of size and number"
	faultGC           fault = "garbage collection on demand"
	faultViews        fault = "authorized views"
	faultFilters      fault = "every filter"
	faultFilterChecks fault = "refused filters"
	faultRowCells     fault = "limits of cells over several families"
	faultNil          fault = "empty and nil requests"
	faultAggregates   fault = "aggregate families hold nothing else"
	faultAdminChecks  fault = "refused admin requests"
	faultEmptyRows    fault = "a row without cells is no row"
	faultServerTime   fault = "a clock that tests set"
	faultStreams      fault = "reads stream"
	faultTables       fault = "tables as they were created"
	faultTimestamps   fault = "ranges of timestamps checked"
)

var fake = backend{
	name: "fake",
	dial: dialFake,
	faults: map[fault]string{
		faultAtomicity:    "leaves half a row behind a failed mutation",
		faultMinMax:       "min and max keep the last value",
		faultCodes:        "answers Unknown, and Internal in bulk",
		faultLimits:       "has none",
		faultGC:           "runs on its own time, and ignores rules given at creation, and intersections",
		faultViews:        "has none",
		faultFilters:      "passes filters that it does not know",
		faultFilterChecks: "checks a filter only when a cell meets it, and not all of it",
		faultRowCells:     "takes families in random order",
		faultNil:          "panics",
		faultAggregates:   "mixes aggregate and plain cells",
		faultAdminChecks:  "checks little",
		faultEmptyRows:    "keeps rows without cells",
		faultServerTime:   "uses the machine's clock",
		faultStreams:      "gathers the whole range first",
		faultTables:       "forgets some settings",
		faultTimestamps:   "accepts what the service refuses",
	},
}

// backends are all backends that the suite runs against.
var backends = []backend{fake}

func dialFake(t testing.TB, _ *clock) server {
	lis := bufconn.Listen(1 << 20)
	srv, err := bttest.NewServerWithListener(lis, grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))
	if err != nil {
		t.Fatal(err)
	}
	conn := dialAt(t, "passthrough:///fake", func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) })
	return server{conn: conn, stop: func() {
		conn.Close()
		lis.Close() // Before the server, which otherwise waits for it.
		srv.Close()
	}}
}

func dialAt(t testing.TB, target string, dialer func(context.Context, string) (net.Conn, error)) *grpc.ClientConn {
	opts := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
	}
	if dialer != nil {
		opts = append(opts, grpc.WithContextDialer(dialer))
	}
	conn, err := grpc.NewClient(target, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// clock is a clock that tests advance by hand. It starts on a whole millisecond.
type clock struct{ micros atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.micros.Store(time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC).UnixMicro())
	return c
}

func (c *clock) steady() time.Duration         { return time.Duration(c.micros.Load()) * time.Microsecond }
func (c *clock) now() time.Time                { return time.UnixMicro(c.micros.Load()) }
func (c *clock) timestamp() bigtable.Timestamp { return bigtable.Timestamp(c.micros.Load()) }
func (c *clock) advance(d time.Duration)       { c.micros.Add(d.Microseconds()) }

// env is one backend under test. It starts without tables.
type env struct {
	testing.TB
	server
	backend backend
	clock   *clock
	ctx     context.Context

	client *bigtable.Client
	admin  *bigtable.AdminClient
	// data and tables are the gRPC services, for requests that the client would not send.
	data   bigtablepb.BigtableClient
	tables adminpb.BigtableTableAdminClient
}

// needs skips the test on a backend with one of the faults.
func (e *env) needs(fs ...fault) {
	e.Helper()
	for _, f := range fs {
		if why, ok := e.backend.faults[f]; ok {
			e.Skipf("%s: the %s %s", f, e.backend.name, why)
		}
	}
}

func open(t testing.TB, b backend) *env {
	t.Helper()
	c := newClock()
	s := b.dial(t, c)
	t.Cleanup(s.stop)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	client, err := bigtable.NewClientWithConfig(ctx, "p", "i", bigtable.ClientConfig{
		MetricsProvider: bigtable.NoopMetricsProvider{}, DisableSession: true,
	}, option.WithGRPCConn(s.conn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	admin, err := bigtable.NewAdminClient(ctx, "p", "i", option.WithGRPCConn(s.conn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	return &env{
		TB: t, server: s, backend: b, clock: c, ctx: ctx, client: client, admin: admin,
		data: bigtablepb.NewBigtableClient(s.conn), tables: adminpb.NewBigtableTableAdminClient(s.conn),
	}
}

// each runs a test against every backend, each time on a fresh one.
func each(t *testing.T, test func(*testing.T, *env)) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) { test(t, open(t, b)) })
	}
}
