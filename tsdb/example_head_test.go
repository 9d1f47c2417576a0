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

// Beside all points, keep the newest three of each device in one row.
func ExampleHead_besidePoints() {
	readings := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{
		Precision: tsdb.Milliseconds,
		Head:      tsdb.Head{Points: 3},
	})
	store := open(readings)
	defer store.Close()
	ctx := context.Background()
	repo := readings.For(store, tenant.MustParse("acme"))
	roof := tsdb.NewEntity("berlin", "roof-7")
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for i := range 10 {
		if err := repo.Put(ctx, roof, noon.Add(time.Duration(i)*time.Minute), float64(i)); err != nil {
			fmt.Println(err)
		}
	}
	if err := repo.Delete(ctx, roof, noon.Add(9*time.Minute)); err != nil { // which the head is told, too
		fmt.Println(err)
	}
	points, err := repo.LatestN(ctx, roof, 3) // one row
	for _, p := range points {
		fmt.Println(p.Time.Format(time.TimeOnly), p.Value)
	}
	history, err2 := repo.LatestN(ctx, roof, 100) // the points' own rows
	fmt.Println(len(history), err, err2)
	// Output:
	// 12:08:00 8
	// 12:07:00 7
	// 12:06:00 6
	// 9 <nil> <nil>
}
