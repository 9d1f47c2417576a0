package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/tidemark-go/tidemark/tenant"
)

// tokens says which tenant a token belongs to. It holds digests, so that comparing takes the same time for all tokens.
type tokens []token

type token struct {
	digest [sha256.Size]byte
	tenant tenant.ID
}

// parse adds a "token=tenant". What it says of a bad one does not repeat the token.
func (ts *tokens) parse(text string) error {
	i := strings.LastIndexByte(text, '=')
	if i < 1 {
		return errors.New("has to be token=tenant")
	}
	id, err := tenant.Parse(text[i+1:])
	if err != nil {
		return err
	}
	if _, ok := ts.tenant(text[:i]); ok {
		return errors.New("the same token comes twice")
	}
	*ts = append(*ts, token{sha256.Sum256([]byte(text[:i])), id})
	return nil
}

// read adds those in a file, one a line.
func (ts *tokens) read(name string) error {
	return lines(name, ts.parse)
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

// Resolve implements tenant.Resolver: a request is whose bearer token it has.
func (ts tokens) Resolve(_ context.Context, r tenant.Request) (tenant.ID, error) {
	sent := r.Header("Authorization")
	if len(sent) == 0 {
		return tenant.ID{}, tenant.ErrNoCredentials
	}
	scheme, secret, _ := strings.Cut(sent[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return tenant.ID{}, tenant.ErrNoCredentials
	}
	id, ok := ts.tenant(strings.TrimSpace(secret))
	if !ok || len(sent) > 1 {
		return tenant.ID{}, tenant.ErrUnauthenticated
	}
	return id, nil
}

// turnAway answers a request of which it is not known whose it is.
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

// readCursorKeys returns the keys that seal cursors, from the file or else from the environment. Without any it makes one, so
// that no client ever holds a cursor that can be forged; it ends with the process.
func readCursorKeys(given bool, file string) (keys [][]byte, own bool, err error) {
	add := func(text string) error {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(key) != cursorKeySize { // which does not show it
			return fmt.Errorf("a key has to be %d bytes in base64, as \"openssl rand -base64 %d\" prints them", cursorKeySize, cursorKeySize)
		}
		keys = append(keys, key)
		return nil
	}
	variable := os.Getenv(cursorKeysVariable)
	switch {
	case given:
		err = lines(file, add)
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

// lines calls add with each line of a file that is neither blank nor a comment.
func lines(name string, add func(string) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		text := strings.TrimSpace(in.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if err := add(text); err != nil {
			return fmt.Errorf("%s, line %d: %w", name, n, err)
		}
	}
	return in.Err()
}
