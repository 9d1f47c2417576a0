package engine_test

import (
	"io"
	"slices"
	"testing"
	"testing/synctest"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tidemark-go/tidemark/internal/engine"
)

// part reads the next part of a response, and returns its rows as "key value value …".
func part(t *testing.T, rd *engine.Reader) (rows []string, more bool) {
	t.Helper()
	var resp bigtablepb.ReadRowsResponse
	switch err := rd.Next(&resp); err {
	case nil:
	case io.EOF:
		return nil, false
	default:
		t.Fatalf("Next: %v", err)
	}
	row := ""
	for _, c := range resp.Chunks {
		if row == "" {
			row = string(c.RowKey)
		}
		if row += " " + string(c.Value); c.GetCommitRow() {
			rows, row = append(rows, row), ""
		}
	}
	return rows, true
}

// rest reads the rows of all further parts.
func rest(t *testing.T, rd *engine.Reader) (rows []string) {
	t.Helper()
	for {
		next, more := part(t, rd)
		if !more {
			return rows
		}
		rows = append(rows, next...)
	}
}

// Slow readers must not keep flushed memtables: each would hold a buffer for as long as its caller waits. They go on in
// the state in which they began.
func TestSlowReadersKeepNoMemtables(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, r *rig) {
		r.create(t)
		fillRows(t, r, 3000)
		requests := map[string]*bigtablepb.ReadRowsRequest{
			"forwards":       {TableName: fullName},
			"backwards":      {TableName: fullName, Reversed: true},
			"with a limit":   {TableName: fullName, RowsLimit: 2500},
			"several ranges": {TableName: fullName, Rows: &bigtablepb.RowSet{RowRanges: append(rangeOf("row0000010", "row0000011").RowRanges, rangeOf("row0000100", "row0001000").RowRanges...)}},
			"a short range":  {TableName: fullName, Rows: rangeOf("row0000000", "row0000008"), RowsLimit: 9},
		}
		want, got, readers := map[string][]string{}, map[string][]string{}, map[string]*engine.Reader{}
		for name, req := range requests {
			whole, err := r.NewReader(r.ctx, req)
			if err != nil {
				t.Fatal(err)
			}
			want[name] = rest(t, whole)
			if readers[name], err = r.NewReader(r.ctx, req); err != nil {
				t.Fatal(err)
			}
			defer readers[name].Close()
			got[name], _ = part(t, readers[name])
		}
		for round := range 3 {
			change(t, r, 0, 1500, deleteRow())
			change(t, r, 1500*(round%2), 3000, set("f", "another", 1000, "later"))
			if err := r.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n, zombies := r.Iterators(), r.ZombieMemtables(); n > 0 || zombies > 1 {
				t.Fatalf("round %d: %d waiting readers hold iterators, and %d flushed memtables are in memory; want 0, and at most 1 for reuse", round, n, zombies)
			}
			for name, rd := range readers {
				rows, _ := part(t, rd)
				got[name] = append(got[name], rows...)
			}
		}
		for name, rd := range readers {
			if rows := append(got[name], rest(t, rd)...); !slices.Equal(rows, want[name]) {
				t.Errorf("%s: got %d rows after pauses, want the %d of the beginning", name, len(rows), len(want[name]))
			}
		}
	})
}

// A read of few rows goes on in a later state after a pause. Each row is still seen at one moment.
func TestShortReadsPauseBetweenRows(t *testing.T) {
	for last, reversed := range map[string]bool{"row0004999": false, "row0000000": true} {
		inBubble(t, engine.Options{}, func(t *testing.T, r *rig) {
			r.create(t)
			fillRows(t, r, 5000)
			if err := r.data.Open(tableID).Apply(r.ctx, last, set("f", "x", 1000, "found")); err != nil {
				t.Fatal(err)
			}
			rd, err := r.NewReader(r.ctx, &bigtablepb.ReadRowsRequest{TableName: fullName, Reversed: reversed, RowsLimit: 2, Filter: &bigtablepb.RowFilter{
				Filter: &bigtablepb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte("found|later")},
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer rd.Close()
			if rows, more := part(t, rd); len(rows) > 0 || !more {
				t.Fatalf("first part: got %q, want only progress", rows)
			}
			// Every row gets cells before and behind the one that it has.
			around := set("f", "a", 1000, "later")
			around.Set("f", "z", 1000, []byte("later"))
			change(t, r, 0, 5000, around)
			if err := r.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := r.Iterators(); n > 0 {
				t.Fatalf("%d waiting readers hold iterators after a flush, want 0", n)
			}
			rows := rest(t, rd)
			if len(rows) != 2 {
				t.Fatalf("reversed %v: got %q, want 2 rows", reversed, rows)
			}
			for _, row := range rows {
				if row[len("row0000000"):] != " later later" {
					t.Errorf("reversed %v: got row %q, want both of its new cells", reversed, row)
				}
			}
		})
	}
}
