// Package adopt copies Bigtable tables of other programs into datasets of a store, as docs/adoption.md describes: Parse
// a mapping, Open the table, then Check, Copy and Verify.
package adopt

import (
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Errors for errors.Is. The calls also return errors of package tsdb.
var (
	// ErrInvalid: invalid argument or mapping file. It is tsdb.ErrInvalid.
	ErrInvalid = invalid.ErrInput
	// ErrUnfit: something in the foreign table is no point of the mapping, and the mapping does not allow skipping it.
	// The error is an *Unfit.
	ErrUnfit = errtype.New("adopt.ErrUnfit", "adopt: not a point of the mapping")
	// ErrState: the state belongs to another mapping, other tables, or a dataset that was deleted.
	ErrState = errtype.New("adopt.ErrState", "adopt: the state is of another copy")
)
