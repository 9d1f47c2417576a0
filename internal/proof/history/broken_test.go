package history

import (
	"testing"

	"github.com/tidemark-go/tidemark/internal/proof/broken"
)

// TestBroken checks that the histories catch broken versions of the SDK.
func TestBroken(t *testing.T) { broken.Run(t) }
