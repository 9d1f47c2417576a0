// Package tenant identifies the customers of a store.
//
// An ID is a validated name and the first part of every row key, so it separates the rows of different customers. No
// function in this module takes a tenant as a plain string. A program converts text to an ID once, at its edge, with
// Parse, and passes it on as a value or in a context (NewContext, FromContext).
//
// At the edge of a service, a Resolver determines the tenant of a request: from a verified claim (FromClaim), a
// certificate's name (FromCertificate) or a header that a proxy sets (FromHeader). Packages tenant/httptenant and
// tenant/grpctenant call it, put the tenant into the request's context once (Bind), and reject callers without a
// tenant.
//
// Row keys are service data: they appear in logs, in errors and in Key Visualizer. Use an opaque name or number for a
// tenant, never a person's name or address.
package tenant

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// maxLen is the length in bytes of the longest ID.
const maxLen = 64

// ErrInvalid: the name is not a valid tenant name.
var ErrInvalid = errors.New("tenant: invalid ID")

// ID is the name of one tenant: 1 to 64 bytes of A-Z a-z 0-9 . _ - except "." and "..". IDs are case sensitive,
// comparable with == and usable as map keys. The zero ID names no tenant; calls that need a tenant reject it.
type ID struct{ name string }

// Parse returns the ID with this name. The error wraps ErrInvalid and names the value and the limit.
func Parse(name string) (ID, error) {
	if err := check(name); err != nil {
		return ID{}, err
	}
	return ID{name: name}, nil
}

// MustParse is Parse for names known at compile time. It panics if Parse fails.
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
	case name == "" || len(name) > maxLen:
		return invalid.New(ErrInvalid, "tenant", invalid.Quote(name), want)
	case name == "." || name == "..":
		return invalid.New(ErrInvalid, "tenant", invalid.Quote(name), want+`, not "." or ".."`)
	}
	for i := range len(name) {
		if !invalid.NameByte(name[i]) {
			return invalid.New(ErrInvalid, "tenant", fmt.Sprintf("%s with byte 0x%02x at %d", invalid.Quote(name), name[i], i), want)
		}
	}
	return nil
}

// String returns the name; it is empty for the zero ID.
func (id ID) String() string { return id.name }

// IsZero reports whether id names no tenant.
func (id ID) IsZero() bool { return id.name == "" }

// MarshalText implements encoding.TextMarshaler. For the zero ID it fails with ErrInvalid.
func (id ID) MarshalText() ([]byte, error) {
	if err := check(id.name); err != nil {
		return nil, err
	}
	return []byte(id.name), nil
}

// UnmarshalText implements encoding.TextUnmarshaler with Parse. On an error, it does not change id.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

type contextKey struct{}

// NewContext returns a context that carries id; calls with it act as that tenant. It accepts the zero ID, but calls
// that need a tenant reject it. NewContext replaces a tenant that ctx already carries, for work on one tenant after
// the other. At the edge, where the tenant of a request must not change, use Bind. A nil ctx counts as a cancelled
// context.
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
