package main

import (
	"bufio"
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

// authenticate returns the tenant of a request; where it does not say one, the challenge that the answer has to carry.
func (ts tokens) authenticate(r *http.Request) (id tenant.ID, challenge string, ok bool) {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return id, `Bearer realm="tidemark"`, false
	}
	id, ok = ts.tenant(strings.TrimSpace(secret))
	return id, `Bearer realm="tidemark", error="invalid_token"`, ok
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
