package keys

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"
	"sync"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

const (
	// minKey is the length in bytes of the shortest key of a Hasher.
	minKey = 32
	// partLen is the length in bytes of a part that Hasher.Part returns.
	partLen = 24

	hashed = partLen * 5 / 8 // bytes, 5 bits per letter
)

// Hasher makes key parts that identify values and cannot be read. The same value of the same field always has the
// same part. A person with the key can find out which of a list of values a part stands for. A person without it can
// find out nothing, however short the list, but sees which points belong together.
//
// A new key means new parts, and so new entities: existing points stay under the old parts. Keep two hashers as long
// as the old points are kept, write with the new one and read with both; or copy the points. If you destroy a key,
// nobody can find out any more whose points its parts are. So a separate key per tenant is a way to forget the
// tenant's people.
//
// NewHasher makes one. It is safe for concurrent use. The zero Hasher has no key: its Part returns "", which every
// write refuses.
type Hasher struct {
	macs *sync.Pool // only these know the key, so that printing a Hasher does not show it
}

// NewHasher returns a hasher with a secret key of at least 32 random bytes, as from "openssl rand 32". It copies
// the key. The error matches tsdb.ErrInvalid and does not show the key.
func NewHasher(key []byte) (*Hasher, error) {
	if len(key) < minKey {
		return nil, invalid.New(tsdb.ErrInvalid, "key", fmt.Sprintf("%d bytes", len(key)), fmt.Sprintf("%d random bytes or more", minKey))
	}
	key = slices.Clone(key)
	return &Hasher{macs: &sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}, nil
}

// domain makes these hashes differ from others with the same key.
const domain = "tidemark key part 1"

var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Part returns the part for a value of a key field: 24 letters of a-z and 2-7, the first 120 bits of
// HMAC-SHA-256 over the field's name and the value. The same value has other parts in other fields. Among a billion
// values, the probability that any two have the same part is 4 in 10^19. Part does not normalize the value: if it can
// be written in several ways, such as the case of a mail address, normalize it first.
func (h *Hasher) Part(field, value string) string {
	if h == nil || h.macs == nil {
		return ""
	}
	mac := h.macs.Get().(hash.Hash)
	defer h.macs.Put(mac)
	mac.Reset()
	var buf [128]byte
	text := append(buf[:0], domain...)
	text = binary.BigEndian.AppendUint32(text, uint32(len(field))) // so that no other field and value give the same text
	text = append(text, field...)
	text = append(text, value...)
	mac.Write(text)
	sum := mac.Sum(buf[:0])
	var part [partLen]byte
	letters.Encode(part[:], sum[:hashed])
	return string(part[:])
}
