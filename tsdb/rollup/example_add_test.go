package rollup_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Click is a view of an advertisement, which is counted and not stored as a point.
type Click struct{ Cents float64 }

// dailyViews returns a rollup of views by day, kept for a year.
func dailyViews(mode rollup.Mode) (*rollup.Rollup[Click], *tsdb.Schema[Click]) {
	day := rollup.MustDefine("day", window.Days(1), []rollup.Measure[Click]{
		{Name: "cents", Of: func(c Click) (float64, bool) { return c.Cents, true }, Decimals: 2, Max: 1000, Aggregates: window.Sum},
	}, rollup.Options{Mode: mode, Retention: gc.Class{Name: "y1", Policy: gc.MaxAge(366 * 24 * time.Hour)}})
	return day, tsdb.MustDefine("views", tsdb.Key("ip"), codec.JSON[Click](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{day}})
}

func exampleStore(schema tsdb.Dataset) (store *tsdb.Store, dir string, end func()) {
	dir, err := os.MkdirTemp("", "rollup")
	if err != nil {
		panic(err)
	}
	store, err = embedded.Open(context.Background(), dir+"/store")
	if err != nil {
		panic(err)
	}
	if err := store.Ensure(context.Background(), schema); err != nil {
		panic(err)
	}
	return store, dir, func() {
		_ = store.Close()
		_ = os.RemoveAll(dir)
	}
}

// Daily views of advertisements by IP address. The writer's journal keeps the counts exact through lost responses and
// crashes. (Row keys appear in logs: hash the address of a person.)
func ExampleAdder() {
	ctx := context.Background()
	day, views := dailyViews(rollup.ByStream)
	store, dir, end := exampleStore(views)
	defer end()
	w, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: dir + "/journal"}})
	if err != nil {
		panic(err)
	}
	repo := views.For(store, tenant.MustParse("acme"))
	in := rollup.NewAdder(day, repo, w)
	noon := time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	for range 3 {
		if err := in.Add(ctx, tsdb.NewEntity("192.0.2.1"), noon, Click{Cents: 1.25}); err != nil {
			panic(err)
		}
	}
	if err := w.Close(ctx); err != nil { // everything is delivered
		panic(err)
	}
	b, err := rollup.For(day, repo).Total(ctx, tsdb.NewEntity("192.0.2.1"), tsdb.Between(noon.Add(-24*time.Hour), noon))
	fmt.Println(b.Points, "views", err)
	// Output: 3 views <nil>
}

// A queue delivers a message twice; it counts once.
func ExampleAdder_AddMessage() {
	ctx := context.Background()
	day, views := dailyViews(rollup.ByMessage)
	store, _, end := exampleStore(views)
	defer end()
	in := rollup.NewAdder(day, views.For(store, tenant.MustParse("acme")), nil)
	now := time.Now()
	for range 2 {
		added, err := in.AddMessage(ctx, "message-1", tsdb.NewEntity("192.0.2.1"), now, Click{Cents: 1.25})
		fmt.Println(added, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

// Events without an ID are added, all events of a call together.
func ExampleAdder_AddMany() {
	ctx := context.Background()
	day, views := dailyViews(rollup.Once)
	store, _, end := exampleStore(views)
	defer end()
	in := rollup.NewAdder(day, views.For(store, tenant.MustParse("acme")), nil)
	now := time.Now()
	outcomes, err := in.AddMany(ctx, []tsdb.Point[Click]{
		{Entity: tsdb.NewEntity("192.0.2.1"), Time: now, Value: Click{Cents: 1.25}},
		{Entity: tsdb.NewEntity("192.0.2.1"), Time: now, Value: Click{Cents: 5000}},
	})
	for _, o := range outcomes {
		fmt.Println(o.State)
	}
	fmt.Println(err != nil)
	// Output:
	// stored
	// rejected
	// true
}

// Events that are not stored as points have entities, too.
func ExampleReader_Entities() {
	ctx := context.Background()
	day, views := dailyViews(rollup.Once)
	store, _, end := exampleStore(views)
	defer end()
	repo := views.For(store, tenant.MustParse("acme"))
	in := rollup.NewAdder(day, repo, nil)
	for _, address := range []string{"192.0.2.1", "192.0.2.7", "192.0.2.1"} {
		if err := in.Add(ctx, tsdb.NewEntity(address), time.Now(), Click{Cents: 1.25}); err != nil {
			panic(err)
		}
	}
	for e, err := range rollup.For(day, repo).Entities(ctx, tsdb.AllEntities()) {
		fmt.Println(e, err)
	}
	// Output:
	// 192.0.2.1 <nil>
	// 192.0.2.7 <nil>
}
