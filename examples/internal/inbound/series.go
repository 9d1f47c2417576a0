package inbound

import (
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/codec"
)

// series returns tags as one text, in the order of their names and escaped, so that no two sets of tags have the same.
func series(tags []codec.Field) string {
	if len(tags) == 0 {
		return "-"
	}
	return string(appendTags(nil, tags)[1:])
}

// streamHash returns the key field that tells streams apart: the first 15 bytes of the SHA-256 of the metric, its kind
// and its tags, as docs/format.md says.
func streamHash(metric, kind string, tags []codec.Field) string {
	var buf [512]byte
	sum := sha256.Sum256(appendTags(append(append(appendEscaped(buf[:0], metric), ','), kind...), tags))
	return hashText.EncodeToString(sum[:15])
}

var hashText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567")

// appendTags sorts tags by their names, and appends each as ",name=value".
func appendTags(dst []byte, tags []codec.Field) []byte {
	slices.SortFunc(tags, func(a, b codec.Field) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range tags {
		value, _ := t.Value.Str()
		dst = append(appendEscaped(append(dst, ','), strings.TrimPrefix(t.Name, TagPrefix)), '=')
		dst = appendEscaped(dst, value)
	}
	return dst
}

// appendEscaped appends a text with a backslash before each backslash, comma and equals sign.
func appendEscaped(dst []byte, text string) []byte {
	for {
		i := strings.IndexAny(text, `\,=`)
		if i < 0 {
			return append(dst, text...)
		}
		dst = append(append(dst, text[:i]...), '\\', text[i])
		text = text[i+1:]
	}
}
