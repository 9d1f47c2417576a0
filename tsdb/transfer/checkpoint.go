package transfer

import (
	"context"
	"errors"
	"io"
	"maps"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
)

// Checkpoint is the end of a whole block of a file, where an import or an export can go on. The zero Checkpoint is the
// start. It survives JSON for Import; one for Export comes from Recover.
type Checkpoint struct {
	// Line is the number of the last line of the block, Points how many points the file holds up to there, and Offset how many
	// bytes it has up to there, not compressed.
	Line   int64 `json:"line"`
	Points int64 `json:"points"`
	Offset int64 `json:"offset"`
	// Sum is the sum of the block. It tells one file from another.
	Sum string `json:"sum"`

	state *state
}

// state is what an export needs to go on.
type state struct {
	header *header
	chain  chain
	counts map[string]int64
	last   record

	unreadable int64
}

// Recover reads a file whose export was interrupted, and returns the end of its last whole block. Cut the file off at
// Offset, open it to append, and give the checkpoint to Export. A file that ends within a line, or without an end, is fine; where
// any other line is at fault the error is a *LineError that matches ErrDamaged. Of a file without a whole block it
// returns the zero Checkpoint: export again. Where the file has its end, complete is true and nothing is left to do.
//
// Key is that of the ExportOptions, nil for none. It reads all of the file, and holds one block in memory.
func Recover(ctx context.Context, r io.Reader, key []byte) (at Checkpoint, complete bool, err error) {
	b, err := openBlocks(r, key)
	if errors.Is(err, errTorn) || errors.Is(err, errEmpty) {
		return Checkpoint{}, false, nil
	}
	if err != nil {
		return Checkpoint{}, false, err
	}
	for {
		if err := ctxerr.Of(ctx); err != nil {
			return at, false, err
		}
		switch err := b.next(); {
		case errors.Is(err, io.EOF):
			return at, true, nil
		case errors.Is(err, errTorn), errors.Is(err, errCut):
			return at, false, nil
		case err != nil:
			return at, false, err
		}
		at = b.checkpoint()
		at.state = &state{header: b.header, counts: maps.Clone(b.counts), last: b.last, chain: b.lines.chain, unreadable: b.left}
		at.state.chain.hash = nil
	}
}
