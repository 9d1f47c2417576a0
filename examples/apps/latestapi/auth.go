package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tenant"
)

// bearer finds the tenant of a request by its bearer token. It implements tenant.Resolver.
type bearer struct{ *edge.Tokens }

// Resolve refuses a request with two Authorization headers: a proxy and this program might each read another one.
func (b *bearer) Resolve(_ context.Context, r tenant.Request) (tenant.ID, error) {
	sent := r.Header("Authorization")
	if len(sent) == 0 {
		return tenant.ID{}, tenant.ErrNoCredentials
	}
	scheme, secret, _ := strings.Cut(sent[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return tenant.ID{}, tenant.ErrNoCredentials
	}
	id, ok := b.Tenant(strings.TrimSpace(secret))
	if !ok || len(sent) > 1 {
		return tenant.ID{}, tenant.ErrUnauthenticated
	}
	return id, nil
}

// turnAway responds to a request without a known tenant.
func (s *server) turnAway(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, tenant.ErrNoCredentials):
		w.Header().Set("WWW-Authenticate", `Bearer realm="tidemark"`)
	case errors.Is(err, tenant.ErrUnauthenticated):
		w.Header().Set("WWW-Authenticate", `Bearer realm="tidemark", error="invalid_token"`)
	}
	s.fail(w, r, err)
}

const (
	cursorKeysVariable = "TIDEMARK_CURSOR_KEYS"
	cursorKeySize      = 32
)

// readCursorKeys returns the keys that seal cursors, from the file or else from the environment. Without any it makes
// one for this process, so that cursors are always sealed.
func readCursorKeys(given bool, file string) (keys [][]byte, own bool, err error) {
	add := func(text string) error {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(key) != cursorKeySize { // which does not show it
			return fmt.Errorf("want a key of %d bytes in base64, as \"openssl rand -base64 %d\" prints them", cursorKeySize, cursorKeySize)
		}
		keys = append(keys, key)
		return nil
	}
	variable := os.Getenv(cursorKeysVariable)
	switch {
	case given:
		err = edge.Lines(file, add)
		if err == nil && len(keys) == 0 {
			err = fmt.Errorf("%s has no key", file)
		}
	case variable != "":
		for text := range strings.SplitSeq(variable, ",") {
			if err = add(strings.TrimSpace(text)); err != nil {
				return nil, false, fmt.Errorf("%s: %w", cursorKeysVariable, err)
			}
		}
	default:
		key := make([]byte, cursorKeySize)
		_, _ = rand.Read(key) // never fails
		return [][]byte{key}, true, nil
	}
	return keys, false, err
}
