package journal

import (
	"math"
	"testing"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// TestNumbersDoNotOverflow checks that a new description never gets the number of an existing one: stored records refer
// to descriptions by number.
func TestNumbersDoNotOverflow(t *testing.T) {
	s, err := spool.Open(t.TempDir(), spool.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := &Descriptions{spool: s}
	first, err := d.Number(t.Context(), "point", []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint64{math.MaxUint64 - 1, math.MaxUint64} {
		if err := s.SetMeta(t.Context(), Description{Kind: "event", Number: n}.Name(), []byte("b")); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := d.Number(t.Context(), "point", []byte("c")); err == nil {
		t.Errorf("got number %d, which another description has", n)
	}
	if n, err := d.Number(t.Context(), "point", []byte("a")); err != nil || n != first {
		t.Errorf("first description: got number %d (%v), want %d", n, err, first)
	}
}
