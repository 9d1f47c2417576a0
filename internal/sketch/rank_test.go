package sketch_test

import (
	"encoding/binary"
	"testing"

	"github.com/tidemark-go/tidemark/internal/sketch"
)

// The rank of a quantile is that of decimal arithmetic, however many numbers there are: a share of 0.07 of a billion
// numbers is 70 million of them.
func TestRanksOfManyNumbers(t *testing.T) {
	for n := int64(100); n <= 1e15; n *= 10 {
		for share := int64(1); share < 1000; share++ {
			if n < 1000 && share%10 > 0 {
				continue
			}
			rank := n / 1000 * share
			if n < 1000 {
				rank = n * share / 1000
			}
			// As many zeros as the rank says, and ones: a rank that is one too high is a one.
			data := binary.AppendUvarint([]byte{1, 0}, uint64(rank-1))
			data = binary.AppendUvarint(data, 1023<<6-1)
			data = binary.AppendUvarint(data, uint64(n-rank-1))
			var s sketch.Sketch
			if err := s.UnmarshalBinary(data); err != nil || s.Count() != n {
				t.Fatalf("%d numbers, %v; want %d", s.Count(), err, n)
			}
			q := float64(share) / 1000
			if got, next := s.Quantile(q), s.Quantile(q*(1+1e-14)); got != 0 || n > 1e13 && n <= 1e14 && next == 0 {
				t.Fatalf("quantile %v of %d numbers is %v, want the number of rank %d; that of a little more is %v", q, n, got, rank, next)
			}
		}
	}
}
