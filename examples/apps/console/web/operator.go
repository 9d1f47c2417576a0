package web

import (
	"context"
	"net/http"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
)

// operatorContext returns a context with the end of another one and without its tenant: operators' calls refuse one.
func operatorContext(ctx context.Context) context.Context { return noValues{ctx} }

type noValues struct{ context.Context }

// Value implements context.Context.
func (noValues) Value(any) any { return nil }

// ofOperator lets only the operator's sessions through.
func (s *Console) ofOperator(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch one := s.sessionOf(r); {
		case one == nil:
			s.fail(w, r, tenant.ErrNoCredentials)
		case !one.operator:
			s.fail(w, r, errOperator)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

var errOperator = problem{Status: http.StatusForbidden, Detail: "Only the operator may see this."}

// shared is a value that all users see, and that is read again when it is too old and a user asks. Only one of them
// reads it.
type shared[T any] struct {
	keep func(*T) time.Duration
	read func(context.Context) (*T, error)

	turn  chan struct{} // holds one value while it is read
	value *T
	until time.Time
}

func newShared[T any](keep func(*T) time.Duration, read func(context.Context) (*T, error)) *shared[T] {
	return &shared[T]{keep: keep, read: read, turn: make(chan struct{}, 1)}
}

// keepFor keeps any value for a time.
func keepFor[T any](t time.Duration) func(*T) time.Duration {
	return func(*T) time.Duration { return t }
}

// get returns the value. If it fails, the next call tries again.
func (s *shared[T]) get(ctx context.Context) (*T, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.value != nil && time.Now().Before(s.until) {
		return s.value, nil
	}
	value, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	s.value, s.until = value, time.Now().Add(s.keep(value))
	return value, nil
}
