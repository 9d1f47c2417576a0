package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// ingester stores lines.
type ingester struct {
	datasets *datasets
	store    *tsdb.Store
	writer   *tsdb.Writer
	// journaled says that the writer has a journal: what is in it is acknowledged.
	journaled bool
}

// errUndelivered is wrapped by the error of an input of which some lines may not be stored. Sending it again is harmless.
var errUndelivered = errors.New("not all lines are stored")

// ingest reads lines, stores them for a tenant, and says what became of each. A line that cannot be stored does not hinder
// the others. Its error is that of reading, or matches errUndelivered; lines behind it are not looked at.
func (in *ingester) ingest(ctx context.Context, id tenant.ID, r io.Reader, c clock) (rep report, err error) {
	ls := newLines(r)
	b := newBatch()
	for {
		l, err := ls.next()
		if err == io.EOF {
			break
		}
		switch {
		case err == nil:
			err = in.take(ctx, b, l, c, &rep)
		case errors.Is(err, errLongLine), errors.Is(err, errOpenText):
			err = unparsable(err)
		default: // what has come so far is stored before the error is told
			err = errors.Join(fmt.Errorf("read behind line %d: %w", l.first-1, err), in.flush(ctx, b, id, &rep))
			return rep, err
		}
		if errors.Is(err, errBlank) {
			rep.blank++
			continue
		}
		rep.lines++
		if _, bad := errors.AsType[*lineError](err); bad {
			rep.refuse(l, err)
		} else if err != nil {
			return rep, fmt.Errorf("%w: %w", errUndelivered, err)
		}
		if b.full() {
			if err := in.flush(ctx, b, id, &rep); err != nil {
				return rep, err
			}
			b = newBatch()
		}
	}
	err = in.flush(ctx, b, id, &rep)
	return rep, err
}

// take adds a line to the batch.
func (in *ingester) take(ctx context.Context, b *batch, l line, c clock, rep *report) error {
	p, err := in.datasets.parse(ctx, l.text, c)
	if err != nil {
		return err
	}
	replaced, err := b.add(p, line{first: l.first, last: l.last})
	if err != nil {
		return err
	}
	b.bytes += len(l.text)
	if replaced {
		rep.replaced++
	}
	return nil
}

func (in *ingester) flush(ctx context.Context, b *batch, id tenant.ID, rep *report) error {
	if err := b.store(ctx, in, id, rep); err != nil {
		return fmt.Errorf("%w: %w", errUndelivered, err)
	}
	return nil
}
