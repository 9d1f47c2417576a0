package rowkey

import (
	"iter"
	"strings"
)

// Each returns the parts of a path with their indexes from 0, as Parts returns them. It allocates only for parts with
// escapes.
func Each(path string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i, rest, more := 0, path, path != ""; more; i++ {
			var part string
			part, rest, more = strings.Cut(rest, "#")
			if !yield(i, unescape(part)) {
				return
			}
		}
	}
}
