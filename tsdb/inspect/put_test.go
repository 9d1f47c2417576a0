package inspect_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/inspect"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestPutsAtOnce: one view is used in parallel.
func TestPutsAtOnce(t *testing.T) {
	s := define(t, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	v, err := inspect.Open(t.Context(), store, acme, "readings")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			e := tsdb.NewEntity("a", fmt.Sprint(i))
			if err := v.Put(t.Context(), inspect.Point{Entity: e, Time: start, Class: "keep", Tag: "json", Payload: []byte(`{}`)}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestPutOfALongEntity: an entity whose rollup rows would have too long keys is rejected, as by a repository, and nothing is
// stored.
func TestPutOfALongEntity(t *testing.T) {
	s := define(t, tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	v, err := inspect.Open(t.Context(), store, acme, "readings")
	if err != nil {
		t.Fatal(err)
	}
	e := tsdb.NewEntity("a", strings.Repeat("x", 4096-len("acme#readings#a##")-19))
	if err := s.For(store, acme).Put(t.Context(), e, start, reading{1}); !errors.Is(err, tsdb.ErrInvalid) {
		t.Fatalf("Put of the repository: %v, want ErrInvalid", err)
	}
	if err := v.Put(t.Context(), inspect.Point{Entity: e, Time: start, Class: "keep", Tag: "json", Payload: []byte(`{}`)}); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("Put of the view: %v, want the same error", err)
	}
}
