package transfer

import (
	"context"
	"errors"
	"io"
	"maps"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
)

// Checkpoint is the end of a whole block of a file, where an import or an export can continue. The zero Checkpoint is
// the start. A Checkpoint for Import can be stored as JSON. A Checkpoint for Export comes from Recover.
type Checkpoint struct {
	// Line is the number of the block's last line. Points is how many points the file has up to there. Offset is how
	// many bytes it has up to there, uncompressed.
	Line   int64 `json:"line"`
	Points int64 `json:"points"`
	Offset int64 `json:"offset"`
	// Sum is the sum of the block. It identifies the file.
	Sum string `json:"sum"`

	state *state
}

// state is the state that an export needs to continue.
type state struct {
	header *header
	chain  chain
	counts map[string]int64
	last   record

	unreadable int64 // before the last point
	summed     int64 // up to the checkpoint
}

// Recover reads a file whose export was interrupted, and returns the end of its last whole block. Truncate the file
// at Offset, open it to append, and pass the checkpoint to Export. The file may end within a line, or without an end.
// For a fault in any other line, the error is a *LineError that matches ErrDamaged. For a file without a whole block,
// Recover returns the zero Checkpoint: start the export again. If the file has its end, complete is true and nothing
// is left to do.
//
// key is ExportOptions.Key, or nil. Recover reads the whole file, and holds one block in memory.
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
		at.state = &state{header: b.header, counts: maps.Clone(b.counts), last: b.last, chain: b.lines.chain, unreadable: b.before, summed: b.left}
		at.state.chain.hash = nil
	}
}
