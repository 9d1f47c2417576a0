package cursor

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// ErrCursor is wrapped by every error about an unusable cursor. None of them contains the cursor or its contents.
var ErrCursor = errors.New("tsdb: cursor refused")

// The first byte of a cursor.
const (
	unsealed byte = 0
	sealed   byte = 1
)

const (
	sumSize = 12
	// maxText is longer than any cursor: a place is at most as long as a row key.
	maxText = 8192
)

// Strict, because each cursor must have exactly one spelling.
var encoding = base64.RawURLEncoding.Strict()

// Sealed reports whether b seals.
func (b Box) Sealed() bool { return len(b.keys) > 0 }

// Write returns the cursor of a place in a scope. Sealed ones are different each time.
func (b Box) Write(s Scope, place []byte) string {
	var buf [512]byte
	if !b.Sealed() {
		head := s.appendTo(append(buf[:0], unsealed))
		sum := sha256.Sum256(append(head, place...))
		out := append(make([]byte, 0, 1+sumSize+len(place)), unsealed)
		out = append(out, sum[:sumSize]...)
		return encoding.EncodeToString(append(out, place...))
	}
	head := s.appendTo(append(buf[:0], sealed))
	const front = 1 + chacha20poly1305.NonceSizeX
	out := make([]byte, front, front+len(place)+chacha20poly1305.Overhead)
	out[0] = sealed
	_, _ = rand.Read(out[1:]) // documented never to fail
	return encoding.EncodeToString(b.keys[0].Seal(out, out[1:front], place, head))
}

// Read returns the place in a cursor of that scope. Its errors wrap ErrCursor.
//
// A place from a sealed cursor was passed to Write with the same scope and one of b's keys. A place from an unsealed
// one can be anything: the sum detects mistakes, but not forgery.
func (b Box) Read(s Scope, text string) (place []byte, err error) {
	if len(text) > maxText {
		return nil, refused("too long to be one")
	}
	raw := make([]byte, encoding.DecodedLen(len(text)))
	n, err := encoding.Decode(raw, []byte(text))
	if err != nil || n == 0 || encoding.EncodedLen(n) != len(text) { // the decoder ignores line ends
		return nil, refused("not in the form of one")
	}
	raw = raw[:n]
	var buf [512]byte
	head := s.appendTo(append(buf[:0], raw[0]))
	switch {
	case raw[0] == sealed && !b.Sealed():
		return nil, refused("sealed, and the store has no keys")
	case raw[0] == unsealed && b.Sealed():
		return nil, refused("not sealed, and the store has keys")
	case raw[0] == sealed:
		return b.open(head, raw[1:])
	case raw[0] == unsealed:
		return check(head, raw[1:])
	}
	return nil, refused("not in the form of one")
}

// open decrypts a sealed cursor after its first byte, with each key in turn.
func (b Box) open(head, rest []byte) ([]byte, error) {
	if len(rest) < chacha20poly1305.NonceSizeX+chacha20poly1305.Overhead {
		return nil, refused("too short to be one")
	}
	nonce, ciphertext := rest[:chacha20poly1305.NonceSizeX], rest[chacha20poly1305.NonceSizeX:]
	for _, key := range b.keys {
		if place, err := key.Open(nil, nonce, ciphertext, head); err == nil {
			return place, nil
		}
	}
	return nil, refused("of another tenant, dataset, query or key, or was changed")
}

// check verifies an unsealed cursor after its first byte.
func check(head, rest []byte) ([]byte, error) {
	if len(rest) < sumSize {
		return nil, refused("too short to be one")
	}
	sum := sha256.Sum256(append(head, rest[sumSize:]...))
	if !bytes.Equal(sum[:sumSize], rest[:sumSize]) {
		return nil, refused("of another tenant, dataset or query, or was changed")
	}
	return rest[sumSize:], nil
}

func refused(what string) error {
	return invalid.New(ErrCursor, "cursor", what, "a cursor from a page of the same tenant, dataset and query")
}
