package grpctenant_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/grpctenant"
)

// whoami returns the context's tenant in the trailer, or "none". It is the health service, which has unary and
// streaming calls, so the tests need no protos.
type whoami struct{ *health.Server }

func tell(ctx context.Context, set func(metadata.MD)) {
	name := "none"
	if id, ok := tenant.FromContext(ctx); ok {
		name = id.String()
	}
	set(metadata.Pairs("whoami", name))
}

func (s whoami) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	tell(ctx, func(md metadata.MD) { _ = grpc.SetTrailer(ctx, md) })
	return &healthpb.HealthCheckResponse{}, nil
}

func (s whoami) Watch(_ *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	tell(stream.Context(), stream.SetTrailer)
	return nil
}

func edge(t testing.TB, resolver tenant.Resolver, opts grpctenant.Options) *grpctenant.Edge {
	t.Helper()
	e, err := grpctenant.New(resolver, opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// serve returns a client of a server behind the edges, in order.
func serve(t testing.TB, server, client credentials.TransportCredentials, edges ...*grpctenant.Edge) healthpb.HealthClient {
	t.Helper()
	opts := []grpc.ServerOption{grpc.Creds(server)}
	for _, e := range edges {
		opts = append(opts, grpc.ChainUnaryInterceptor(e.Unary), grpc.ChainStreamInterceptor(e.Stream))
	}
	s := grpc.NewServer(opts...)
	healthpb.RegisterHealthServer(s, whoami{health.NewServer()})
	l := bufconn.Listen(1 << 20)
	go func() { _ = s.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///clients.example.com",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
		grpc.WithTransportCredentials(client))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		_ = l.Close()
		s.Stop()
	})
	return healthpb.NewHealthClient(conn)
}

// calls asks for the tenant with a call of each kind.
var calls = map[string]func(ctx context.Context, c healthpb.HealthClient) (string, error){
	"unary": func(ctx context.Context, c healthpb.HealthClient) (string, error) {
		var md metadata.MD
		_, err := c.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Trailer(&md))
		return strings.Join(md.Get("whoami"), ","), err
	},
	"stream": func(ctx context.Context, c healthpb.HealthClient) (string, error) {
		s, err := c.Watch(ctx, &healthpb.HealthCheckRequest{})
		if err != nil {
			return "", err
		}
		if _, err = s.Recv(); errors.Is(err, io.EOF) {
			err = nil
		}
		return strings.Join(s.Trailer().Get("whoami"), ","), err
	},
}

func eachCall(t *testing.T, f func(t *testing.T, call func(ctx context.Context, c healthpb.HealthClient) (string, error))) {
	for name, call := range calls {
		t.Run(name, func(t *testing.T) { f(t, call) })
	}
}

func as(tenants ...string) context.Context {
	var kv []string
	for _, name := range tenants {
		kv = append(kv, "x-tenant", name)
	}
	return metadata.AppendToOutgoingContext(context.Background(), kv...)
}

func TestCalls(t *testing.T) {
	fails := func(err error) tenant.Resolver {
		return resolverFunc(func(context.Context, tenant.Request) (tenant.ID, error) { return tenant.ID{}, err })
	}
	header := tenant.FromHeader("X-Tenant")
	eachCall(t, func(t *testing.T, call func(ctx context.Context, c healthpb.HealthClient) (string, error)) {
		for _, tt := range []struct {
			name     string
			resolver tenant.Resolver
			ctx      context.Context
			want     string
			code     codes.Code
		}{
			{"a tenant", header, as("acme"), "acme", codes.OK},
			{"nobody", header, context.Background(), "", codes.Unauthenticated},
			{"twice", header, as("acme", "acme"), "", codes.PermissionDenied},
			{"two", header, as("acme", "globex"), "", codes.PermissionDenied},
			{"a bad name", header, as("secret name"), "", codes.PermissionDenied},
			{"a bad token", fails(tenant.ErrUnauthenticated), as("acme"), "", codes.Unauthenticated},
			{"the resolver fails", fails(errors.New("secret: down")), as("acme"), "", codes.Internal},
			{"the resolver says nothing", fails(nil), as("acme"), "", codes.Internal},
			{"the zero edge", nil, as("acme"), "", codes.Internal},
		} {
			var refused error
			e := &grpctenant.Edge{}
			if tt.resolver != nil {
				e = edge(t, tt.resolver, grpctenant.Options{Refused: func(_ context.Context, _ string, err error) { refused = err }})
			}
			got, err := call(tt.ctx, serve(t, insecure.NewCredentials(), insecure.NewCredentials(), e))
			if got != tt.want || status.Code(err) != tt.code {
				t.Errorf("%s: %q, %v; want %q, %v", tt.name, got, err, tt.want, tt.code)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: the caller gets the secret in %v", tt.name, err)
			}
			if (refused != nil) != (err != nil && tt.resolver != nil) {
				t.Errorf("%s: the hook got %v", tt.name, refused)
			}
		}
	})
}

func TestASecondTenantIsRefused(t *testing.T) {
	first := edge(t, tenant.FromHeader("x-tenant"), grpctenant.Options{})
	eachCall(t, func(t *testing.T, call func(ctx context.Context, c healthpb.HealthClient) (string, error)) {
		for name, code := range map[string]codes.Code{"acme": codes.OK, "globex": codes.PermissionDenied} {
			second := edge(t, tenant.FromClaim(func(context.Context) (string, bool) { return name, true }), grpctenant.Options{})
			got, err := call(as("acme"), serve(t, insecure.NewCredentials(), insecure.NewCredentials(), first, second))
			if status.Code(err) != code || (err == nil) != (got == "acme") {
				t.Errorf("acme, then %s: %q, %v; want %v", name, got, err, code)
			}
		}
	})
}

func TestPublicMethods(t *testing.T) {
	e := edge(t, tenant.FromHeader("x-tenant"), grpctenant.Options{Public: func(method string) bool { return method == healthpb.Health_Check_FullMethodName }})
	c := serve(t, insecure.NewCredentials(), insecure.NewCredentials(), e)
	if got, err := calls["unary"](as("acme"), c); err != nil || got != "none" {
		t.Errorf("a public method: %q, %v; want no tenant, because none was resolved", got, err)
	}
	if _, err := calls["stream"](context.Background(), c); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a method that is not public: %v", err)
	}
}

func TestAResolverThatWaits(t *testing.T) {
	waits := resolverFunc(func(ctx context.Context, _ tenant.Request) (tenant.ID, error) {
		<-ctx.Done()
		return tenant.ID{}, ctx.Err()
	})
	e := edge(t, waits, grpctenant.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := e.Unary(ctx, nil, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) { return nil, nil })
	if status.Code(err) != codes.Canceled {
		t.Errorf("a cancelled call: %v, want Canceled", err)
	}
}

// A client can create a certificate for any tenant; only a certificate that the server has verified counts.
func TestOnlyVerifiedCertificatesCount(t *testing.T) {
	own, leaf := selfSigned(t)
	trusted := x509.NewCertPool()
	trusted.AddCert(leaf)
	e := edge(t, tenant.FromCertificate(tenant.DNSName("clients.example.com")), grpctenant.Options{})
	for name, tt := range map[string]struct {
		auth  tls.ClientAuthType
		certs []tls.Certificate
		want  string
		code  codes.Code
	}{
		"verified":       {tls.RequireAndVerifyClientCert, []tls.Certificate{own}, "acme", codes.OK},
		"only presented": {tls.RequireAnyClientCert, []tls.Certificate{own}, "", codes.Unauthenticated},
		"none":           {tls.VerifyClientCertIfGiven, nil, "", codes.Unauthenticated},
	} {
		server := credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tt.auth, ClientCAs: trusted})
		client := credentials.NewTLS(&tls.Config{RootCAs: trusted, ServerName: "acme.clients.example.com", Certificates: tt.certs})
		got, err := calls["unary"](context.Background(), serve(t, server, client, e))
		if got != tt.want || status.Code(err) != tt.code {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, err, tt.want, tt.code)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := grpctenant.New(nil, grpctenant.Options{}); !errors.Is(err, invalid.ErrGRPC) {
		t.Errorf("no resolver: %v, want ErrInvalid", err)
	}
}

func selfSigned(t testing.TB) (tls.Certificate, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"acme.clients.example.com"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, leaf
}

// resolverFunc is a function as a resolver.
type resolverFunc func(ctx context.Context, r tenant.Request) (tenant.ID, error)

func (f resolverFunc) Resolve(ctx context.Context, r tenant.Request) (tenant.ID, error) {
	return f(ctx, r)
}
