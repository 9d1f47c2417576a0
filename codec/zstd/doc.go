// Package zstd compresses payloads. [Wrap] makes a compressing codec from another one, and appends "+zstd" to the tag.
//
// It pays for kilobytes of text. A frame adds 13 bytes or more, so short binary payloads become longer. Bigtable itself
// compresses blocks of a table, which is more effective for small and similar payloads.
//
// To compress new payloads and still read the stored ones:
//
//	plain := codec.JSON[Report]()
//	reports := codec.Fallback(zstd.Wrap(plain, zstd.Options{}), plain)
//
// A payload is one Zstandard frame that declares its size. A reader refuses anything else.
package zstd
