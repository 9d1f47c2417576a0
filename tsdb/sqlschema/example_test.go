package sqlschema_test

import (
	"context"
	"fmt"
	"log"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/sqlschema"
)

// Let SQL read the payloads of a dataset. The embedded engine stores bundles but has no SQL; on Cloud Bigtable, this query works then.
func ExampleEnsure() {
	ctx := context.Background()
	store, err := embedded.OpenMemory(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	trips := tsdb.MustDefine("trips", tsdb.Key("truck"), codec.Proto[*durationpb.Duration](), tsdb.SchemaOptions{})
	if err := store.Ensure(ctx, trips); err != nil {
		log.Fatal(err)
	}
	if err := sqlschema.Ensure(ctx, store, "payloads", trips); err != nil {
		log.Fatal(err)
	}
	fmt.Println("SELECT CAST(keep['p:pb'] AS `payloads.google.protobuf.Duration`).seconds FROM tidemark WHERE STARTS_WITH(_key, 'acme#trips#')")
	// Output: SELECT CAST(keep['p:pb'] AS `payloads.google.protobuf.Duration`).seconds FROM tidemark WHERE STARTS_WITH(_key, 'acme#trips#')
}
