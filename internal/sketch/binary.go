package sketch

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

const (
	// sketchVersion is the first byte of an encoded sketch.
	sketchVersion = 1
	// maxSketchBytes is more than any sketch takes.
	maxSketchBytes = 4 << 20
)

// AppendBinary implements encoding.BinaryAppender. Equal sketches have equal encodings; docs/format.md specifies them.
// A bin takes two bytes, or a few more if it has many numbers. The error is always nil.
func (s *Sketch) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, sketchVersion)
	if s == nil {
		return b, nil
	}
	for i, bin := range s.bins {
		if i == 0 {
			b = binary.AppendVarint(b, int64(bin.key))
		} else {
			b = binary.AppendUvarint(b, uint64(bin.key-s.bins[i-1].key-1))
		}
		b = binary.AppendUvarint(b, uint64(bin.n-1))
	}
	return b, nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler: it replaces the sketch by an encoded one. It allocates at most
// eight times the length of the data. An error matches invalid.ErrInput, and the sketch then stays as it was.
func (s *Sketch) UnmarshalBinary(data []byte) error {
	if s == nil {
		return fmt.Errorf("%w: sketch is nil; want a pointer to one", invalid.ErrInput)
	}
	switch {
	case len(data) == 0 || data[0] != sketchVersion:
		return damaged("%d bytes that do not start with the version %d", len(data), sketchVersion)
	case len(data) > maxSketchBytes:
		return damaged("%d bytes; want at most %d", len(data), maxSketchBytes)
	}
	var out Sketch
	out.bins = make([]bin, 0, min(len(data)/2, maxBins))
	at, key := 1, int64(0)
	next := func() (uint64, error) {
		x, n := binary.Uvarint(data[at:])
		if n <= 0 || n > 1 && data[at+n-1] == 0 { // cut off, above 64 bits, or longer than needed
			return 0, damaged("no valid number at byte %d", at)
		}
		at += n
		return x, nil
	}
	for at < len(data) {
		step, err := next()
		if err != nil {
			return err
		}
		n, err := next()
		if err != nil {
			return err
		}
		switch {
		case len(out.bins) == 0:
			key = int64(step>>1) ^ -int64(step&1) // zigzag
		case step > 2*mostKey:
			return damaged("a bin at byte %d that is beyond the last one", at)
		default:
			key += int64(step) + 1
		}
		if key < -mostKey || key > mostKey || key != 0 && key < leastKey && key > -leastKey {
			return damaged("bin %d, which no number has", key)
		}
		if n >= uint64(math.MaxInt64-out.count) {
			return damaged("more than 2^63-1 numbers")
		}
		out.bins = append(out.bins, bin{int32(key), int64(n) + 1})
		out.count += int64(n) + 1
	}
	*s = out
	return nil
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: encoded sketch: %s", invalid.ErrInput, fmt.Sprintf(format, args...))
}
