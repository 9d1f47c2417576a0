package bt

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tidemark-go/tidemark/internal/reach"
	"github.com/tidemark-go/tidemark/internal/readrows"
)

// Row is one row of a read. Within a visit it is valid until the visit returns.
type Row = readrows.Row

// rowRead is one read of rows over all its attempts. The guard takes the rows out of the service's responses and visits
// them. The client gets responses without rows that name the last row, so that it resumes behind it when a stream
// breaks.
type rowRead struct {
	rec     *record
	ctx     context.Context
	visit   func(*Row) bool
	rows    readrows.Reader
	limit   int64 // of rows; 0 for none
	reverse bool
	first   []Range
	visited int64  // rows
	last    string // key of the last row, or of one behind it that the service has looked at

	chunks  []*btpb.ReadRowsResponse_CellChunk // of the last response; visited before the next one is received
	scanned []byte                             // the last key that the service has looked at, by the same response
	named   string                             // the last key that the client knows
}

var rowReads = sync.Pool{New: func() any { return new(rowRead) }}

// newRowRead returns a read from the pool.
func newRowRead(ctx context.Context, s Scan, rec *record, visit func(*Row) bool) *rowRead {
	r := rowReads.Get().(*rowRead)
	r.rec, r.ctx, r.visit, r.limit, r.reverse, r.first = rec, ctx, visit, s.Limit, s.Reverse, s.First
	r.rows.Reset(s.Reverse)
	return r
}

// free returns a read to the pool.
func (r *rowRead) free() {
	r.rows.Reset(false)
	*r = rowRead{rows: r.rows}
	rowReads.Put(r)
}

// row visits a row. It reports whether the read goes on, and stops it if the context has ended.
func (r *rowRead) row(row *Row) bool {
	if r.ctx.Err() != nil {
		r.rec.broken = true
		return false
	}
	r.visited++
	r.last = row.Key()
	r.rec.stopped = !r.visit(row)
	row.Spoil()
	return !r.rec.stopped
}

// over reports whether the visitor or the context has ended the read.
func (r *rowRead) over() bool { return r.rec.stopped || r.rec.broken }

// take visits the rows of the last response.
func (r *rowRead) take() error {
	chunks, scanned := r.chunks, r.scanned
	r.chunks, r.scanned = nil, nil
	for _, c := range chunks {
		row, err := r.rows.Next(c)
		if err != nil {
			return err
		}
		if row != nil && !r.row(row) {
			return nil
		}
	}
	// Only behind a whole row: a row that has begun is read again if the stream breaks.
	if key := string(scanned); scanned != nil && !r.rows.Open() && (r.last == "" || key != r.last && r.reverse == (key < r.last)) {
		r.last = key
	}
	return nil
}

// rowStream is one attempt at a read.
type rowStream struct {
	grpc.ClientStream
	read *rowRead
	err  error // returned by the next RecvMsg
}

var errHalfRow = errors.New("tsdb: the service ended a read within a row")

// SendMsg asks for the rows that are left of a limit: the client has seen none.
func (s *rowStream) SendMsg(m any) error {
	if s.read.last != "" {
		reach.Point(reach.ResumedScan)
	}
	if req, ok := m.(*btpb.ReadRowsRequest); ok {
		if s.read.limit > 0 {
			req.RowsLimit = s.read.limit - s.read.visited
		}
		if s.read.first != nil {
			req.Rows = rowSet(s.read.first)
		}
	}
	return s.ClientStream.SendMsg(m)
}

// behind returns what is left of ranges in key order behind a row. If nothing is left, the client does not repeat the
// read.
func behind(ranges []Range, last string) []Range {
	for len(ranges) > 0 && ranges[0].Limit <= last {
		ranges = ranges[1:]
	}
	if len(ranges) > 0 && ranges[0].Start <= last {
		ranges = slices.Clone(ranges)
		ranges[0].Start = last + "\x00"
	}
	return ranges
}

// rowSet returns ranges as a message, in few allocations.
func rowSet(ranges []Range) *btpb.RowSet {
	size := 0
	for _, r := range ranges {
		size += len(r.Start) + len(r.Limit)
	}
	keys := make([]byte, 0, size)
	key := func(text string) []byte {
		keys = append(keys, text...)
		return keys[len(keys)-len(text) : len(keys) : len(keys)]
	}
	all := make([]struct {
		message btpb.RowRange
		start   btpb.RowRange_StartKeyClosed
		end     btpb.RowRange_EndKeyOpen
	}, len(ranges))
	set := &btpb.RowSet{RowRanges: make([]*btpb.RowRange, len(ranges))}
	for i, r := range ranges {
		m := &all[i]
		m.start.StartKeyClosed, m.end.EndKeyOpen = key(r.Start), key(r.Limit)
		m.message.StartKey, m.message.EndKey = &m.start, &m.end
		set.RowRanges[i] = &m.message
	}
	return set
}

// RecvMsg visits the rows of the response before, and receives the next one. So the client measures the first response
// without the time of visits.
func (s *rowStream) RecvMsg(m any) error {
	r := s.read
	res, ok := m.(*btpb.ReadRowsResponse)
	if !ok || r.over() { // the client reads the rest of a stream that it has broken off
		return s.ClientStream.RecvMsg(m)
	}
	if s.err != nil {
		return s.err
	}
	if s.err = r.take(); s.err != nil {
		return s.err // not a status, so the client does not repeat the read
	}
	if r.over() {
		res.Chunks = standInRow
		return nil
	}
	err := s.ClientStream.RecvMsg(m)
	switch {
	case err == nil:
		r.chunks, r.scanned = res.Chunks, res.LastScannedRowKey
		res.Chunks, res.LastScannedRowKey = nil, nil
	case err == io.EOF:
		if s.err = err; r.rows.Open() {
			s.err = errHalfRow
		}
		return s.err
	default:
		if errors.Unwrap(err) != nil {
			r.rec.err = err
		}
		r.rows.Abandon()
		if s.err = err; r.last == r.named {
			return err
		}
		proto.Reset(res) // first the last row, then the error
	}
	if r.last != r.named {
		r.named, res.LastScannedRowKey = r.last, []byte(r.last)
	}
	return nil
}

// standInRow is a row that the client gets when the read is over: its visit returns false, so that the client breaks
// off the stream and reads it to its end.
var standInRow = []*btpb.ReadRowsResponse_CellChunk{{
	RowKey: []byte("-"), FamilyName: wrapperspb.String("-"), Qualifier: wrapperspb.Bytes([]byte("-")),
	RowStatus: &btpb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true},
}}

// fromClient visits a row that the client has. Behind the guard that is only the stand-in.
func (r *rowRead) fromClient(row bigtable.Row) bool {
	return !r.over() && r.row(readrows.FromClient(row))
}
