package tsdb_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// A history, page by page, with cursors that are safe to give to a client.
func ExampleRepository_Page() {
	ctx := context.Background()
	key := make([]byte, 32) // one of the program's secrets, the same in all its processes
	_, _ = rand.Read(key)
	store, err := embedded.New(ctx, embedded.Options{StoreOptions: tsdb.StoreOptions{CursorKeys: [][]byte{key}}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, weather); err != nil {
		log.Fatal(err)
	}
	repo := weather.For(store, tenant.MustParse("acme"))
	roof := tsdb.NewEntity("berlin", "roof-7")
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	put := func(minute int) {
		if err := repo.Put(ctx, roof, noon.Add(time.Duration(minute)*time.Minute), Reading{TempC: float64(20 + minute)}); err != nil {
			log.Fatal(err)
		}
	}
	for minute := range 5 {
		put(minute)
	}

	today := tsdb.Since(noon)
	page, err := repo.Page(ctx, roof, today, 2, "")
	fmt.Println(page.Points[0].Value.TempC, page.Points[1].Value.TempC, err)

	put(5) // a new point does not shift the pages

	page, err = repo.Page(ctx, roof, today, 2, page.Next)
	fmt.Println(page.Points[0].Value.TempC, page.Points[1].Value.TempC, err)

	// Another tenant cannot use the cursor.
	_, err = weather.For(store, tenant.MustParse("globex")).Page(ctx, roof, today, 2, page.Next)
	fmt.Println(errors.Is(err, tsdb.ErrCursor))

	page, err = repo.Page(ctx, roof, today, 2, page.Next)
	fmt.Printf("%v %q %v\n", page.Points[0].Value.TempC, page.Next, err)
	// Output:
	// 24 23 <nil>
	// 22 21 <nil>
	// true
	// 20 "" <nil>
}

func ExamplePage() {
	store := open(weather)
	defer store.Close()
	ctx := context.Background()
	repo := weather.For(store, tenant.MustParse("acme"))
	roof := tsdb.NewEntity("berlin", "roof-7")
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for minute := range 5 {
		if err := repo.Put(ctx, roof, noon.Add(time.Duration(minute)*time.Minute), Reading{}); err != nil {
			log.Fatal(err)
		}
	}

	var page tsdb.Page[Reading]
	for more := true; more; more = page.Next != "" {
		var err error
		if page, err = repo.Page(ctx, roof, tsdb.AllTime(), 2, page.Next); err != nil {
			log.Fatal(err)
		}
		for _, p := range page.Points {
			fmt.Println(p.Time.Format(time.TimeOnly))
		}
		fmt.Println("more:", page.Next != "")
	}
	// Output:
	// 12:04:00
	// 12:03:00
	// more: true
	// 12:02:00
	// 12:01:00
	// more: true
	// 12:00:00
	// more: false
}

func ExampleRepository_Page_oldestFirst() {
	store := open(weather)
	defer store.Close()
	ctx := context.Background()
	repo := weather.For(store, tenant.MustParse("acme"))
	roof := tsdb.NewEntity("berlin", "roof-7")
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for minute := range 5 {
		if err := repo.Put(ctx, roof, noon.Add(time.Duration(minute)*time.Minute), Reading{}); err != nil {
			log.Fatal(err)
		}
	}

	four := tsdb.Between(noon, noon.Add(4*time.Minute))
	page, err := repo.Page(ctx, roof, four, 3, "", tsdb.OldestFirst)
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range page.Points {
		fmt.Println(p.Time.Format(time.TimeOnly))
	}

	// The cursor does not fit another order, entity or interval.
	_, err = repo.Page(ctx, roof, four, 3, page.Next, tsdb.NewestFirst)
	fmt.Println(err)
	// Output:
	// 12:00:00
	// 12:01:00
	// 12:02:00
	// tsdb: cursor refused: cursor is of another tenant, dataset or query, or was changed; want a cursor from a page of the same tenant, dataset and query
}

// The entities of a site, page by page, for a list with a "more" button.
func ExamplePrefixReader_PageLatest() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, weather); err != nil {
		log.Fatal(err)
	}
	repo := weather.For(store, tenant.MustParse("acme"))
	for i, device := range []string{"cellar-1", "roof-7", "roof-8"} {
		if err := repo.Put(ctx, tsdb.NewEntity("berlin", device), time.Now(), Reading{TempC: float64(20 + i)}); err != nil {
			log.Fatal(err)
		}
	}
	berlin := tsdb.NewPrefix("berlin")
	page, err := repo.Under(berlin).PageLatest(ctx, 2, "")
	for _, p := range page.Points {
		fmt.Println(p.Entity, p.Value.TempC)
	}
	page, err = repo.Under(berlin).PageLatest(ctx, 2, page.Next)
	fmt.Printf("%v %q %v\n", page.Points[0].Entity, page.Next, err)
	// Output:
	// berlin/cellar-1 20
	// berlin/roof-7 21
	// berlin/roof-8 "" <nil>
}

// Only the names, without the points.
func ExampleEntityPage() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, weather); err != nil {
		log.Fatal(err)
	}
	repo := weather.For(store, tenant.MustParse("acme"))
	if err := repo.Put(ctx, tsdb.NewEntity("berlin", "roof-7"), time.Now(), Reading{TempC: 20}); err != nil {
		log.Fatal(err)
	}
	page, err := repo.Under(tsdb.AllEntities()).PageEntities(ctx, 100, "")
	fmt.Println(page.Entities, page.Next == "", err)
	// Output: [berlin/roof-7] true <nil>
}

// All events of a user on a day: two events at one instant have their own IDs, and an event that is stored twice
// appears once.
func ExampleRepository_WithID() {
	events := tsdb.MustDefine("events", tsdb.Key("user"), codec.String(), tsdb.SchemaOptions{Identity: true})
	store := open(events)
	defer store.Close()
	ctx := context.Background()
	repo := events.For(store, tenant.MustParse("acme"))
	ada := tsdb.NewEntity("ada")
	for _, e := range []struct{ id, what string }{{"e-1", "sign in"}, {"e-2", "order"}, {"e-2", "order"}} {
		if err := repo.WithID(e.id).Put(ctx, ada, noon, e.what); err != nil {
			log.Fatal(err)
		}
	}
	for p, err := range repo.Range(ctx, ada, tsdb.Since(noon.Truncate(24*time.Hour))) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(p.ID, p.Value)
	}
	// Output:
	// e-1 sign in
	// e-2 order
}
