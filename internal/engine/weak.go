package engine

import "github.com/cockroachdb/pebble/v2"

// renew lets the scan of a weak engine go on in the current state, behind the row that it has returned last.
func (r *Reader) renew() error {
	if r.await { // for the writes that the rows before depend on
		r.await = false
		if err := r.writes.wait(r.ctx); err != nil {
			return err
		}
	}
	it, err := r.e.db.NewIter(&pebble.IterOptions{LowerBound: r.span.lower, UpperBound: r.span.upper})
	if err != nil {
		return storageError(err)
	}
	r.leaveSpan()
	old := r.scan.it
	r.scan.it, r.skipped = it, 0
	r.scan.seek = append(r.scan.seek[:0], r.scan.prefix...)
	if r.reverse {
		it.SeekLT(r.scan.seek)
	} else {
		it.SeekGE(afterTerminator(r.scan.seek))
	}
	r.writes = r.e.inFlight.dependency()
	r.await = r.writes.onRemoval(r.spans) || r.writes.onRemoval([]span{r.span})
	if err := old.Close(); err != nil {
		return storageError(err)
	}
	return nil
}
