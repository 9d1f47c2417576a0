package heatmap

import (
	"io"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/heat"
)

// single records a request for one row and its response, if it is one that writes.
func (r *Recorder) single(req, res any, began time.Duration, err error) {
	var key []byte
	var size int
	switch req := req.(type) {
	case *btpb.MutateRowRequest:
		key, size = req.RowKey, sizeOf(req.Mutations)
	case *btpb.CheckAndMutateRowRequest:
		key = req.RowKey
		switch res, ok := res.(*btpb.CheckAndMutateRowResponse); {
		case err != nil || !ok:
			size = max(sizeOf(req.TrueMutations), sizeOf(req.FalseMutations))
		case res.GetPredicateMatched():
			size = sizeOf(req.TrueMutations)
		default:
			size = sizeOf(req.FalseMutations)
		}
	case *btpb.ReadModifyWriteRowRequest:
		key = req.RowKey
		if res, ok := res.(*btpb.ReadModifyWriteRowResponse); ok && err == nil {
			size = sizeOfRow(res.GetRow())
			break
		}
		for _, rule := range req.Rules {
			size += len(rule.ColumnQualifier) + max(len(rule.GetAppendValue()), number)
		}
	default:
		return
	}
	if k, ok := outcome(heat.Writes, err); ok {
		r.add(k, began, r.now()-began, key, size)
	}
}

// outcome returns as what a row counts, and false if it does not count.
func outcome(k heat.Kind, err error) (heat.Kind, bool) {
	switch {
	case err == nil:
		return k, true
	case status.Code(err) == codes.Canceled:
		return 0, false
	}
	return heat.Failures, true
}

// number is the size of a number that is added to a cell.
const number = 8

// sizeOf returns the bytes of the columns and values in mutations.
func sizeOf(mutations []*btpb.Mutation) (n int) {
	for _, m := range mutations {
		switch m := m.GetMutation().(type) {
		case *btpb.Mutation_SetCell_:
			n += len(m.SetCell.GetColumnQualifier()) + len(m.SetCell.GetValue())
		case *btpb.Mutation_AddToCell_:
			n += len(m.AddToCell.GetColumnQualifier().GetRawValue()) + number
		case *btpb.Mutation_MergeToCell_:
			n += len(m.MergeToCell.GetColumnQualifier().GetRawValue()) + len(m.MergeToCell.GetInput().GetRawValue())
		}
	}
	return n
}

// sizeOfRow returns the bytes of the columns and values of a row.
func sizeOfRow(row *btpb.Row) (n int) {
	for _, family := range row.GetFamilies() {
		for _, column := range family.GetColumns() {
			for _, cell := range column.GetCells() {
				n += len(column.GetQualifier()) + len(cell.GetValue())
			}
		}
	}
	return n
}

// call is one stream of rows or of bulk writes. It is used by one goroutine at a time. It keeps nothing of a message
// after the call that got it, except the request of a bulk write until its stream ends.
type call struct {
	r     *Recorder
	began time.Duration
	idle  time.Duration // not spent by the service
	over  bool

	reads bool
	start []byte // where a read begins
	any   bool   // a read has returned a row
	open  bool   // a row is not complete
	key   []byte // of that row
	size  int    // of that row's values, until now

	entries  []*btpb.MutateRowsRequest_Entry // of a bulk write
	answered []bool                          // by entry; nil if none or all are
	left     int                             // entries without an answer
}

// streams reports whether the calls of a method are recorded.
func streams(method string) bool {
	return method == btpb.Bigtable_ReadRows_FullMethodName || method == btpb.Bigtable_MutateRows_FullMethodName
}

// request takes the request of a stream.
func (c *call) request(m any) {
	switch req := m.(type) {
	case *btpb.ReadRowsRequest:
		c.reads, c.start = true, append(c.start[:0], heat.Cut(startOf(req))...)
	case *btpb.MutateRowsRequest:
		c.entries, c.left = req.Entries, len(req.Entries)
	}
}

// startOf returns the first key that a read asks for, or nil for the start of the table.
func startOf(req *btpb.ReadRowsRequest) []byte {
	if keys := req.GetRows().GetRowKeys(); len(keys) > 0 {
		return keys[0]
	}
	if ranges := req.GetRows().GetRowRanges(); len(ranges) > 0 {
		switch at := ranges[0].GetStartKey().(type) {
		case *btpb.RowRange_StartKeyClosed:
			return at.StartKeyClosed
		case *btpb.RowRange_StartKeyOpen:
			return at.StartKeyOpen
		}
	}
	return nil
}

// response takes a response of a stream.
func (c *call) response(m any) {
	switch res := m.(type) {
	case *btpb.ReadRowsResponse:
		if len(res.Chunks) > 0 {
			c.rows(res.Chunks)
		}
	case *btpb.MutateRowsResponse:
		c.answers(res.Entries)
	}
}

func (c *call) took() time.Duration { return c.r.now() - c.began - c.idle }

// rows counts the rows that chunks complete.
func (c *call) rows(chunks []*btpb.ReadRowsResponse_CellChunk) {
	took, key := micros(c.took()), c.key
	c.r.mu.Lock()
	to := &c.r.column(c.began).Cells[heat.Reads]
	for _, chunk := range chunks {
		if !c.open {
			key, c.size, c.open = chunk.RowKey, 0, true
		}
		c.size += len(chunk.Value)
		switch chunk.RowStatus.(type) {
		case *btpb.ReadRowsResponse_CellChunk_CommitRow:
			to.Add(key, c.size, took, c.r.rnd)
			c.open, c.any = false, true
		case *btpb.ReadRowsResponse_CellChunk_ResetRow:
			c.open = false
		}
	}
	c.r.mu.Unlock()
	if c.open { // the row goes on in the next response, and the memory of this one may be used again
		c.key = append(c.key[:0], key...)
	}
}

// answers counts the entries of a bulk write that a response answers.
func (c *call) answers(entries []*btpb.MutateRowsResponse_Entry) {
	if len(entries) < c.left && c.answered == nil {
		c.answered = make([]bool, len(c.entries))
	}
	took := micros(c.took())
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	to := &c.r.column(c.began).Cells
	for _, e := range entries {
		if e.GetIndex() < 0 || e.GetIndex() >= int64(len(c.entries)) || c.left == 0 {
			continue
		}
		if c.answered != nil {
			if c.answered[e.Index] {
				continue
			}
			c.answered[e.Index] = true
		}
		c.left--
		of, k := c.entries[e.Index], heat.Writes
		if codes.Code(e.GetStatus().GetCode()) != codes.OK {
			k = heat.Failures
		}
		to[k].Add(of.GetRowKey(), sizeOf(of.GetMutations()), took, c.r.rnd)
	}
}

// end takes the end of a stream: io.EOF, nil or why it failed.
func (c *call) end(err error) {
	if c.over {
		return
	}
	c.over = true
	if err == io.EOF {
		err = nil
	}
	k, ok := outcome(heat.Reads, err)
	switch {
	case !ok:
	case c.reads && (err != nil || !c.any):
		c.r.add(k, c.began, c.took(), c.start, 0)
	case c.left > 0:
		took := micros(c.took())
		c.r.mu.Lock()
		to := &c.r.column(c.began).Cells[heat.Failures]
		for i, e := range c.entries {
			if c.answered == nil || !c.answered[i] {
				to.Add(e.GetRowKey(), sizeOf(e.GetMutations()), took, c.r.rnd)
			}
		}
		c.r.mu.Unlock()
	}
	c.entries = nil
}
