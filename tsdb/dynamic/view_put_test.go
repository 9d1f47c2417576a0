package dynamic_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestPutsAtOnce: one view is used in parallel.
func TestPutsAtOnce(t *testing.T) {
	s := define(t, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	v, err := dynamic.Open(t.Context(), store, acme, "readings")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			e := tsdb.NewEntity("a", fmt.Sprint(i))
			if err := v.Put(t.Context(), dynamic.Point{Entity: e, Time: start, Class: "keep", Tag: "json", Payload: []byte(`{}`)}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestPutOfALongEntity: an entity whose rollup rows would have too long keys is rejected, as by a repository, and
// nothing is stored.
func TestPutOfALongEntity(t *testing.T) {
	s := define(t, tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	v, err := dynamic.Open(t.Context(), store, acme, "readings")
	if err != nil {
		t.Fatal(err)
	}
	e := tsdb.NewEntity("a", strings.Repeat("x", 4096-len("acme#readings#a##")-19))
	if err := s.For(store, acme).Put(t.Context(), e, start, sample{1}); !errors.Is(err, tsdb.ErrInvalid) {
		t.Fatalf("Put of the repository: %v, want ErrInvalid", err)
	}
	if err := v.Put(t.Context(), dynamic.Point{Entity: e, Time: start, Class: "keep", Tag: "json", Payload: []byte(`{}`)}); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("Put of the view: %v, want the same error", err)
	}
}

// TestPutEndsWithTheYear9999: a view takes the times that a repository takes, so that no tool writes a point that
// breaks calls of others.
func TestPutEndsWithTheYear9999(t *testing.T) {
	for precision, last := range map[tsdb.Precision]time.Time{
		tsdb.Microseconds: time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC), tsdb.Milliseconds: time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC),
	} {
		s := define(t, tsdb.SchemaOptions{Precision: precision})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
		v, err := dynamic.Open(t.Context(), store, acme, "readings")
		if err != nil {
			t.Fatal(err)
		}
		p := dynamic.Point{Entity: tsdb.NewEntity("a", "b"), Class: "keep", Tag: "json", Payload: []byte(`{}`)}
		for _, late := range []time.Time{last.Add(time.Millisecond), time.Date(58803, 2, 28, 1, 2, 3, 0, time.UTC)} {
			p.Time = late
			if err := v.Put(t.Context(), p); !errors.Is(err, tsdb.ErrInvalid) || !errors.Is(err, tsdb.ErrRejected) || !strings.Contains(err.Error(), "to 9999-12-31T23:59:59.999") {
				t.Errorf("%v: a point at %v: %v, want it refused with the last time", precision, late, err)
			}
		}
		if _, err := s.For(store, acme).Latest(t.Context(), p.Entity); !errors.Is(err, tsdb.ErrNotFound) {
			t.Errorf("%v: after refused points: %v, want none", precision, err)
		}
		p.Time = last
		if err := v.Put(t.Context(), p); err != nil {
			t.Errorf("%v: the last time is refused: %v", precision, err)
		}
	}
}
