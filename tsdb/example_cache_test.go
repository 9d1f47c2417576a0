package tsdb_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// A dashboard asks every second where its buses are, and accepts positions that are ten seconds old. It sees its own
// writes at once.
func ExampleMaxStale() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 10_000}}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, positions); err != nil {
		log.Fatal(err)
	}
	repo := positions.For(store, tenant.MustParse("acme"))
	drive(repo)

	bus := tsdb.NewEntity("bvg", "M41", "bus-1")
	for range 3 {
		p, err := repo.Latest(ctx, bus, tsdb.MaxStale(10*time.Second))
		fmt.Println(p.Time.Format(time.TimeOnly), err)
		if err := repo.Put(ctx, bus, p.Time.Add(time.Minute), p.Value); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 12:01:00 <nil>
	// 12:02:00 <nil>
	// 12:03:00 <nil>
}

func ExampleCacheOptions() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{
		StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{
			Entries: 100_000,          // entities
			Bytes:   64 << 20,         // of memory, whatever their number
			MaxAge:  10 * time.Second, // the largest MaxStale of any caller
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	fmt.Println(store.Ping(ctx) != nil)
	// Output: true
}
