package spool_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// parseBlock accepts only what builder would write for the records, and never panics.
func FuzzBlock(f *testing.F) {
	f.Add(spool.Block([]uint32{0}, [][]byte{{}}))
	f.Add(spool.Block([]uint32{0, 1, 5, 6, 1000000}, [][]byte{{1}, {2}, bytes.Repeat([]byte("x"), 200), {}, {3}}))
	for _, bad := range []string{"", "\x00", "\x01", "\x02", "\x01\x00\x01\x01", "\x01\x01\x00\x01", "\x01\x05ab", "\x01\x81\x00", "\x01\x01\x00\x00\x01", "\x01\x01\x00\x01\x00\x01\x01"} {
		f.Add([]byte(bad))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		n, again, err := spool.ParseBlock(value)
		if err != nil {
			if !errors.Is(err, spool.ErrDamaged) && !errors.Is(err, spool.ErrVersion) {
				t.Errorf("reported as another error than damage: %v", err)
			}
			return
		}
		if n == 0 || !bytes.Equal(again, value) {
			t.Errorf("%x has %d records, which would be encoded as %x", value, n, again)
		}
	})
}

// The same for dead letters.
func FuzzDead(f *testing.F) {
	f.Add([]byte("\x01\x05\x02\x03\x02nodata"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, value []byte) {
		again, err := spool.DecodeDead(value)
		if err != nil {
			if !errors.Is(err, spool.ErrDamaged) && !errors.Is(err, spool.ErrVersion) {
				t.Errorf("reported as another error than damage: %v", err)
			}
			return
		}
		if !bytes.Equal(again, value) {
			t.Errorf("%x is encoded again as %x", value, again)
		}
	})
}
