package engine

import (
	"fmt"
	"hash/maphash"
	"io"
	"runtime"
	"testing"
	"testing/synctest"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
	"github.com/tidemark-go/tidemark/internal/firstrow"
	"github.com/tidemark-go/tidemark/internal/proof/faultdisk"
)

// firstRowsTable opens an engine on a disk, in a bubble, with a table that put writes to.
func firstRowsTable(t *testing.T, test func(t *testing.T, e *Engine, put func(key string) error)) {
	synctest.Test(t, func(t *testing.T) {
		e, err := Open(Options{FS: faultdisk.New(), GCInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}()
		_, err = e.CreateTable(t.Context(), &adminpb.CreateTableRequest{
			Parent: "projects/p/instances/i", TableId: "t", Table: &adminpb.Table{ColumnFamilies: map[string]*adminpb.ColumnFamily{"f": {}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		test(t, e, func(key string) error {
			_, err := e.MutateRow(t.Context(), &bigtablepb.MutateRowRequest{
				TableName: "projects/p/instances/i/tables/t", RowKey: []byte(key),
				Mutations: []*bigtablepb.Mutation{{Mutation: &bigtablepb.Mutation_SetCell_{SetCell: &bigtablepb.Mutation_SetCell{FamilyName: "f", TimestampMicros: 1000}}}},
			})
			return err
		})
	})
}

// firstRowReader begins to read the first rows under prefixes.
func firstRowReader(t *testing.T, e *Engine, prefixes ...string) *Reader {
	t.Helper()
	set := new(bigtablepb.RowSet)
	for _, p := range prefixes {
		set.RowRanges = append(set.RowRanges, &bigtablepb.RowRange{
			StartKey: &bigtablepb.RowRange_StartKeyClosed{StartKeyClosed: []byte(p)},
			EndKey:   &bigtablepb.RowRange_EndKeyOpen{EndKeyOpen: []byte(p + "~")},
		})
	}
	r, err := e.NewReader(firstrow.Only(t.Context()), &bigtablepb.ReadRowsRequest{TableName: "projects/p/instances/i/tables/t", Rows: set, RowsLimit: 5})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// keysOf reads the rest of a response, and returns the keys of its rows.
func keysOf(t *testing.T, r *Reader) (keys string) {
	t.Helper()
	for {
		var resp bigtablepb.ReadRowsResponse
		switch err := r.Next(&resp); err {
		case nil:
		case io.EOF:
			return keys
		default:
			t.Fatal(err)
		}
		for _, c := range resp.Chunks {
			keys += string(c.RowKey) + " "
		}
	}
}

// A reader that began before writes uses no row that another reader has remembered since, and remembers nothing of its
// own state.
func TestFirstRowsOfALateReader(t *testing.T) {
	firstRowsTable(t, func(t *testing.T, e *Engine, put func(string) error) {
		const both = "t#a#1 t#z#1 "
		early, late := firstRowReader(t, e, "t#a#", "t#z#"), firstRowReader(t, e, "t#a#", "t#z#")
		for _, key := range []string{"t#a#1", "t#z#1"} {
			if err := put(key); err != nil {
				t.Fatal(err)
			}
		}
		if got := keysOf(t, early); got != "" {
			t.Errorf("a reader of the time before the writes reads %q", got)
		}
		for range 2 {
			if got := keysOf(t, firstRowReader(t, e, "t#a#", "t#z#")); got != both {
				t.Errorf("after the writes: read %q, want %q", got, both)
			}
		}
		if rows, _ := e.Remembered(); rows != 2 {
			t.Fatalf("the engine remembers %d rows, want 2: the test shows nothing", rows)
		}
		if got := keysOf(t, late); got != "" {
			t.Errorf("a reader of the time before the writes reads %q, which others remembered", got)
		}
	})
}

// A write counts as under way until readers see it: a reader between its sync and that moment remembers nothing.
func TestFirstRowsOfAWriteNotShown(t *testing.T) {
	firstRowsTable(t, func(t *testing.T, e *Engine, put func(string) error) {
		end := e.BeginFlight()
		wrote := make(chan error, 1)
		go func() { wrote <- put("t#a#1") }()
		synctest.Wait() // on disk, and not shown because of the write before it
		e.inFlight.mu.Lock()
		ended := make(chan struct{})
		go func() { end(); close(ended) }()
		giveWay()
		if got := keysOf(t, firstRowReader(t, e, "t#a#")); got != "" {
			t.Errorf("before the write is shown: read %q", got)
		}
		e.inFlight.mu.Unlock()
		<-ended
		if err := <-wrote; err != nil {
			t.Fatal(err)
		}
		if got := keysOf(t, firstRowReader(t, e, "t#a#")); got != "t#a#1 " {
			t.Errorf("after the write: read %q, want its row", got)
		}
	})
}

// giveWay lets the other goroutines run until they wait, also for a mutex.
func giveWay() {
	for range 1000 {
		runtime.Gosched()
	}
}

// What a reader finds is not remembered if a write has begun since the reader asked, even one that did not know of the
// question.
func TestFirstRowsOfAnOutrunReader(t *testing.T) {
	batch := func(key string) *pebble.Batch {
		b := new(pebble.Batch)
		if err := b.Set(appendTimestamp(appendColumn(appendRow(nil, 1, []byte(key)), 1, nil), 1000), nil, nil); err != nil {
			t.Fatal(err)
		}
		return b
	}
	of := func(prefix string) span {
		lower := appendRow(nil, 1, []byte(prefix))
		return span{lower, append(appendEscaped(appendTable(nil, 1), []byte(prefix)), '~')}
	}
	f := firstRows{seed: maphash.MakeSeed(), most: 1 << 20}
	s, row, cells := of("t#a#"), appendRow(nil, 1, []byte("t#a#1")), []rowfilter.Cell{{Family: "f"}}

	sh := f.shard([]byte(string(appendTable(nil, 1)) + "t#a#"))
	sh.mu.Lock()
	asked := make(chan *firstRow)
	go func() { asked <- f.ask(s, 0) }()
	giveWay()
	f.begin(batch("t#a#0"))
	sh.mu.Unlock()
	if <-asked != nil {
		t.Error("a reader may remember a row, although a write has begun that does not forget it")
	}
	f.end()

	first := f.ask(s, f.moment.Load())
	if first == nil {
		t.Fatal("without a write, a reader may not remember a row")
	}
	f.begin(batch("t#a#0"))
	f.end()
	f.answer(first, row, cells)
	if got, found := f.find(s, f.moment.Load()); found {
		t.Errorf("the row %q is remembered, which a write may have replaced", got.row)
	}
	second := f.ask(s, f.moment.Load())
	f.withdraw(first)
	f.answer(second, row, cells)
	if _, found := f.find(s, f.moment.Load()); !found {
		t.Error("a reader that was outrun withdraws the question of another")
	}
	if _, found := f.find(of("t#b#"), f.moment.Load()); found {
		t.Error("the row of another prefix is found")
	}
	f.begin(batch("t#b#0"))
	f.end()
	if _, found := f.find(s, f.moment.Load()); !found {
		t.Error("a write of another prefix makes the row forgotten")
	}
}

// When the memory for first rows is used up, those that were found since are kept, and others are forgotten.
func TestFirstRowsInUseStay(t *testing.T) {
	f := firstRows{seed: maphash.MakeSeed(), most: 4 * firstRowCost}
	of := func(n int) span {
		prefix := fmt.Appendf(nil, "t#%03d#", n)
		return span{appendRow(nil, 1, prefix), append(appendEscaped(appendTable(nil, 1), prefix), '~')}
	}
	remember := func(n int) {
		s := of(n)
		f.answer(f.ask(s, 0), s.upper, nil)
	}
	remember(0)
	for n := range 1000 {
		remember(1 + n)
		if _, found := f.find(of(0), 0); !found {
			t.Fatalf("a row that is found again and again is forgotten after %d others", n)
		}
	}
	if _, found := f.find(of(1), 0); found {
		t.Error("a row that nobody has asked for is still remembered")
	}
}
