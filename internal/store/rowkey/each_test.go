package rowkey_test

import (
	"slices"
	"testing"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

func TestEachGivesTheParts(t *testing.T) {
	for _, parts := range [][]string{nil, {"a"}, {"berlin", "roof-7"}, {"a#b", "%", "\x00", "東"}} {
		path := rowkey.Path(parts...)
		var got []string
		for i, part := range rowkey.Each(path) {
			if i != len(got) {
				t.Errorf("part %q: got number %d, want %d", part, i, len(got))
			}
			got = append(got, part)
		}
		if !slices.Equal(got, parts) || !slices.Equal(got, rowkey.Parts(path)) {
			t.Errorf("Each(%q) = %q, want %q", path, got, parts)
		}
		for range rowkey.Each(path) {
			break
		}
	}
}
