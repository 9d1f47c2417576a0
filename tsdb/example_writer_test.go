package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// One writer takes the points of all schemas and tenants of a program, and sends them in batches.
func ExampleWriter() {
	ctx := context.Background()
	store := open(weather)
	defer store.Close()
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, name := range []string{"acme", "beta"} {
		in := weather.For(store, tenant.MustParse(name)).Via(w)
		for i := range 1000 {
			if err := in.Enqueue(ctx, tsdb.NewEntity("berlin", "roof-7"), noon.Add(time.Duration(i)*time.Second), Reading{TempC: 21.5}); err != nil {
				log.Fatal(err)
			}
		}
	}
	if err := w.Close(ctx); err != nil { // nil: everything is stored
		log.Fatal(err)
	}
	fmt.Println(w.Stats().Stored, "stored")
	// Output: 2000 stored
}

// A queue consumer acknowledges a message once it knows the outcome of its point.
func ExampleSink_EnqueueFunc() {
	ctx := context.Background()
	store := open(weather)
	defer store.Close()
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	in := weather.For(store, tenant.MustParse("acme")).Via(w)
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	acked := 0
	for i := range 100 {
		_ = in.EnqueueFunc(ctx, tsdb.NewEntity("berlin", "roof-7"), noon.Add(time.Duration(i)*time.Second), Reading{TempC: 21.5}, func(o tsdb.Outcome) {
			mu.Lock()
			defer mu.Unlock()
			if o.Err == nil { // it is stored; with a journal, on disk
				acked++ // message.Ack()
			}
		})
	}
	if err := w.Flush(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(acked, "acknowledged;", w.Close(ctx))
	// Output: 100 acknowledged; <nil>
}

func ExampleSink() {
	ctx := context.Background()
	store := open(weather)
	defer store.Close()
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close(ctx)
	in := weather.For(store, tenant.MustParse("acme")).Via(w)
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	outcomes, err := in.EnqueueMany(ctx, []tsdb.Point[Reading]{
		{Entity: tsdb.NewEntity("berlin", "roof-7"), Time: noon, Value: Reading{TempC: 21.5}},
		{Entity: tsdb.NewEntity("berlin"), Time: noon, Value: Reading{TempC: 21.5}},
	})
	for _, o := range outcomes {
		fmt.Println(o.State)
	}
	fmt.Println(errors.Is(err, tsdb.ErrInvalid))
	// Output:
	// stored
	// rejected
	// true
}

func ExampleWriterOptions() {
	store := open(weather)
	defer store.Close()
	w, err := store.NewWriter(tsdb.WriterOptions{
		BufferPoints: 10_000,
		Linger:       20 * time.Millisecond,
		Admit: func(_ context.Context, id tenant.ID, bytes int) error {
			if id.String() == "blocked" {
				return errors.New("no contract")
			}
			return nil
		},
		OnFailure: func(u tsdb.Undelivered) { log.Println(u.Tenant, u.Entity, u.Outcome.Err) },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close(context.Background())
	in := weather.For(store, tenant.MustParse("blocked")).Via(w)
	fmt.Println(in.Enqueue(context.Background(), tsdb.NewEntity("berlin", "roof-7"), time.Now(), Reading{}))
	// Output: tsdb: write rejected before it was sent: no contract
}

func ExampleWriterStats() {
	store := open(weather)
	defer store.Close()
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close(context.Background())
	s := w.Stats()
	fmt.Println(s.BufferedPoints, s.OldestAge, s.Stored+s.Rejected+s.Unknown, s.Down)
	// Output: 0 0s 0 <nil>
}

func ExampleUndelivered() {
	u := tsdb.Undelivered{
		Tenant: tenant.MustParse("acme"), Dataset: "weather", Entity: tsdb.NewEntity("berlin", "roof-7"),
		Outcome: tsdb.Outcome{State: tsdb.Rejected, Attempts: 1, Err: grpcstatus.Error(codes.InvalidArgument, "too large")},
	}
	fmt.Println(u.Tenant, u.Dataset, u.Entity, u.Outcome.State, u.Outcome.Err)
	// Output: acme weather berlin/roof-7 rejected rpc error: code = InvalidArgument desc = too large
}

func ExampleUndeliveredError() {
	err := fmt.Errorf("stopping: %w", &tsdb.UndeliveredError{Total: 1, Points: []tsdb.Undelivered{{
		Tenant: tenant.MustParse("acme"), Dataset: "weather", Entity: tsdb.NewEntity("berlin", "roof-7"),
		Outcome: tsdb.Outcome{State: tsdb.Unknown, Attempts: 3, Err: context.DeadlineExceeded},
	}}})
	if ue, ok := errors.AsType[*tsdb.UndeliveredError](err); ok {
		fmt.Println(ue.Total, errors.Is(err, tsdb.ErrUnknown), errors.Is(err, context.DeadlineExceeded))
	}
	// Output: 1 true true
}

// With a journal, a point is acknowledged once it is on the local disk. This program, or the next one that opens the
// journal, delivers it as soon as the service is available.
func ExampleJournalOptions() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store := open(weather)
	defer store.Close()
	w, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: dir}})
	if err != nil {
		log.Fatal(err)
	}
	in := weather.For(store, tenant.MustParse("acme")).Via(w)
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	outcomes, err := in.EnqueueMany(ctx, []tsdb.Point[Reading]{{Entity: tsdb.NewEntity("berlin", "roof-7"), Time: noon, Value: Reading{TempC: 21.5}}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(outcomes[0].State)
	if err := w.Close(ctx); err != nil { // an error that matches ErrUndelivered says how many points are left for the next writer
		log.Fatal(err)
	}
	fmt.Println(w.Stats().Stored, "stored")
	// Output:
	// journaled
	// 1 stored
}

func ExampleJournalStats() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store := open(weather)
	defer store.Close()
	w, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: dir}})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close(context.Background())
	j := w.Stats().Journal
	fmt.Println(len(j.Stream), j.Points, j.DeadLetters, j.Limit>>30)
	// Output: 32 0 0 1
}

// An operator inspects rejected points, and delivers them after fixing the cause.
func ExampleDeadLetter() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store := open(weather)
	defer store.Close()
	w, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: dir}})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close(ctx)
	var ids []uint64
	for l, err := range w.DeadLetters(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(l.Tenant, l.Dataset, l.Entity, l.Time, l.Reason)
		ids = append(ids, l.ID)
	}
	n, err := w.RetryDeadLetters(ctx, ids...)
	fmt.Println(n, "retried", err)
	// Output: 0 retried <nil>
}
