package tsdb

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Config says which Cloud Bigtable table a store is, how to reach it, and how it works.
type Config struct {
	StoreOptions
	// Project, Instance and Table name the table. All are required.
	Project, Instance, Table string
	// AppProfile routes all calls but conditional writes. Empty is the instance's default profile.
	AppProfile string
	// ConditionalAppProfile routes conditional writes (PutIfAbsent, first-wins schemas, Ensure), which Bigtable takes only
	// through a profile with single-cluster routing. Empty is AppProfile, which is enough where that one has it.
	ConditionalAppProfile string
	// ClientOptions are passed on to the official clients: credentials, endpoint, connection pool. A connection given with
	// option.WithGRPCConn must have been dialled with DialOptions.
	ClientOptions []option.ClientOption
	// MetricsProvider takes the official client's own metrics. Nil sends them to Cloud Monitoring;
	// bigtable.NoopMetricsProvider{} drops them.
	MetricsProvider bigtable.MetricsProvider
}

// The variables that ConfigFromEnv reads.
const (
	envProject     = "TIDEMARK_PROJECT"
	envInstance    = "TIDEMARK_INSTANCE"
	envTable       = "TIDEMARK_TABLE"
	envProfile     = "TIDEMARK_APP_PROFILE"
	envConditional = "TIDEMARK_CONDITIONAL_APP_PROFILE"
	envRead        = "TIDEMARK_READ_TIMEOUT"
	envWrite       = "TIDEMARK_WRITE_TIMEOUT"
	envScan        = "TIDEMARK_SCAN_TIMEOUT"
	envCursorKeys  = "TIDEMARK_CURSOR_KEYS"
	envEmulator    = "BIGTABLE_EMULATOR_HOST"
)

// ConfigFromEnv returns a Config from the environment: TIDEMARK_PROJECT (or else GOOGLE_CLOUD_PROJECT),
// TIDEMARK_INSTANCE and TIDEMARK_TABLE, which are required; TIDEMARK_APP_PROFILE, TIDEMARK_CONDITIONAL_APP_PROFILE, and the
// durations TIDEMARK_READ_TIMEOUT, TIDEMARK_WRITE_TIMEOUT and TIDEMARK_SCAN_TIMEOUT ("5s"), which are not; and
// TIDEMARK_CURSOR_KEYS, the CursorKeys in standard base64 with commas between them (each from "openssl rand -base64 32").
// Its error matches ErrInvalid and names the variable, and never shows a key. (BIGTABLE_EMULATOR_HOST is read by Open.)
func ConfigFromEnv() (Config, error) {
	c := Config{
		Project:               os.Getenv(envProject),
		Instance:              os.Getenv(envInstance),
		Table:                 os.Getenv(envTable),
		AppProfile:            os.Getenv(envProfile),
		ConditionalAppProfile: os.Getenv(envConditional),
	}
	if c.Project == "" {
		c.Project = os.Getenv("GOOGLE_CLOUD_PROJECT")
	}
	for _, v := range []struct{ name, value string }{{envProject, c.Project}, {envInstance, c.Instance}, {envTable, c.Table}} {
		if v.value == "" {
			return Config{}, invalid.New(ErrInvalid, "environment variable "+v.name, "empty", "a name")
		}
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
			return Config{}, invalid.New(ErrInvalid, "environment variable "+v.name, invalid.Quote(text), `a duration above 0, such as "5s"`)
		}
		*v.to = d
	}
	keys, err := parseCursorKeys(os.Getenv(envCursorKeys))
	if err != nil {
		return Config{}, err
	}
	c.CursorKeys = keys
	return c, nil
}

// scheme is what the official client cuts off an emulator's address.
var scheme = regexp.MustCompile(`^(http://|https://|passthrough:///)`)

var tableName = regexp.MustCompile(`^[_a-zA-Z0-9][-_.a-zA-Z0-9]{0,49}$`)

func checkTable(name string) error {
	if !tableName.MatchString(name) {
		return invalid.New(ErrInvalid, "table", invalid.Quote(name), "1 to 50 bytes of A-Z a-z 0-9 _ . -, the first one of A-Z a-z 0-9 _")
	}
	return nil
}

// Open opens a store on Cloud Bigtable, or on an emulator where BIGTABLE_EMULATOR_HOST is set. The official client warms
// its connections up before Open returns, so Open fails where the service cannot be reached (an emulator is dialled by the
// first call). Use Ping to find out whether the table can be read, Ensure or Verify to check it. Close the store when done.
//
// In emulator mode the official client dials a connection of its own beside the store's, and never closes it: see
// https://github.com/googleapis/google-cloud-go, bigtable v1.58.0, internal/option.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Project == "" {
		return nil, invalid.New(ErrInvalid, "project", "empty", "a name")
	}
	if c.Instance == "" {
		return nil, invalid.New(ErrInvalid, "instance", "empty", "a name")
	}
	opts := Options{StoreOptions: c.StoreOptions}
	opts.Telemetry.Namespace = cmp.Or(opts.Telemetry.Namespace, c.Project+"|"+c.Instance)
	if err := opts.check(c.Table); err != nil {
		return nil, err
	}
	clientOpts, closeConn, err := c.connection()
	if err != nil {
		return nil, err
	}
	var opened closers
	opened = append(opened, closeConn)
	fail := func(err error) (*Store, error) {
		_ = opened.close()
		return nil, err
	}
	client, err := c.client(ctx, c.AppProfile, clientOpts)
	if err != nil {
		return fail(err)
	}
	opened = append(opened, closeOnce(client))
	if c.ConditionalAppProfile != "" && c.ConditionalAppProfile != c.AppProfile {
		if opts.Conditional, err = c.client(ctx, c.ConditionalAppProfile, clientOpts); err != nil {
			return fail(err)
		}
		opened = append(opened, closeOnce(opts.Conditional))
	}
	s, err := New(client, c.Table, opts)
	if err != nil {
		return fail(err)
	}
	s.closers = opened
	s.admin = func(ctx context.Context) (*bigtable.AdminClient, error) {
		return bigtable.NewAdminClient(ctx, c.Project, c.Instance, c.ClientOptions...)
	}
	return s, nil
}

// connection returns the options by which the client gets guarded connections.
func (c Config) connection() ([]option.ClientOption, func() error, error) {
	nothing := func() error { return nil }
	if host := os.Getenv(envEmulator); host != "" {
		host = scheme.ReplaceAllString(host, "")
		// The client ignores dial options in this mode; only a connection of our own is guarded.
		conn, err := grpc.NewClient("passthrough:///"+host, append(DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		if err != nil {
			return nil, nothing, fmt.Errorf("tsdb: %s=%q: %w", envEmulator, host, err)
		}
		return append([]option.ClientOption{option.WithGRPCConn(conn)}, c.ClientOptions...), closeOnce(conn), nil
	}
	opts := make([]option.ClientOption, 0, len(c.ClientOptions)+2)
	for _, d := range DialOptions() {
		opts = append(opts, option.WithGRPCDialOption(d))
	}
	return append(opts, c.ClientOptions...), nothing, nil
}

func (c Config) client(ctx context.Context, profile string, opts []option.ClientOption) (*bigtable.Client, error) {
	conf := ClientConfig()
	conf.AppProfile, conf.MetricsProvider = profile, c.MetricsProvider
	client, err := bigtable.NewClientWithConfig(ctx, c.Project, c.Instance, conf, opts...)
	if err != nil {
		return nil, fmt.Errorf("tsdb: open %s/%s: %w", c.Project, c.Instance, err)
	}
	return client, nil
}

// ClientConfig returns the configuration for a *bigtable.Client that is to be handed to New: it keeps every call on the
// transport that passes the store's interceptors. Set AppProfile and MetricsProvider as you like; leave DisableSession.
func ClientConfig() bigtable.ClientConfig { return bigtable.ClientConfig{DisableSession: true} }

// DialOptions returns the interceptors without which the outcome of a failed write cannot be known. Pass each to the
// client that is to be handed to New with option.WithGRPCDialOption, or dial the connection for option.WithGRPCConn with
// them. Interceptors of your own go behind them, so that they see what is really sent.
func DialOptions() []grpc.DialOption { return bt.DialOptions() }
