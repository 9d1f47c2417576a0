// Hourly stores a day of temperatures and reads their hourly means from a rollup, which follows late points. Copy it,
// and replace Reading and its measure by yours:
//
//	go run ./examples/hourly
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Reading is the payload of a point.
type Reading struct {
	TempC float64 `json:"temp_c"`
}

// hours has the temperatures of each hour, stored in hundredths of a degree.
var hours = rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[Reading]{
	{Name: "temp_c", Of: func(r Reading) (float64, bool) { return r.TempC, true }, Decimals: 2, Max: 100},
}, rollup.Options{})

var readings = tsdb.MustDefine("readings", tsdb.Key("device"), codec.JSON[Reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hours}})

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	store, err := embedded.New(ctx, embedded.Options{}) // in a folder: embedded.Open; on Cloud Bigtable: tsdb.Open
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.Ensure(ctx, readings); err != nil {
		return err
	}
	repo := readings.For(store, tenant.MustParse("acme"))
	roof := tsdb.NewEntity("roof-7")
	midnight := time.Now().UTC().Truncate(24 * time.Hour).Add(-24 * time.Hour) // of yesterday
	var points []tsdb.Point[Reading]
	for minute := range 24 * 60 {
		at := midnight.Add(time.Duration(minute) * time.Minute)
		points = append(points, tsdb.Point[Reading]{Entity: roof, Time: at, Value: Reading{TempC: 10 + float64(at.Hour())/2}})
	}
	if _, err := repo.PutMany(ctx, points); err != nil {
		return err
	}

	// A worker computes the buckets in the background: go worker.Run(ctx). Reads are also right without one: they
	// compute what is missing.
	if err := show(ctx, out, repo, roof, midnight); err != nil {
		return err
	}
	late := midnight.Add(3*time.Hour + 30*time.Second)
	if err := repo.Put(ctx, roof, late, Reading{TempC: 90}); err != nil {
		return err
	}
	fmt.Fprintln(out, "after a late point of 90 degrees at", late.Format(time.TimeOnly))
	return show(ctx, out, repo, roof, midnight)
}

// show prints the hours from two to five.
func show(ctx context.Context, out io.Writer, repo *tsdb.Repository[Reading], e tsdb.Entity, midnight time.Time) error {
	in := tsdb.Between(midnight.Add(2*time.Hour), midnight.Add(5*time.Hour))
	for b, err := range rollup.For(hours, repo).Buckets(ctx, e, in, tsdb.OldestFirst) {
		if err != nil {
			return err
		}
		temp := b.Values[0]
		fmt.Fprintf(out, "%s  %3d points  mean %5.2f  max %5.2f\n", b.Start.Format(time.TimeOnly), b.Points, temp.Mean, temp.Max)
	}
	return nil
}
