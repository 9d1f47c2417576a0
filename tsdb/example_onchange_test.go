package tsdb_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// A sensor reports every ten seconds. Only changes by more than half a degree are stored, with the last point before
// each, and a value that stays is stored again every five minutes.
func ExampleSink_OnChange() {
	ctx := context.Background()
	store := open(weather)
	defer store.Close()
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	repo := weather.For(store, tenant.MustParse("acme"))
	changes := repo.Via(w).OnChange(tsdb.OnChange[Reading]{
		Same:    func(last, next Reading) bool { return math.Abs(next.TempC-last.TempC) <= 0.5 },
		AtLeast: 5 * time.Minute,
	})
	roof := tsdb.NewEntity("berlin", "roof-7")
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for i := range 60 {
		temp := 21.5
		if i >= 42 { // from 12:07
			temp = 23
		}
		if err := changes.Enqueue(ctx, roof, noon.Add(time.Duration(i)*10*time.Second), Reading{TempC: temp}); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Close(ctx); err != nil { // stores the newest point, too
		log.Fatal(err)
	}
	for p, err := range repo.Range(ctx, roof, tsdb.AllTime(), tsdb.OldestFirst) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(p.Time.Format(time.TimeOnly), p.Value.TempC)
	}
	fmt.Println(w.Stats().Stored, "of 60 stored")
	// Output:
	// 12:00:00 21.5
	// 12:05:00 21.5
	// 12:06:50 21.5
	// 12:07:00 23
	// 12:09:50 23
	// 5 of 60 stored
}
