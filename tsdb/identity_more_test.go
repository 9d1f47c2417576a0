package tsdb_test

import (
	"errors"
	"testing"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestEventsMerge: records of one event are merged, in any order, and never with those of another event at the same
// instant.
func TestEventsMerge(t *testing.T) {
	s := must[*tsdb.Schema[codec.Record]](t)(tsdb.Define("events", tsdb.Key("user"), codec.Records(), tsdb.SchemaOptions{Merge: true, Identity: true}))
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	w := writer(t, store, tsdb.WriterOptions{Linger: together})
	for _, id := range []string{"a", "b"} {
		one := repo.WithID(id)
		if err := errors.Join(
			one.Put(t.Context(), ada, start, rec("put-"+id, 1)),
			one.Put(t.Context(), ada, start, rec("again-"+id, 2)),
			one.Via(w).Enqueue(t.Context(), ada, start, rec("first-"+id, 3)),
			one.Via(w).Enqueue(t.Context(), ada, start, rec("second-"+id, 4)),
		); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		p, err := repo.WithID(id).Get(t.Context(), ada, start)
		want := rec("put-"+id, 1).Merge(rec("again-"+id, 2)).Merge(rec("first-"+id, 3)).Merge(rec("second-"+id, 4))
		if err != nil || p.Value.String() != want.String() || p.ID != id {
			t.Errorf("event %s is %v with the ID %q (%v), want %v", id, p.Value, p.ID, err, want)
		}
	}
}

// TestEventsThroughViews: a store that uses authorized views keeps events of one instant apart too.
func TestEventsThroughViews(t *testing.T) {
	s := eventsOf(t, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Views: true}}, s)
	repo := s.For(store, acme)
	if err := repo.WithID("a").Put(t.Context(), ada, start, "x"); !errors.Is(err, tsdb.ErrNoView) {
		t.Errorf("Put without a view: %v, want ErrNoView", err)
	}
	if err := store.EnsureView(t.Context(), acme, s); err != nil {
		t.Fatal(err)
	}
	w := writer(t, store, tsdb.WriterOptions{Linger: together})
	if err := errors.Join(
		repo.WithID("b").Put(t.Context(), ada, start, "put"),
		repo.WithID("a").Via(w).Enqueue(t.Context(), ada, start, "via"),
		w.Flush(t.Context()),
	); err != nil {
		t.Fatal(err)
	}
	if stored, err := repo.WithID("c").PutIfAbsent(t.Context(), ada, start, "absent"); !stored || err != nil {
		t.Errorf("PutIfAbsent: %v, %v", stored, err)
	}
	wantEvents(t, "all", shownEvents(t, repo, ada), "0 a via", "0 b put", "0 c absent")
	if err := repo.WithID("b").Delete(t.Context(), ada, start); err != nil {
		t.Error(err)
	}
	wantEvents(t, "one deleted", shownEvents(t, repo, ada), "0 a via", "0 c absent")
}

// TestDeadLettersOfEvents: a dead letter names the event's ID. With the entity and time alone an operator could not
// tell several events apart.
func TestDeadLettersOfEvents(t *testing.T) {
	s := eventsOf(t, tsdb.SchemaOptions{FirstWins: true})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	if err := repo.WithID("b").Put(t.Context(), ada, start, "first"); err != nil {
		t.Fatal(err)
	}
	w := writer(t, store, journaled(t))
	for _, id := range []string{"a", "b", "c"} {
		if err := repo.WithID(id).Via(w).Enqueue(t.Context(), ada, start, "other"); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	dead := letters(t, w)
	if len(dead) != 1 || dead[0].PointID != "b" || dead[0].Entity != ada || !dead[0].Time.Equal(start) || dead[0].Tenant != acme {
		t.Errorf("dead letters %+v, want one of event b", dead)
	}
	wantEvents(t, "the events", shownEvents(t, repo, ada), "0 a other", "0 b first", "0 c other")
}
