package journal

import (
	"math"
	"testing"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// TestNumbersDoNotOverflow: a description never gets the number of another one, to which stored records refer.
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
		t.Errorf("a description got the number %d, which another one has", n)
	}
	if n, err := d.Number(t.Context(), "point", []byte("a")); err != nil || n != first {
		t.Errorf("the first description has the number %d (%v), and had %d", n, err, first)
	}
}
