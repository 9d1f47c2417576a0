// Package cursor defines the text that says where the next page starts.
//
// A cursor is base64url without padding of
//
//	0x01 <nonce, 24> <sealed place> <tag, 16>    sealed: XChaCha20-Poly1305
//	0x00 <sum, 12> <place>                       unsealed: the first 12 bytes of a SHA-256
//
// The first byte and the Scope are the additional data of a sealed cursor; in an unsealed one the sum covers them
// before the place. So a cursor cannot be read with another query.
package cursor
