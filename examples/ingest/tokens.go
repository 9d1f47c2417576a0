package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/tidemark-go/tidemark/tenant"
)

// tokens says which tenant a token belongs to. It holds digests, so that comparing takes the same time for all tokens.
type tokens []token

type token struct {
	digest [sha256.Size]byte
	tenant tenant.ID
}

// add adds a token. It reports false where there is such a token already.
func (ts *tokens) add(secret string, id tenant.ID) bool {
	if _, ok := ts.tenant(secret); ok {
		return false
	}
	*ts = append(*ts, token{sha256.Sum256([]byte(secret)), id})
	return true
}

// tenant returns the tenant of a token. It compares with each of them, whichever fits.
func (ts tokens) tenant(secret string) (id tenant.ID, ok bool) {
	digest := sha256.Sum256([]byte(secret))
	for _, t := range ts {
		if subtle.ConstantTimeCompare(t.digest[:], digest[:]) == 1 {
			id, ok = t.tenant, true
		}
	}
	return id, ok
}

// authenticate returns the tenant of a request, by the first of: a token, a user's password, the parameter p. Agents of
// version 1 have a user and a password: the password is the token, the user's name is not looked at.
func (ts tokens) authenticate(r *http.Request) (tenant.ID, bool) {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case strings.EqualFold(scheme, "Token"), strings.EqualFold(scheme, "Bearer"):
		if id, ok := ts.tenant(secret); ok {
			return id, true
		}
		_, password, _ := strings.Cut(secret, ":") // as agents of version 1 may write it
		return ts.tenant(password)
	case scheme != "":
		_, password, _ := r.BasicAuth()
		return ts.tenant(password)
	}
	return ts.tenant(r.URL.Query().Get("p"))
}
