package skipscan

import (
	"fmt"
	"testing"

	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// TestMetEntitiesAreBounded: the memory of a scan does not grow with the number of entities that it finds.
func TestMetEntitiesAreBounded(t *testing.T) {
	for _, width := range []int{20, 2000} {
		var s scan
		for i := range 3 * points.OutlineEntities {
			s.keep([]rowkey.Known{{Prefix: fmt.Sprintf("%0*d#", width, i)}}, nil)
		}
		if n := len(s.met); n == 0 || n > points.OutlineEntities || n*width > points.OutlineBytes {
			t.Errorf("a scan holds %d entities with prefixes of %d bytes, want as many as an outline holds", n, width)
		}
	}
}
