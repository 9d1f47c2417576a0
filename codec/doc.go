// Package codec turns Go values into stored payloads and back.
//
// A schema names one [Codec]. A point's payload is stored with the codec's tag, and a read selects the decoder by that
// tag. So a dataset may have several formats at once, and change to a new format without rewriting data.
//
//	codec.JSON[Reading]()       "json"  any Go type, readable by eye; the default choice
//	codec.Proto[*pb.Reading]()  "pb"    generated messages: smaller, faster; fields may be added, and renamed where no SQL names them
//	codec.Records()             "rec"   named fields that are known only when they arrive
//	codec.Float64()             "f64"   one number
//	codec.Int64()               "i64"   one whole number
//	codec.String()              "str"   text
//	codec.Bytes()               "raw"   bytes that the program already encoded
//
// Package codec/zstd compresses the payloads of any of them. A codec for your own format needs three methods: see the
// example of [Codec]. [Lookup] reads one field of a payload without decoding the rest.
//
// # Changing a format
//
// List the new format first and the old one after it; stored data does not change:
//
//	codec.Fallback(codec.Proto[*pb.Reading](), codec.Convert(codec.JSON[Reading](), toProto, nil))
//
// Use [Convert] for an old format with another Go type, and [Tagged] for a new structure in a format that is already in
// use. When the last old payload has expired, remove the old codec. Before the first program writes the new format,
// deploy it to every program that reads: a program that reads an unknown tag returns [ErrUnknownTag].
//
// # Errors
//
// The error of a payload that cannot be decoded matches [ErrCorrupt], and shows the tag, the length and the first 32
// bytes. That of a value that cannot be encoded matches [ErrEncode]. If a codec is built incorrectly, [Check] returns
// [ErrInvalid] when its schema is defined. No function of this package panics on any input. A decoder's memory is
// proportional to the payload's actual size.
//
// # Stored formats
//
// Every format is stable and specified byte by byte in docs/format.md; a changed format would have another tag. Equal
// records have equal bytes.
package codec
