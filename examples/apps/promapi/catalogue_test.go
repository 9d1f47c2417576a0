package main

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestDatasetsCreatedLater: a dataset that is created while the program runs is shown within a minute. One whose name
// clashes is refused, and neither it nor a catalogue that cannot be read changes what is shown.
func TestDatasetsCreatedLater(t *testing.T) {
	prom, err := defineProm(0)
	if err != nil {
		t.Fatal(err)
	}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, prom, fuelData)
	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	defer func() { _ = provider.Shutdown(t.Context()) }()
	logged := new(log)
	c, err := openCatalogue(t.Context(), store, nil, slog.New(slog.NewTextHandler(logged, nil)), provider)
	if err != nil {
		t.Fatal(err)
	}
	s := over(t, store, prom, tsdb.WriterOptions{}, someLimits, newMappedSource(c))
	if left := time.Until(c.next); left <= 0 || left > catalogueFor {
		t.Errorf("the catalogue is read again in %v, want a minute at most", left)
	}
	c.next = time.Now().Add(time.Hour) // however slow this machine is
	pass := func() {                   // a minute
		c.mu.Lock()
		c.next = time.Time{}
		c.mu.Unlock()
		s.forget(acme)
	}
	names := func() string {
		t.Helper()
		status, got := s.get("label/__name__/values")
		if status != http.StatusOK {
			t.Fatal(status, got)
		}
		return strings.TrimPrefix(got, `{"status":"success","data":`)
	}
	at := time.UnixMilli(start0)
	putPoints(t, s, fuelData, acme, tsdb.Point[float64]{Entity: tsdb.NewEntity("East", "007"), Time: at, Value: 1})
	if got := names(); got != `["fuel_state"]}` {
		t.Fatal(got)
	}

	clashing := tsdb.MustDefine("fuel-state", tsdb.Key("a"), codec.Float64(), tsdb.SchemaOptions{})
	twice := tsdb.MustDefine("twice", tsdb.Key("a.b", "a-b"), codec.Float64(), tsdb.SchemaOptions{})
	if err := store.Ensure(t.Context(), truckData, clashing, twice); err != nil {
		t.Fatal(err)
	}
	putPoints(t, s, truckData, acme, truckPoint("East", "t", start0, "", 1))
	putPoints(t, s, clashing, acme, tsdb.Point[float64]{Entity: tsdb.NewEntity("x"), Time: at, Value: 9})
	if got := names(); got != `["fuel_state"]}` {
		t.Errorf("within the minute the names are %s", got)
	}
	pass()
	want := `["fuel_state","trucks_gps_lat","trucks_moving","trucks_odometer","trucks_speed"]}`
	for range 3 {
		if got := names(); got != want {
			t.Errorf("after a minute the names are %s, want %s", got, want)
		}
		pass()
	}
	if _, got := s.get("query", "query", "fuel_state", "time", "1767225600"); !strings.Contains(got, `"fleet":"East"`) || strings.Contains(got, `"9"`) {
		t.Errorf("the dataset that was there first: %s", got)
	}
	if n := strings.Count(logged.String(), "fuel-state"); n != 1 || !strings.Contains(logged.String(), "fuel.state") || strings.Count(logged.String(), "twice") != 1 {
		t.Errorf("the log names the clash %d times, want once with both names:\n%s", n, logged.String())
	}
	if n := refusals(t, reader); n != 2 {
		t.Errorf("%d datasets are counted as refused, want 2", n)
	}

	conn.Inject(tsdbtest.Fail(codes.PermissionDenied))
	pass()
	if shown := c.current(t.Context()); len(shown) != 2 || !strings.Contains(logged.String(), "cannot be read") {
		t.Errorf("without a catalogue %d datasets are shown, want those of before; the log is %s", len(shown), logged.String())
	}
	conn.Clear()

	// A dataset that changes: it gets a rollup.
	hours := rollup.MustDefine("hours", window.Every(time.Hour), []rollup.Measure[float64]{{Name: "l", Of: func(v float64) (float64, bool) { return v, true }, Max: 10}}, rollup.Options{})
	if err := store.Ensure(t.Context(), tsdb.MustDefine("fuel.state", tsdb.Key("fleet").Uint("truck", 3), codec.Float64(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hours}})); err != nil {
		t.Fatal(err)
	}
	before := c.current(t.Context())
	pass()
	if after := c.current(t.Context()); before[0] == after[0] || before[1] != after[1] {
		t.Error("the dataset that changed should be mapped again, and no other")
	}
	if got := names(); !strings.Contains(got, `"fuel_state:l:avg_1h"`) {
		t.Errorf("after the change the names are %s", got)
	}
}

func refusals(t *testing.T, reader *sdk.ManualReader) (n int64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "promapi.datasets.refused" {
				for _, p := range sum.DataPoints {
					n += p.Value
				}
			}
		}
	}
	return n
}

// TestProtobuf: payloads of protobuf are fields of the message that the operator names. Without it, the rest of the
// dataset is shown.
func TestProtobuf(t *testing.T) {
	at := time.UnixMilli(start0)
	counted := rollup.MustDefine("n", window.Every(time.Minute), []rollup.Measure[*timestamppb.Timestamp]{
		{Name: "n", Of: func(v *timestamppb.Timestamp) (float64, bool) { return float64(v.Nanos), true }, Max: 1e9},
	}, rollup.Options{Mode: rollup.Once})
	times := tsdb.MustDefine("times", tsdb.Key("id"), codec.Proto[*timestamppb.Timestamp](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{counted}})
	packed := tsdb.MustDefine("packed", tsdb.Key("id"), zstd.Wrap(codec.Proto[*timestamppb.Timestamp](), zstd.Options{}), tsdb.SchemaOptions{})
	file := filepath.Join(t.TempDir(), "messages.pb")
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(timestamppb.File_google_protobuf_timestamp_proto)}}
	data, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	const name = "google.protobuf.Timestamp"
	o, err := parse([]string{"-token", "a=acme", "-descriptors", file, "-message", "times=" + name, "-message", "packed=" + name}, new(log))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-message", "times=" + name}, {"-message", "times=Nothing", "-descriptors", file}, {"-descriptors", "README.md"}, {"-descriptors", "nowhere"}, {"-message", "times"}} {
		if _, err := parse(append(args, "-token", "a=acme"), new(log)); err == nil || !strings.Contains(err.Error(), args[0]) {
			t.Errorf("%q: %v, want an error about %s", args, err, args[0])
		}
	}
	s := mappedOver(t, someLimits, times, packed)
	for _, schema := range []*tsdb.Schema[*timestamppb.Timestamp]{times, packed} {
		putPoints(t, s, schema, acme, tsdb.Point[*timestamppb.Timestamp]{Entity: tsdb.NewEntity("x"), Time: at, Value: &timestamppb.Timestamp{Seconds: 7, Nanos: 5}})
	}
	if err := rollup.NewAdder(counted, times.For(s.store, acme), nil).Add(t.Context(), tsdb.NewEntity("x"), at, &timestamppb.Timestamp{Nanos: 3}); err != nil {
		t.Fatal(err)
	}
	if _, got := s.get("label/__name__/values"); !strings.Contains(got, `["times:n:avg_1m",`) || strings.Contains(got, "seconds") {
		t.Errorf("without the messages the names are %s; want the rollup only", got)
	}
	s = over(t, s.store, s.prom.schema, tsdb.WriterOptions{}, someLimits, shown(t, s.store, o.messages))
	for query, want := range map[string]string{
		"times_seconds + times_nanos": `"12"`, "packed_seconds": `"7"`, `last_over_time(times:n:sum_1m[5m])`: `"3"`,
	} {
		if _, got := s.get("query", "query", query, "time", "1767225660"); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}
