// Package adopt reads existing Bigtable tables of other programs, and copies them into datasets of a store.
//
// A mapping file says what the rows of such a foreign table are: which parts of the row key name the tenant, the entity and the time,
// and which columns hold the values. [Parse] reads it, [Describe] drafts one from a sample of the table.
//
//	mapping, err := adopt.Parse(text)
//	source, err := adopt.Open(client.OpenTable("telemetry"), mapping)
//	report, err := source.Check(ctx, store, adopt.CheckOptions{})          // what does not fit, and why
//	state, err := source.Copy(ctx, store, adopt.CopyOptions{Save: save})   // again: copies what was written since
//	verified, err := source.Verify(ctx, store, adopt.VerifyOptions{})      // counts and checksums of ranges
//
// Nothing is lost silently. Whatever of the table is no point of the mapping is unfit: Check counts it by reason, and Copy stops at it
// unless the mapping lists the reason under skip. The command line is "tidectl adopt". See docs/adoption.md for the mapping file, and
// for what is promised about writes during the copy.
//
// A copy writes points only, of one dataset, through the store's usual checks. It never writes to the foreign table. To undo
// it, delete the dataset (tenants.Remove), if it has no other points.
package adopt

import (
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Errors for errors.Is. The calls also return errors of package tsdb.
var (
	// ErrInvalid: invalid argument or mapping file. It is tsdb.ErrInvalid.
	ErrInvalid = invalid.ErrInput
	// ErrUnfit: something in the foreign table is no point of the mapping, and the mapping does not allow skipping it. The error
	// is an *Unfit.
	ErrUnfit = errtype.New("adopt.ErrUnfit", "adopt: not a point of the mapping")
	// ErrState: the state belongs to another mapping, other tables, or a dataset that was deleted.
	ErrState = errtype.New("adopt.ErrState", "adopt: the state is of another copy")
)
