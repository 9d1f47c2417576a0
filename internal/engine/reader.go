package engine

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
	"github.com/tidemark-go/tidemark/internal/firstrow"
	"github.com/tidemark-go/tidemark/internal/reach"
)

const (
	firstResponseRows = 8         // small, so that a short response is quick
	maxResponseRows   = 1024      // rows of a response
	maxResponseBytes  = 256 << 10 // a response ends with the row that reaches it
	silentWork        = 2048      // cells passed without a result before the reader returns a partial response or its progress
	workPerCheck      = 4096      // work between two checks of the context: rows, cells and pieces of 256 bytes
)

// Reader is one ReadRows request whose caller pulls the response. It sees the state that is on disk when it is created
// or, if it wants one row of one range, when it begins to read. A read of at most firstResponseRows rows of one range,
// and any of a weak engine, goes on in the current state after a pause (see
// pause). It holds storage until it has returned an error (io.EOF at its end), its context has ended, or Close.
type Reader struct {
	e       *Engine
	ctx     context.Context
	started time.Time

	mu       sync.Mutex
	done     error // what Next returns from now on
	scan     rowScanner
	spans    []span // not begun yet, in the request's order
	span     span   // the current one, once the reader has begun
	skipped  int    // by the iterator when it entered the span (see func skipped)
	filter   *rowfilter.Filter
	reverse  bool
	limit    int64 // rows still wanted; negative for no limit
	rows     int   // of the next response
	out      chunkWriter
	stats    *bigtablepb.ReadIterationStats
	progress bool // may send its progress
	begun    bool // there is a current span. Unless passed is set, the iterator is at one of its rows, or at its end
	passed   bool // the rest of the current span is not wanted

	first  bool      // only the first row of each span that the filter lets through is wanted
	uses   bool      // it uses what the engine remembers of first rows, and adds to it
	moment uint64    // of firstRows, before the reader chose its state
	found  *firstRow // the current row, if it is remembered
	asked  *firstRow // what the reader looks for in the current span
	stop   func() bool
	node   readerNode

	open  bool        // it holds an iterator, or has paused
	state *state      // what it sees; nil if that is the iterator's state
	last  []byte      // the prefix of the row behind which it goes on after a pause; nil if it has read none
	stale atomic.Bool // a memtable that the iterator keeps has been flushed
}

// NewReader checks a request and begins to read. It does not retain the request.
func (e *Engine) NewReader(ctx context.Context, req *bigtablepb.ReadRowsRequest) (*Reader, error) {
	return withStatus(e.newReader(ctx, req))
}

func (e *Engine) newReader(ctx context.Context, req *bigtablepb.ReadRowsRequest) (*Reader, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.leave()
	at, err := e.target(req.GetTableName(), req.GetAuthorizedViewName(), req.GetMaterializedViewName())
	if err != nil {
		return nil, err
	}
	if req.GetRowsLimit() < 0 {
		return nil, invalidf("Field rows_limit is %d, want 0 or more", req.GetRowsLimit())
	}
	spans, err := rowSpans(at.table.id, req.GetRows(), at.view)
	if err != nil {
		return nil, err
	}
	r := &Reader{
		e: e, ctx: ctx, spans: spans, reverse: req.GetReversed(), limit: req.GetRowsLimit(),
		rows: firstResponseRows, progress: true, first: firstrow.Wanted(ctx), moment: e.first.moment.Load(),
	}
	if e.weak {
		r.rows = 1
	}
	if r.limit == 0 {
		r.limit = -1
	}
	if req.GetFilter() != nil {
		if r.filter, err = rowfilter.Compile(req.GetFilter()); err != nil {
			return nil, err
		}
		r.scan.bounds = r.filter.Bounds()
	}
	switch view := req.GetRequestStatsView(); view {
	case bigtablepb.ReadRowsRequest_REQUEST_STATS_VIEW_UNSPECIFIED, bigtablepb.ReadRowsRequest_REQUEST_STATS_NONE:
	case bigtablepb.ReadRowsRequest_REQUEST_STATS_FULL:
		r.stats, r.started = new(bigtablepb.ReadIterationStats), e.clock()
	default:
		return nil, invalidf("Unknown request_stats_view %v", view)
	}
	r.scan.e, r.scan.schema, r.scan.view = e, at.table.schema.Load(), at.view
	if len(spans) == 0 {
		return r, nil
	}
	if !e.weak && (r.first || r.limit < 0 || r.limit > firstResponseRows) { // others rarely have a second part, and a snapshot has a price
		r.state = e.hold()
	}
	r.span = span{spans[0].lower, spans[len(spans)-1].upper}
	r.uses = (r.first || r.limit == 1 && len(spans) == 1) && !r.reverse && !e.weak && at.view == nil
	if !r.uses {
		if err := r.resume(); err != nil {
			r.e.inFlight.release(r.state)
			return nil, err
		}
	}
	r.open = true
	e.readers.add(r)
	return r, nil
}

// Next fills dst with the next part of the response. It returns io.EOF after the last part, and otherwise an error with
// a status.
func (r *Reader) Next(dst *bigtablepb.ReadRowsResponse) error {
	r.mu.Lock()
	defer r.unlock()
	if r.done != nil {
		return r.done
	}
	if err := r.e.enter(r.ctx); err != nil {
		return r.finish(statusOf(err))
	}
	defer r.e.leave()
	more, err := r.fill(dst)
	if err != nil {
		return r.finish(statusOf(err))
	}
	if !more {
		r.finish(io.EOF)
		if len(dst.Chunks) == 0 && dst.RequestStats == nil {
			return io.EOF
		}
		return nil
	}
	if r.e.weak {
		r.stale.Store(true)
	}
	if r.stop == nil {
		// A caller that gives up on a stream ends its context, and does not always read the error.
		r.stop = context.AfterFunc(r.ctx, r.abandon)
	}
	return nil
}

// fill reads rows into dst and reports whether there may be more.
func (r *Reader) fill(dst *bigtablepb.ReadRowsResponse) (more bool, err error) {
	if r.open && r.scan.it == nil && !r.passed && (r.begun || !r.uses) {
		if err := r.resume(); err != nil {
			return false, err
		}
	}
	size, rows, silence, work := 0, 0, 0, 0
	defer func() { dst.Chunks = r.out.take() }()
	for r.limit != 0 {
		ok, err := r.advance()
		if err != nil {
			return false, err
		}
		if !ok {
			break
		}
		start := r.scan.slab.mark()
		switch {
		case r.found != nil:
			r.scan.recall(r.found)
		case r.reverse:
			err = r.scan.backward(r.ctx)
		default:
			err = r.scan.forward(r.ctx)
		}
		if err != nil {
			return false, err
		}
		if r.asked != nil {
			r.remember()
		}
		cells := r.filter.Apply(r.scan.rowKey, r.scan.cells)
		if r.found != nil && len(cells) == 0 { // another row may pass the filter, in the state of an iterator
			r.scan.slab.reset(start)
			r.found, r.passed = nil, false
			if err := r.enterSpan(false); err != nil {
				return false, err
			}
			continue
		}
		r.count(cells)
		cost := 1 + r.scan.seen + r.scan.size>>8
		if len(cells) > 0 {
			size += r.out.row(r.scan.rowKey, cells)
			rows++
			r.passed, r.found = r.first, nil
			if r.limit > 0 {
				r.limit--
			}
			if size >= maxResponseBytes || rows >= r.rows {
				if !r.e.weak {
					r.rows = min(r.rows*4, maxResponseRows)
				}
				return r.limit != 0 || r.stats != nil, nil
			}
		} else {
			silence += cost
			silent := silence >= silentWork && (rows > 0 || r.progress)
			if silent && rows == 0 {
				dst.LastScannedRowKey = append([]byte{}, r.scan.rowKey...)
			}
			r.scan.slab.reset(start)
			if silent {
				return true, r.e.stopReason(r.ctx)
			}
		}
		if work += cost; work >= workPerCheck {
			work = 0
			if err := r.e.stopReason(r.ctx); err != nil {
				return false, err
			}
		}
	}
	r.finalStats(dst)
	return false, nil
}

// advance moves to the next row, and reports whether there is one: the iterator's, or a known one.
func (r *Reader) advance() (bool, error) {
	for {
		if r.begun && !r.passed {
			if r.scan.it.Valid() {
				return true, nil
			}
			if err := r.scan.it.Error(); err != nil {
				return false, err
			}
			if r.asked != nil {
				r.e.first.answer(r.asked, r.span.upper, nil)
				r.asked = nil
			}
		}
		if len(r.spans) == 0 {
			return false, nil
		}
		r.leaveSpan()
		whole := !r.begun && len(r.spans) == 1 // the iterator has the span's bounds
		if r.reverse {
			r.span, r.spans = r.spans[len(r.spans)-1], r.spans[:len(r.spans)-1]
		} else {
			r.span, r.spans = r.spans[0], r.spans[1:]
		}
		r.begun, r.passed = true, false
		if r.uses {
			row, found := r.e.first.find(r.span, r.moment)
			if r.passed = found; found && row.empty() {
				continue
			} else if found {
				reach.Point(reach.KnownRow)
				r.found = row
				return true, nil
			}
			r.asked = r.e.first.ask(r.span, r.moment)
		}
		if err := r.enterSpan(whole); err != nil {
			return false, err
		}
	}
}

// enterSpan moves the iterator to the beginning of the current span, whose bounds it has if bounded is set.
func (r *Reader) enterSpan(bounded bool) error {
	if r.scan.it == nil {
		r.last = nil
		if err := r.resume(); err != nil {
			return err
		}
		bounded = true
	}
	if !bounded {
		r.scan.it.SetBounds(r.span.lower, r.span.upper)
	}
	if r.reverse {
		r.scan.it.Last()
	} else {
		r.scan.it.First()
	}
	return nil
}

// remember adds the current row, the first one of its span, to what the engine remembers, if the row is small and the
// scanner has left out none of its cells.
func (r *Reader) remember() {
	if s := &r.scan; s.seen == len(s.cells) && len(s.cells) <= firstRowCells && s.size <= firstRowBytes {
		r.e.first.answer(r.asked, s.prefix, s.cells)
	} else {
		r.e.first.withdraw(r.asked)
	}
	r.asked = nil
}

// leaveSpan checks how much work the current span took, and asks for a compaction if it was much.
func (r *Reader) leaveSpan() {
	if r.begun && r.scan.it != nil {
		r.skipped = r.e.noteSkipped(r.scan.it, r.span, r.reverse, r.skipped)
	}
}

func (r *Reader) count(returned []rowfilter.Cell) {
	if r.stats == nil {
		return
	}
	r.stats.RowsSeenCount++
	r.stats.CellsSeenCount += int64(r.scan.seen)
	if len(returned) > 0 {
		r.stats.RowsReturnedCount++
		r.stats.CellsReturnedCount += int64(len(returned))
	}
}

func (r *Reader) finalStats(dst *bigtablepb.ReadRowsResponse) {
	if r.stats == nil {
		return
	}
	dst.RequestStats = &bigtablepb.RequestStats{StatsView: &bigtablepb.RequestStats_FullReadStatsView{
		FullReadStatsView: &bigtablepb.FullReadStatsView{
			ReadIterationStats: r.stats,
			RequestLatencyStats: &bigtablepb.RequestLatencyStats{
				FrontendServerLatency: durationpb.New(r.e.clock().Sub(r.started)),
			},
		},
	}}
}

// Close ends the reader early. It is safe to call at any time, more than once.
func (r *Reader) Close() { r.end(ErrClosed) }

// abandon ends a reader whose context has ended.
func (r *Reader) abandon() { r.end(r.ctx.Err()) }

func (r *Reader) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done == nil {
		r.finish(statusOf(err))
	}
}

// finish releases the reader's storage. The caller holds mu.
func (r *Reader) finish(err error) error {
	r.done = err
	if r.stop != nil {
		r.stop()
	}
	if r.open {
		r.open = false
		cerr := r.closeIterator()
		r.scan.giveBack() // it may have an array without an iterator
		r.e.inFlight.release(r.state)
		if cerr != nil && err == io.EOF {
			r.done = statusOf(storageError(cerr))
		}
		r.e.readers.remove(r) // not earlier: Close of the engine waits for the readers that it finds
	}
	return r.done
}
