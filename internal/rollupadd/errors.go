package rollupadd

import "github.com/tidemark-go/tidemark/internal/errtype"

var (
	// ErrAdded means that a rebuild needs a rollup to which no events are added.
	ErrAdded = errtype.New("rollup.ErrAdded", "rollup: events are added to it")
	// ErrMode means that a call adds to rollups of another mode.
	ErrMode = errtype.New("rollup.ErrMode", "rollup: the rollup is of another mode")
)
