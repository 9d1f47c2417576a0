package tenant_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/tidemark-go/tidemark/tenant"
)

// Callers have a certificate, or come through a proxy that identifies them. If both, the two must agree.
func ExampleResolver() {
	resolver := tenant.Agree(
		tenant.FromCertificate(tenant.DNSName("clients.example.com")),
		tenant.FromHeader("X-Tenant"),
	)
	h := http.Header{"X-Tenant": {"acme"}}
	fmt.Println(resolver.Resolve(context.Background(), tenant.Request{Header: h.Values}))

	h.Add("X-Tenant", "globex")
	_, err := resolver.Resolve(context.Background(), tenant.Request{Header: h.Values})
	fmt.Println(errors.Is(err, tenant.ErrForbidden))
	// Output:
	// acme <nil>
	// true
}

// apiKeys are the tenants by API key.
type apiKeys map[string]tenant.ID

func (keys apiKeys) Resolve(_ context.Context, r tenant.Request) (tenant.ID, error) {
	sent := r.Header("X-Api-Key")
	if len(sent) == 0 {
		return tenant.ID{}, tenant.ErrNoCredentials
	}
	id, ok := keys[sent[0]]
	if !ok || len(sent) > 1 {
		return tenant.ID{}, tenant.ErrUnauthenticated
	}
	return id, nil
}

// A custom resolver looks up an API key from a header.
func ExampleResolver_custom() {
	var resolver tenant.Resolver = apiKeys{"k-1": tenant.MustParse("acme")}
	for _, key := range []string{"k-1", "k-2"} {
		h := http.Header{"X-Api-Key": {key}}
		fmt.Println(resolver.Resolve(context.Background(), tenant.Request{Header: h.Values}))
	}
	// Output:
	// acme <nil>
	//  tenant: unauthenticated
}

func ExampleFromClaim() {
	type subject struct{} // the key of the context value in which earlier authentication stores what it verified
	ctx := context.WithValue(context.Background(), subject{}, "acme")

	resolver := tenant.FromClaim(func(ctx context.Context) (string, bool) {
		name, ok := ctx.Value(subject{}).(string)
		return name, ok
	})
	fmt.Println(resolver.Resolve(ctx, tenant.Request{}))
	// Output: acme <nil>
}

// A service with its own protocol builds the request itself.
func ExampleRequest() {
	fields := map[string][]string{"tenant": {"acme"}}
	r := tenant.Request{Header: func(name string) []string { return fields[name] }}
	fmt.Println(tenant.FromHeader("tenant").Resolve(context.Background(), r))
	// Output: acme <nil>
}

func ExampleBind() {
	ctx, _ := tenant.Bind(context.Background(), tenant.MustParse("acme"))
	_, err := tenant.Bind(ctx, tenant.MustParse("globex"))
	fmt.Println(err)
	// Output: tenant: forbidden: the context carries another tenant: "acme", and now globex
}
