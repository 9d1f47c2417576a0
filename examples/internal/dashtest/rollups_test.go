package dashtest

import (
	"context"
	"flag"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/observe"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestRollups evaluates the queries of rollups on the metrics of a program whose worker computes hours, and days from
// them.
func TestRollups(t *testing.T) {
	value := []rollup.Measure[float64]{{Name: "value", Of: func(v float64) (float64, bool) { return v, true }, Max: 100}}
	hours := rollup.MustDefine("hour", window.Every(time.Hour), value, rollup.Options{})
	days := rollup.MustDefine("day", window.Days(1), value, rollup.Options{From: "hour"})
	readings := tsdb.MustDefine("readings", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hours, days}})

	var o observe.Options
	flags := flag.NewFlagSet("rollups", flag.ContinueOnError)
	o.Flags(flags)
	if err := flags.Parse([]string{"-metrics-addr", "127.0.0.1:0"}); err != nil {
		t.Fatal(err)
	}
	seen, err := observe.Open(t.Context(), "rollups", o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Close()
	var printed strings.Builder
	seen.Print(&printed)
	_, url, _ := strings.Cut(strings.TrimSpace(printed.String()), "Metrics ")

	var ahead atomic.Int64 // of the store's clock: a worker waits until a mark is older than the longest write
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	store, err := embedded.New(t.Context(), embedded.Options{StoreOptions: tsdb.StoreOptions{Clock: clock, Telemetry: seen.Telemetry}, DialOptions: seen.DialOptions})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(t.Context(), readings); err != nil {
		t.Fatal(err)
	}
	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{}, readings)
	if err != nil {
		t.Fatal(err)
	}
	repo, scrapes := readings.For(store, tenant.MustParse("acme")), New("rollups")
	for range 3 {
		if err := repo.Put(t.Context(), tsdb.NewEntity("roof-7"), clock(), 21.5); err != nil {
			t.Fatal(err)
		}
		pass(t.Context(), t, worker, &ahead)
		if err := scrapes.Scrape(t.Context(), strings.TrimSpace(url)); err != nil {
			t.Fatal(err)
		}
	}
	if n := Answered(t, scrapes); n < 2 {
		t.Errorf("%d queries of the dashboard have data, want those of rollups", n)
	}
	Listed(t, scrapes)
	if lag := scrapes.Value(t, `max(tidemark_rollup_lag_seconds)`); lag < 0 || lag > 600 {
		t.Errorf("the rollups are %v seconds behind right after the worker's pass", lag)
	}
}

// pass moves the clock and lets the worker process all marks: that of the hour, and then that of the day.
func pass(ctx context.Context, t *testing.T, worker *rollup.Worker, ahead *atomic.Int64) {
	t.Helper()
	for {
		ahead.Add(int64(2 * time.Minute))
		p, err := worker.Pass(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if p.Waiting == 0 {
			return
		}
	}
}
