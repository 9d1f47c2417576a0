package codec

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/tidemark-go/tidemark/internal/codecerr"
)

// Float64 returns a codec that stores a number as the 8 bytes of its IEEE 754 double, most significant first. Its tag
// is "f64". A read returns exactly the written value, including negative zero, infinities and each NaN. It accepts
// every value; a payload of any other length is [ErrCorrupt]. If dst has room, neither direction allocates. The codec
// is safe for concurrent use.
func Float64() Codec[float64] { return float64Codec{} }

// Int64 returns a codec that stores a whole number as 8 bytes in two's complement, most significant first. Its tag is
// "i64". It accepts every value; a payload of any other length is [ErrCorrupt]. If dst has room, neither direction
// allocates. The codec is safe for concurrent use.
func Int64() Codec[int64] { return int64Codec{} }

const (
	tagFloat64 = "f64"
	tagInt64   = "i64"
)

var errNot8 = errors.New("want 8 bytes")

type float64Codec struct{}

func (float64Codec) Tag() string { return tagFloat64 }

func (float64Codec) Append(dst []byte, v float64) ([]byte, error) {
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(v)), nil
}

func (float64Codec) Decode(src []byte) (float64, error) {
	if len(src) != 8 {
		return 0, codecerr.NewCorrupt(tagFloat64, src, errNot8)
	}
	return math.Float64frombits(binary.BigEndian.Uint64(src)), nil
}

type int64Codec struct{}

func (int64Codec) Tag() string { return tagInt64 }

func (int64Codec) Append(dst []byte, v int64) ([]byte, error) {
	return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
}

func (int64Codec) Decode(src []byte) (int64, error) {
	if len(src) != 8 {
		return 0, codecerr.NewCorrupt(tagInt64, src, errNot8)
	}
	return int64(binary.BigEndian.Uint64(src)), nil
}
