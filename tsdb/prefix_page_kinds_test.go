package tsdb_test

import (
	"testing"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestPagesGoPastPartsOfAnotherKind: if a page ends with an entity that a program without kinds has stored, the next
// page continues after it.
func TestPagesGoPastPartsOfAnotherKind(t *testing.T) {
	text := tsdb.MustDefine("d", tsdb.Key("line", "stop"), codec.JSON[reading](), tsdb.SchemaOptions{})
	kinds := tsdb.MustDefine("d", tsdb.Key("line").Uint("stop", 4), codec.JSON[reading](), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, text)
	for _, stop := range []string{"0001", "12", "3000"} {
		if err := text.For(store, acme).Put(t.Context(), tsdb.NewEntity("a", stop), start, reading{1}); err != nil {
			t.Fatal(err)
		}
	}
	seen, cursor := 0, ""
	for {
		p, err := kinds.For(store, acme).Under(tsdb.AllEntities()).PageEntities(t.Context(), 2, cursor)
		if err != nil {
			t.Fatal(err)
		}
		if seen += len(p.Entities); p.Next == "" {
			break
		}
		cursor = p.Next
	}
	if seen != 3 {
		t.Errorf("%d entities on the pages, want 3", seen)
	}
}
