package cursor

import (
	"crypto/cipher"
	"fmt"
	"strconv"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// KeySize is the length of a key in bytes.
const KeySize = chacha20poly1305.KeySize

// MaxKeys bounds the keys of a Box. A cursor does not say which key sealed it, so a bad cursor is tried with each key.
const MaxKeys = 16

// Box writes and reads cursors. The zero Box writes unsealed ones. It is safe for concurrent use.
type Box struct {
	keys []cipher.AEAD // the first one seals
}

// NewBox returns a Box that seals with the first key and opens cursors sealed with any of them; without keys, the zero
// Box. It does not retain keys. Its errors contain the index of a bad key and its length, but never its bytes.
func NewBox(keys [][]byte) (Box, error) {
	if len(keys) > MaxKeys {
		return Box{}, invalid.New(rowkey.ErrInvalid, "cursor keys", fmt.Sprintf("%d keys", len(keys)), fmt.Sprintf("at most %d", MaxKeys))
	}
	var b Box
	for i, key := range keys {
		field := "cursor key " + strconv.Itoa(i+1)
		switch {
		case len(key) != KeySize:
			return Box{}, invalid.New(rowkey.ErrInvalid, field, fmt.Sprintf("%d bytes", len(key)), fmt.Sprintf("%d random bytes", KeySize))
		case same(key):
			return Box{}, invalid.New(rowkey.ErrInvalid, field, "one byte over and over", fmt.Sprintf("%d random bytes", KeySize))
		}
		aead, err := chacha20poly1305.NewX(key)
		if err != nil {
			return Box{}, fmt.Errorf("%w: %s: %w", rowkey.ErrInvalid, field, err)
		}
		b.keys = append(b.keys, aead)
	}
	return b, nil
}

// same reports whether key repeats one byte, as a buffer does that was never filled.
func same(key []byte) bool {
	for _, c := range key {
		if c != key[0] {
			return false
		}
	}
	return true
}
