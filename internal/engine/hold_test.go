package engine

import (
	"hash/maphash"
	"runtime"
	"testing"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
)

// A write through a view must not be applied if the view is deleted before the write takes its locks.
func TestHoldLooksAgain(t *testing.T) {
	e, err := Open(Options{GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const parent = "projects/p/instances/i"
	if _, err := e.CreateTable(t.Context(), &adminpb.CreateTableRequest{Parent: parent, TableId: "t"}); err != nil {
		t.Fatal(err)
	}
	name := parent + "/tables/t"
	create := func(prefix string) {
		t.Helper()
		_, err := e.CreateAuthorizedView(t.Context(), &adminpb.CreateAuthorizedViewRequest{
			Parent: name, AuthorizedViewId: "v",
			AuthorizedView: &adminpb.AuthorizedView{AuthorizedView: &adminpb.AuthorizedView_SubsetView_{
				SubsetView: &adminpb.AuthorizedView_SubsetView{RowPrefixes: [][]byte{[]byte(prefix)}},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	remove := func() {
		t.Helper()
		if _, err := e.DeleteAuthorizedView(t.Context(), &adminpb.DeleteAuthorizedViewRequest{Name: name + viewsPart + "v"}); err != nil {
			t.Fatal(err)
		}
	}
	create("a")
	at, err := e.target("", name+viewsPart+"v", "")
	if err != nil {
		t.Fatal(err)
	}
	remove()
	if _, err := at.hold(); status.Code(err) != codes.NotFound {
		t.Fatalf("hold through a deleted view: got %v, want NotFound", err)
	}
	create("a")
	if at, err = e.target("", name+viewsPart+"v", ""); err != nil {
		t.Fatal(err)
	}
	remove()
	create("b")
	if _, err := at.hold(); err != nil {
		t.Fatal(err)
	}
	at.table.gate.RUnlock()
	if at.view.hasRow([]byte("a")) || !at.view.hasRow([]byte("b")) {
		t.Error("hold used the view as it was before the write took its locks, want the new one")
	}
	if _, err := e.DeleteTable(t.Context(), &adminpb.DeleteTableRequest{Name: name}); err != nil {
		t.Fatal(err)
	}
	if _, err := at.hold(); status.Code(err) != codes.NotFound {
		t.Errorf("hold on a deleted table: got %v, want NotFound", err)
	}
}

// While one write forgets everything, another one must still look for what is not forgotten yet.
func TestClearIsNotEarly(t *testing.T) {
	f := &firstRows{seed: maphash.MakeSeed(), most: 1 << 20}
	row := appendRow(nil, 1, []byte("a#1"))
	asked := f.ask(span{row, appendRow(nil, 1, []byte("a#2"))}, 0)
	f.answer(asked, row, []rowfilter.Cell{{Family: "f"}})
	shard := f.shard([]byte(asked.prefix))
	shard.mu.RLock()
	cleared := make(chan struct{})
	go func() {
		defer close(cleared)
		f.forgetAll(func() {})
	}()
	for shard.mu.TryRLock() { // fails once forgetAll waits for the shard
		shard.mu.RUnlock()
		runtime.Gosched()
	}
	if f.parts.Load() == 0 {
		t.Error("a write that begins now forgets nothing, and a row is still remembered")
	}
	shard.mu.RUnlock()
	<-cleared
	if f.parts.Load() != 0 || shard.fresh != nil {
		t.Error("got something remembered, want nothing")
	}
}
