package tenant

import (
	"context"
	"fmt"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Bind is NewContext for the edge of a program, where it becomes known whose a request is: it puts a tenant into ctx once.
// Where ctx carries id already it returns ctx as it is, where it carries another tenant its error is ErrBound, and for the
// zero ID ErrInvalid. With an error there is no context: a program that went on with the old one would act as the tenant
// before.
func Bind(ctx context.Context, id ID) (context.Context, error) {
	if id.IsZero() {
		return nil, invalid.New(ErrInvalid, "tenant", "empty", "an ID from Parse")
	}
	have, ok := FromContext(ctx)
	switch {
	case !ok:
		return NewContext(ctx, id), nil
	case have != id:
		return nil, fmt.Errorf("%w: %s, and now %s", ErrBound, invalid.Quote(have.String()), id)
	}
	return ctx, nil
}
