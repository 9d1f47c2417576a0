package transfer

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// leastKey is the least number of bytes of a key.
const leastKey = 32

func checkKey(key []byte) error {
	if key != nil && len(key) < leastKey {
		return invalid.New(tsdb.ErrInvalid, "Key", strconv.Itoa(len(key))+" bytes", "nil, or at least "+strconv.Itoa(leastKey))
	}
	return nil
}

// fingerprint identifies a key in a header and reveals nothing about it. It is empty without a key.
func fingerprint(key []byte) string {
	if key == nil {
		return ""
	}
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte("tidemark export"))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// admitKey fails if the file was made with another key.
func (h *header) admitKey(key []byte) error {
	given := fingerprint(key)
	switch {
	case h.Key == given:
		return nil
	case h.Key == "":
		return invalid.New(ErrKey, "Key", "given", "none: the file was made without one, and its sums show damage, not forgery")
	case given == "":
		return invalid.New(ErrKey, "Key", "nil", "the key that the file was made with, whose fingerprint is "+invalid.Quote(h.Key))
	}
	return invalid.New(ErrKey, "Key", "a key with the fingerprint "+given, "the key with the fingerprint "+invalid.Quote(h.Key)+", which the file was made with")
}
