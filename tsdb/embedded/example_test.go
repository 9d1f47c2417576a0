package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/tidemark-go/tidemark/tsdb"
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

func ExampleOptions_attach() {
	dir, err := os.MkdirTemp("", "tidemark")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	owner, err := embedded.Open(ctx, dir) // a program that runs and writes
	if err != nil {
		log.Fatal(err)
	}
	defer owner.Close()
	if err := owner.Ensure(ctx, temps); err != nil {
		log.Fatal(err)
	}
	if err := temps.For(owner, acme).Put(ctx, roof, noon, 21.5); err != nil {
		log.Fatal(err)
	}

	_, err = embedded.Open(ctx, dir) // another one
	fmt.Println(errors.Is(err, tsdb.ErrLocked))
	store, err := embedded.New(ctx, embedded.Options{Dir: dir, Attach: true})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	p, err := temps.For(store, acme).Latest(ctx, roof)
	fmt.Println(p.Value, err)
	// Output:
	// true
	// 21.5 <nil>
}
