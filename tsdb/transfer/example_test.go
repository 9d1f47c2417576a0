package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
)

var temps = tsdb.MustDefine("temps", tsdb.Key("device"), codec.JSON[float64](), tsdb.SchemaOptions{})

// exported returns the file of a tenant with three points.
func exported(ctx context.Context) []byte {
	store, err := embedded.OpenMemory(ctx)
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

// A tenant's points go into a store that has never heard of their dataset.
func ExampleImport() {
	ctx := context.Background()
	file := exported(ctx)
	store, err := embedded.OpenMemory(ctx)
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
	held, err := transfer.Check(ctx, bytes.NewReader(exported(ctx)))
	fmt.Println(held.Points, held.Datasets, err)
	// Output: 3 map[temps:3] <nil>
}

// A file of an export that was interrupted tells where to go on.
func ExampleRecover() {
	ctx := context.Background()
	file := exported(ctx)
	at, complete, err := transfer.Recover(ctx, bytes.NewReader(file[:len(file)-10]))
	fmt.Println(at.Points, at.Offset < int64(len(file)), complete, err)
	// Output: 3 true false <nil>
}

func ExampleLineError() {
	ctx := context.Background()
	file := bytes.Replace(exported(ctx), []byte("21.5"), []byte("91.5"), 1)
	_, err := transfer.Check(ctx, bytes.NewReader(file))
	if le, ok := errors.AsType[*transfer.LineError](err); ok {
		fmt.Println(le.Line, errors.Is(err, transfer.ErrDamaged))
	}
	// Output: 3 true
}
