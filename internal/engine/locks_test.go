package engine

import (
	"fmt"
	"sync"
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
		endsBehind(t, lock, "a write of its row", what, do)
	}
}

// endsBehind checks that a call ends only after a lock is given back that a write holds shared.
func endsBehind(t *testing.T, lock *sync.RWMutex, write, what string, do func() error) {
	t.Helper()
	var done atomic.Bool
	ended := make(chan error)
	lock.RLock()
	go func() {
		err := do()
		done.Store(true)
		ended <- err
	}()
	for i := 0; i < 20 && !done.Load(); i++ {
		giveWay()
	}
	if done.Load() {
		t.Errorf("%s has ended while %s was under way", what, write)
	}
	lock.RUnlock()
	if err := <-ended; err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// A change of a view, of families or of many rows waits until writes that were allowed before it have ended. Otherwise
// a write through a deleted view, or to dropped rows, comes after the answer.
func TestChangesOfATableWaitForWrites(t *testing.T) {
	e, err := Open(Options{GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const name = "projects/p/instances/i/tables/t"
	_, err = e.CreateTable(t.Context(), &adminpb.CreateTableRequest{
		Parent: "projects/p/instances/i", TableId: "t", Table: &adminpb.Table{ColumnFamilies: map[string]*adminpb.ColumnFamily{"f": {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	view := &adminpb.AuthorizedView{
		Name:           name + viewsPart + "v",
		AuthorizedView: &adminpb.AuthorizedView_SubsetView_{SubsetView: &adminpb.AuthorizedView_SubsetView{RowPrefixes: [][]byte{[]byte("a")}}},
	}
	if _, err := e.CreateAuthorizedView(t.Context(), &adminpb.CreateAuthorizedViewRequest{Parent: name, AuthorizedViewId: "v", AuthorizedView: view}); err != nil {
		t.Fatal(err)
	}
	tables := *e.tables.Load()
	views, gate := *tables[name].views.Load(), &tables[name].gate
	for _, change := range []struct {
		what string
		do   func() error
	}{
		{"a change of a view", func() error {
			_, err := e.UpdateAuthorizedView(t.Context(), &adminpb.UpdateAuthorizedViewRequest{AuthorizedView: view})
			return err
		}},
		{"a deletion of a view", func() error {
			_, err := e.DeleteAuthorizedView(t.Context(), &adminpb.DeleteAuthorizedViewRequest{Name: view.Name})
			return err
		}},
		{"a deletion of many rows", func() error {
			_, err := e.DropRowRange(t.Context(), &adminpb.DropRowRangeRequest{Name: name, Target: &adminpb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: []byte("a")}})
			return err
		}},
		{"a change of families", func() error {
			_, err := e.ModifyColumnFamilies(t.Context(), &adminpb.ModifyColumnFamiliesRequest{Name: name, Modifications: []*adminpb.ModifyColumnFamiliesRequest_Modification{
				{Id: "f", Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Drop{Drop: true}},
			}})
			return err
		}},
		{"a deletion of the table", func() error {
			_, err := e.DeleteTable(t.Context(), &adminpb.DeleteTableRequest{Name: name})
			return err
		}},
	} {
		endsBehind(t, gate, "a write to the table", change.what, change.do)
	}
	if len(tables) != 1 || len(views) != 1 {
		t.Errorf("a request that began before sees the changes: %d tables and %d views, want 1 and 1", len(tables), len(views))
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

// A request that reads many rows, or rows that a large bulk write changes, waits for the write.
func TestManyRowsCountAsChanged(t *testing.T) {
	w := flight{rows: make([]uint64, manyRows+1)}
	w.rows[manyRows] = 7
	if !w.changes([]uint64{7}) || (&flight{rows: w.rows[:10]}).changes([]uint64{7}) {
		t.Error("a large bulk write does not count as one of its rows, or a small one counts as another row")
	}
}
