package fieldlist

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

func of(t *testing.T, name string) rowkey.ID {
	t.Helper()
	return datasetOf(t, name, "readings")
}

// datasetOf returns the ID of a tenant's dataset.
func datasetOf(t *testing.T, name, dataset string) rowkey.ID {
	t.Helper()
	s, err := rowkey.NewSpace(tenant.MustParse(name), dataset, []string{"k"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s.ID("")
}

// note notes a field of a tenant.
func note(t *testing.T, r *Recorder, tenant, name string) {
	r.NoteFields(of(t, tenant), "default", 0, codec.NewRecord(codec.Field{Name: name, Value: codec.Int(1)}))
}

// writeAll takes all that is not written, as a flush does.
func writeAll(r *Recorder) {
	for _, l := range r.dirty() {
		l.take().written()
	}
}

// Memory is bounded over tenants, no tenant takes the room of all, what is not written yet is never forgotten, and a
// full recorder forgets what is written once in an hour.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Open(nil)
		r.running = true // no task
		for i := range 30 {
			for f := range MaxFields + 10 {
				r.NoteFields(datasetOf(t, "greedy", fmt.Sprint("d", i)), "default", 0, codec.NewRecord(codec.Field{Name: fmt.Sprint(f), Value: codec.Int(1)}))
			}
		}
		for _, l := range r.lists {
			if len(l.fields) > MaxFields {
				t.Errorf("a list has %d fields", len(l.fields))
			}
		}
		if n := r.tenants["greedy"].Load(); n != mostOfTenant {
			t.Errorf("one tenant has %d names, want %d", n, mostOfTenant)
		}
		note(t, r, "modest", "temp")
		if r.tenants["modest"].Load() != 1 {
			t.Error("a greedy tenant takes the room of another")
		}
		flood := func(prefix string) {
			for i := range mostLists + 10 {
				note(t, r, fmt.Sprint(prefix, i), "temp")
			}
			if n := len(r.lists); n > mostLists || len(r.tenants) > mostLists || r.names.Load() > mostNames {
				t.Errorf("%d lists of %d tenants with %d names, want %d lists at most", n, len(r.tenants), r.names.Load(), mostLists)
			}
		}
		flood("t")
		if r.lists[of(t, "modest").Dataset()] == nil {
			t.Error("a list that is not written is forgotten")
		}
		writeAll(r)
		time.Sleep(sweepPause / 2)
		if flood("u"); r.lists[of(t, "u1").Dataset()] != nil {
			t.Error("lists are forgotten twice in an hour")
		}
		time.Sleep(sweepPause / 2)
		if flood("v"); r.lists[of(t, "v1").Dataset()] == nil {
			t.Error("new lists find no room after an hour")
		}
		r.DropTenants(func(tenant string) bool { return tenant == "modest" })
		if r.tenants["modest"] != nil || r.lists[of(t, "v1").Dataset()] == nil {
			t.Error("lists of another tenant are forgotten, and not those of the erased one")
		}
		r.DropTenants(func(string) bool { return true })
		if len(r.lists)+len(r.tenants) > 0 || r.names.Load() != 0 {
			t.Errorf("%d lists, %d tenants and %d names after all are dropped", len(r.lists), len(r.tenants), r.names.Load())
		}
	})
}

// TestColumns: a column comes back from its text, and later first days sort before earlier ones.
func TestColumns(t *testing.T) {
	for _, day := range []int32{0, 20_000, farDay - 1} {
		for _, name := range []string{"", "temp", "a:b", ":", "l:0000001:int:x"} {
			got, k, n, ok := parseColumn(column(day, codec.KindUint, name))
			if !ok || got != day || k != codec.KindUint || n != name {
				t.Errorf("%q comes back as %d, %v, %q, %v", column(day, codec.KindUint, name), got, k, n, ok)
			}
		}
	}
	if column(20_001, codec.KindInt, "a") >= column(20_000, codec.KindInt, "a") {
		t.Error("a later first day sorts after an earlier one")
	}
	for _, text := range []string{"", "o", "l:", "l:1", "l:1:int", "l:x:int:a", "l:1:ints:a", "l:9999999:int:a", "l:0:int:a", "l:-1:int:a", "m:1:int:a"} {
		if _, _, _, ok := parseColumn(text); ok {
			t.Errorf("%q is taken for a column", text)
		}
	}
}
