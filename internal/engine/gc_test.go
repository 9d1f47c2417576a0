package engine_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/internal/engine"
)

// clock is a clock that tests advance by hand.
type clock struct{ micros atomic.Int64 }

func (c *clock) now() time.Time          { return time.UnixMicro(c.micros.Load()) }
func (c *clock) steady() time.Duration   { return time.Duration(c.micros.Load()) * time.Microsecond }
func (c *clock) advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

func TestGCRules(t *testing.T) {
	hour := int64(3_600_000_000)
	for _, tt := range []struct {
		name   string
		policy bigtable.GCPolicy
		want   string // hours of the cells that stay, of 1 to 5 at hour 6
	}{
		{"none", bigtable.NoGcPolicy(), "5 4 3 2 1"},
		{"age", bigtable.MaxAgePolicy(3 * time.Hour), "5 4 3"},
		{"versions", bigtable.MaxVersionsPolicy(2), "5 4"},
		{"union", bigtable.UnionPolicy(bigtable.MaxAgePolicy(3*time.Hour), bigtable.MaxVersionsPolicy(4)), "5 4 3"},
		{"intersection", bigtable.IntersectionPolicy(bigtable.MaxAgePolicy(3*time.Hour), bigtable.MaxVersionsPolicy(4)), "5 4 3 2"},
		{
			"nested", bigtable.UnionPolicy(
				bigtable.IntersectionPolicy(bigtable.MaxAgePolicy(2*time.Hour), bigtable.MaxVersionsPolicy(2)),
				bigtable.MaxAgePolicy(time.Hour*100)), "5 4",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c clock
			c.micros.Store(6 * hour)
			r := open(t, engine.Options{Clock: c.now, Steady: c.steady})
			r.createWith(t, map[string]bigtable.Family{"f": {GCPolicy: tt.policy}, "g": {}})
			for h := range int64(5) {
				apply(t, r, "row", set("f", "q", (h+1)*hour, "v"))
				apply(t, r, "row", set("f", "other", 5*hour, "v"))
				apply(t, r, "row", set("g", "q", (h+1)*hour, "v"))
			}
			if err := r.RunGC(r.ctx); err != nil {
				t.Fatal(err)
			}
			var got []string
			row, err := r.data.Open(tableID).ReadRow(r.ctx, "row")
			if err != nil {
				t.Fatal(err)
			}
			for _, cell := range row["f"] {
				if cell.Column == "f:q" {
					got = append(got, fmt.Sprint(int64(cell.Timestamp)/hour))
				}
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("got the cells of hours %s after the pass, want %s", s, tt.want)
			}
			if len(row["g"]) != 5 || len(row["f"]) != len(got)+1 {
				t.Errorf("got %v after the pass, want all cells of other families and columns", row)
			}
		})
	}
}

// A rule that only a newer API knows is refused: the family would keep everything.
func TestUnknownGCRule(t *testing.T) {
	r := open(t, engine.Options{})
	newer := new(adminpb.GcRule)
	if err := proto.Unmarshal(protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1), newer); err != nil {
		t.Fatal(err)
	}
	_, err := r.CreateTable(r.ctx, &adminpb.CreateTableRequest{Parent: parent, TableId: tableID, Table: &adminpb.Table{
		ColumnFamilies: map[string]*adminpb.ColumnFamily{"f": {GcRule: newer}},
	}})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v, want InvalidArgument", err)
	}
}

// A pass counts the versions of each row by itself, also where the last column of a row is the first of the next.
func TestGCCountsVersionsByRow(t *testing.T) {
	r := open(t, engine.Options{})
	r.createWith(t, map[string]bigtable.Family{"f": {GCPolicy: bigtable.MaxVersionsPolicy(1)}})
	want := []string{}
	for _, row := range []string{"a", "b", "b#1"} {
		apply(t, r, row, set("f", "q", 1000, "old"))
		apply(t, r, row, set("f", "q", 2000, "new"))
		want = append(want, row+" f:q@2000=new")
	}
	if err := r.RunGC(r.ctx); err != nil {
		t.Fatal(err)
	}
	if got := dump(t, r, bigtable.InfiniteRange("")); !slices.Equal(got, want) {
		t.Errorf("after the pass: %q, want %q", got, want)
	}
}

// A pass removes the cells of a dropped family, also from a table without rules. It goes on if the next table is
// deleted meanwhile.
func TestGCOfWhatIsDropped(t *testing.T) {
	r := open(t, engine.Options{})
	r.createWith(t, map[string]bigtable.Family{"f": {}, "g": {}})
	for _, id := range []string{"u", "v"} {
		if err := r.admin.CreateTableFromConf(r.ctx, &bigtable.TableConf{TableID: id, ColumnFamilies: map[string]bigtable.Family{"f": {}}}); err != nil {
			t.Fatal(err)
		}
		if err := r.data.Open(id).Apply(r.ctx, "row", set("f", "q", 1000, "v")); err != nil {
			t.Fatal(err)
		}
	}
	apply(t, r, "row", set("g", "q", 1000, "v"))
	if err := cmp.Or(r.admin.DeleteColumnFamily(r.ctx, tableID, "g"), r.admin.DeleteColumnFamily(r.ctx, "v", "f")); err != nil {
		t.Fatal(err)
	}
	var deleted sync.Once
	err := r.CollectWithRests(r.ctx, func(context.Context, time.Duration) (err error) {
		deleted.Do(func() { err = r.admin.DeleteTable(r.ctx, "u") })
		return err
	})
	if err != nil {
		t.Errorf("a pass in which a table is deleted: %v", err)
	}
	for _, id := range []string{tableID, "v"} {
		if r.Uncompacted(parent+"/tables/"+id) == 0 {
			t.Errorf("table %s: the cells of the dropped family are still stored", id)
		}
	}
}

// A pass keeps a cell that was deleted and written again while the pass ran.
func TestGCKeepsWhatIsNew(t *testing.T) {
	var c clock
	c.micros.Store(time.Hour.Microseconds())
	r := open(t, engine.Options{Clock: c.now, Steady: c.steady})
	r.createWith(t, map[string]bigtable.Family{"f": {GCPolicy: bigtable.MaxVersionsPolicy(1)}})
	stop := make(chan struct{})
	collected := make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				collected <- nil
				return
			default:
			}
			if err := r.RunGC(context.Background()); err != nil {
				collected <- err
				return
			}
		}
	}()
	// Each round writes two versions of a cell, deletes both, and writes a new cell with the timestamp of the older
	// one. Whatever a concurrent pass saw, the new cell must stay.
	for i := range 200 {
		row := fmt.Sprint("row", i%7)
		apply(t, r, row, set("f", "q", 1000, "old"))
		apply(t, r, row, set("f", "q", 2000, "new"))
		m := bigtable.NewMutation()
		m.DeleteCellsInFamily("f")
		apply(t, r, row, m)
		apply(t, r, row, set("f", "q", 1000, "again"))
		want := []string{row + " f:q@1000=again"}
		if got := dump(t, r, bigtable.SingleRow(row)); !slices.Equal(got, want) {
			t.Fatalf("round %d: %q, want %q", i, got, want)
		}
	}
	close(stop)
	if err := <-collected; err != nil {
		t.Fatal(err)
	}
}

func TestGCRunsInTheBackground(t *testing.T) {
	var c clock
	c.micros.Store(time.Hour.Microseconds())
	r := open(t, engine.Options{Clock: c.now, Steady: c.steady, GCInterval: time.Millisecond})
	r.createWith(t, map[string]bigtable.Family{"f": {GCPolicy: bigtable.MaxAgePolicy(time.Minute)}})
	apply(t, r, "row", set("f", "q", 1000, "v"))
	for range 3000 {
		if len(dump(t, r, bigtable.InfiniteRange(""))) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the expired cell is still there after half a minute of passes")
}
