package main

import (
	"bytes"
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

// errUseless is wrapped by the error of an input that has too many lines which store nothing.
var errUseless = errors.New("too many lines without a point")

// checkEvery is after how many lines the context is looked at: lines that store nothing never wait for anything that does.
const checkEvery = 256

// ingest reads lines, stores them for a tenant, and says what became of each. A line that cannot be stored does not hinder
// the others. Its error is that of reading, matches errUndelivered, or is errUseless where more than useless lines are blank,
// comments or refused; 0 is no such bound. The lines that follow are not read.
func (in *ingester) ingest(ctx context.Context, id tenant.ID, r io.Reader, c clock, useless int) (rep report, err error) {
	ls := newLines(r)
	b := newBatch()
	for read := 1; ; read++ {
		l, err := ls.next()
		if err == io.EOF {
			break
		}
		if read%checkEvery == 0 && ctx.Err() != nil {
			return rep, fmt.Errorf("%w: %w", errUndelivered, context.Cause(ctx))
		}
		if useless > 0 && rep.blank+rep.refused > useless {
			return rep, errors.Join(fmt.Errorf("%w: more than %d lines before line %d are blank, comments or refused", errUseless, useless, l.first), in.flush(ctx, b, id, &rep))
		}
		switch {
		case err == nil && isBlank(l.text):
			err = errBlank
		case err == nil:
			err = in.take(ctx, id, b, l, c, &rep)
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
		rep.bytes += int64(len(l.text))
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

// isBlank reports whether a line is empty or a comment, without the decoder, which would cost 20 times as much.
func isBlank(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r")
	return len(text) == 0 || text[0] == '#'
}

// take adds a line to the batch.
func (in *ingester) take(ctx context.Context, id tenant.ID, b *batch, l line, c clock, rep *report) error {
	p, err := in.datasets.parse(ctx, id, l.text, c)
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
