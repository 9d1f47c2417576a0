// Package codec turns Go values into stored payloads and back.
//
// A schema names one [Codec], and a point's payload is stored with the codec's tag beside it. A read picks the decoder
// by that tag, so a dataset may hold several formats at once and move from one to the next without a rewrite.
//
// # Which one
//
//	codec.JSON[Reading]()       "json"  any Go type, readable by eye; the default choice
//	codec.Proto[*pb.Reading]()  "pb"    generated messages: smaller, faster, fields may be added and renamed
//	codec.Records()             "rec"   named fields that are known only when they arrive
//	codec.Float64()             "f64"   one number
//	codec.Int64()               "i64"   one whole number
//	codec.String()              "str"   text
//	codec.Bytes()               "raw"   bytes that the program already encoded
//
// Package codec/zstd compresses the payloads of any of them. A format of your own takes three methods: see the example
// of [Codec].
//
// # Changing a format
//
// Put the new format first and leave the old one behind it; nothing that is stored has to be touched:
//
//	codec.Fallback(codec.Proto[*pb.Reading](), codec.Convert(codec.JSON[Reading](), toProto, nil))
//
// [Convert] is for an old format of another Go type, [Tagged] for a new shape in a format that is in use already. Once
// the last old payload has expired the old codec can go. Let every program that reads know the new format before the
// first one writes it: a program that meets a tag that it does not know reports [ErrUnknownTag].
//
// # Errors
//
// A payload that cannot be decoded is a [*CorruptError], which matches [ErrCorrupt] and shows the tag, the length and
// the first 32 bytes. A value that cannot be encoded is an [*EncodeError], which matches [ErrEncode]. A codec that is
// put together wrongly is reported by [Check], with [ErrInvalid], when its schema is defined. Nothing here panics on
// input, and a decoder allocates in proportion to the payload, whatever the payload claims.
//
// # Stored formats
//
// Every format below is stable: another format would get another tag.
//
//   - json: one JSON value (RFC 8259) in UTF-8, without a byte order mark and without a newline after it.
//   - pb: one message in protobuf's wire format. Which message it is the dataset's owner knows.
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
// A varint is that of protobuf: 7 bits a byte, the least significant first, the top bit set on all bytes but the last.
// It holds 64 bits at most and is as short as it can be, so its last byte is zero only where the number is. Names are
// in ascending order, compared as bytes, and none comes twice. A payload that breaks any of this is corrupt. So every
// record has exactly one encoding, and equal records are equal bytes.
//
// For example, {n=-3i ok=true temp=21.5} is these 23 bytes:
//
//	03                                         3 fields
//	01 6e 69 05                                "n"    int  -3
//	02 6f 6b 54                                "ok"   true
//	04 74 65 6d 70 66 40 35 80 00 00 00 00 00  "temp" float 21.5
//
// It is binary rather than JSON because JSON has neither NaN nor infinities, most readers of it round integers above
// 2^53, and it cannot tell an int from a uint or from a float that happens to be whole; JSON that spells
// the types out is longer and slower to read. It has no version byte, because the tag is the version.
package codec
