package codecerr

import "github.com/tidemark-go/tidemark/internal/invalid"

// maxTag is the longest tag, in bytes.
const maxTag = 24

// CheckTag returns an error if tag cannot be stored. A tag has 1 to 24 bytes: words of a-z and 0-9, with a
// single '.', '+' or '-' between two words. As a grammar:
//
//	tag  = word *( ( "." / "+" / "-" ) word )
//	word = 1*( %x61-7A / %x30-39 )
//
// By convention, '+' joins the tag of a payload and a transformation of it, as in "json+zstd". The error matches
// [ErrInvalid]. CheckTag does not allocate for a valid tag.
func CheckTag(tag string) error {
	const limit = `1 to 24 bytes, words of a-z and 0-9 with one of ".+-" between two words`
	if len(tag) == 0 || len(tag) > maxTag {
		return invalid.New(ErrInvalid, "tag", invalid.Quote(tag), limit)
	}
	inWord := false
	for i := range len(tag) {
		switch c := tag[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			inWord = true
		case inWord && (c == '.' || c == '+' || c == '-'):
			inWord = false
		default:
			return invalid.New(ErrInvalid, "tag", invalid.Quote(tag), limit)
		}
	}
	if !inWord {
		return invalid.New(ErrInvalid, "tag", invalid.Quote(tag), limit)
	}
	return nil
}
