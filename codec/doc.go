// Package codec turns Go values into stored payloads and back.
//
// A schema names one [Codec]. A payload is stored with the codec's tag, and a read selects the decoder by that tag. So
// a dataset may have several formats at once.
//
//	codec.JSON[Reading]()       "json"  any Go type; the default choice
//	codec.Proto[*pb.Reading]()  "pb"    generated messages: smaller, faster; fields may be added, and renamed where no SQL names them
//	codec.Records()             "rec"   named fields that are known only when they arrive
//	codec.Float64()             "f64"   one number
//	codec.Int64()               "i64"   one whole number
//	codec.String()              "str"   text
//	codec.Bytes()               "raw"   bytes that the program already encoded
//
// Package codec/zstd compresses any of them. The example of [Codec] is a codec of your own.
//
// # Changing a format
//
// List the new format first and the old one after it; stored data does not change:
//
//	codec.Fallback(codec.Proto[*pb.Reading](), codec.Convert(codec.JSON[Reading](), toProto, nil))
//
// Deploy the new format to every program that reads before one writes it: an unknown tag is [ErrUnknownTag]. When the
// last old payload has expired, remove the old codec.
//
// # Errors
//
// Errors match [ErrCorrupt], [ErrUnknownTag] or [ErrEncode]. No input makes this package panic. A decoder's memory is
// proportional to the payload's size.
//
// Equal records have equal bytes.
package codec
