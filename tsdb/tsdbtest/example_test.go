package tsdbtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var temps = tsdb.MustDefine("temps", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{})

// run replaces the testing package, so that the examples show output.
func run(f func(t testing.TB)) {
	t := &stand{}
	f(t)
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}

type stand struct {
	testing.TB
	cleanups []func()
}

func (t *stand) Helper()                        {}
func (t *stand) Cleanup(f func())               { t.cleanups = append(t.cleanups, f) }
func (t *stand) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// The response to a write is lost; the store reads the row and reports the true outcome.
func Example() {
	run(func(t testing.TB) {
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, temps)
		conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.MutateRow).Times(1))

		err := temps.For(store, tenant.MustParse("acme")).Put(context.Background(), tsdb.NewEntity("roof-7"), time.Now(), 21.5)
		fmt.Println(err, conn.Counts().Calls[tsdbtest.MutateRow])
	})
	// Output: <nil> 2
}

func ExampleConn() {
	run(func(t testing.TB) {
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, temps)
		repo := temps.For(store, tenant.MustParse("acme"))
		end := conn.Outage()
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_, err := repo.Latest(ctx, tsdb.NewEntity("roof-7"))
		fmt.Println(err != nil)
		end()
		_, err = repo.Latest(context.Background(), tsdb.NewEntity("roof-7"))
		fmt.Println(err)
	})
	// Output:
	// true
	// tsdb: not found
}

func ExampleCounts() {
	run(func(t testing.TB) {
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, temps)
		repo := temps.For(store, tenant.MustParse("acme"))
		for i := range 100 {
			if err := repo.Put(context.Background(), tsdb.NewEntity("roof-7"), time.Unix(int64(i), 0), 21.5); err != nil {
				fmt.Println(err)
			}
		}
		conn.Reset()
		_, err := repo.LatestN(context.Background(), tsdb.NewEntity("roof-7"), 3)
		c := conn.Counts()
		fmt.Println(err, c.Calls[tsdbtest.ReadRows], c.RowsReturned, c.RowsSeen)
	})
	// Output: <nil> 1 3 3
}

func ExampleFault() {
	run(func(t testing.TB) {
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, temps)
		repo := temps.For(store, tenant.MustParse("acme"))
		conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.MutateRow).Skip(1).Times(1))
		for range 3 {
			err := repo.Put(context.Background(), tsdb.NewEntity("roof-7"), time.Now(), 21.5)
			fmt.Println(errors.Is(err, tsdb.ErrRejected))
		}
	})
	// Output:
	// false
	// true
	// false
}

func ExampleMethod() {
	fmt.Println(tsdbtest.ReadRows, tsdbtest.MutateRow, tsdbtest.MutateRows, tsdbtest.CheckAndMutateRow)
	// Output: ReadRows MutateRow MutateRows CheckAndMutateRow
}

func ExampleOptions() {
	run(func(t testing.TB) {
		now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
		early := tsdb.MustDefine("early", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{MaxFuture: time.Minute})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}}, early)
		err := early.For(store, tenant.MustParse("acme")).Put(context.Background(), tsdb.NewEntity("roof-7"), now.Add(time.Hour), 21.5)
		fmt.Println(errors.Is(err, tsdb.ErrTooFarAhead))
	})
	// Output: true
}
