package tenants_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestReleaseThatEndsHalfWay: Release cancels a removal and fails halfway. A later Remove starts from the beginning: it
// refuses a class with unexpired points, although the earlier removal had passed that check.
func TestReleaseThatEndsHalfWay(t *testing.T) {
	part := tenants.Part{Dataset: "temps", Class: "old"}
	for cut := 1; ; cut++ {
		a := newUnusedParts(t)
		n := 0
		opts := swift
		opts.Progress = func(p tenants.Progress) {
			if p.State == tenants.Deleting || p.State == "verifying" {
				n++
				a.leave(t, "acme", "temps", 20*day+day/1000*time.Duration(n), "old:p:str")
			}
		}
		if _, err := tenants.Remove(t.Context(), a.store, part, opts); !errors.Is(err, errtype.ErrRemains) {
			t.Fatalf("Remove of a class into which a program writes: %v", err)
		}
		a.conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.CheckAndMutateRow).Skip(cut))
		err := tenants.Release(t.Context(), a.store, part)
		a.conn.Clear()
		if err == nil {
			if cut == 1 {
				t.Fatal("Release makes only one conditional write, but the test needs to cut it off between two")
			}
			return
		}
		before := a.cells(t, func(_, cell string) bool { return true })
		if _, err := tenants.Remove(t.Context(), a.store, part, swift); !errors.Is(err, tenants.ErrImpossible) {
			t.Errorf("Release ends after %d writes: Remove of a class that holds points: %v", cut, err)
		}
		equal(t, fmt.Sprintf("after a Release of %d writes", cut), a.cells(t, func(_, cell string) bool { return true }), before)
	}
}

// TestFamiliesOfARemovalThatWasGivenUp: Release cancels the removal of a class's families while the first of them is
// dropped, and a dataset begins to use the class. The removal drops no other family.
func TestFamiliesOfARemovalThatWasGivenUp(t *testing.T) {
	part := tenants.Part{Class: "spare"}
	of := func(name string, class gc.Class) *tsdb.Schema[string] {
		return tsdb.MustDefine(name, tsdb.Key("device"), codec.String(), tsdb.SchemaOptions{Retention: class, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2}})
	}
	var store *tsdb.Store
	var removing atomic.Bool
	store, conn := tsdbtest.Open(t, tsdbtest.Options{
		StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return start.Add(time.Hour) }},
		DialOptions: []grpc.DialOption{onCall("ModifyColumnFamilies", func() {
			if removing.Swap(false) {
				if err := errors.Join(tenants.Release(t.Context(), store, part), store.Ensure(t.Context(), of("late", spare))); err != nil {
					t.Errorf("cancel the removal and use the class: %v", err)
				}
			}
		})},
	}, of("first", keep), of("gone", spare))
	if _, err := tenants.Remove(t.Context(), store, tenants.Part{Dataset: "gone"}, swift); err != nil {
		t.Fatal(err)
	}
	removing.Store(true)
	if _, err := tenants.Remove(t.Context(), store, part, swift); !errors.Is(err, tenants.ErrTakenOver) {
		t.Errorf("a cancelled removal: %v, want ErrTakenOver", err)
	}
	_, admin := tsdbtest.Clients(t, conn)
	info, err := admin.TableInfo(t.Context(), tsdbtest.Table)
	if err != nil || !slices.Contains(info.Families, "spare.h2") {
		t.Errorf("families %v (%v): the second family was dropped although a dataset uses it", info.Families, err)
	}
}
