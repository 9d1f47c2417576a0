// Package zstd compresses payloads: [Wrap] makes a codec out of another, whose tag has "+zstd" after it.
//
// It is a package of its own so that only programs that compress link the compressor. It pays where payloads are
// kilobytes of text; a frame adds 13 bytes or more, so it makes short binary payloads longer. Bigtable itself
// compresses whole blocks of a table, rows with their neighbours, which serves many small and similar payloads better
// than compressing each by itself can.
//
// To compress what is written from now on and still read what is there:
//
//	plain := codec.JSON[Report]()
//	reports := codec.Fallback(zstd.Wrap(plain, zstd.Options{}), plain)
//
// # Stored format
//
// A payload is one Zstandard frame (RFC 8878) that declares its content size and uses no dictionary. Its content is the
// payload of the inner format. A reader refuses a frame that does not declare its size, declares more than its limit,
// or is followed by more content.
package zstd
