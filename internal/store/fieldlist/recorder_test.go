package fieldlist

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// of returns the ID of a tenant's dataset.
func of(t *testing.T, name string) rowkey.ID {
	t.Helper()
	s, err := rowkey.NewSpace(tenant.MustParse(name), "readings", []string{"k"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s.ID("")
}

// recorder returns a recorder whose flushes call f.
func recorder(f func(r *Recorder) error) *Recorder {
	r := Open(nil)
	r.task.flush = func(context.Context) error { return f(r) }
	return r
}

// writeAll takes all that is not written, as a flush does.
func writeAll(r *Recorder) {
	for _, l := range r.dirty() {
		c := change{row: l.row, mutation: bigtable.NewMutation()}
		c.add(l)
	}
}

// A flush follows the first change by some seconds, a failed one is repeated after longer and longer pauses, and nothing
// runs while there is nothing to write.
func TestFlushTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var flushes []time.Duration
		began, fail := time.Now(), 3
		r := recorder(func(r *Recorder) error {
			flushes = append(flushes, time.Since(began))
			if fail--; fail >= 0 {
				return errors.New("refused")
			}
			writeAll(r)
			return nil
		})
		note := func(name string) {
			r.NoteFields(of(t, "acme"), "default", 0, codec.NewRecord(codec.Field{Name: name, Value: codec.Int(1)}))
		}
		note("a")
		time.Sleep(time.Second)
		note("b")
		time.Sleep(time.Hour)
		want := []time.Duration{3 * time.Second, 9 * time.Second, 21 * time.Second, 45 * time.Second}
		if fmt.Sprint(flushes) != fmt.Sprint(want) {
			t.Errorf("flushes were at %v, want %v", flushes, want)
		}
		if r.task.running {
			t.Error("the task runs with nothing to write")
		}
		note("a")
		if r.task.running {
			t.Error("a known field starts the task")
		}
		note("c")
		r.Close()
		if len(flushes) != 5 {
			t.Errorf("%d flushes, want another one by Close", len(flushes))
		}
	})
}

// Memory is bounded over tenants, no tenant takes the room of all, and what is not written yet is never forgotten.
func TestMemory(t *testing.T) {
	r := recorder(func(*Recorder) error { return nil })
	defer r.Close()
	note := func(tenant, family, name string) {
		r.NoteFields(of(t, tenant), family, 0, codec.NewRecord(codec.Field{Name: name, Value: codec.Int(1)}))
	}
	for family := range 30 {
		for i := range MaxFields + 10 {
			note("greedy", fmt.Sprint(family), fmt.Sprint(i))
		}
	}
	if n := r.tenants["greedy"].Load(); n != mostOfTenant {
		t.Errorf("one tenant has %d names, want %d", n, mostOfTenant)
	}
	note("modest", "default", "temp")
	if r.tenants["modest"].Load() != 1 {
		t.Error("a greedy tenant takes the room of another")
	}
	for i := range 3 * mostLists {
		note(fmt.Sprintf("t%d", i), "default", "temp")
	}
	if n := len(r.now) + len(r.before); n > mostLists {
		t.Errorf("%d lists, want %d at most", n, mostLists)
	}
	if r.now[key{of(t, "modest"), "default"}] == nil && r.before[key{of(t, "modest"), "default"}] == nil {
		t.Error("a list that is not written is forgotten")
	}
	writeAll(r)
	for i := range 3 * mostLists {
		note(fmt.Sprintf("u%d", i), "default", "temp")
		if i%1000 == 0 {
			writeAll(r)
		}
	}
	if n := len(r.now) + len(r.before); n > mostLists || len(r.tenants) > mostLists {
		t.Errorf("%d lists of %d tenants, want %d at most", n, len(r.tenants), mostLists)
	}
	if r.now[key{of(t, "u29999"), "default"}] == nil {
		t.Error("the newest list is not in memory")
	}
	r.DropTenants(func(string) bool { return true })
	if len(r.now)+len(r.before)+len(r.tenants) > 0 || r.names.Load() != 0 {
		t.Errorf("%d lists, %d tenants and %d names after all are dropped", len(r.now)+len(r.before), len(r.tenants), r.names.Load())
	}
}
