package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Keep the last five versions of a setting, and nothing else.
func ExampleHead() {
	settings := tsdb.MustDefine("settings", tsdb.Key("user", "setting"), codec.String(), tsdb.SchemaOptions{
		Precision: tsdb.Milliseconds,
		Head:      tsdb.Head{Points: 5, Only: true},
	})
	store := open(settings)
	defer store.Close()
	ctx := context.Background()
	repo := settings.For(store, tenant.MustParse("acme"))
	theme := tsdb.NewEntity("ada", "theme")
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for i, v := range []string{"light", "dark", "blue", "green", "dark", "light", "red"} {
		if err := repo.Put(ctx, theme, noon.Add(time.Duration(i)*time.Hour), v); err != nil {
			fmt.Println(err)
		}
	}
	late := repo.Put(ctx, theme, noon.Add(-time.Hour), "late")
	for p, err := range repo.Range(ctx, theme, tsdb.AllTime()) {
		fmt.Println(p.Time.Format(time.TimeOnly), p.Value, err)
	}
	_, err := repo.Get(ctx, theme, noon)
	fmt.Println(late, errors.Is(err, tsdb.ErrNotFound))
	// Output:
	// 18:00:00 red <nil>
	// 17:00:00 light <nil>
	// 16:00:00 dark <nil>
	// 15:00:00 green <nil>
	// 14:00:00 blue <nil>
	// <nil> true
}

// Store all points, and also keep the newest three of each device in one row. Reads of many devices take one request.
func ExampleHead_besidePoints() {
	readings := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{
		Precision: tsdb.Milliseconds,
		Head:      tsdb.Head{Points: 3},
	})
	store := open(readings)
	defer store.Close()
	ctx := context.Background()
	repo := readings.For(store, tenant.MustParse("acme"))
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	devices := []tsdb.Entity{tsdb.NewEntity("berlin", "roof-7"), tsdb.NewEntity("paris", "cellar-1")}
	for i := range 10 {
		for n, d := range devices {
			if err := repo.Put(ctx, d, noon.Add(time.Duration(i)*time.Minute), float64(10*n+i)); err != nil {
				fmt.Println(err)
			}
		}
	}
	if err := repo.Delete(ctx, devices[0], noon.Add(9*time.Minute)); err != nil { // this updates the head
		fmt.Println(err)
	}
	histories, err := repo.LatestMany(ctx, devices, 3) // one request, one row per device
	for _, h := range histories {
		for _, p := range h.Points {
			fmt.Print(p.Time.Format("15:04 "), p.Value, "  ")
		}
		fmt.Println(h.Entity)
	}
	fmt.Println(err)
	// Output:
	// 12:08 8  12:07 7  12:06 6  berlin/roof-7
	// 12:09 19  12:08 18  12:07 17  paris/cellar-1
	// <nil>
}
