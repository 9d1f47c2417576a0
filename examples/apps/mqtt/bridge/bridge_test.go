package bridge

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(crashFolder); folder != "" { // the service of TestCrashes
		service(folder, os.Getenv(crashBroker), os.Getenv(crashJournal) != "")
		return
	}
	goleak.VerifyTestMain(m)
}

var (
	acme   = tenant.MustParse("acme")
	globex = tenant.MustParse("globex")
)

const telemetry = "v1/+tenant/+site/+device/telemetry dataset=telemetry key=site,device time=ts,ms"

func routesOf(t testing.TB, lines ...string) *inbound.Routes {
	t.Helper()
	rs, err := inbound.ParseRoutes(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

// running is a bridge that runs in the test.
type running struct {
	*Bridge
	stop  context.CancelFunc
	ended chan struct{} // closed when Run has returned
	err   error         // of Run
}

// run starts a bridge, and stops it at the end of the test.
func run(t testing.TB, store *tsdb.Store, m *mosquitto, routes *inbound.Routes, c Config) *running {
	t.Helper()
	c.Broker = m.url()
	if testing.Verbose() && c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	b, err := New(t.Context(), store, routes, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &running{Bridge: b, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = b.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-r.ended
	})
	select {
	case <-b.Subscribed():
	case <-r.ended:
	}
	return r
}

// reads reads the values of an entity, in the order of time, as texts.
func points(t testing.TB, store *tsdb.Store, id tenant.ID, dataset string, key ...string) []string {
	t.Helper()
	names := []string{"site", "device", "c"}[:len(key)]
	if len(key) == 1 {
		names = []string{"device"}
	}
	s, err := tsdb.Define(dataset, tsdb.Key(names...), codec.Records(), tsdb.SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for p, err := range s.For(store, id).Range(t.Context(), tsdb.NewEntity(key...), tsdb.AllTime(), tsdb.OldestFirst) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d %v", p.Time.UnixMilli(), p.Value))
	}
	return got
}

func waitStats(t testing.TB, b *running, holds func(Stats) bool) {
	t.Helper()
	eventually(t, func() bool { return holds(b.Stats()) }, func() string { return fmt.Sprintf("%+v", b.Stats()) })
}

func TestStoresMessages(t *testing.T) {
	m := startBroker(t)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	b := run(t, store, m, routesOf(t, telemetry), Config{})
	device := m.client("device", nil)
	publish(t, device, "v1/acme/berlin/t1/telemetry", `{"ts":1767225600000,"temp":21.5,"on":true,"gps":{"lat":52.5}}`)
	publish(t, device, "v1/acme/berlin/t1/telemetry", `[{"ts":1767225601000,"temp":22},{"ts":"2026-01-01T00:00:02Z","text":"ok"}]`)
	waitStats(t, b, func(s Stats) bool { return s.Stored == 2 && s.Points == 3 })
	got := points(t, store, acme, "telemetry", "berlin", "t1")
	want := []string{`1767225600000 {gps.lat=52.5 on=true temp=21.5}`, `1767225601000 {temp=22i}`, `1767225602000 {text="ok"}`}
	if !slices.Equal(got, want) {
		t.Errorf("points %q, want %q", got, want)
	}
	if got := points(t, store, globex, "telemetry", "berlin", "t1"); got != nil {
		t.Errorf("another tenant sees %q", got)
	}
	b.stop()
	<-b.ended
	if b.err != nil {
		t.Errorf("Run: %v", b.err)
	}
}

// TestStoreLines: a pattern file stores line protocol as its store and drop lines say.
func TestStoreLines(t *testing.T) {
	m := startBroker(t)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	b := run(t, store, m, routesOf(t, "telegraf/+tenant format=line key=host,* time=ns", "store cpu in processors by device", "drop url"), Config{})
	device := m.client("device", nil)
	publish(t, device, "telegraf/acme", "cpu,device=t1,url=x usage=1 1767225600000000000")
	waitStats(t, b, func(s Stats) bool { return s.Stored+s.DeadLetters == 1 })
	if got := points(t, store, acme, "processors", "t1"); !slices.Equal(got, []string{"1767225600000 {usage=1}"}) {
		t.Errorf("the points are %q", got)
	}
	if _, err := New(t.Context(), store, routesOf(t, "store cpu in processors by device"), Config{Broker: m.url()}); err == nil {
		t.Error("a pattern file without a pattern is accepted")
	}
}
