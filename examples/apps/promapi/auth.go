package main

import (
	"context"
	"encoding/base64"
	"strings"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tenant"
)

// orgHeader names the tenant behind a proxy that has authenticated the caller, as Grafana's own databases have it.
const orgHeader = "X-Scope-OrgID"

// tokens finds the tenant of a request by its token: "Authorization: Bearer TOKEN", or Basic with the tenant's name as
// the user and the token as the password. It implements tenant.Resolver.
type tokens struct{ *edge.Tokens }

// Resolve refuses a request with two Authorization headers: a proxy and this program might each read another one.
func (ts *tokens) Resolve(_ context.Context, r tenant.Request) (tenant.ID, error) {
	sent := r.Header("Authorization")
	if len(sent) == 0 {
		return tenant.ID{}, tenant.ErrNoCredentials
	}
	scheme, secret, _ := strings.Cut(sent[0], " ")
	secret = strings.TrimSpace(secret)
	user := ""
	switch {
	case len(sent) > 1:
		return tenant.ID{}, tenant.ErrUnauthenticated
	case strings.EqualFold(scheme, "Bearer"):
	case strings.EqualFold(scheme, "Basic"):
		pair, err := base64.StdEncoding.DecodeString(secret)
		if err != nil {
			return tenant.ID{}, tenant.ErrUnauthenticated
		}
		user, secret, _ = strings.Cut(string(pair), ":")
		if user == "" {
			return tenant.ID{}, tenant.ErrUnauthenticated
		}
	default:
		return tenant.ID{}, tenant.ErrUnauthenticated
	}
	id, ok := ts.Tenant(secret)
	if !ok || user != "" && user != id.String() {
		return tenant.ID{}, tenant.ErrUnauthenticated
	}
	return id, nil
}

// resolver returns what finds a request's tenant. With behindProxy it is also the header that the proxy sets; a request
// with both has to name one tenant.
func resolver(ts *tokens, behindProxy bool) tenant.Resolver {
	if behindProxy {
		return tenant.Agree(ts, tenant.FromHeader(orgHeader))
	}
	return ts
}
