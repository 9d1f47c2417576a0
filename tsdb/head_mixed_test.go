package tsdb_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestHeadsOfOneBatch: a writer sends points of several datasets in one batch. Each point goes to its head as its own
// dataset requires, in any order of the datasets.
func TestHeadsOfOneBatch(t *testing.T) {
	merged := merging(t, tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: kept}})
	first, err := tsdb.Define("firsts", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{FirstWins: true, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: kept}})
	if err != nil {
		t.Fatal(err)
	}
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, merged, first)
	repo := merged.For(store, acme)
	if err := repo.Put(t.Context(), roof, start, rec("old", 1)); err != nil {
		t.Fatal(err)
	}
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	go func() { done <- first.For(store, acme).Via(w).Enqueue(t.Context(), roof, start.Add(time.Second), "x") }()
	go func() { done <- repo.Via(w).Enqueue(t.Context(), roof, start, rec("new", 2)) }()
	if err := errors.Join(<-done, <-done, w.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	wholeHead(t, "two datasets", repo, roof, 1)
	points, err := ofHead(repo, roof, 1)
	if err != nil || len(points) != 1 || points[0].Value.Len() != 2 {
		t.Errorf("the head holds %v, error %v; want both fields", points, err)
	}
}

// TestDeletionsOfUnknownTags: a program that does not know the tag of a point, as during a change of the codec, deletes
// it from the head, too, where that keeps more points than it shows.
func TestDeletionsOfUnknownTags(t *testing.T) {
	last := kept + 2
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Second) }
	for _, only := range []bool{false, true} {
		opts := tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: kept, Only: only}}
		knows := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Fallback(codec.Tagged("v2", codec.Int64()), codec.Int64()), opts)
		lacks := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Int64(), opts)
		for call, remove := range map[string]func(*tsdb.Repository[int64]) error{
			"Delete": func(repo *tsdb.Repository[int64]) (err error) {
				for i := range last {
					err = errors.Join(err, repo.Delete(t.Context(), roof, at(i)))
				}
				return err
			},
			"DeleteRange": func(repo *tsdb.Repository[int64]) error {
				_, err := repo.DeleteRange(t.Context(), roof, tsdb.Until(at(last)))
				return err
			},
		} {
			store, _ := tsdbtest.Open(t, tsdbtest.Options{}, knows)
			repo := knows.For(store, acme)
			for i := range last + 1 {
				if err := repo.Put(t.Context(), roof, at(i), int64(i)); err != nil {
					t.Fatal(err)
				}
			}
			if err := remove(lacks.For(store, acme)); err != nil {
				t.Fatal(err)
			}
			points, err := ofHead(repo, roof, kept)
			if err != nil || len(points) != 1 || points[0].Value != int64(last) {
				t.Errorf("heads only: %v, after %s the head has %v, error %v; want the last point", only, call, points, err)
			}
		}
	}
}
