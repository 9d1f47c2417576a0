package cursor

import (
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

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

// ParseKeys parses keys in standard base64, separated by commas, and checks them as NewBox does. Empty text is no keys.
// Its errors start with field, and never show the text.
func ParseKeys(field, text string) (keys [][]byte, err error) {
	if text == "" {
		return nil, nil
	}
	for one := range strings.SplitSeq(text, ",") {
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(one))
		if err != nil {
			return nil, invalid.New(rowkey.ErrInvalid, field+", cursor key "+strconv.Itoa(len(keys)+1), "no standard base64",
				strconv.Itoa(KeySize)+` random bytes, as "openssl rand -base64 `+strconv.Itoa(KeySize)+`" prints them`)
		}
		keys = append(keys, key)
	}
	_, err = NewBox(keys)
	if e, ok := errors.AsType[*invalid.Error](err); ok {
		return nil, invalid.New(e.Err, field+", "+e.Field, e.Value, e.Limit)
	}
	return keys, err
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
