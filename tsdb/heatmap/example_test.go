package heatmap_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
)

// A recorder sees all requests of a store, and its recording is saved for "tidectl heatmap".
func Example() {
	ctx := context.Background()
	recorder, err := heatmap.NewRecorder(heatmap.Options{})
	if err != nil {
		log.Fatal(err)
	}
	store, err := embedded.New(ctx, embedded.Options{DialOptions: recorder.DialOptions()})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	weather := tsdb.MustDefine("weather", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{})
	if err := store.Ensure(ctx, weather); err != nil {
		log.Fatal(err)
	}
	before := recorder.Recording().Totals()
	if err := weather.For(store, tenant.MustParse("acme")).Put(ctx, tsdb.NewEntity("berlin", "roof-7"), time.Now(), 21.5); err != nil {
		log.Fatal(err)
	}

	recording := recorder.Recording()
	fmt.Println(recording.Totals().Writes-before.Writes, "row written")

	dir, err := os.MkdirTemp("", "heatmap")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := recording.Save(filepath.Join(dir, "hour.heat")); err != nil {
		log.Fatal(err)
	}
	// Output: 1 row written
}
