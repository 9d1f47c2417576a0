// Protobuf stores protobuf messages. Copy it, and replace latlng.LatLng by a message of yours, which
// protoc-gen-go has generated:
//
//	go run ./examples/protobuf
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/type/latlng"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// positions are stored in the wire format: other programs and languages read them, and fields that this program does
// not know survive.
var positions = tsdb.MustDefine("positions", tsdb.Key("fleet", "van"), codec.Proto[*latlng.LatLng](), tsdb.SchemaOptions{})

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
	if err := store.Ensure(ctx, positions); err != nil {
		return err
	}
	repo := positions.For(store, tenant.MustParse("acme"))
	van := tsdb.NewEntity("north", "van-12")
	noon := time.Now().UTC().Truncate(time.Hour)
	for i := range 5 {
		at := noon.Add(time.Duration(i) * time.Minute)
		if err := repo.Put(ctx, van, at, &latlng.LatLng{Latitude: 52.5 + float64(i)/1000, Longitude: 13.4}); err != nil {
			return err
		}
	}
	newest, err := repo.LatestN(ctx, van, 2)
	if err != nil {
		return err
	}
	for _, p := range newest {
		fmt.Fprintf(out, "%s  minute %d  %.3f %.3f\n", p.Entity, p.Time.Sub(noon)/time.Minute, p.Value.GetLatitude(), p.Value.GetLongitude())
	}
	return nil
}
