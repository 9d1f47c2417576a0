package tour

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tidemark-go/tidemark/tenant"
)

// tokens let a browser see the data of a tenant, or everything.
type tokens struct {
	operator string
	tenants  []string // in the order of companies
}

// tokensFile has the tokens of a folder, by the operator and the names of the tenants.
const tokensFile = "console-tokens.json"

// openTokens returns the tokens of a folder: links stay valid over a restart. It makes those that the folder lacks.
func openTokens(dir string) (*tokens, error) {
	name, all := filepath.Join(dir, tokensFile), map[string]string{}
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the tokens of the console in %s: %w; delete the file for new ones", name, err)
	}
	before := len(all)
	of := func(who string) string {
		if all[who] == "" {
			all[who] = rand.Text()
		}
		return all[who]
	}
	t := &tokens{operator: of("operator")}
	for _, c := range companies {
		t.tenants = append(t.tenants, of(c.id.String()))
	}
	if len(all) == before {
		return t, nil
	}
	if text, err = json.Marshal(all); err == nil {
		err = os.WriteFile(name, text, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("store the tokens of the console: %w", err)
	}
	return t, nil
}

// digest returns a digest of all tokens.
func (t *tokens) digest() string {
	sum := sha256.Sum256(fmt.Append(nil, t.operator, t.tenants))
	return hex.EncodeToString(sum[:])
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
