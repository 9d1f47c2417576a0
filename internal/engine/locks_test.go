package engine

import (
	"fmt"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// A request that reads a row before it changes it waits until writes of that row have ended, and so does the collector.
// Otherwise an addition is lost, two insertions succeed, or a cell that is written meanwhile is deleted.
func TestReadingWritesLockTheirRows(t *testing.T) {
	e, err := Open(Options{GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const name = "projects/p/instances/i/tables/t"
	_, err = e.CreateTable(t.Context(), &adminpb.CreateTableRequest{
		Parent: "projects/p/instances/i", TableId: "t", Table: &adminpb.Table{ColumnFamilies: map[string]*adminpb.ColumnFamily{
			"f": {GcRule: &adminpb.GcRule{Rule: &adminpb.GcRule_MaxAge{MaxAge: durationpb.New(1e9)}}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("row")
	put := []*bigtablepb.Mutation{{Mutation: &bigtablepb.Mutation_SetCell_{SetCell: &bigtablepb.Mutation_SetCell{FamilyName: "f", TimestampMicros: 1000}}}}
	drop := []*bigtablepb.Mutation{{Mutation: &bigtablepb.Mutation_DeleteFromRow_{DeleteFromRow: &bigtablepb.Mutation_DeleteFromRow{}}}}
	at := (*e.tables.Load())[name]
	lock := &e.rows[e.rowHash(at.id, key)%rowStripes]
	for what, do := range map[string]func() error{
		"a deletion": func() error {
			_, err := e.MutateRow(t.Context(), &bigtablepb.MutateRowRequest{TableName: name, RowKey: key, Mutations: drop})
			return err
		},
		"a deletion in bulk": func() error {
			resp, err := e.MutateRowsAll(t.Context(), &bigtablepb.MutateRowsRequest{TableName: name, Entries: []*bigtablepb.MutateRowsRequest_Entry{{RowKey: key, Mutations: drop}}})
			if err == nil && resp.Entries[0].Status.GetCode() != 0 {
				err = fmt.Errorf("%v", resp)
			}
			return err
		},
		"a condition": func() error {
			_, err := e.CheckAndMutateRow(t.Context(), &bigtablepb.CheckAndMutateRowRequest{TableName: name, RowKey: key, FalseMutations: put})
			return err
		},
		"an increment": func() error {
			_, err := e.ReadModifyWriteRow(t.Context(), &bigtablepb.ReadModifyWriteRowRequest{TableName: name, RowKey: key, Rules: []*bigtablepb.ReadModifyWriteRule{{
				FamilyName: "f", ColumnQualifier: []byte("n"), Rule: &bigtablepb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: 1},
			}}})
			return err
		},
		"the collector": func() error { return e.RunGC(t.Context()) },
	} {
		if _, err := e.MutateRow(t.Context(), &bigtablepb.MutateRowRequest{TableName: name, RowKey: key, Mutations: put}); err != nil {
			t.Fatal(err)
		}
		var done atomic.Bool
		ended := make(chan error)
		lock.RLock() // as a write that sets cells
		go func() {
			err := do()
			done.Store(true)
			ended <- err
		}()
		for i := 0; i < 20 && !done.Load(); i++ {
			giveWay()
		}
		if done.Load() {
			t.Errorf("%s has ended while a write of its row was under way", what)
		}
		lock.RUnlock()
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// However many ranges reads find full of deleted points, few wait for a compaction.
func TestCleanupsAreFew(t *testing.T) {
	c := newCleanups()
	for i := range 1000 {
		c.addSpan(rowSpan(1, fmt.Appendf(nil, "row%04d", i)))
	}
	if n := len(c.takeSpans()); n != maxCleanups {
		t.Errorf("%d ranges wait for a compaction, want %d", n, maxCleanups)
	}
}
