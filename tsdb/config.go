package tsdb

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/version"
)

// Config configures a store on Cloud Bigtable.
type Config struct {
	StoreOptions
	// Project, Instance and Table identify the table. All are required.
	Project, Instance, Table string
	// AppProfile is the app profile for all calls except those of the two below. Empty is the instance's default
	// profile.
	AppProfile string
	// ConditionalAppProfile is the app profile for conditional writes (PutIfAbsent, schemas with FirstWins or Merge,
	// rollups, Ensure, package tenants) and for the reads that they depend on. Bigtable accepts them only through a
	// profile with single-cluster routing. Empty means AppProfile.
	ConditionalAppProfile string
	// BulkAppProfile is the app profile for long reads that decide nothing: the rows of exports (package transfer), and
	// the samples of tidectl and the console. A profile with a low priority or with Data Boost keeps their load away
	// from other requests. With Data Boost they may miss the writes and deletions of the last half hour: see
	// docs/production.md. Empty means AppProfile.
	BulkAppProfile string
	// DisableDirectAccess keeps the official client from connecting to Bigtable's servers without a proxy, which it
	// tries by default. If the variable CBT_ENABLE_DIRECTPATH is set, the client follows it instead. See
	// docs/production.md.
	DisableDirectAccess bool
	// ClientOptions are passed to the official clients: credentials, endpoint, connection pool. A connection passed
	// with option.WithGRPCConn must be dialled with DialOptions.
	ClientOptions []option.ClientOption
	// DialOptions are added to the connections, behind the store's interceptors: theirs see each request that is sent.
	// See package heatmap. A connection in ClientOptions ignores them.
	DialOptions []grpc.DialOption
	// MetricsProvider receives the official client's own metrics. Nil sends them to Cloud Monitoring;
	// bigtable.NoopMetricsProvider{} drops them.
	MetricsProvider bigtable.MetricsProvider
}

// Environment variables that ConfigFromEnv and Open read.
const (
	envProject     = "TIDEMARK_PROJECT"
	envInstance    = "TIDEMARK_INSTANCE"
	envTable       = "TIDEMARK_TABLE"
	envProfile     = "TIDEMARK_APP_PROFILE"
	envConditional = "TIDEMARK_CONDITIONAL_APP_PROFILE"
	envBulk        = "TIDEMARK_BULK_APP_PROFILE"
	envRead        = "TIDEMARK_READ_TIMEOUT"
	envWrite       = "TIDEMARK_WRITE_TIMEOUT"
	envScan        = "TIDEMARK_SCAN_TIMEOUT"
	envCursorKeys  = "TIDEMARK_CURSOR_KEYS"
	envEmulator    = "BIGTABLE_EMULATOR_HOST"
)

// ConfigFromEnv returns a Config from environment variables:
//
//   - TIDEMARK_PROJECT (or GOOGLE_CLOUD_PROJECT), TIDEMARK_INSTANCE and TIDEMARK_TABLE; all required.
//   - TIDEMARK_APP_PROFILE, TIDEMARK_CONDITIONAL_APP_PROFILE and TIDEMARK_BULK_APP_PROFILE.
//   - TIDEMARK_READ_TIMEOUT, TIDEMARK_WRITE_TIMEOUT and TIDEMARK_SCAN_TIMEOUT: durations such as "5s".
//   - TIDEMARK_CURSOR_KEYS: the CursorKeys in standard base64, separated by commas; "openssl rand -base64 32" makes
//     one.
//
// The error matches ErrInvalid, names the variable, and never shows a key. Open reads BIGTABLE_EMULATOR_HOST.
func ConfigFromEnv() (Config, error) {
	c := Config{
		Project:               cmp.Or(os.Getenv(envProject), os.Getenv("GOOGLE_CLOUD_PROJECT")),
		Instance:              os.Getenv(envInstance),
		Table:                 os.Getenv(envTable),
		AppProfile:            os.Getenv(envProfile),
		ConditionalAppProfile: os.Getenv(envConditional),
		BulkAppProfile:        os.Getenv(envBulk),
	}
	const variable = "environment variable "
	if err := cmp.Or(required(variable+envProject, c.Project), required(variable+envInstance, c.Instance), required(variable+envTable, c.Table)); err != nil {
		return Config{}, err
	}
	for _, v := range []struct {
		name string
		to   *time.Duration
	}{{envRead, &c.Timeouts.Read}, {envWrite, &c.Timeouts.Write}, {envScan, &c.Timeouts.Scan}} {
		text := os.Getenv(v.name)
		if text == "" {
			continue
		}
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return Config{}, invalid.New(ErrInvalid, variable+v.name, invalid.Quote(text), `a duration above 0, such as "5s"`)
		}
		*v.to = d
	}
	keys, err := cursor.ParseKeys(variable+envCursorKeys, os.Getenv(envCursorKeys))
	if err != nil {
		return Config{}, err
	}
	c.CursorKeys = keys
	return c, nil
}

// required returns an error if a value is empty.
func required(name, value string) error {
	if value == "" {
		return invalid.New(ErrInvalid, name, "empty", "a name")
	}
	return nil
}

// userAgent names this module to the service. An option.WithUserAgent in Config.ClientOptions replaces it.
const userAgent = "tidemark/" + version.Version

// scheme is the part that the official client removes from an emulator's address.
var scheme = regexp.MustCompile(`^(http://|https://|passthrough:///)`)

var tableName = regexp.MustCompile(`^[_a-zA-Z0-9][-_.a-zA-Z0-9]{0,49}$`)

func checkTable(name string) error {
	if !tableName.MatchString(name) {
		return invalid.New(ErrInvalid, "table", invalid.Quote(name), "1 to 50 bytes of A-Z a-z 0-9 _ . -, the first one of A-Z a-z 0-9 _")
	}
	return nil
}

// Open opens a store on Cloud Bigtable, or on an emulator if BIGTABLE_EMULATOR_HOST is set. The official client
// connects before Open returns, so Open fails if the service is unreachable; an emulator is dialled by the first call.
// Open does not check the table: use Ping, Ensure or Verify. Close the store when done.
//
// With an emulator the official client also dials one connection of its own, and never closes it: see
// https://github.com/googleapis/google-cloud-go, bigtable v1.58.0, internal/option.
func Open(ctx context.Context, c Config) (*Store, error) {
	opts := Options{StoreOptions: c.StoreOptions}
	opts.Telemetry.Namespace = cmp.Or(opts.Telemetry.Namespace, c.Project+"|"+c.Instance)
	if err := cmp.Or(required("project", c.Project), required("instance", c.Instance), checkTable(c.Table), opts.check(), ctxerr.Of(ctx)); err != nil {
		return nil, err
	}
	clientOpts, closeConn, err := c.connection()
	if err != nil {
		return nil, err
	}
	opened := closers{closeConn}
	fail := func(err error) (*Store, error) {
		_ = opened.close()
		return nil, err
	}
	client, err := c.client(ctx, c.AppProfile, clientOpts)
	if err != nil {
		return fail(err)
	}
	opened = append(opened, closeOnce(client))
	for _, other := range []struct {
		profile string
		client  **bigtable.Client
	}{{c.ConditionalAppProfile, &opts.Conditional}, {c.BulkAppProfile, &opts.Bulk}} {
		if other.profile == "" || other.profile == c.AppProfile {
			continue
		}
		if *other.client, err = c.client(ctx, other.profile, clientOpts); err != nil {
			return fail(err)
		}
		opened = append(opened, closeOnce(*other.client))
	}
	s, err := New(client, c.Table, opts)
	if err != nil {
		return fail(err)
	}
	s.closers = opened
	s.admin = func(ctx context.Context) (*bigtable.AdminClient, error) {
		return bigtable.NewAdminClient(ctx, c.Project, c.Instance, append([]option.ClientOption{option.WithUserAgent(userAgent)}, c.ClientOptions...)...)
	}
	return s, nil
}

// connection returns the options that install the store's interceptors.
func (c Config) connection() ([]option.ClientOption, func() error, error) {
	nothing := func() error { return nil }
	if host := os.Getenv(envEmulator); host != "" {
		host = scheme.ReplaceAllString(host, "")
		// The client ignores dial options in this mode; only a connection of our own is guarded.
		conn, err := grpc.NewClient("passthrough:///"+host, append(c.dialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUserAgent(userAgent))...)
		if err != nil {
			return nil, nothing, fmt.Errorf("tsdb: %s=%q: %w", envEmulator, host, err)
		}
		return append([]option.ClientOption{option.WithGRPCConn(conn)}, c.ClientOptions...), closeOnce(conn), nil
	}
	dial := c.dialOptions()
	opts := append(make([]option.ClientOption, 0, 1+len(c.ClientOptions)+len(dial)), option.WithUserAgent(userAgent))
	for _, d := range dial {
		opts = append(opts, option.WithGRPCDialOption(d))
	}
	return append(opts, c.ClientOptions...), nothing, nil
}

func (c Config) dialOptions() []grpc.DialOption { return slices.Concat(DialOptions(), c.DialOptions) }

func (c Config) client(ctx context.Context, profile string, opts []option.ClientOption) (*bigtable.Client, error) {
	conf := ClientConfig()
	conf.AppProfile, conf.MetricsProvider, conf.DisableDirectAccess = profile, c.MetricsProvider, c.DisableDirectAccess
	client, err := bigtable.NewClientWithConfig(ctx, c.Project, c.Instance, conf, opts...)
	if err != nil {
		return nil, fmt.Errorf("tsdb: open %s/%s: %w", c.Project, c.Instance, err)
	}
	return client, nil
}

// ClientConfig returns the configuration for a *bigtable.Client to pass to New. It keeps every call on the transport
// with the store's interceptors. You may set other fields; do not change DisableSession.
func ClientConfig() bigtable.ClientConfig { return bigtable.ClientConfig{DisableSession: true} }

// DialOptions returns the store's interceptors, which determine the outcomes of failed writes. Pass each to the client
// with option.WithGRPCDialOption, or dial the connection for option.WithGRPCConn with them. Add your own interceptors
// after them, so that yours see each request that is sent. Interceptors before them see one entry without a key in
// place of the rows of a bulk write.
func DialOptions() []grpc.DialOption { return bt.DialOptions() }
