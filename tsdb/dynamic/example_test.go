package dynamic_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// A tool lists what is stored in a table.
func ExampleDescribe() {
	ctx := context.Background()
	store, err := embedded.OpenMemory(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	stored(ctx, store) // another program has defined datasets

	for d, err := range store.Datasets(ctx) {
		if err != nil { // a damaged entry: the others follow
			fmt.Println(err)
			continue
		}
		of := dynamic.Describe(d)
		fmt.Println(of.Name, of.Key, of.Precision, of.Tags, of.Classes[0].Policy)
	}
	// Output:
	// doors [{building text} {floor int2}] ns [rec] never
	// readings [{site text} {device text}] ms [json] maxage=90d
}

// stored is what another program has done.
func stored(ctx context.Context, store *tsdb.Store) {
	readings := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[map[string]any](), tsdb.SchemaOptions{Retention: d90, Precision: tsdb.Milliseconds})
	doors := tsdb.MustDefine("doors", tsdb.Key("building").Int("floor", 2), codec.Records(), tsdb.SchemaOptions{})
	if err := store.Ensure(ctx, readings, doors); err != nil {
		log.Fatal(err)
	}
}
