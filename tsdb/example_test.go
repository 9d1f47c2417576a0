package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// Reading is what the examples measure.
type Reading struct {
	TempC    float64 `json:"temp_c"`
	Humidity float64 `json:"humidity"`
}

// weather is what the examples store it as.
var weather = tsdb.MustDefine("weather", tsdb.Key("site", "device"), codec.JSON[Reading](), tsdb.SchemaOptions{})

// open returns a store for an example.
func open(datasets ...tsdb.Dataset) *tsdb.Store {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Ensure(ctx, datasets...); err != nil {
		log.Fatal(err)
	}
	return store
}

// Store points, read the latest one, and read as another tenant, who has none.
func Example() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{}) // or embedded.Open(ctx, "./data"), or tsdb.Open on Cloud Bigtable
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, weather); err != nil {
		log.Fatal(err)
	}

	acme := weather.For(store, tenant.MustParse("acme"))
	roof := tsdb.NewEntity("berlin", "roof-7")
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for i := range 3 {
		if err := acme.Put(ctx, roof, noon.Add(time.Duration(i)*time.Minute), Reading{TempC: 21.5 + float64(i), Humidity: 40}); err != nil {
			log.Fatal(err)
		}
	}

	p, err := acme.Latest(ctx, roof)
	fmt.Println(p.Time.Format(time.TimeOnly), p.Value, err)

	_, err = weather.For(store, tenant.MustParse("acme2")).Latest(ctx, roof)
	fmt.Println(err)
	// Output:
	// 12:02:00 {23.5 40} <nil>
	// tsdb: not found
}

func ExampleRepository() {
	store := open(weather)
	defer store.Close()
	ctx := context.Background()
	repo := weather.For(store, tenant.MustParse("acme"))
	roof := tsdb.NewEntity("berlin", "roof-7")
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

	fmt.Println(repo.Put(ctx, roof, at, Reading{TempC: 21.5}))
	fmt.Println(repo.PutIfAbsent(ctx, roof, at, Reading{TempC: 99}))
	p, err := repo.Get(ctx, roof, at)
	fmt.Println(p.Value.TempC, err)
	fmt.Println(repo.Delete(ctx, roof, at))
	_, err = repo.Get(ctx, roof, at)
	fmt.Println(errors.Is(err, tsdb.ErrNotFound))
	// Output:
	// <nil>
	// false <nil>
	// 21.5 <nil>
	// <nil>
	// true
}

// A test can fake a program's own interface over a repository: points and errors are plain values.
func ExampleRepository_fake() {
	type latest interface {
		Latest(ctx context.Context, e tsdb.Entity, opts ...tsdb.ReadOption) (tsdb.Point[Reading], error)
	}
	var _ latest = (*tsdb.Repository[Reading])(nil)

	var repo latest = fake{"roof-7": 21.5}
	p, err := repo.Latest(context.Background(), tsdb.NewEntity("berlin", "roof-7"))
	fmt.Println(p.Value.TempC, err)
	// Output: 21.5 <nil>
}

type fake map[string]float64

func (f fake) Latest(_ context.Context, e tsdb.Entity, _ ...tsdb.ReadOption) (tsdb.Point[Reading], error) {
	temp, ok := f[e.Parts()[1]]
	if !ok {
		return tsdb.Point[Reading]{}, tsdb.ErrNotFound
	}
	return tsdb.Point[Reading]{Entity: e, Value: Reading{TempC: temp}}, nil
}

func ExampleRepository_AsOf() {
	store := open(weather)
	defer store.Close()
	ctx := context.Background()
	repo := weather.For(store, tenant.MustParse("acme"))
	roof := tsdb.NewEntity("berlin", "roof-7")
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	if err := errors.Join(repo.Put(ctx, roof, noon, Reading{TempC: 21}), repo.Put(ctx, roof, noon.Add(time.Hour), Reading{TempC: 24})); err != nil {
		log.Fatal(err)
	}
	p, err := repo.AsOf(ctx, roof, noon.Add(30*time.Minute))
	fmt.Println(p.Time.Format(time.TimeOnly), p.Value.TempC, err)
	// Output: 12:00:00 21 <nil>
}

func ExampleRepository_DeletePrefix() {
	store := open(weather)
	defer store.Close()
	ctx := context.Background()
	repo := weather.For(store, tenant.MustParse("acme"))
	for _, device := range []string{"roof-7", "cellar-1"} {
		if err := repo.Put(ctx, tsdb.NewEntity("berlin", device), time.Now(), Reading{}); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(repo.DeletePrefix(ctx, tsdb.NewPrefix("berlin")))
	// Output: 2 <nil>
}

func ExampleSchema() {
	// Moving from JSON to another format without a rewrite: new points are written in the new one, old ones are still
	// read.
	type V2 struct{ Temp float64 }
	v2, err := tsdb.Define("weather", tsdb.Key("site", "device"),
		codec.Fallback(codec.Tagged("v2", codec.JSON[V2]()), codec.Convert(codec.JSON[Reading](),
			func(r Reading) (V2, error) { return V2{r.TempC}, nil }, nil)),
		tsdb.SchemaOptions{})
	if err != nil {
		log.Fatal(err)
	}
	store := open(weather)
	defer store.Close()
	ctx, acme, roof := context.Background(), tenant.MustParse("acme"), tsdb.NewEntity("berlin", "roof-7")
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	old := weather.For(store, acme).Put(ctx, roof, noon, Reading{TempC: 21})
	if err := errors.Join(old, store.Ensure(ctx, v2), v2.For(store, acme).Put(ctx, roof, noon.Add(time.Minute), V2{22})); err != nil {
		log.Fatal(err)
	}
	points, err := v2.For(store, acme).LatestN(ctx, roof, 2)
	fmt.Println(points[0].Value, points[1].Value, err)
	// Output: {22} {21} <nil>
}

func ExampleSchema_FromContext() {
	store := open(weather)
	defer store.Close()
	ctx := tenant.NewContext(context.Background(), tenant.MustParse("acme"))
	repo, err := weather.FromContext(ctx, store)
	fmt.Println(repo.Tenant(), err)

	// A repository rejects a context with another tenant.
	_, err = weather.For(store, tenant.MustParse("globex")).Latest(ctx, tsdb.NewEntity("berlin", "roof-7"))
	fmt.Println(errors.Is(err, tsdb.ErrTenantMismatch))
	// Output:
	// acme <nil>
	// true
}

func ExampleSchemaOptions() {
	_, err := tsdb.Define("positions", tsdb.Key("fleet", "truck"), codec.JSON[Reading](), tsdb.SchemaOptions{
		Retention: gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)},
		Precision: tsdb.Milliseconds,
		MaxFuture: time.Hour, // a device with a wrong clock does not stay the latest for years
	})
	fmt.Println(err)
	_, err = tsdb.Define("positions", tsdb.Key("fleet", "truck"), codec.JSON[Reading](), tsdb.SchemaOptions{
		Retention: gc.Class{Name: "two", Policy: gc.MaxVersions(2)},
	})
	fmt.Println(errors.Is(err, tsdb.ErrInvalid))
	// Output:
	// <nil>
	// true
}

func ExampleStore() {
	store := open(weather)
	ctx := context.Background()
	fmt.Println(store.Ping(ctx), store.Verify(ctx, weather))
	fmt.Println(store.Close())
	fmt.Println(store.Ping(ctx))
	// Output:
	// <nil> <nil>
	// <nil>
	// tsdb: store is closed
}

func ExampleDataset() {
	humidity := tsdb.MustDefine("humidity", tsdb.Key("room"), codec.Float64(), tsdb.SchemaOptions{})
	all := []tsdb.Dataset{weather, humidity} // they may have different types
	store := open(all...)
	defer store.Close()
	fmt.Println(store.Verify(context.Background(), all...), all[1].Name())
	// Output: <nil> humidity
}

func ExampleConfig() {
	_, err := tsdb.Open(context.Background(), tsdb.Config{Project: "my-project", Instance: "iot", Table: "bad/name"})
	fmt.Println(err)
	// Output: tsdb: invalid input: table is "bad/name"; want 1 to 50 bytes of A-Z a-z 0-9 _ . -, the first one of A-Z a-z 0-9 _
}

// A program can pass in its own client. With DialOptions, the outcome of every write is known.
func ExampleOptions() {
	ctx := context.Background()
	conn, err := grpc.NewClient("localhost:8086", append(tsdb.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		log.Fatal(err)
	}
	client, err := bigtable.NewClientWithConfig(ctx, "my-project", "my-instance", tsdb.ClientConfig(), option.WithGRPCConn(conn))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	store, err := tsdb.New(client, "iot", tsdb.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: 2 * time.Second}}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	fmt.Println(store.Ensure(ctx, weather))
	// Output: tsdb: the store has no admin client
}

func ExampleTimeouts() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Read: time.Second, Scan: time.Minute}}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	fmt.Println(store.Ensure(ctx, weather))
	// Output: <nil>
}
