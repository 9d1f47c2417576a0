package tenant_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/tenant"
)

type claimKey struct{}

func claim(ctx context.Context) (string, bool) {
	name, ok := ctx.Value(claimKey{}).(string)
	return name, ok
}

// request returns a request with the given X-Tenant headers.
func request(tenants ...string) tenant.Request {
	return tenant.Request{Header: http.Header{"X-Tenant": tenants}.Values}
}

// reparsed returns a certificate as a server sees it.
func reparsed(t testing.TB, template *x509.Certificate) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantResolved(t *testing.T, what string, id tenant.ID, err error, want string, wantErr error) {
	t.Helper()
	if id.String() != want || !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
		t.Errorf("%s = %q, %v; want %q, %v", what, id, err, want, wantErr)
	}
}

func TestFromHeader(t *testing.T) {
	for _, tt := range []struct {
		values []string
		want   string
		err    error
	}{
		{nil, "", tenant.ErrNoCredentials},
		{[]string{"acme"}, "acme", nil},
		{[]string{"acme", "globex"}, "", tenant.ErrForbidden},
		{[]string{"acme", "acme"}, "", tenant.ErrForbidden}, // somebody added a header
		{[]string{"acme,globex"}, "", tenant.ErrForbidden},
		{[]string{""}, "", tenant.ErrForbidden},
		{[]string{" acme"}, "", tenant.ErrForbidden},
		{[]string{"acme#x"}, "", tenant.ErrForbidden},
		{[]string{strings.Repeat("x", 65)}, "", tenant.ErrForbidden},
	} {
		id, err := tenant.FromHeader("x-tenant").Resolve(context.Background(), request(tt.values...))
		wantResolved(t, strings.Join(tt.values, "|"), id, err, tt.want, tt.err)
	}
	id, err := tenant.FromHeader("x-tenant").Resolve(context.Background(), tenant.Request{})
	wantResolved(t, "the zero request", id, err, "", tenant.ErrUnauthenticated)
}

func TestARefusedValueIsNotInTheError(t *testing.T) {
	_, err := tenant.FromHeader("X-Tenant").Resolve(context.Background(), request("Bearer s3cret"))
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error %v shows the value, which may be a secret", err)
	}
}

func TestFromClaim(t *testing.T) {
	for _, tt := range []struct {
		ctx  context.Context
		want string
		err  error
	}{
		{context.Background(), "", tenant.ErrNoCredentials},
		{context.WithValue(context.Background(), claimKey{}, "acme"), "acme", nil},
		{context.WithValue(context.Background(), claimKey{}, ""), "", tenant.ErrForbidden},
		{context.WithValue(context.Background(), claimKey{}, "a/b"), "", tenant.ErrForbidden},
	} {
		id, err := tenant.FromClaim(claim).Resolve(tt.ctx, tenant.Request{})
		wantResolved(t, "the claim", id, err, tt.want, tt.err)
	}
}

func TestFromCertificate(t *testing.T) {
	uri := func(texts ...string) (uris []*url.URL) {
		for _, text := range texts {
			u, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			uris = append(uris, u)
		}
		return uris
	}
	twoNames := pkix.Name{ExtraNames: []pkix.AttributeTypeAndValue{
		{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "globex"}, {Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "acme"},
	}}
	clients, spiffe := tenant.DNSName("clients.example.com"), tenant.URI("spiffe://example.com/tenant")
	for _, tt := range []struct {
		name  string
		cert  x509.Certificate
		names func(*x509.Certificate) []string
		want  string
		err   error
	}{
		{"common name", x509.Certificate{Subject: pkix.Name{CommonName: "acme"}}, tenant.CommonName, "acme", nil},
		{"no common name", x509.Certificate{DNSNames: []string{"acme"}}, tenant.CommonName, "", tenant.ErrForbidden},
		{"common name of a person", x509.Certificate{Subject: pkix.Name{CommonName: "Anna Smith"}}, tenant.CommonName, "", tenant.ErrForbidden},
		{"two common names", x509.Certificate{Subject: twoNames}, tenant.CommonName, "", tenant.ErrForbidden},

		{"DNS name", x509.Certificate{DNSNames: []string{"acme.clients.example.com"}}, clients, "acme", nil},
		{"DNS name in capitals", x509.Certificate{DNSNames: []string{"ACME.Clients.Example.COM"}}, clients, "acme", nil},
		{"beside other names", x509.Certificate{DNSNames: []string{"gw.example.org", "acme.clients.example.com"}}, clients, "acme", nil},
		{"twice the same", x509.Certificate{DNSNames: []string{"acme.clients.example.com", "acme.clients.example.com"}}, clients, "acme", nil},
		{"two tenants", x509.Certificate{DNSNames: []string{"acme.clients.example.com", "globex.clients.example.com"}}, clients, "", tenant.ErrForbidden},
		{"wildcard", x509.Certificate{DNSNames: []string{"*.clients.example.com"}}, clients, "", tenant.ErrForbidden},
		{"more labels", x509.Certificate{DNSNames: []string{"a.acme.clients.example.com"}}, clients, "", tenant.ErrForbidden},
		{"the domain itself", x509.Certificate{DNSNames: []string{"clients.example.com"}}, clients, "", tenant.ErrForbidden},
		{"another domain's end", x509.Certificate{DNSNames: []string{"acme.evilclients.example.com"}}, clients, "", tenant.ErrForbidden},
		{"no domain", x509.Certificate{DNSNames: []string{"acme"}}, tenant.DNSName(""), "", tenant.ErrForbidden},

		{"URI", x509.Certificate{URIs: uri("spiffe://example.com/tenant/acme")}, spiffe, "acme", nil},
		{"URI with more behind", x509.Certificate{URIs: uri("spiffe://example.com/tenant/acme/gateway")}, spiffe, "acme", nil},
		{"another trust domain", x509.Certificate{URIs: uri("spiffe://example.com.evil/tenant/acme")}, spiffe, "", tenant.ErrForbidden},
		{"another beginning", x509.Certificate{URIs: uri("spiffe://example.com/tenants/acme")}, spiffe, "", tenant.ErrForbidden},
		{"another host before a trust domain", x509.Certificate{URIs: uri("spiffe://example.com@evil/tenant/acme")}, spiffe, "", tenant.ErrForbidden},
		{"URI with a query", x509.Certificate{URIs: uri("spiffe://example.com/tenant/acme?x")}, spiffe, "", tenant.ErrForbidden},
		{"escaped URI", x509.Certificate{URIs: uri("spiffe://example.com/tenant/acme%2Fx")}, spiffe, "", tenant.ErrForbidden},
		{"two URIs of tenants", x509.Certificate{URIs: uri("spiffe://example.com/tenant/acme", "spiffe://example.com/tenant/globex")}, spiffe, "", tenant.ErrForbidden},
	} {
		id, err := tenant.FromCertificate(tt.names).Resolve(context.Background(), tenant.Request{Certificate: reparsed(t, &tt.cert)})
		wantResolved(t, tt.name, id, err, tt.want, tt.err)
	}
	id, err := tenant.FromCertificate(clients).Resolve(context.Background(), tenant.Request{})
	wantResolved(t, "no certificate", id, err, "", tenant.ErrNoCredentials)
}

func TestAgree(t *testing.T) {
	down := errors.New("the directory is down")
	is := func(name string) tenant.Resolver {
		return tenant.FromClaim(func(context.Context) (string, bool) { return name, true })
	}
	fails := func(err error) tenant.Resolver {
		return resolverFunc(func(context.Context, tenant.Request) (tenant.ID, error) { return tenant.ID{}, err })
	}
	for _, tt := range []struct {
		name      string
		resolvers []tenant.Resolver
		want      string
		err       error
	}{
		{"none", nil, "", tenant.ErrNoCredentials},
		{"one", []tenant.Resolver{is("acme")}, "acme", nil},
		{"two that agree", []tenant.Resolver{is("acme"), is("acme")}, "acme", nil},
		{"two that differ", []tenant.Resolver{is("acme"), is("globex")}, "", tenant.ErrForbidden},
		{"nothing, then one", []tenant.Resolver{fails(tenant.ErrNoCredentials), is("acme")}, "acme", nil},
		{"one, then nothing", []tenant.Resolver{is("acme"), fails(tenant.ErrNoCredentials)}, "acme", nil},
		{"only nothing", []tenant.Resolver{fails(tenant.ErrNoCredentials)}, "", tenant.ErrUnauthenticated},
		{"one, then a bad token", []tenant.Resolver{is("acme"), fails(tenant.ErrUnauthenticated)}, "", tenant.ErrUnauthenticated},
		{"a bad name, then one", []tenant.Resolver{is("a#b"), is("acme")}, "", tenant.ErrForbidden},
		{"one, then a failure", []tenant.Resolver{is("acme"), fails(down)}, "", down},
	} {
		id, err := tenant.Agree(tt.resolvers...).Resolve(context.Background(), tenant.Request{})
		wantResolved(t, tt.name, id, err, tt.want, tt.err)
	}
}

// A resolver that was built wrongly admits no caller, and its error does not blame the caller.
func TestABrokenResolver(t *testing.T) {
	r := request("acme")
	r.Certificate = &x509.Certificate{}
	zero := resolverFunc(func(context.Context, tenant.Request) (tenant.ID, error) { return tenant.ID{}, nil })
	for name, broken := range map[string]tenant.Resolver{
		"a nil claim":       tenant.FromClaim(nil),
		"nil names":         tenant.FromCertificate(nil),
		"a nil one":         tenant.Agree(tenant.FromHeader("X-Tenant"), nil),
		"one with zero IDs": tenant.Agree(tenant.FromHeader("X-Tenant"), zero),
	} {
		id, err := broken.Resolve(context.Background(), r)
		if err == nil || !id.IsZero() || errors.Is(err, tenant.ErrUnauthenticated) || errors.Is(err, tenant.ErrForbidden) {
			t.Errorf("%s: %v, %v; want an error of its own", name, id, err)
		}
	}
}

func TestBind(t *testing.T) {
	acme, globex := tenant.MustParse("acme"), tenant.MustParse("globex")
	ctx, err := tenant.Bind(context.Background(), acme)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := tenant.Bind(ctx, acme); err != nil || again != ctx {
		t.Errorf("binding the same tenant again: %v; want the same context", err)
	}
	for name, tt := range map[string]struct {
		ctx context.Context
		id  tenant.ID
		err error
	}{
		"another tenant":       {ctx, globex, tenant.ErrForbidden},
		"nobody":               {ctx, tenant.ID{}, tenant.ErrInvalid},
		"after the zero ID":    {tenant.NewContext(ctx, tenant.ID{}), acme, tenant.ErrForbidden},
		"into another's child": {context.WithValue(ctx, claimKey{}, "x"), globex, tenant.ErrForbidden},
	} {
		if got, err := tenant.Bind(tt.ctx, tt.id); !errors.Is(err, tt.err) || got != nil {
			t.Errorf("%s: %v, %v; want %v and a nil context", name, got, err, tt.err)
		}
	}
}

func FuzzFromHeader(f *testing.F) {
	f.Add("acme", "", false)
	f.Add("acme", "acme2", true)
	f.Fuzz(func(t *testing.T, first, second string, both bool) {
		values := []string{first}
		if both {
			values = append(values, second)
		}
		id, err := tenant.FromHeader("X-Tenant").Resolve(context.Background(), request(values...))
		_, invalid := tenant.Parse(first)
		switch {
		case (err == nil) != (!both && invalid == nil):
			t.Fatalf("%q: %v, %v", values, id, err)
		case err == nil && id.String() != first:
			t.Fatalf("%q is accepted as %v", values, id)
		case err != nil && (!errors.Is(err, tenant.ErrForbidden) || !id.IsZero()):
			t.Fatalf("%q: %v, %v", values, id, err)
		}
	})
}

func FuzzFromCertificate(f *testing.F) {
	f.Add("acme.clients.example.com", "spiffe://example.com/tenant/acme/x", "acme")
	f.Add(".clients.example.com", "spiffe://example.com/tenant//acme", "")
	f.Fuzz(func(t *testing.T, dns, uri, common string) {
		c := &x509.Certificate{DNSNames: []string{dns}}
		c.Subject.Names = []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: common}}
		if u, err := url.Parse(uri); err == nil {
			c.URIs = []*url.URL{u}
		}
		resolve := func(names func(*x509.Certificate) []string) (string, bool) {
			id, err := tenant.FromCertificate(names).Resolve(context.Background(), tenant.Request{Certificate: c})
			if (err == nil) == id.IsZero() || err != nil && !errors.Is(err, tenant.ErrForbidden) {
				t.Fatalf("%q %q %q: %v, %v", dns, uri, common, id, err)
			}
			return id.String(), err == nil
		}
		if id, ok := resolve(tenant.DNSName("clients.example.com")); ok && !strings.EqualFold(dns, id+".clients.example.com") {
			t.Fatalf("%q is accepted as %q", dns, id)
		}
		if id, ok := resolve(tenant.URI("spiffe://example.com/tenant/")); ok {
			text := c.URIs[0].String() + "/"
			if !strings.HasPrefix(text, "spiffe://example.com/tenant/"+id+"/") {
				t.Fatalf("%q is accepted as %q", text, id)
			}
		}
		if id, ok := resolve(tenant.CommonName); ok && id != common {
			t.Fatalf("%q is accepted as %q", common, id)
		}
	})
}

// resolverFunc is a function as a resolver.
type resolverFunc func(ctx context.Context, r tenant.Request) (tenant.ID, error)

func (f resolverFunc) Resolve(ctx context.Context, r tenant.Request) (tenant.ID, error) {
	return f(ctx, r)
}
