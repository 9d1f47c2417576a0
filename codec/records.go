package codec

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

const (
	// MaxFields is the largest number of fields of a stored [Record].
	MaxFields = 1024
	// MaxFieldName is the longest name of a field of a stored [Record], in bytes.
	MaxFieldName = 255
)

// Records returns a codec that stores a [Record] in a compact binary format. Each value keeps its type, and each
// record has exactly one encoding; the package documentation specifies it. Its tag is "rec".
//
// A write fails with [ErrEncode] for more than [MaxFields] fields; for a name that is empty, longer than
// [MaxFieldName] bytes or not valid UTF-8; for the zero [Value]; and for text that is not valid UTF-8. A read fails
// with [ErrCorrupt] for a payload that violates one of these rules, or that is not the one encoding of its record.
//
// A write allocates the payload. A read makes two allocations, at most twenty times the payload's size: the fields,
// and one copy of the payload that all names and texts share. The codec is safe for concurrent use.
func Records() Codec[Record] { return recordCodec{} }

const tagRecord = "rec"

// The byte that encodes the type of a stored value. A bool has no more bytes.
const (
	markFloat = 'f'
	markInt   = 'i'
	markUint  = 'u'
	markStr   = 's'
	markTrue  = 'T'
	markFalse = 'F'
)

// minField is the size of the shortest field: the name's length, a name of one byte, and the type byte of a bool.
const minField = 3

var (
	errRecord   = errors.New("record")
	errCut      = errors.New("payload ends within a field")
	errLeftOver = errors.New("bytes after the last field")
	errVarint   = errors.New("number is above 64 bits, or has more bytes than it needs")
	errNoName   = errors.New("field without a name")
	errOrder    = errors.New("names are not in ascending order")
	errMark     = errors.New("unknown type of value")
	errCount    = errors.New("more fields than the payload has room for, or more than 1024")
)

type recordCodec struct{}

func (recordCodec) Tag() string { return tagRecord }

func (recordCodec) Append(dst []byte, r Record) ([]byte, error) {
	if len(r.fields) > MaxFields {
		return dst, refuseRecord("fields", strconv.Itoa(len(r.fields)), "1024 at most")
	}
	out, size := dst, recordSize(r)
	if cap(dst) == 0 {
		out = make([]byte, 0, size)
	}
	out = binary.AppendUvarint(slices.Grow(out, size), uint64(len(r.fields)))
	for _, f := range r.fields {
		if len(f.Name) == 0 || len(f.Name) > MaxFieldName || !utf8.ValidString(f.Name) {
			return dst, refuseRecord("field name", invalid.Quote(f.Name), "1 to 255 bytes of UTF-8")
		}
		out = append(out, byte(len(f.Name)))
		out = append(out, f.Name...)
		switch f.Value.kind {
		case KindFloat:
			out = binary.BigEndian.AppendUint64(append(out, markFloat), f.Value.bits)
		case KindInt:
			out = binary.AppendVarint(append(out, markInt), int64(f.Value.bits))
		case KindUint:
			out = binary.AppendUvarint(append(out, markUint), f.Value.bits)
		case KindStr:
			if !utf8.ValidString(f.Value.str) {
				return dst, refuseRecord("field "+invalid.Quote(f.Name), invalid.Quote(f.Value.str), "valid UTF-8")
			}
			out = binary.AppendUvarint(append(out, markStr), uint64(len(f.Value.str)))
			out = append(out, f.Value.str...)
		case KindBool:
			if f.Value.bits == 1 {
				out = append(out, markTrue)
			} else {
				out = append(out, markFalse)
			}
		default:
			return dst, refuseRecord("field "+invalid.Quote(f.Name), "the zero Value", "a value")
		}
	}
	return out, nil
}

// recordSize returns the encoded size of r, so that a write allocates once.
func recordSize(r Record) int {
	size := uvarintSize(uint64(len(r.fields)))
	for _, f := range r.fields {
		size += 1 + len(f.Name) + 1
		switch f.Value.kind {
		case KindFloat:
			size += 8
		case KindInt:
			size += uvarintSize(f.Value.bits<<1 ^ uint64(int64(f.Value.bits)>>63))
		case KindUint:
			size += uvarintSize(f.Value.bits)
		case KindStr:
			size += uvarintSize(uint64(len(f.Value.str))) + len(f.Value.str)
		}
	}
	return size
}

func uvarintSize(u uint64) int { return (bits.Len64(u|1) + 6) / 7 }

func refuseRecord(field, value, limit string) error {
	return NewEncodeError(tagRecord, invalid.New(errRecord, field, value, limit))
}

func (recordCodec) Decode(src []byte) (Record, error) {
	fields, err := decodeFields(src)
	if err != nil {
		return Record{}, NewCorruptError(tagRecord, src, err)
	}
	return Record{fields: fields}, nil
}

func decodeFields(src []byte) ([]Field, error) {
	d := recordDecoder{src: src}
	n, err := d.uvarint()
	if err != nil {
		return nil, err
	}
	if n > MaxFields || n > uint64(len(src)-d.at)/minField {
		return nil, errCount
	}
	if n == 0 {
		if len(src) > d.at {
			return nil, errLeftOver
		}
		return nil, nil
	}
	d.text = string(src)
	fields := make([]Field, n)
	for i := range fields {
		if err := d.field(&fields[i]); err != nil {
			return nil, err
		}
		if i > 0 && fields[i-1].Name >= fields[i].Name {
			return nil, errOrder
		}
	}
	if d.at < len(src) {
		return nil, errLeftOver
	}
	return fields, nil
}

// recordDecoder decodes src from at on. text is a copy of src; all decoded strings are parts of it.
type recordDecoder struct {
	src  []byte
	text string
	at   int
}

func (d *recordDecoder) field(f *Field) error {
	n, err := d.byte()
	if err != nil {
		return err
	}
	if n == 0 {
		return errNoName
	}
	if f.Name, err = d.string(uint64(n)); err != nil {
		return err
	}
	mark, err := d.byte()
	if err != nil {
		return err
	}
	switch mark {
	case markFloat:
		if len(d.src)-d.at < 8 {
			return errCut
		}
		f.Value = Float(math.Float64frombits(binary.BigEndian.Uint64(d.src[d.at:])))
		d.at += 8
	case markInt:
		var u uint64
		u, err = d.uvarint()
		f.Value = Int(int64(u>>1) ^ -int64(u&1))
	case markUint:
		var u uint64
		u, err = d.uvarint()
		f.Value = Uint(u)
	case markStr:
		var s string
		if u, e := d.uvarint(); e != nil {
			err = e
		} else {
			s, err = d.string(u)
		}
		f.Value = Str(s)
	case markTrue, markFalse:
		f.Value = Bool(mark == markTrue)
	default:
		return errMark
	}
	return err
}

func (d *recordDecoder) byte() (byte, error) {
	if d.at >= len(d.src) {
		return 0, errCut
	}
	d.at++
	return d.src[d.at-1], nil
}

func (d *recordDecoder) string(n uint64) (string, error) {
	if n > uint64(len(d.src)-d.at) {
		return "", errCut
	}
	s := d.text[d.at : d.at+int(n)]
	d.at += int(n)
	if !utf8.ValidString(s) {
		return "", errNotUTF8
	}
	return s, nil
}

// uvarint rejects a number with a redundant last byte of zero, so that each number has one encoding.
func (d *recordDecoder) uvarint() (uint64, error) {
	u, n := binary.Uvarint(d.src[d.at:])
	switch {
	case n == 0:
		return 0, errCut
	case n < 0, n > 1 && d.src[d.at+n-1] == 0:
		return 0, errVarint
	}
	d.at += n
	return u, nil
}
