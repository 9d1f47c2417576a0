package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// A store that reads and writes through authorized views: Bigtable itself enforces each tenant's boundary. EnsureView
// creates the view of a new tenant.
func ExampleStore_EnsureView() {
	ctx := context.Background()
	notes := tsdb.MustDefine("notes", tsdb.Key("author"), codec.String(), tsdb.SchemaOptions{})
	store, err := embedded.New(ctx, embedded.Options{StoreOptions: tsdb.StoreOptions{Views: true}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, notes); err != nil {
		log.Fatal(err)
	}
	acme := tenant.MustParse("acme")
	repo := notes.For(store, acme)
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	err = repo.Put(ctx, tsdb.NewEntity("ada"), noon, "hello")
	fmt.Println(errors.Is(err, tsdb.ErrNoView))

	if err := store.EnsureView(ctx, acme, notes); err != nil {
		log.Fatal(err)
	}
	fmt.Println(repo.Put(ctx, tsdb.NewEntity("ada"), noon, "hello"))
	fmt.Println(tsdb.ViewID(acme))
	// Output:
	// true
	// <nil>
	// t-acme-g8lj7bc7o54a18gabejsqnlsl8
}
