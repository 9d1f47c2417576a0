package embedded_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "tidemark")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	for range 2 { // the second time, the points of the first are still stored
		store, err := embedded.Open(ctx, dir)
		if err != nil {
			log.Fatal(err)
		}
		if err := store.Ensure(ctx, temps); err != nil {
			log.Fatal(err)
		}
		p, err := temps.For(store, acme).Latest(ctx, roof)
		fmt.Println(p.Value, err)
		if err := temps.For(store, acme).Put(ctx, roof, noon, 21.5); err != nil {
			log.Fatal(err)
		}
		if err := store.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 0 tsdb: not found
	// 21.5 <nil>
}

func ExampleOptions() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{Table: "test", CacheBytes: 8 << 20}) // in memory
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	fmt.Println(store.Ensure(ctx, temps))
	// Output: <nil>
}
