// Package cursor is the text by which a page names the place where the next one starts: how a place is written, bound to
// the query that it belongs to, sealed, and read again. All of it is computation: nothing here reads or writes a table.
//
// A cursor is base64url without padding of
//
//	0x01 <nonce, 24> <sealed place> <tag, 16>    sealed: XChaCha20-Poly1305
//	0x00 <sum, 12> <place>                       unsealed: the first 12 bytes of a SHA-256
//
// The additional data of the one, and what the sum of the other is over before the place, is the first byte and the Scope.
// So a cursor does not hold the query that it belongs to, and cannot be read with another.
package cursor
