package tsdb_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/bigtable/bttest"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/internal/version"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
)

func status(err error) codes.Code { return grpcstatus.Code(err) }

// listen serves Bigtable's API on loopback.
func listen(t *testing.T, opts ...grpc.ServerOption) (addr string) {
	t.Helper()
	srv, err := bttest.NewServer("127.0.0.1:0", opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv.Addr
}

// use writes and reads, and provokes a refusal with a store whose table does not exist. Only with the guard on the
// connection is it known to be a refusal.
func use(t *testing.T, store, missing *tsdb.Store, guarded bool) {
	t.Helper()
	s := readings(t, tsdb.SchemaOptions{Retention: d90})
	if err := store.Ensure(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := store.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	repo := s.For(store, acme)
	now := time.Now()
	if err := repo.Put(t.Context(), roof, now, reading{1}); err != nil {
		t.Errorf("Put: %v", err)
	}
	if _, err := repo.PutMany(t.Context(), []tsdb.Point[reading]{{Entity: roof, Time: now.Add(1), Value: reading{2}}}); err != nil {
		t.Errorf("PutMany: %v", err)
	}
	if p, err := repo.Latest(t.Context(), roof); err != nil || p.Value.TempC != 2 {
		t.Errorf("Latest = %v, %v", p, err)
	}
	err := s.For(missing, acme).Put(t.Context(), roof, now, reading{})
	_, errMany := s.For(missing, acme).PutMany(t.Context(), []tsdb.Point[reading]{{Entity: roof, Time: now}})
	for call, err := range map[string]error{"Put": err, "PutMany": errMany} {
		if guarded && (!errors.Is(err, tsdb.ErrRejected) || errors.Is(err, bt.ErrUnguarded)) {
			t.Errorf("%s refused by the service: %v, want ErrRejected", call, err)
		}
		if !guarded && (!errors.Is(err, tsdb.ErrUnknown) || !errors.Is(err, bt.ErrUnguarded)) {
			t.Errorf("%s over an unguarded client: %v, want ErrUnknown and ErrUnguardedClient", call, err)
		}
	}
}

// TestOpenDials uses the client's own dialling, as on Cloud Bigtable.
func TestOpenDials(t *testing.T) {
	c := tsdb.Config{
		Project: "p", Instance: "i", Table: "t", ConditionalAppProfile: "single", MetricsProvider: bigtable.NoopMetricsProvider{},
		ClientOptions: []option.ClientOption{
			option.WithEndpoint(listen(t)), option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		},
	}
	store := must[*tsdb.Store](t)(tsdb.Open(t.Context(), c))
	defer store.Close()
	c.Table = "missing"
	missing := must[*tsdb.Store](t)(tsdb.Open(t.Context(), c))
	defer missing.Close()
	use(t, store, missing, true)
}

func TestNewOverACallersClient(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		opts := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
		if guarded {
			opts = append(opts, tsdb.DialOptions()...)
		}
		conn, err := grpc.NewClient(listen(t), opts...)
		if err != nil {
			t.Fatal(err)
		}
		conf := tsdb.ClientConfig()
		if !conf.DisableSession {
			t.Error("calls of a caller's client may bypass the interceptors")
		}
		conf.MetricsProvider = bigtable.NoopMetricsProvider{}
		client, err := bigtable.NewClientWithConfig(t.Context(), "p", "i", conf, option.WithGRPCConn(conn))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		admin, err := bigtable.NewAdminClient(t.Context(), "p", "i", option.WithGRPCConn(conn))
		if err != nil {
			t.Fatal(err)
		}
		store, err := tsdb.New(client, "t", tsdb.Options{Admin: admin})
		if err != nil {
			t.Fatal(err)
		}
		missing, err := tsdb.New(client, "missing", tsdb.Options{})
		if err != nil {
			t.Fatal(err)
		}
		use(t, store, missing, guarded)
		if err := missing.Ensure(t.Context()); !errors.Is(err, tenancy.ErrNoAdmin) {
			t.Errorf("Ensure without an admin client: %v, want ErrNoAdmin", err)
		}
		if err := errors.Join(missing.Close(), store.Close()); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, tt := range []struct {
		c    tsdb.Config
		want string
	}{
		{tsdb.Config{Instance: "i", Table: "t"}, "project is empty"},
		{tsdb.Config{Project: "p", Table: "t"}, "instance is empty"},
		{tsdb.Config{Project: "p", Instance: "i"}, "table is empty"},
		{tsdb.Config{Project: "p", Instance: "i", Table: "a/b"}, `table is "a/b"`},
		{tsdb.Config{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Read: -1}}, Project: "p", Instance: "i", Table: "t"}, "timeout Read is -1ns"},
	} {
		tt.c.ClientOptions = []option.ClientOption{option.WithoutAuthentication()}
		store, err := tsdb.Open(t.Context(), tt.c)
		if !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Open(%+v) = %v, %v, want %q", tt.c, store, err, tt.want)
		}
	}
	if _, err := tsdb.New(nil, "t", tsdb.Options{}); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("New(nil) = %v, want ErrInvalid", err)
	}
}

func TestConfigFromEnv(t *testing.T) {
	set := func(env map[string]string) {
		for _, name := range []string{
			"TIDEMARK_PROJECT", "GOOGLE_CLOUD_PROJECT", "TIDEMARK_INSTANCE", "TIDEMARK_TABLE", "TIDEMARK_APP_PROFILE",
			"TIDEMARK_CONDITIONAL_APP_PROFILE", "TIDEMARK_BULK_APP_PROFILE", "TIDEMARK_READ_TIMEOUT", "TIDEMARK_WRITE_TIMEOUT", "TIDEMARK_SCAN_TIMEOUT",
		} {
			t.Setenv(name, env[name])
		}
	}
	set(map[string]string{"GOOGLE_CLOUD_PROJECT": "p", "TIDEMARK_INSTANCE": "i", "TIDEMARK_TABLE": "t", "TIDEMARK_BULK_APP_PROFILE": "bulk", "TIDEMARK_READ_TIMEOUT": "3s"})
	c, err := tsdb.ConfigFromEnv()
	if err != nil || c.Project != "p" || c.Instance != "i" || c.Table != "t" || c.BulkAppProfile != "bulk" || c.Timeouts.Read != 3*time.Second {
		t.Errorf("ConfigFromEnv = %+v, %v", c, err)
	}
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"TIDEMARK_INSTANCE": "i", "TIDEMARK_TABLE": "t"}, "TIDEMARK_PROJECT"},
		{map[string]string{"TIDEMARK_PROJECT": "p", "TIDEMARK_TABLE": "t"}, "TIDEMARK_INSTANCE"},
		{map[string]string{"TIDEMARK_PROJECT": "p", "TIDEMARK_INSTANCE": "i"}, "TIDEMARK_TABLE"},
		{map[string]string{"TIDEMARK_PROJECT": "p", "TIDEMARK_INSTANCE": "i", "TIDEMARK_TABLE": "t", "TIDEMARK_SCAN_TIMEOUT": "5"}, "TIDEMARK_SCAN_TIMEOUT"},
	} {
		set(tt.env)
		if _, err := tsdb.ConfigFromEnv(); !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want it to name %s", tt.env, err, tt.want)
		}
	}
}

// emulatorChild is set in the child process, a program that uses an emulator.
const emulatorChild = "TIDEMARK_TEST_EMULATOR_CHILD"

// TestEmulator: with BIGTABLE_EMULATOR_HOST set, the connection is still guarded and has the program's interceptors,
// and Close returns nil.
func TestEmulator(t *testing.T) {
	if os.Getenv(emulatorChild) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEmulator$", "-test.v")
		cmd.Env = append(os.Environ(), emulatorChild+"=1", "BIGTABLE_EMULATOR_HOST=http://"+listen(t))
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestEmulator") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	var passed atomic.Int64
	count := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		passed.Add(1)
		return invoker(ctx, method, req, reply, cc, opts...)
	}
	for _, conditional := range []string{"", "single"} {
		c := tsdb.Config{
			Project: "p", Instance: "i", Table: "t" + conditional, ConditionalAppProfile: conditional,
			DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(count)},
		}
		store := must[*tsdb.Store](t)(tsdb.Open(t.Context(), c))
		c.Table = "missing"
		missing := must[*tsdb.Store](t)(tsdb.Open(t.Context(), c))
		use(t, store, missing, true)
		if err := errors.Join(store.Close(), missing.Close()); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if passed.Load() == 0 {
		t.Error("no call passed the interceptor in DialOptions")
	}
}

// TestDirectAccessAndProfiles: Open passes DisableDirectAccess on, uses each app profile for its own calls, and sends
// the version of this module.
func TestDirectAccessAndProfiles(t *testing.T) {
	t.Setenv("CBT_ENABLE_DIRECTPATH", "") // as if unset
	var agents sync.Map
	addr := listen(t, grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		agents.Store(path.Base(info.FullMethod), strings.Join(md.Get("user-agent"), ""))
		return next(ctx, req)
	}))
	for _, disabled := range []bool{false, true} {
		var features btpb.FeatureFlags
		profiles := map[string]bool{} // of reads
		record := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			md, _ := metadata.FromOutgoingContext(ctx)
			b, err := base64.URLEncoding.DecodeString(strings.Join(md.Get("bigtable-features"), ""))
			if err := errors.Join(err, proto.Unmarshal(b, &features)); err != nil {
				t.Error(err)
			}
			if params, err := url.ParseQuery(strings.Join(md.Get("x-goog-request-params"), "&")); err == nil && path.Base(method) == "ReadRows" {
				profiles[params.Get("app_profile_id")] = true
			}
			return streamer(ctx, desc, cc, method, opts...)
		}
		store := must[*tsdb.Store](t)(tsdb.Open(t.Context(), tsdb.Config{
			Project: "p", Instance: "i", Table: "t", AppProfile: "general", BulkAppProfile: "bulk", DisableDirectAccess: disabled,
			MetricsProvider: bigtable.NoopMetricsProvider{},
			DialOptions:     []grpc.DialOption{grpc.WithChainStreamInterceptor(record)},
			ClientOptions: []option.ClientOption{
				option.WithEndpoint(addr), option.WithoutAuthentication(),
				option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
			},
		}))
		defer store.Close()
		s := readings(t, tsdb.SchemaOptions{})
		if err := store.Ensure(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if features.DirectAccessRequested == disabled {
			t.Errorf("DisableDirectAccess %v: the client requests direct access: %v", disabled, features.DirectAccessRequested)
		}
		if want := map[string]bool{"general": true}; !maps.Equal(profiles, want) {
			t.Errorf("Ensure read with the profiles %v, want general", profiles)
		}
		for _, method := range []string{"CreateTable", "CheckAndMutateRow"} {
			if agent, _ := agents.Load(method); !strings.HasPrefix(fmt.Sprint(agent), "tidemark/"+version.Version+" ") {
				t.Errorf("%s came from the user agent %q, want tidemark/%s", method, agent, version.Version)
			}
		}
		if err := s.For(store, acme).Put(t.Context(), roof, start, reading{}); err != nil {
			t.Fatal(err)
		}
		if done, err := transfer.Export(t.Context(), store, acme, io.Discard, transfer.ExportOptions{}); err != nil || done.Points != 1 {
			t.Fatalf("an export of one point has %d, %v", done.Points, err)
		}
		if !profiles["bulk"] {
			t.Errorf("an export read with the profiles %v, want bulk among them", profiles)
		}
	}
}
