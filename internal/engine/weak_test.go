package engine_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/faultdisk"
)

// A scan of a weak engine sees each row in the state at the time at which it returns the row, in both directions and
// over several ranges. Other scans see the state at their beginning.
func TestWeakScan(t *testing.T) {
	for _, c := range []struct {
		weak, reverse bool
		want          string
	}{
		{false, false, "b=0 c=0 d=0 e=0 g=0"},
		{false, true, "g=0 e=0 d=0 c=0 b=0"},
		{true, false, "b=0 bb=1 d=1 e=0 g=0 h=1"}, // a and its end are behind the scan, f is outside of the ranges
		{true, true, "g=0 e=0 d=1 bb=1 b=0 a=1"},
	} {
		t.Run(fmt.Sprintf("weak %v, reverse %v", c.weak, c.reverse), func(t *testing.T) {
			e, err := engine.Open(engine.Options{GCInterval: -1, Weak: c.weak})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			createTable(t, e)
			apply := func(key string, muts []*bigtablepb.Mutation) {
				t.Helper()
				if _, err := write(key, muts)(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			for _, key := range []string{"b", "c", "d", "e", "g"} {
				apply(key, setting("q", "0"))
			}
			r, err := e.NewReader(t.Context(), &bigtablepb.ReadRowsRequest{
				TableName: fullName, Reversed: c.reverse,
				Rows: &bigtablepb.RowSet{RowRanges: slices.Concat(rangeOf("a", "f").RowRanges, rangeOf("g", "i").RowRanges)},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var got []string
			for {
				resp := new(bigtablepb.ReadRowsResponse)
				if err := r.Next(resp); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				for _, chunk := range resp.Chunks {
					got = append(got, fmt.Sprintf("%s=%s", chunk.RowKey, chunk.Value))
				}
				if len(got) == 1 {
					for _, key := range []string{"a", "bb", "d", "f", "h"} {
						apply(key, setting("q", "1"))
					}
					apply("c", deleting())
				}
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("the scan returns %q, want %q", got, c.want)
			}
		})
	}
}

// A weak scan returns no row that a crash could undo.
func TestWeakScanSeesWhatIsOnDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := faultdisk.New()
		e, err := engine.Open(engine.Options{FS: d, GCInterval: -1, Weak: true})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		createTable(t, e)
		if _, err := write("a", setting("q", "0"))(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		r, err := e.NewReader(t.Context(), &bigtablepb.ReadRowsRequest{TableName: fullName})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := r.Next(new(bigtablepb.ReadRowsResponse)); err != nil {
			t.Fatal(err)
		}
		d.Hang()
		start(t.Context(), e, write("b", setting("q", "1")))
		resp := new(bigtablepb.ReadRowsResponse)
		if err := r.Next(resp); !errors.Is(err, io.EOF) {
			t.Errorf("the scan returns %v, %v before the row is synced", resp, err)
		}
		d.Release()
		synctest.Wait()
		if got, err := readOf(nil, nil)(t.Context(), e); err != nil || got != "a=0 b=1" {
			t.Errorf("after the sync: got %q, %v", got, err)
		}
	})
}

// createTable creates the table with family f.
func createTable(t *testing.T, e *engine.Engine) {
	t.Helper()
	_, err := e.CreateTable(t.Context(), &adminpb.CreateTableRequest{
		Parent: parent, TableId: tableID, Table: &adminpb.Table{ColumnFamilies: map[string]*adminpb.ColumnFamily{"f": {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
}
