package points

import (
	"context"
	"crypto/rand"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// What is known of the service's idempotency tokens.
const (
	tokensWork = 1 + iota
	tokensIgnored
)

// RecognizesTokens reports whether the service recognizes the idempotency token of a repeated addition. The first call
// writes a row of its own in a family of sums, reads it and deletes it: four requests. If one of them fails with its
// repetitions, the result is false, and the next call tries again.
func (t *Table) RecognizesTokens(ctx context.Context, sums string) bool {
	known := t.tokens.Load()
	if known == 0 {
		work, err := t.Whole.RecognizesTokens(ctx, rowkey.ProbeRows+rand.Text(), sums, t.Clock())
		if err != nil {
			return false
		}
		known = tokensIgnored
		if work {
			known = tokensWork
		}
		t.tokens.Store(known)
	}
	return known == tokensWork
}
