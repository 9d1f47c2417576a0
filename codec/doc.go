// Package codec turns Go values into stored payloads and back.
//
// A schema names one [Codec]. A point's payload is stored with the codec's tag, and a read selects the decoder by
// that tag. So a dataset may have several formats at once, and change to a new format without rewriting data.
//
// # Choosing a codec
//
//	codec.JSON[Reading]()       "json"  any Go type, readable by eye; the default choice
//	codec.Proto[*pb.Reading]()  "pb"    generated messages: smaller, faster, fields may be added and renamed
//	codec.Records()             "rec"   named fields that are known only when they arrive
//	codec.Float64()             "f64"   one number
//	codec.Int64()               "i64"   one whole number
//	codec.String()              "str"   text
//	codec.Bytes()               "raw"   bytes that the program already encoded
//
// Package codec/zstd compresses the payloads of any of them. A codec for your own format needs three methods: see the
// example of [Codec].
//
// [Number] reads one number of a payload without decoding the rest.
//
// # Changing a format
//
// List the new format first and the old one after it; stored data does not change:
//
//	codec.Fallback(codec.Proto[*pb.Reading](), codec.Convert(codec.JSON[Reading](), toProto, nil))
//
// Use [Convert] for an old format with another Go type, and [Tagged] for a new structure in a format that is already
// in use. When the last old payload has expired, remove the old codec. Before the first program writes the new
// format, deploy it to every program that reads: a program that reads an unknown tag returns [ErrUnknownTag].
//
// # Errors
//
// A payload that cannot be decoded is a [*CorruptError], which matches [ErrCorrupt] and shows the tag, the length and
// the first 32 bytes. A value that cannot be encoded is an [*EncodeError], which matches [ErrEncode]. If a codec is
// built incorrectly, [Check] returns [ErrInvalid] when its schema is defined. No function of this package panics on
// any input. A decoder's memory is proportional to the payload's actual size, whatever lengths the payload states.
//
// # Stored formats
//
// Every format below is stable: a changed format would have another tag.
//
//   - json: one JSON value (RFC 8259) in UTF-8, without a byte order mark and without a newline after it.
//   - pb: one message in protobuf's wire format. The owner of the dataset knows which message it is.
//   - raw: the bytes.
//   - str: text in UTF-8, any length, no terminator.
//   - f64: 8 bytes, an IEEE 754 double, most significant byte first. Every bit pattern is valid.
//   - i64: 8 bytes, a signed integer in two's complement, most significant byte first.
//   - rec: a record, as follows.
//   - X+zstd: one Zstandard frame (RFC 8878) that declares its content size and uses no dictionary; its content is a
//     payload of the format X.
//
// # The format rec
//
// A record is a list of fields, each with a name, a type and a value. In ABNF, where OCTET is any byte:
//
//	record = count *field             ; as many fields as count says, then the end of the payload
//	count  = varint                   ; 0 to 1024
//	field  = length name value
//	length = %x01-FF                  ; bytes of name
//	name   = 1*255OCTET               ; UTF-8
//	value  = %x66 8OCTET              ; 'f' float: an IEEE 754 double, most significant byte first
//	       / %x69 varint              ; 'i' int: 64 bits signed, zigzag: n is stored as (n << 1) ^ (n >> 63)
//	       / %x75 varint              ; 'u' uint: 64 bits unsigned
//	       / %x73 varint *OCTET       ; 's' str: its length in bytes, then UTF-8
//	       / %x54                     ; 'T' the truth true
//	       / %x46                     ; 'F' the truth false
//
// A varint is protobuf's: 7 bits per byte, the least significant first, with the top bit set on all bytes except the
// last. It has at most 64 bits and is as short as possible, so its last byte is zero only for the number 0. Names are
// unique and in ascending order, compared as bytes. A payload that violates these rules is corrupt. So every record
// has exactly one encoding, and equal records have equal bytes.
//
// For example, {n=-3i ok=true temp=21.5} is these 23 bytes:
//
//	03                                         3 fields
//	01 6e 69 05                                "n"    int  -3
//	02 6f 6b 54                                "ok"   true
//	04 74 65 6d 70 66 40 35 80 00 00 00 00 00  "temp" float 21.5
//
// The format is binary because JSON has neither NaN nor infinities, and most JSON readers round integers above 2^53.
// JSON also cannot distinguish an int from a uint, or from a float with a whole value; JSON that names the types is
// longer and slower to read. The format has no version byte, because the tag is the version.
package codec
