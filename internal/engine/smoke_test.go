package engine_test

import (
	"slices"
	"testing"

	"cloud.google.com/go/bigtable"
	"github.com/tidemark-go/tidemark/internal/engine"
)

func TestPutAndRead(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	apply(t, r, "a", set("f", "q", 1000, "one"))
	apply(t, r, "b", set("f", "q", 2000, "two"))
	apply(t, r, "a", set("f", "q", 3000, "three"))
	got := dump(t, r, bigtable.InfiniteRange(""))
	want := []string{"a f:q@3000=three", "a f:q@1000=one", "b f:q@2000=two"}
	if !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	got = dump(t, r, bigtable.InfiniteRange(""), bigtable.ReverseScan(), bigtable.LimitRows(1))
	if want := []string{"b f:q@2000=two"}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}
