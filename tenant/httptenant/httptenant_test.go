package httptenant_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/httptenant"
)

// whoami writes the tenant of the request. A handler must not run without a tenant.
var whoami = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	id, ok := tenant.FromContext(r.Context())
	if !ok {
		w.WriteHeader(http.StatusTeapot)
	}
	_, _ = w.Write([]byte(id.String()))
})

func edge(t testing.TB, resolver tenant.Resolver, opts httptenant.Options) func(http.Handler) http.Handler {
	t.Helper()
	e, err := httptenant.New(resolver, opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func ask(h http.Handler, path string, tenants ...string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header["X-Tenant"] = tenants
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(r *http.Response) string {
	var b strings.Builder
	_ = r.Write(&b)
	_, text, _ := strings.Cut(b.String(), "\r\n\r\n")
	return text
}

func TestATenantGoesIntoTheContext(t *testing.T) {
	h := edge(t, tenant.FromHeader("X-Tenant"), httptenant.Options{})(whoami)
	if got := ask(h, "/", "acme"); got.StatusCode != http.StatusOK || !strings.Contains(body(got), "acme") {
		t.Errorf("status %d, want 200", got.StatusCode)
	}
}

func TestWithoutATenantNoHandlerRuns(t *testing.T) {
	down := errors.New("secret: the directory is down")
	fails := func(err error) tenant.Resolver {
		return resolverFunc(func(context.Context, tenant.Request) (tenant.ID, error) { return tenant.ID{}, err })
	}
	for _, tt := range []struct {
		name      string
		resolver  tenant.Resolver
		tenants   []string
		status    int
		challenge string
	}{
		{"no header", tenant.FromHeader("X-Tenant"), nil, http.StatusUnauthorized, "Bearer"},
		{"two headers", tenant.FromHeader("X-Tenant"), []string{"acme", "acme"}, http.StatusForbidden, ""},
		{"a bad name", tenant.FromHeader("X-Tenant"), []string{"secret name"}, http.StatusForbidden, ""},
		{"the resolver fails", fails(down), []string{"acme"}, http.StatusInternalServerError, ""},
		{"the resolver says nothing", fails(nil), []string{"acme"}, http.StatusInternalServerError, ""},
		{"a bad token", fails(tenant.ErrUnauthenticated), []string{"acme"}, http.StatusUnauthorized, "Bearer"},
	} {
		ran := false
		h := edge(t, tt.resolver, httptenant.Options{})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran = true }))
		got := ask(h, "/", tt.tenants...)
		if ran {
			t.Fatalf("%s: the handler ran", tt.name)
		}
		text := body(got)
		var problem struct {
			Type, Title, Detail string
			Status              int
		}
		if err := json.Unmarshal([]byte(strings.TrimSpace(unchunked(text))), &problem); err != nil {
			t.Errorf("%s: %q: %v", tt.name, text, err)
		}
		if got.StatusCode != tt.status || problem.Status != tt.status || problem.Type != "about:blank" || problem.Title == "" || problem.Detail == "" {
			t.Errorf("%s: status %d with %+v, want %d", tt.name, got.StatusCode, problem, tt.status)
		}
		if kind := got.Header.Get("Content-Type"); kind != "application/problem+json" {
			t.Errorf("%s: content type %q", tt.name, kind)
		}
		if c := got.Header.Get("WWW-Authenticate"); c != tt.challenge {
			t.Errorf("%s: WWW-Authenticate = %q, want %q", tt.name, c, tt.challenge)
		}
		if strings.Contains(text, "secret") {
			t.Errorf("%s: the response shows a secret: %s", tt.name, text)
		}
	}
}

// unchunked returns the JSON object in a body.
func unchunked(text string) string {
	return text[strings.IndexByte(text, '{') : strings.LastIndexByte(text, '}')+1]
}

func TestASecondTenantIsRefused(t *testing.T) {
	first := edge(t, tenant.FromHeader("X-Tenant"), httptenant.Options{})
	second := func(name string) func(http.Handler) http.Handler {
		return edge(t, tenant.FromClaim(func(context.Context) (string, bool) { return name, true }), httptenant.Options{})
	}
	if got := ask(first(second("acme")(whoami)), "/", "acme"); got.StatusCode != http.StatusOK {
		t.Errorf("the same tenant twice: status %d", got.StatusCode)
	}
	got := ask(first(second("globex")(whoami)), "/", "acme")
	if text := body(got); got.StatusCode != http.StatusForbidden || strings.Contains(text, "acme") || strings.Contains(text, "globex") {
		t.Errorf("another tenant in one request: status %d, %s", got.StatusCode, text)
	}
}

func TestPublicRequests(t *testing.T) {
	h := edge(t, tenant.FromHeader("X-Tenant"), httptenant.Options{Public: httptenant.Paths("/healthz")})(whoami)
	for path, want := range map[string]int{
		"/healthz":            http.StatusTeapot, // runs without a tenant
		"/healthz/":           http.StatusUnauthorized,
		"/healthz/../secret":  http.StatusUnauthorized,
		"//healthz":           http.StatusUnauthorized,
		"/secret?/healthz":    http.StatusUnauthorized,
		"/secret#/healthz":    http.StatusUnauthorized,
		"/secret;/../healthz": http.StatusUnauthorized,
		"/Healthz":            http.StatusUnauthorized,
	} {
		if got := ask(h, path); got.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, got.StatusCode, want)
		}
	}
	if got := ask(h, "/healthz", "acme"); got.StatusCode != http.StatusTeapot {
		t.Error("a public request has a tenant that was not checked")
	}
}

func TestAnAnswerOfOnesOwn(t *testing.T) {
	var refused error
	h := edge(t, tenant.FromHeader("X-Tenant"), httptenant.Options{Answer: func(w http.ResponseWriter, _ *http.Request, err error) {
		refused = err
		w.WriteHeader(http.StatusTeapot)
	}})(whoami)
	if got := ask(h, "/"); got.StatusCode != http.StatusTeapot || !errors.Is(refused, tenant.ErrNoCredentials) {
		t.Errorf("status %d, hook got %v", got.StatusCode, refused)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, opts := range map[string]httptenant.Options{
		"two lines":    {Challenge: "Bearer\r\nSet-Cookie: a=b"},
		"not in ASCII": {Challenge: "Bearer realm=\"käse\""},
	} {
		if _, err := httptenant.New(tenant.FromHeader("X-Tenant"), opts); !errors.Is(err, invalid.ErrHTTP) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	if _, err := httptenant.New(nil, httptenant.Options{}); !errors.Is(err, invalid.ErrHTTP) {
		t.Errorf("no resolver: %v, want ErrInvalid", err)
	}
}

// A client can create a certificate for any tenant; only a certificate that the server has verified counts.
func TestOnlyVerifiedCertificatesCount(t *testing.T) {
	own, leaf := selfSigned(t, "acme.clients.example.com")
	trusted := x509.NewCertPool()
	trusted.AddCert(leaf)
	for name, tt := range map[string]struct {
		auth   tls.ClientAuthType
		pool   *x509.CertPool
		certs  []tls.Certificate
		status int
	}{
		"verified":         {tls.VerifyClientCertIfGiven, trusted, []tls.Certificate{own}, http.StatusOK},
		"only presented":   {tls.RequireAnyClientCert, x509.NewCertPool(), []tls.Certificate{own}, http.StatusUnauthorized},
		"none":             {tls.VerifyClientCertIfGiven, trusted, nil, http.StatusUnauthorized},
		"requested, no CA": {tls.RequestClientCert, nil, []tls.Certificate{own}, http.StatusUnauthorized},
	} {
		server := httptest.NewUnstartedServer(edge(t, tenant.FromCertificate(tenant.DNSName("clients.example.com")), httptenant.Options{})(whoami))
		server.TLS = &tls.Config{ClientAuth: tt.auth, ClientCAs: tt.pool}
		server.StartTLS()
		client := server.Client()
		client.Transport.(*http.Transport).TLSClientConfig.Certificates = tt.certs
		got, err := client.Get(server.URL)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if text := body(got); got.StatusCode != tt.status || (tt.status == http.StatusOK) != strings.Contains(text, "acme") {
			t.Errorf("%s: status %d, %s; want %d", name, got.StatusCode, text, tt.status)
		}
		server.Close()
	}
}

func selfSigned(t testing.TB, dns string) (tls.Certificate, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{dns}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true, IsCA: true,
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
