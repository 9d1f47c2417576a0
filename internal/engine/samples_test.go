package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tidemark-go/tidemark/internal/engine"
)

// TestSamplesAreEvenlyApart checks that the samples cut a table into parts with about equally many rows. That holds for
// recent writes too, and if many rows are in a small part of the key space. Programs use samples to split work and to
// estimate sizes.
func TestSamplesAreEvenlyApart(t *testing.T) {
	r := open(t, engine.Options{})
	tbl := r.create(t)
	const rows = 20_000
	req := &bigtablepb.MutateRowsRequest{TableName: fullName}
	for i := range rows { // half of the keys are in a small part of the key space; no value compresses well
		key := fmt.Sprintf("acme#readings#device-%06d#%019d", i%100, 7456146436854775807-i*1000)
		if i%2 == 0 {
			key = fmt.Sprintf("zeta#x#%d#y", i*7919%rows)
		}
		value := fmt.Sprintf("%x", uint64(i)*0x9E3779B97F4A7C15)
		req.Entries = append(req.Entries, &bigtablepb.MutateRowsRequest_Entry{
			RowKey: []byte(key), Mutations: []*bigtablepb.Mutation{setCell("f", "q", 1000, strings.Repeat(value, 8))},
		})
	}
	if _, err := r.MutateRowsAll(r.ctx, req); err != nil {
		t.Fatal(err)
	}
	samples, err := r.SampleRowKeysAll(r.ctx, &bigtablepb.SampleRowKeysRequest{TableName: fullName})
	if err != nil || len(samples) < 10 {
		t.Fatalf("got %d samples, %v; want at least 10", len(samples), err)
	}
	whole := samples[len(samples)-1].OffsetBytes
	start, before := "", int64(0)
	for i, s := range samples {
		n := int64(0)
		count := func(bigtable.Row) bool { n++; return true }
		if err := tbl.ReadRows(r.ctx, bigtable.NewRange(start, string(s.RowKey)), count); err != nil {
			t.Fatal(err)
		}
		share := (s.OffsetBytes - before) * rows / whole
		if n < share/2-100 || n > share*2+100 || n > 4*rows/int64(len(samples)) {
			t.Errorf("part %d of %d: got %d rows, want about %d by its bytes", i, len(samples), n, share)
		}
		start, before = string(s.RowKey), s.OffsetBytes
	}
}
