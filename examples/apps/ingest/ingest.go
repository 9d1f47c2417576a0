package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/examples/internal/infile"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
)

// fits returns an error if points outgrow the tenant's burst. The store would accept some of them, and refuse the rest
// each time they are sent again: also in smaller requests, because those would find the burst used up.
func (in *ingester) fits(id tenant.ID, points int) error {
	l := in.limits.Limits(id)
	burst := cmp.Or(l.PointsBurst, l.PointsPerSecond)
	if burst == 0 || int64(points) <= burst {
		return nil
	}
	return &limit.Error{ID: limit.PointsPerSecond, Tenant: id, Limit: l.PointsPerSecond, Burst: burst, Used: int64(points)}
}

// noun is the word for what is stored in one dataset.
const noun = "measurement"

// ingester stores lines.
type ingester struct {
	datasets *inbound.Datasets
	sink     inbound.Sink
	// limits are those of the tenants; nil means none.
	limits *limit.Limiter
	// journaled says that the writer has a journal: points are acknowledged once they are in it.
	journaled bool
}

// line is the place of a line of line protocol: its lines in the input, from 1.
type line struct{ first, last int }

func (l line) String() string {
	return infile.Record{First: int64(l.first), Last: int64(l.last)}.String()
}

// maxLine bounds one line in bytes, and so the memory of a request.
const maxLine = infile.MaxLine

// errUndelivered says that some lines or data points may not be stored. It is safe to send all of them again.
var errUndelivered = errors.New("not all of it is stored")

// errUseless says that too many lines of an input store nothing.
var errUseless = errors.New("too many lines without a point")

// checkEvery is after how many records of a request the next one may have to wait.
const checkEvery = 8

// pause is called before the record of a number. At every checkEvery it yields the processor, so that a request with
// many records that store nothing does not delay those of other tenants, and returns errUndelivered once ctx has ended.
func pause(ctx context.Context, number int) error {
	if number%checkEvery != 0 {
		return nil
	}
	if runtime.Gosched(); ctx.Err() != nil {
		return fmt.Errorf("%w: %w", errUndelivered, context.Cause(ctx))
	}
	return nil
}

// ingest reads lines, stores them for a tenant, and reports on each. A line that cannot be stored does not affect the
// others. The error is a read error, errUndelivered, or errUseless if more than useless lines are blank, comments or
// refused; then the remaining lines are not read. If useless is 0 there is no such limit.
func (in *ingester) ingest(ctx context.Context, id tenant.ID, r io.Reader, c inbound.Clock, useless int) (rep report, err error) {
	ls := infile.NewLines(r)
	b := &inbound.Batch[line]{}
	for read := 1; ; read++ {
		rec, err := ls.Next()
		if err == io.EOF {
			break
		}
		l := line{int(rec.First), int(rec.Last)}
		if err := pause(ctx, read); err != nil {
			return rep, err
		}
		if useless > 0 && rep.blank+rep.refused > useless {
			return rep, errors.Join(fmt.Errorf("%w: more than %d lines before line %d are blank, comments or refused", errUseless, useless, l.first), in.flush(ctx, b, id, &rep))
		}
		switch {
		case err == nil && rec.Err != nil:
			err = &inbound.Error{Reason: inbound.ReasonSyntax, Err: rec.Err}
		case err == nil && infile.Blank(rec.Payload):
			err = inbound.ErrBlank
		case err == nil:
			err = in.take(ctx, id, b, l, rec.Payload, c, &rep)
		default: // store the lines so far, then return the error
			err = errors.Join(fmt.Errorf("read after line %d: %w", l.first-1, err), in.flush(ctx, b, id, &rep))
			return rep, err
		}
		if errors.Is(err, inbound.ErrBlank) {
			rep.blank++
			continue
		}
		rep.lines++
		if _, bad := errors.AsType[*inbound.Error](err); bad {
			rep.refuse(l.first, l, err)
		} else if err != nil {
			return rep, fmt.Errorf("%w: %w", errUndelivered, err)
		}
		if b.Full() {
			if err := in.flush(ctx, b, id, &rep); err != nil {
				return rep, err
			}
			b = &inbound.Batch[line]{}
		}
	}
	err = in.flush(ctx, b, id, &rep)
	return rep, err
}

// take adds a line to the batch.
func (in *ingester) take(ctx context.Context, id tenant.ID, b *inbound.Batch[line], l line, text []byte, c inbound.Clock, rep *report) error {
	p, err := in.datasets.ParseLine(ctx, id, text, c)
	if err != nil {
		return err
	}
	if !p.Dataset.Merges() { // then a line would replace the point of another series
		return &inbound.Error{Reason: "a route has its measurement", Err: fmt.Errorf("the %s %s is the dataset of a route that does not say merge", noun, p.Dataset.Name())}
	}
	replaced, err := b.Add(p, l, len(text))
	if err != nil {
		return err
	}
	if replaced {
		rep.replaced++
	}
	return nil
}

func (in *ingester) flush(ctx context.Context, b *inbound.Batch[line], id tenant.ID, rep *report) error {
	return storeBatch(ctx, in, b, id, rep, func(l line) int { return l.first })
}

// storeBatch stores a batch, and adds the outcome of each line, or of whatever the points come from, to the report.
// number returns its position in the input.
func storeBatch[O fmt.Stringer](ctx context.Context, in *ingester, b *inbound.Batch[O], id tenant.ID, rep *report, number func(O) int) error {
	return storePoints(ctx, in, b, id, rep, func(origins []O, out tsdb.Outcome) {
		_, refused := errors.AsType[*inbound.Error](out.Err)
		switch {
		case out.Err == nil:
			rep.points++
			rep.stored += len(origins)
			if out.State == tsdb.Journaled {
				rep.journaled += len(origins)
			}
			rep.merged += len(origins) - 1
		case refused:
			for _, o := range origins {
				rep.refuse(number(o), o, out.Err)
			}
		default:
			rep.undelivered += len(origins)
		}
	})
}

// storePoints stores a batch, and calls each with the outcome of each point.
func storePoints[O any](ctx context.Context, in *ingester, b *inbound.Batch[O], id tenant.ID, rep *report, each func([]O, tsdb.Outcome)) error {
	rep.bytes += b.Payload()
	if err := in.fits(id, b.Points()); err != nil {
		rep.sent += b.Points()
		return fmt.Errorf("%w: %w", errUndelivered, err)
	}
	err := b.Store(ctx, in.sink, id, func(origins []O, out tsdb.Outcome) {
		rep.sent++
		if out.State == tsdb.Unchanged {
			rep.unchanged++
		}
		each(origins, out)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errUndelivered, err)
	}
	return nil
}
