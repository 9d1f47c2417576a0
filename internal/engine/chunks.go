package engine

import (
	"bytes"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
)

// commitRow ends each row of a response. It is shared and never changed.
var commitRow = &bigtablepb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}

const chunkSlabMax = 64

// chunkWriter turns rows into the chunks of ReadRows. It cuts messages from arrays, and all chunks with the same family
// or qualifier share one message; receivers must not change them.
type chunkWriter struct {
	slab   []bigtablepb.ReadRowsResponse_CellChunk
	next   int
	chunks []*bigtablepb.ReadRowsResponse_CellChunk

	family    *wrapperspb.StringValue
	qualifier *wrapperspb.BytesValue
}

// row adds a row with at least one cell and returns about how many bytes the row takes.
func (w *chunkWriter) row(key []byte, cells []rowfilter.Cell) int {
	size := 0
	for i := range cells {
		c := &cells[i]
		if len(w.slab) == 0 {
			w.next = min(max(w.next*2, 2), chunkSlabMax)
			w.slab = make([]bigtablepb.ReadRowsResponse_CellChunk, w.next)
		}
		chunk := &w.slab[0]
		w.slab = w.slab[1:]
		if w.family == nil || w.family.Value != c.Family {
			w.family = &wrapperspb.StringValue{Value: c.Family}
		}
		if w.qualifier == nil || !bytes.Equal(w.qualifier.Value, c.Qualifier) {
			// A separate copy: a message that lives as long as the stream would keep the slab's piece alive.
			w.qualifier = &wrapperspb.BytesValue{Value: append([]byte{}, c.Qualifier...)}
		}
		chunk.RowKey = key
		chunk.FamilyName = w.family
		chunk.Qualifier = w.qualifier
		chunk.TimestampMicros = c.Timestamp
		chunk.Value = c.Value
		chunk.Labels = c.Labels
		if i == len(cells)-1 {
			chunk.RowStatus = commitRow
		}
		w.chunks = append(w.chunks, chunk)
		size += len(key) + len(c.Family) + len(c.Qualifier) + len(c.Value) + chunkOverhead
	}
	return size
}

// chunkOverhead is about how many bytes a chunk takes besides its contents.
const chunkOverhead = 24

// take returns the chunks so far and starts again with none.
func (w *chunkWriter) take() []*bigtablepb.ReadRowsResponse_CellChunk {
	out := w.chunks
	w.chunks = nil
	return out
}
