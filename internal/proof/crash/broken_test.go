package crash_test

import (
	"testing"

	"github.com/tidemark-go/tidemark/internal/proof/broken"
)

// TestBroken checks that the crashes and faults catch broken versions of the SDK.
func TestBroken(t *testing.T) { broken.Run(t) }
