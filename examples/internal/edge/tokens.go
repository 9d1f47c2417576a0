package edge

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/tenant"
)

// Tokens maps bearer tokens to tenants. It keeps only SHA-256 digests. Finding a token takes the same time whether or
// not it is known. The zero value knows no token.
type Tokens struct{ all []token }

type token struct {
	digest [sha256.Size]byte
	tenant tenant.ID
}

// hashed begins a token that is given as its SHA-256 digest in hex.
const hashed = "sha256:"

// Add adds "token=tenant", the form on the command line. Its error never contains the token.
func (ts *Tokens) Add(text string) error {
	secret, id, err := split(text, "token=tenant")
	if err != nil {
		return err
	}
	return ts.add(sha256.Sum256([]byte(secret)), id)
}

// AddHashed adds "sha256:DIGEST=tenant", the form in a file. Its error never contains the text, which may be the token
// itself by mistake.
func (ts *Tokens) AddHashed(text string) error {
	const want = "sha256:DIGEST=tenant, with the 64 hex digits that \"printf %s TOKEN | sha256sum\" prints"
	secret, id, err := split(text, want)
	if err != nil {
		return err
	}
	digits, ok := strings.CutPrefix(secret, hashed)
	digest, err := hex.DecodeString(digits)
	if !ok || err != nil || len(digest) != sha256.Size {
		return errors.New("want " + want)
	}
	return ts.add([sha256.Size]byte(digest), id)
}

// ReadFile adds the tokens of a file, one per line.
func (ts *Tokens) ReadFile(name string) error { return Lines(name, ts.AddHashed) }

func split(text, want string) (secret string, id tenant.ID, err error) {
	i := strings.LastIndexByte(text, '=')
	if i < 1 {
		return "", tenant.ID{}, errors.New("want " + want)
	}
	id, err = tenant.Parse(text[i+1:])
	return text[:i], id, err
}

func (ts *Tokens) add(digest [sha256.Size]byte, id tenant.ID) error {
	if _, ok := ts.find(digest); ok {
		return fmt.Errorf("the token of %s is already in use", id)
	}
	ts.all = append(ts.all, token{digest, id})
	return nil
}

// Tenant returns the tenant of a token.
func (ts *Tokens) Tenant(secret string) (tenant.ID, bool) {
	return ts.find(sha256.Sum256([]byte(secret)))
}

// find compares with every token, also after a match.
func (ts *Tokens) find(digest [sha256.Size]byte) (id tenant.ID, ok bool) {
	for _, t := range ts.all {
		if subtle.ConstantTimeCompare(t.digest[:], digest[:]) == 1 {
			id, ok = t.tenant, true
		}
	}
	return id, ok
}

// Common returns the tenant of a token that is also in other.
func (ts *Tokens) Common(other *Tokens) (tenant.ID, bool) {
	for _, t := range ts.all {
		if _, ok := other.find(t.digest); ok {
			return t.tenant, true
		}
	}
	return tenant.ID{}, false
}

// Digest returns a digest of all tokens and their tenants in hex. It does not depend on their order.
func (ts *Tokens) Digest() string {
	lines := make([]string, len(ts.all))
	for i, t := range ts.all {
		lines[i] = hex.EncodeToString(t.digest[:]) + "=" + t.tenant.String() + "\n"
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:])
}

// Len returns the number of tokens.
func (ts *Tokens) Len() int { return len(ts.all) }
