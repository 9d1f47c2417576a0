package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/keys"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestCheckKeysRefusesWrites: CheckKeys applies to every way of writing. A rejected key appears neither in the table
// nor in the error.
func TestCheckKeysRefusesWrites(t *testing.T) {
	ctx := context.Background()
	s := readings(t, tsdb.SchemaOptions{CheckKeys: keys.CheckPersonal})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close(ctx) }()
	in := repo.Via(w)
	bad := tsdb.NewEntity("berlin #7", "anna@example.com")
	points := []tsdb.Point[reading]{{Entity: bad, Time: start}}
	for name, err := range map[string]error{
		"Put":              repo.Put(ctx, bad, start, reading{}),
		"PutIfAbsent":      second(repo.PutIfAbsent(ctx, bad, start, reading{})),
		"PutMany":          second(repo.PutMany(ctx, points)),
		"Sink.Enqueue":     in.Enqueue(ctx, bad, start, reading{}),
		"Sink.TryEnqueue":  in.TryEnqueue(ctx, bad, start, reading{}),
		"Sink.EnqueueFunc": in.EnqueueFunc(ctx, bad, start, reading{}, func(tsdb.Outcome) {}),
		"Sink.EnqueueMany": second(in.EnqueueMany(ctx, points)),
	} {
		if !errors.Is(err, tsdb.ErrRejected) && name != "PutMany" && name != "Sink.EnqueueMany" || !errors.Is(err, tsdb.ErrInvalid) || !errors.Is(err, invalid.ErrPersonal) {
			t.Errorf("%s: %v, want ErrRejected, ErrInvalid and keys.ErrPersonal", name, err)
			continue
		}
		if text := fmt.Sprintf("%v %+v", err, err); !strings.Contains(text, "key field device") || strings.Contains(text, "anna") || strings.Contains(text, "berlin") {
			t.Errorf("%s: error %v; want the field's name and no part of the key", name, err)
		}
	}
	if calls := conn.Counts().Calls; len(calls) != 0 {
		t.Errorf("refused points were sent: %v", calls)
	}
	// Points that were written before the check was added must stay readable and deletable.
	if _, err := repo.Latest(ctx, bad); !errors.Is(err, tsdb.ErrNotFound) {
		t.Errorf("Latest: %v, want ErrNotFound", err)
	}
	if _, err := repo.DeleteRange(ctx, bad, tsdb.AllTime()); err != nil {
		t.Errorf("DeleteRange: %v", err)
	}
}

func second[V any](_ V, err error) error { return err }

func TestCheckKeysSeesPartsAsTheyWereGiven(t *testing.T) {
	ctx := context.Background()
	refused := errors.New("no")
	var seen []string
	s := readings(t, tsdb.SchemaOptions{CheckKeys: func(field, part string) error {
		seen = append(seen, field+"="+part)
		if part == "bad" {
			return refused
		}
		return nil
	}})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	odd := tsdb.NewEntity("a#b", "100% \x00")
	outcomes, err := repo.PutMany(ctx, []tsdb.Point[reading]{{Entity: odd, Time: start}, {Entity: tsdb.NewEntity("bad", "x"), Time: start}})
	if outcomes[0].State != tsdb.Stored || outcomes[1].State != tsdb.Rejected || !errors.Is(err, refused) {
		t.Errorf("PutMany = %v, %v; want the good one stored", outcomes, err)
	}
	if got, want := strings.Join(seen, "|"), "site=a#b|device=100% \x00|site=bad"; got != want {
		t.Errorf("seen %q, want %q", got, want)
	}
	if err := repo.Put(ctx, tsdb.NewEntity("bad"), start, reading{}); !errors.Is(err, tsdb.ErrInvalid) || errors.Is(err, refused) {
		t.Errorf("an entity with a part missing: %v; want it rejected before CheckKeys runs", err)
	}
}
