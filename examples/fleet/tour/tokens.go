package tour

import (
	"crypto/subtle"

	"github.com/tidemark-go/tidemark/tenant"
)

// tokens let a browser see the data of a tenant, or everything.
type tokens struct {
	operator string
	tenants  []string // in the order of companies
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// Operator reports whether a token is the operator's.
func (t *tokens) Operator(token string) bool { return same(token, t.operator) }

// Tenant returns the tenant of a token.
func (t *tokens) Tenant(token string) (id tenant.ID, ok bool) {
	for i, own := range t.tenants {
		if same(token, own) {
			id, ok = companies[i].id, true
		}
	}
	return id, ok
}
