package pebblelog

import (
	"encoding/binary"
	"testing"
)

// chunk returns one chunk of a write-ahead log.
func chunk(number uint32, payload []byte) []byte {
	b := make([]byte, offsetHeader, offsetHeader+len(payload))
	binary.LittleEndian.PutUint16(b[4:], uint16(len(payload)))
	b[6] = 9
	binary.LittleEndian.PutUint32(b[7:], number)
	b = append(b, payload...)
	binary.LittleEndian.PutUint32(b, chunkSum(b[6:]))
	return b
}

func TestCheckLogBlock(t *testing.T) {
	number := uint32(4)
	whole := chunk(number, make([]byte, 9000)) // a payload of zeros looks like sectors that were never written
	for i := range whole[offsetHeader:] {
		whole[offsetHeader+i] = byte(i) | 1
	}
	binary.LittleEndian.PutUint32(whole, chunkSum(whole[6:]))
	edit := func(fn func(b []byte) []byte) []byte { return fn(append([]byte(nil), whole...)) }
	for _, tt := range []struct {
		name string
		b    []byte
		want logVerdict
	}{
		{"empty", nil, logGoesOn},
		{"whole", whole, logGoesOn},
		{"cut short", edit(func(b []byte) []byte { return b[:5000] }), logEnds},
		{"cut in the header", edit(func(b []byte) []byte { return b[:15] }), logEnds},
		{"nothing written after it", edit(func(b []byte) []byte { return append(b, make([]byte, 500)...) }), logEnds},
		{"last page never written", edit(func(b []byte) []byte { clear(b[8192:]); return b }), logEnds},
		{"last sector never written", edit(func(b []byte) []byte { clear(b[8704:]); return b }), logEnds},
		{"first sector never written", edit(func(b []byte) []byte { clear(b[:512]); return b }), logEnds},
		{"middle sector never written", edit(func(b []byte) []byte { clear(b[1024:1536]); return b }), logEnds},
		{"less than a sector of zeros", edit(func(b []byte) []byte { clear(b[1024:1535]); return b }), logDamaged},
		{"header of zeros", edit(func(b []byte) []byte { clear(b[:19]); return b }), logDamaged},
		{"flipped encoding, nothing written after it", edit(func(b []byte) []byte { b[6] ^= 0x40; return append(b, make([]byte, 2000)...) }), logDamaged},
		{"closed", edit(func(b []byte) []byte { return append(b, 0, 0, 0, 0, 0, 0, 5, 5, 0, 0, 0) }), logClosed},
		{"middle page never written", edit(func(b []byte) []byte { clear(b[4096:8192]); return b }), logEnds},
		{"flipped in the payload", edit(func(b []byte) []byte { b[5000] ^= 1; return b }), logDamaged},
		{"flipped in the checksum", edit(func(b []byte) []byte { b[0] ^= 1; return b }), logDamaged},
		{"flipped to a longer length", edit(func(b []byte) []byte { b[5] ^= 0x40; return b }), logDamaged},
		{"flipped to a shorter length", edit(func(b []byte) []byte { b[4] ^= 0x08; return b }), logDamaged},
		{"flipped encoding", edit(func(b []byte) []byte { b[6] ^= 0x40; return b }), logDamaged},
		{"flipped number", edit(func(b []byte) []byte { b[7] ^= 0x10; return b }), logDamaged},
		{"garbage after it", edit(func(b []byte) []byte { return append(b, "garbage garbage garbage"...) }), logDamaged},
	} {
		if at, got := checkLogBlock(tt.b, &number); got != tt.want {
			t.Errorf("%s: got verdict %d at byte %d, want %d", tt.name, got, at, tt.want)
		}
	}
}

func FuzzCheckLogBlock(f *testing.F) {
	f.Add(chunk(4, []byte("payload")), true)
	f.Add([]byte{0, 0, 0, 0, 0, 0, 9}, true)
	f.Add([]byte{1, 2, 3, 4, 5, 0, 1, 'x'}, false)
	f.Fuzz(func(t *testing.T, b []byte, numbered bool) {
		if len(b) > logBlock {
			b = b[:logBlock]
		}
		number := uint32(4)
		if numbered {
			checkLogBlock(b, &number)
		} else {
			checkLogBlock(b, nil)
		}
	})
}
