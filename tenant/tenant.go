// Package tenant names the customers of a store.
//
// An ID is a validated name and the first part of every row key, so it is what keeps one customer's rows apart from
// another's. Nothing in this module takes a tenant as a bare string: text becomes an ID once, at the edge, with Parse,
// and travels from there as a value or in a context (NewContext, FromContext).
//
// At the edge of a service a Resolver finds out whose a request is, from a verified claim (FromClaim), a certificate's name
// (FromCertificate) or a header that a proxy sets (FromHeader). Packages tenant/httptenant and tenant/grpctenant ask it,
// put the tenant into the request's context once (Bind), and turn away who has none.
//
// Row keys are service data: they show in logs, in errors and in Key Visualizer. Use an opaque name or number for a
// tenant, never a person's name or address.
package tenant

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// MaxLen is the length in bytes of the longest ID.
const MaxLen = 64

// ErrInvalid is wrapped by every error about a name that cannot be a tenant.
var ErrInvalid = errors.New("tenant: invalid ID")

// ID is the name of one tenant: 1 to 64 bytes of A-Z a-z 0-9 . _ - and neither "." nor "..". IDs are case sensitive,
// comparable with == and usable as map keys. The zero ID names no tenant and is refused wherever a tenant is needed.
type ID struct{ name string }

// Parse returns the ID of that name. Its error wraps ErrInvalid and names the value and the limit.
func Parse(name string) (ID, error) {
	if err := check(name); err != nil {
		return ID{}, err
	}
	return ID{name: name}, nil
}

// MustParse is Parse for names known at compile time. It panics where Parse fails.
func MustParse(name string) ID {
	id, err := Parse(name)
	if err != nil {
		panic(err)
	}
	return id
}

func check(name string) error {
	const want = "1 to 64 bytes of A-Z a-z 0-9 . _ -"
	switch {
	case name == "" || len(name) > MaxLen:
		return invalid.New(ErrInvalid, "tenant", invalid.Quote(name), want)
	case name == "." || name == "..":
		return invalid.New(ErrInvalid, "tenant", invalid.Quote(name), want+`, not "." or ".."`)
	}
	for i := range len(name) {
		if !NameByte(name[i]) {
			return invalid.New(ErrInvalid, "tenant", fmt.Sprintf("%s with byte 0x%02x at %d", invalid.Quote(name), name[i], i), want)
		}
	}
	return nil
}

// NameByte reports whether c may stand in a tenant's or a dataset's name.
func NameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}

// String returns the name; the zero ID's is empty.
func (id ID) String() string { return id.name }

// IsZero reports whether id names no tenant.
func (id ID) IsZero() bool { return id.name == "" }

// MarshalText implements encoding.TextMarshaler. The zero ID is refused with ErrInvalid.
func (id ID) MarshalText() ([]byte, error) {
	if err := check(id.name); err != nil {
		return nil, err
	}
	return []byte(id.name), nil
}

// UnmarshalText implements encoding.TextUnmarshaler by the rules of Parse; on error id is left as it was.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

type contextKey struct{}

// NewContext returns a context that carries id, for code further in to act as that tenant. The zero ID is carried too and
// is then refused by whoever needs a tenant. A tenant that ctx carries already is replaced, which is for work that goes from
// tenant to tenant; at the edge, where a request must not change hands, use Bind. A nil ctx
// counts as one that has ended.
func NewContext(ctx context.Context, id ID) context.Context {
	return context.WithValue(ctxerr.Given(ctx), contextKey{}, id)
}

// FromContext returns the tenant that NewContext put into ctx, and whether there is one.
func FromContext(ctx context.Context) (ID, bool) {
	if ctx == nil {
		return ID{}, false
	}
	id, ok := ctx.Value(contextKey{}).(ID)
	return id, ok
}
