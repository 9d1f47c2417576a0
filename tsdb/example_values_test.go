package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

func ExampleEntity() {
	e := tsdb.NewEntity("berlin", "roof #7")
	fmt.Println(e)
	fmt.Printf("%q\n", e.Parts())
	fmt.Println(e == tsdb.NewEntity("berlin", "roof #7"))
	// Output:
	// berlin/roof #7
	// ["berlin" "roof #7"]
	// true
}

func ExamplePrefix() {
	fmt.Printf("%q %q\n", tsdb.NewPrefix("berlin").Parts(), tsdb.AllEntities().Parts())
	// Output: ["berlin"] []
}

func ExampleKeyFields() {
	// Put groups first: all devices of a site can then be read and deleted together.
	s := tsdb.MustDefine("doors", tsdb.Key("site", "floor", "door"), codec.Int64(), tsdb.SchemaOptions{})
	fmt.Println(s.Name())
	// Output: doors
}

func ExampleKeyFields_Int() {
	// The stops of a line by number and level. Levels below ground sort before those above.
	s := tsdb.MustDefine("arrivals", tsdb.Key("line").Uint("stop", 5).Int("level", 2), codec.Int64(), tsdb.SchemaOptions{})
	e, err := s.Entity("U8", 42, -1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e)

	var line string
	var stop uint64
	var level int
	if err := s.Scan(e, &line, &stop, &level); err != nil {
		log.Fatal(err)
	}
	fmt.Println(line, stop, level)

	_, err = s.Entity("U8", 123456, -1)
	fmt.Println(err)
	// Output:
	// U8/00042/n98
	// U8 42 -1
	// tsdb: invalid input: key field stop is 123456; want a number from 0 to 99999
}

func ExamplePrecision() {
	fmt.Println(tsdb.Nanoseconds, tsdb.Microseconds, tsdb.Milliseconds)
	// Output: ns us ms
}

func ExampleInterval() {
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	hour := tsdb.Between(noon, noon.Add(time.Hour))
	fmt.Println(hour.Contains(noon), hour.Contains(noon.Add(time.Hour)))
	fmt.Println(hour.OpenStart().Contains(noon), hour.ClosedEnd().Contains(noon.Add(time.Hour)))
	// Output:
	// true false
	// false true
}

func ExampleOrder() {
	store := open(weather)
	defer store.Close()
	ctx := context.Background()
	repo := weather.For(store, tenant.MustParse("acme"))
	roof := tsdb.NewEntity("berlin", "roof-7")
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for i := range 10 {
		if err := repo.Put(ctx, roof, noon.Add(time.Duration(i)*time.Minute), Reading{TempC: float64(20 + i)}); err != nil {
			fmt.Println(err)
		}
	}
	for p, err := range repo.Range(ctx, roof, tsdb.Since(noon.Add(5*time.Minute)), tsdb.OldestFirst, tsdb.Limit(2)) {
		fmt.Println(p.Time.Format(time.TimeOnly), p.Value.TempC, err)
	}
	// Output:
	// 12:05:00 25 <nil>
	// 12:06:00 26 <nil>
}

func ExamplePoint() {
	p := tsdb.Point[Reading]{
		Entity: tsdb.NewEntity("berlin", "roof-7"),
		Time:   time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC),
		Value:  Reading{TempC: 21.5},
	}
	fmt.Println(p.Entity, p.Time.Format(time.RFC3339), p.Value.TempC)
	// Output: berlin/roof-7 2026-06-01T12:00:00Z 21.5
}

// badPoint is the error of a read for a payload that does not decode.
func badPoint() *tsdb.PointError {
	_, err := codec.Int64().Decode([]byte("three"))
	return &tsdb.PointError{Entity: tsdb.NewEntity("berlin", "roof-7"), Time: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), Err: err}
}

func ExamplePointError() {
	var err error = badPoint()
	var bad *tsdb.PointError
	if errors.As(err, &bad) {
		fmt.Println(bad.Entity, bad.Time.Format(time.RFC3339), errors.Is(err, codec.ErrCorrupt))
	}
	// Output: berlin/roof-7 2026-06-01T12:00:00Z true
}

func ExamplePointErrors() {
	var err error = tsdb.PointErrors{badPoint(), badPoint()}
	var bad tsdb.PointErrors
	fmt.Println(errors.As(err, &bad), len(bad), errors.Is(err, codec.ErrCorrupt))
	// Output: true 2 true
}

func ExampleState() {
	fmt.Println(tsdb.Stored, tsdb.Rejected, tsdb.Unknown)
	// Output: stored rejected unknown
}

func ExampleOutcome() {
	store := open(weather)
	defer store.Close()
	repo := weather.For(store, tenant.MustParse("acme"))
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	outcomes, err := repo.PutMany(context.Background(), []tsdb.Point[Reading]{
		{Entity: tsdb.NewEntity("berlin", "roof-7"), Time: now, Value: Reading{TempC: 21.5}},
		{Entity: tsdb.NewEntity("berlin"), Time: now, Value: Reading{TempC: 21.5}},
	})
	for i, o := range outcomes {
		fmt.Println(i, o.State, o.Attempts)
	}
	fmt.Println(errors.Is(err, tsdb.ErrInvalid))
	// Output:
	// 0 stored 1
	// 1 rejected 0
	// true
}

func ExampleBatchError() {
	err := error(&tsdb.BatchError{Total: 3, Failed: []tsdb.Failure{{Index: 2, Outcome: tsdb.Outcome{State: tsdb.Rejected, Err: tsdb.ErrLate}}}})
	var batch *tsdb.BatchError
	if errors.As(err, &batch) {
		for _, f := range batch.Failed {
			fmt.Println(f.Index, f.Outcome.State, f.Outcome.Err)
		}
	}
	fmt.Println(errors.Is(err, tsdb.ErrLate))
	// Output:
	// 2 rejected tsdb: point is too late
	// true
}

func ExampleFailure() {
	f := tsdb.Failure{Index: 7, Outcome: tsdb.Outcome{State: tsdb.Unknown, Attempts: 3, Err: context.DeadlineExceeded}}
	fmt.Println(f.Index, f.Outcome.State)
	// Output: 7 unknown
}

func ExampleWriteError() {
	store := open(weather)
	defer store.Close()
	repo := weather.For(store, tenant.MustParse("acme"))
	err := repo.Put(context.Background(), tsdb.NewEntity("berlin", "roof-7"), time.Date(1969, 7, 20, 0, 0, 0, 0, time.UTC), Reading{})
	switch {
	case errors.Is(err, tsdb.ErrUnknown):
		fmt.Println("try again")
	case errors.Is(err, tsdb.ErrRejected):
		fmt.Println(err)
	}
	// Output: tsdb: write rejected before it was sent: tsdb: invalid input: time is 1969-07-20T00:00:00Z; want 1970-01-01T00:00:00Z to 2262-04-11T23:47:16.854775807Z
}

func ExampleInvalidError() {
	_, err := tsdb.Define("weather", tsdb.Key("site", "site"), codec.Float64(), tsdb.SchemaOptions{})
	var invalid *tsdb.InvalidError
	if errors.As(err, &invalid) {
		fmt.Println(invalid.Field, "|", invalid.Value, "|", invalid.Limit)
	}
	// Output: key field 2 | "site" | a name of its own
}

func ExampleConflictError() {
	store := open(weather)
	defer store.Close()
	other := tsdb.MustDefine("weather", tsdb.Key("device", "site"), codec.JSON[Reading](), tsdb.SchemaOptions{})
	err := store.Ensure(context.Background(), other)
	var conflict *tsdb.ConflictError
	if errors.As(err, &conflict) {
		fmt.Println(conflict.Differences[0])
	}
	// Output: dataset weather: key fields declared as device, site, stored as site, device
}
