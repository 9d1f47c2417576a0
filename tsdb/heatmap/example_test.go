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

// A recorder sees all requests of a store, and its recording is saved for "tidectl heatmap" or drawn at once.
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
	fmt.Println(recording.Totals().Writes-before.Writes, "row written,", len(recording.Findings()), "findings")

	dir, err := os.MkdirTemp("", "heatmap")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := recording.Save(filepath.Join(dir, "hour.heat")); err != nil {
		log.Fatal(err)
	}
	page, err := os.OpenFile(filepath.Join(dir, "hour.html"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	defer page.Close()
	if err := recording.WriteHTML(page, heatmap.PictureOptions{By: heatmap.ByTenant}); err != nil {
		log.Fatal(err)
	}
	// Output: 1 row written, 0 findings
}

// Recordings of all processes that use a table are one picture.
func ExampleMerge() {
	one, _ := heatmap.NewRecorder(heatmap.Options{})
	other, _ := heatmap.NewRecorder(heatmap.Options{})
	all, err := heatmap.Merge(one.Recording(), other.Recording())
	if err != nil {
		log.Fatal(err)
	}
	if err := all.WriteText(os.Stdout, heatmap.PictureOptions{}); err != nil {
		log.Fatal(err)
	}
	// Output: nothing was recorded
}

// Tablets that Bigtable reports as hot are outlined on a recording.
func ExampleTablet() {
	hot := heatmap.Tablet{First: "acme#readings#berlin#", Last: "acme#readings#hamburg#9", CPU: 0.93}
	fmt.Println(hot.Tenant(), hot.Dataset(), hot.Overlaps("acme#readings#dresden#"), hot.Overlaps("acme#readings#munich#"))
	fmt.Println(hot)
	// Output:
	// acme readings true false
	// acme#readings#berlin# to acme#readings#hamburg#9, 93% of its server
}
