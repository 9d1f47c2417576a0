package transfer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
)

var temps = tsdb.MustDefine("temps", tsdb.Key("device"), codec.JSON[float64](), tsdb.SchemaOptions{})

// exported returns the file of a tenant with three points.
func exported(ctx context.Context) []byte {
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, temps); err != nil {
		log.Fatal(err)
	}
	id := tenant.MustParse("acme")
	for i := range 3 {
		at := time.Date(2026, 6, 1, 12, i, 0, 0, time.UTC)
		if err := temps.For(store, id).Put(ctx, tsdb.NewEntity("roof-7"), at, 20.5+float64(i)); err != nil {
			log.Fatal(err)
		}
	}
	var file bytes.Buffer
	if _, err := transfer.Export(ctx, store, id, &file, transfer.ExportOptions{}); err != nil {
		log.Fatal(err)
	}
	return file.Bytes()
}

func ExampleExport() {
	file := exported(context.Background())
	fmt.Printf("%.104s…\n", bytes.Split(file, []byte("\n"))[1])
	// Output:
	// {"dataset":"temps","entity":["roof-7"],"time":"2026-06-01T12:02:00Z","class":"keep","tag":"json","json":…
}

// A tenant's points are imported into a store without their dataset.
func ExampleImport() {
	ctx := context.Background()
	file := exported(ctx)
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	id := tenant.MustParse("acme")
	got, err := transfer.Import(ctx, store, id, bytes.NewReader(file), transfer.ImportOptions{Create: true})
	if err != nil {
		log.Fatal(err)
	}
	p, err := temps.For(store, id).Latest(ctx, tsdb.NewEntity("roof-7"))
	fmt.Println(got.Stored, p.Value, err)
	// Output: 3 22.5 <nil>
}

func ExampleCheck() {
	ctx := context.Background()
	held, err := transfer.Check(ctx, bytes.NewReader(exported(ctx)), nil)
	fmt.Println(held.Points, held.Datasets, err)
	// Output: 3 map[temps:3] <nil>
}

// A file of an interrupted export contains where to continue.
func ExampleRecover() {
	ctx := context.Background()
	file := exported(ctx)
	at, complete, err := transfer.Recover(ctx, bytes.NewReader(file[:len(file)-10]), nil)
	fmt.Println(at.Points, at.Offset < int64(len(file)), complete, err)
	// Output: 3 true false <nil>
}

func ExampleLineError() {
	ctx := context.Background()
	file := bytes.Replace(exported(ctx), []byte("21.5"), []byte("91.5"), 1)
	_, err := transfer.Check(ctx, bytes.NewReader(file), nil)
	if le, ok := errors.AsType[*transfer.LineError](err); ok {
		fmt.Println(le.Line, errors.Is(err, transfer.ErrDamaged))
	}
	// Output: 3 true
}

// Export only some of a tenant's points, and report progress.
func ExampleExportOptions() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	id := tenant.MustParse("acme")
	file := exported(ctx)
	if _, err := transfer.Import(ctx, store, id, bytes.NewReader(file), transfer.ImportOptions{Create: true}); err != nil {
		log.Fatal(err)
	}
	var part bytes.Buffer
	got, err := transfer.Export(ctx, store, id, &part, transfer.ExportOptions{
		Datasets: []string{"temps"},
		Entities: []tsdb.Entity{tsdb.NewEntity("roof-7")},
		Interval: tsdb.Since(time.Date(2026, 6, 1, 12, 1, 0, 0, time.UTC)),
		Progress: func(e transfer.Exported) { fmt.Println("so far:", e.Points) },
	})
	fmt.Println(got.Points, err)
	// Output:
	// so far: 2
	// 2 <nil>
}

func ExampleExported() {
	ctx := context.Background()
	held, err := transfer.Check(ctx, bytes.NewReader(exported(ctx)), nil)
	text, _ := json.Marshal(held)
	fmt.Println(string(text), err)
	// Output: {"points":3,"datasets":{"temps":3},"unreadable":0,"lines":6,"bytes":909} <nil>
}

// Import a file of one tenant into another, and check it first.
func ExampleImportOptions() {
	ctx := context.Background()
	file := exported(ctx)
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	beta := tenant.MustParse("beta")
	_, err = transfer.Import(ctx, store, beta, bytes.NewReader(file), transfer.ImportOptions{Create: true})
	fmt.Println(errors.Is(err, transfer.ErrTenant))
	for _, dry := range []bool{true, false} {
		got, err := transfer.Import(ctx, store, beta, bytes.NewReader(file), transfer.ImportOptions{OtherTenant: true, Create: true, DryRun: dry})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(dry, got.Stored, got.Complete)
	}
	// Output:
	// true
	// true 3 true
	// false 3 true
}

// The result accounts for each point of a file; points of an erased entity are skipped.
func ExampleImported() {
	ctx := context.Background()
	file := exported(ctx)
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	id := tenant.MustParse("acme")
	if err := store.Ensure(ctx, temps); err != nil {
		log.Fatal(err)
	}
	_, err = tenants.EraseEntity(ctx, store, id, "temps", map[string]string{"device": "roof-7"}, tenants.EraseOptions{Settle: 1})
	if err != nil {
		log.Fatal(err)
	}
	got, err := transfer.Import(ctx, store, id, bytes.NewReader(file), transfer.ImportOptions{})
	fmt.Println(got.Tenant, got.Points, got.Stored, got.Erased, got.Complete, err)
	// Output: acme 3 0 3 true <nil>
}

// An interrupted export continues after its last whole block.
func ExampleCheckpoint() {
	ctx := context.Background()
	file := exported(ctx)
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	id := tenant.MustParse("acme")
	if _, err := transfer.Import(ctx, store, id, bytes.NewReader(file), transfer.ImportOptions{Create: true}); err != nil {
		log.Fatal(err)
	}

	at, complete, err := transfer.Recover(ctx, bytes.NewReader(file[:len(file)-10]), nil) // without the end of the last line
	if err != nil || complete {
		log.Fatal(complete, err)
	}
	rest := bytes.NewBuffer(file[:at.Offset:at.Offset])
	got, err := transfer.Export(ctx, store, id, rest, transfer.ExportOptions{Continue: at})
	fmt.Println(at.Line, at.Points, got.Points, bytes.Equal(rest.Bytes(), file), err)
	// Output: 5 3 3 true <nil>
}
