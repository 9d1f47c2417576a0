package adopt_test

import (
	"context"
	"fmt"
	"log"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/adopt"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// telemetry returns a table of another program and a store, in one instance. On Cloud Bigtable:
// bigtable.NewClientWithConfig with tsdb.ClientConfig and tsdb.DialOptions, and tsdb.Open.
func telemetry(ctx context.Context) (table bigtable.TableAPI, store *tsdb.Store, end func()) {
	server := must(local.Open(engine.Options{GCInterval: -1}))
	client, admin, err := local.Clients(ctx, must(server.Dial(tsdb.DialOptions()...)))
	if err != nil {
		log.Fatal(err)
	}
	families := map[string]bigtable.GCPolicy{"m": bigtable.NoGcPolicy()}
	if err := admin.CreateTableFromConf(ctx, &bigtable.TableConf{TableID: "telemetry", Families: families}); err != nil {
		log.Fatal(err)
	}
	table = client.OpenTable("telemetry")
	for i := range 3 {
		m := bigtable.NewMutation()
		m.Set("m", "bar", bigtable.ServerTime, fmt.Append(nil, 4+i))
		if err := table.Apply(ctx, fmt.Sprintf("pump-7#%d", 1780272000000+i*60000), m); err != nil {
			log.Fatal(err)
		}
	}
	store = must(tsdb.New(client, "tidemark", tsdb.Options{Admin: admin}))
	return table, store, func() {
		_ = store.Close()
		_ = client.Close()
		_ = server.Close()
	}
}

const telemetryMapping = `
table: telemetry
tenant: acme
dataset: {name: pressure}
key: {separator: "#", parts: [pump, time]}
time: {unit: ms, width: 13}
cells: written
value: {column: "m:bar", as: number}
`

// A table with the row keys pump#milliseconds is checked, copied and compared.
func Example() {
	ctx := context.Background()
	table, store, end := telemetry(ctx)
	defer end()

	mapping, err := adopt.Parse([]byte(telemetryMapping))
	if err != nil {
		log.Fatal(err)
	}
	source, err := adopt.Open(table, mapping)
	if err != nil {
		log.Fatal(err)
	}
	report, err := source.Check(ctx, store, adopt.CheckOptions{})
	if err != nil || report.Refused() {
		log.Fatal(report, err)
	}
	state, err := source.Copy(ctx, store, adopt.CopyOptions{Save: func(adopt.State) error { return nil /* as JSON, to a file */ }})
	if err != nil {
		log.Fatal(err)
	}
	verified, err := source.Verify(ctx, store, adopt.VerifyOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(state.Points, "points copied, same:", verified.Same())

	schema := tsdb.MustDefine("pressure", tsdb.Key("pump"), codec.Float64(), tsdb.SchemaOptions{Precision: tsdb.Milliseconds})
	p, err := schema.For(store, tenant.MustParse("acme")).Latest(ctx, tsdb.NewEntity("pump-7"))
	fmt.Println(p.Entity, p.Time.Format(time.RFC3339), p.Value, err)
	// Output:
	// 3 points copied, same: true
	// pump-7 2026-06-01T00:02:00Z 6 <nil>
}

// TestFileOfTheDocs checks that docs/adoption.md shows a mapping that is allowed.
func TestFileOfTheDocs(t *testing.T) {
	file := yamlBlock(t, "../../../docs/adoption.md")
	if _, err := adopt.Parse(file); err != nil {
		t.Errorf("docs/adoption.md shows a file with mistakes:\n%v", err)
	}
}
