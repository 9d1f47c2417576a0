package tenant

import (
	"context"
	"fmt"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Bind is NewContext for the edge of a program, where the tenant of a request becomes known: it puts a tenant into
// ctx once. If ctx already carries id, Bind returns ctx. If ctx carries another tenant, the error is ErrForbidden; for
// the zero ID it is ErrInvalid. With an error it returns no context, so that a program cannot continue with the wrong
// tenant.
func Bind(ctx context.Context, id ID) (context.Context, error) {
	if id.IsZero() {
		return nil, invalid.New(ErrInvalid, "tenant", "empty", "an ID from Parse")
	}
	have, ok := FromContext(ctx)
	switch {
	case !ok:
		return NewContext(ctx, id), nil
	case have != id:
		return nil, fmt.Errorf("%w: the context carries another tenant: %s, and now %s", ErrForbidden, invalid.Quote(have.String()), id)
	}
	return ctx, nil
}
