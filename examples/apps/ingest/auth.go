package main

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tenant"
)

// auth finds the tenant of a request.
type auth struct {
	tokens  *edge.Tokens
	inQuery bool // whether the parameter p may be the token
}

// tenant returns the tenant of a request, by its Authorization header: a token, or a user's password. Agents of version
// 1 have a user and a password: the password is the token, and the user's name is ignored. Two such headers are
// refused: a proxy and this program might each read another one.
func (a *auth) tenant(r *http.Request) (tenant.ID, bool) {
	sent := r.Header.Values("Authorization")
	if len(sent) == 0 {
		if !a.inQuery {
			return tenant.ID{}, false
		}
		return a.tokens.Tenant(r.URL.Query().Get("p"))
	}
	if id, ok := a.bearer(sent); ok || len(sent) > 1 {
		return id, ok
	}
	scheme, secret, _ := strings.Cut(sent[0], " ")
	if isTokenScheme(scheme) {
		_, password, _ := strings.Cut(secret, ":") // as agents of version 1 may write it
		return a.tokens.Tenant(password)
	}
	_, password, _ := r.BasicAuth()
	return a.tokens.Tenant(password)
}

// tokenHeader may have the token of a request with JSON, for senders that cannot set Authorization.
const tokenHeader = "X-Tidemark-Token"

var (
	errNoToken = errors.New("the request has neither a token nor a signature of the route's tenant")
	errToken   = errors.New("the token is not known")
	errTokens  = errors.New("the token comes in more than one way; want one")
)

// oneToken returns the tenant of a request with JSON. It has one token: in its Authorization header, in its
// tokenHeader, or in the parameter token if that is allowed.
func (a *auth) oneToken(r *http.Request) (tenant.ID, error) {
	tokens := r.Header.Values(tokenHeader)
	if a.inQuery {
		tokens = append(slices.Clip(tokens), r.URL.Query()["token"]...)
	}
	ways := len(tokens) + len(r.Header.Values("Authorization"))
	var id tenant.ID
	ok := false
	switch {
	case ways == 0:
		return id, errNoToken
	case ways > 1:
		return id, errTokens
	case len(tokens) == 1:
		id, ok = a.tokens.Tenant(tokens[0])
	default:
		id, ok = a.tenant(r)
	}
	if !ok {
		return tenant.ID{}, errToken
	}
	return id, nil
}

// bearer returns the tenant of the token in an Authorization header or in the metadata of a gRPC call.
func (a *auth) bearer(sent []string) (tenant.ID, bool) {
	if len(sent) != 1 {
		return tenant.ID{}, false
	}
	scheme, secret, _ := strings.Cut(sent[0], " ")
	if !isTokenScheme(scheme) {
		return tenant.ID{}, false
	}
	return a.tokens.Tenant(secret)
}

func isTokenScheme(scheme string) bool {
	return strings.EqualFold(scheme, "Token") || strings.EqualFold(scheme, "Bearer")
}
