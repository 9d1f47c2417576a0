package rollupadd_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
)

func shape(t testing.TB, measures int) *rollupadd.Shape {
	t.Helper()
	e := catalog.Rollup{Kind: catalog.ByStream, Span: 86_400_000, Class: catalog.Class{Name: "keep"}}
	for range measures {
		e.Measures = append(e.Measures, catalog.RollupMeasure{Name: "m", Decimals: 2, Max: "1000", Aggregates: []string{"count", "sum"}})
	}
	s, err := rollupadd.NewShape(&e)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEventRecordIsTheDocumentedOne(t *testing.T) {
	e := rollupadd.Event{Bucket: 300, Numbers: []rollupadd.Number{{Value: -2, Has: true}, {}, {Value: 0, Has: true}}}
	got := string(rollupadd.AppendEvent([]byte("x"), e))
	if want := "x\xac\x02\x01\x03\x00\x01\x00"; got != want {
		t.Errorf("the record is %q, want %q: journals could no longer be read", got, want)
	}
}

// FuzzEvent: no record makes the parser panic, and what it takes is written as it was read, or shorter.
func FuzzEvent(f *testing.F) {
	f.Add([]byte{0xac, 0x02, 1, 3, 0})
	f.Add([]byte{})
	s := shape(f, 2)
	f.Fuzz(func(t *testing.T, src []byte) {
		e, err := s.ParseEvent(src)
		if err != nil {
			return
		}
		again, err := s.ParseEvent(rollupadd.AppendEvent(nil, e))
		if err != nil || !reflect.DeepEqual(e, again) {
			t.Errorf("%q reads as %+v, and written anew as %+v, %v", src, e, again, err)
		}
	})
}

// TestBatchKeepsToItsBounds: a batch ends before a sum would not fit, and before it has too many cells for a request.
func TestBatchKeepsToItsBounds(t *testing.T) {
	s := shape(t, 1)
	for _, sign := range []int64{1, -1} {
		b := s.Batch()
		for i := range 2 {
			if !b.Add(rollupadd.Event{Numbers: []rollupadd.Number{{Value: sign * (math.MaxInt64 / 2), Has: true}}}) {
				t.Fatalf("the batch ends at event %d", i)
			}
		}
		if b.Add(rollupadd.Event{Numbers: []rollupadd.Number{{Value: sign * 3, Has: true}}}) {
			t.Error("the batch takes what its sum has no room for")
		}
		if !b.Add(rollupadd.Event{Numbers: []rollupadd.Number{{Value: -sign, Has: true}}}) || !b.Add(rollupadd.Event{Numbers: []rollupadd.Number{{}}}) {
			t.Error("the batch does not take what its sum has room for")
		}
	}
	b, n := s.Batch(), int64(0)
	for b.Add(rollupadd.Event{Bucket: n, Numbers: []rollupadd.Number{{Value: 1, Has: true}}}) {
		n++
	}
	if _, cells := b.Mutation(); cells > 10_000 || n < 1000 {
		t.Errorf("the batch takes %d buckets in %d cells", n, cells)
	}
}

// TestShapeRefusesNonsense: descriptions come from journals and tables.
func TestShapeRefusesNonsense(t *testing.T) {
	good := catalog.Rollup{Span: 1, Class: catalog.Class{Name: "c"}, Measures: []catalog.RollupMeasure{{Name: "m", Max: "1"}}}
	for i, spoil := range []func(*catalog.Rollup){
		func(r *catalog.Rollup) { r.Span = 0 },
		func(r *catalog.Rollup) { r.Class.Name = "" },
		func(r *catalog.Rollup) { r.Measures = []catalog.RollupMeasure{{Name: "m", Max: "x"}} },
		func(r *catalog.Rollup) { r.Measures = []catalog.RollupMeasure{{Name: "m", Max: "NaN"}} },
		func(r *catalog.Rollup) { r.Measures = []catalog.RollupMeasure{{Name: "m", Max: "1", Decimals: 10}} },
		func(r *catalog.Rollup) { r.Measures = []catalog.RollupMeasure{{Name: "m", Max: "1e300"}} },
		func(r *catalog.Rollup) { r.Measures = make([]catalog.RollupMeasure, 17) },
	} {
		bad := good
		spoil(&bad)
		if _, err := rollupadd.NewShape(&bad); err == nil {
			t.Errorf("%d: the shape of %+v", i, bad)
		}
	}
	if _, err := rollupadd.NewShape(&good); err != nil {
		t.Error(err)
	}
}
