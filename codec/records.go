package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/layout"
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
// A write fails with [ErrEncode] for more than [MaxFields] fields; for a name that is empty, longer than [MaxFieldName]
// bytes or not valid UTF-8; for a [Value] that is neither a number, text nor a bool; and for text that is not valid
// UTF-8. A read fails with [ErrCorrupt] for a payload that violates one of these rules, or that is not the one encoding
// of its record.
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

// Layouts says that payloads have fields. Package tsdb calls it.
func (recordCodec) Layouts() map[string]layout.Of[Record] {
	return map[string]layout.Of[Record]{tagRecord: {Fields: layout.Fields{Format: tagRecord}}}
}

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
			return dst, refuseRecord("field "+invalid.Quote(f.Name), refusedKind(f.Value.kind), "a number, text or a bool")
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

// refusedKind says what a record does not store.
func refusedKind(k Kind) string {
	if k == KindInvalid {
		return "the zero Value"
	}
	return "a value of kind " + k.String()
}

func refuseRecord(field, value, limit string) error {
	return codecerr.NewEncode(tagRecord, invalid.New(errRecord, field, value, limit))
}

func (recordCodec) Decode(src []byte) (Record, error) {
	fields, err := decodeFields(src)
	if err != nil {
		return Record{}, codecerr.NewCorrupt(tagRecord, src, err)
	}
	return Record{fields: fields}, nil
}

func decodeFields(src []byte) ([]Field, error) {
	d := recordDecoder{src: src}
	n, err := d.count()
	if err != nil || n == 0 {
		return nil, err
	}
	text := string(src)
	fields := make([]Field, n)
	var f rawField
	for i := range fields {
		if err := d.next(&f); err != nil {
			return nil, err
		}
		fields[i] = Field{text[f.name.from:f.name.to], Value{kind: f.kind, bits: f.bits, str: text[f.text.from:f.text.to]}}
	}
	return fields, d.end()
}

// recordDecoder decodes src from at on. It allocates nothing.
type recordDecoder struct {
	src  []byte
	at   int
	last span // the name of the last field
}

// span is a part of the payload.
type span struct{ from, to int }

// rawField is a field in the payload.
type rawField struct {
	name, text span // text is that of a KindStr
	kind       Kind
	bits       uint64
}

// count reads how many fields follow. If there are none, it checks that the payload ends.
func (d *recordDecoder) count() (int, error) {
	n, err := d.uvarint()
	switch {
	case err != nil:
		return 0, err
	case n > MaxFields || n > uint64(len(d.src)-d.at)/minField:
		return 0, errCount
	case n == 0:
		return 0, d.end()
	}
	return int(n), nil
}

// end checks that nothing follows.
func (d *recordDecoder) end() error {
	if d.at < len(d.src) {
		return errLeftOver
	}
	return nil
}

// next reads a field, whose name must be behind that of the last one.
func (d *recordDecoder) next(f *rawField) error {
	n, err := d.byte()
	if err != nil {
		return err
	}
	if n == 0 {
		return errNoName
	}
	if f.name, err = d.string(uint64(n)); err != nil {
		return err
	}
	mark, err := d.byte()
	if err != nil {
		return err
	}
	f.text, f.bits = span{}, 0
	switch mark {
	case markFloat:
		if len(d.src)-d.at < 8 {
			return errCut
		}
		f.kind, f.bits = KindFloat, binary.BigEndian.Uint64(d.src[d.at:])
		d.at += 8
	case markInt:
		var u uint64
		u, err = d.uvarint()
		f.kind, f.bits = KindInt, u>>1^-(u&1)
	case markUint:
		f.kind = KindUint
		f.bits, err = d.uvarint()
	case markStr:
		f.kind = KindStr
		if n, e := d.uvarint(); e != nil {
			err = e
		} else {
			f.text, err = d.string(n)
		}
	case markTrue:
		f.kind, f.bits = KindBool, 1
	case markFalse:
		f.kind = KindBool
	default:
		return errMark
	}
	if err == nil && d.last.to > 0 && bytes.Compare(d.src[d.last.from:d.last.to], d.src[f.name.from:f.name.to]) >= 0 {
		err = errOrder
	}
	d.last = f.name
	return err
}

func (d *recordDecoder) byte() (byte, error) {
	if d.at >= len(d.src) {
		return 0, errCut
	}
	d.at++
	return d.src[d.at-1], nil
}

func (d *recordDecoder) string(n uint64) (span, error) {
	if n > uint64(len(d.src)-d.at) {
		return span{}, errCut
	}
	at := span{d.at, d.at + int(n)}
	d.at = at.to
	if !utf8.Valid(d.src[at.from:at.to]) {
		return span{}, errNotUTF8
	}
	return at, nil
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
