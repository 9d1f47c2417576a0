package readrows

import (
	"errors"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestRowsAreBounded: a service that never ends a row does not fill the memory.
func TestRowsAreBounded(t *testing.T) {
	part := make([]byte, 32<<20)
	var r Reader
	_, err := r.Next(&btpb.ReadRowsResponse_CellChunk{RowKey: []byte("a"), FamilyName: wrapperspb.String("f"), Qualifier: wrapperspb.Bytes(nil)})
	for n := 0; err == nil && n < 20; n++ {
		_, err = r.Next(&btpb.ReadRowsResponse_CellChunk{Value: part})
	}
	if !errors.Is(err, errRowSize) {
		t.Errorf("error %v, want %v", err, errRowSize)
	}
}

// TestLargeRowsCostLaterReadsNothing: Reset clears only the cells that were used since the last one.
func TestLargeRowsCostLaterReadsNothing(t *testing.T) {
	var r Reader
	for i := range 3000 {
		c := &btpb.ReadRowsResponse_CellChunk{Value: []byte("x")}
		if i == 0 {
			c.RowKey, c.FamilyName, c.Qualifier = []byte("a"), wrapperspb.String("f"), wrapperspb.Bytes(nil)
		}
		if _, err := r.Next(c); err != nil {
			t.Fatal(err)
		}
	}
	r.Reset(false)
	for i, c := range r.row.cells[:3000] {
		if c.Value != nil {
			t.Fatalf("cell %d is still held", i)
		}
	}
	r.row.cells[:3000][2000].Column = "not used since"
	r.Reset(false)
	if r.row.cells[:3000][2000].Column == "" {
		t.Error("the second Reset cleared a cell that was not used")
	}
}
