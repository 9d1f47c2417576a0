// Package zstd compresses payloads. [Wrap] makes a compressing codec from another one; "+zstd" is appended to the tag.
//
// Compression pays for payloads of kilobytes of text. A frame adds 13 bytes or more, so short binary payloads become
// longer. Bigtable itself compresses whole blocks of a table; for many small and similar payloads, that is more
// effective.
//
// To compress new payloads and still read the stored ones:
//
//	plain := codec.JSON[Report]()
//	reports := codec.Fallback(zstd.Wrap(plain, zstd.Options{}), plain)
//
// A payload is one Zstandard frame (RFC 8878) that declares its content size and uses no dictionary. Its content is the
// payload of the inner format. A reader refuses a frame that does not declare its size, declares more than its limit,
// or is followed by more content.
package zstd
