package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// own are the addresses of a tenant's figures, and ofTable those of the operator's.
var (
	own     = []string{"/health", "/storage", "/keys", "/readings/advice"}
	ofTable = []string{"/api/table/health", "/api/table/storage", "/api/table/keys", "/api/table/heatmap"}
)

// newWatched returns a console of a program that writes, with everything that it can show, and points of acme and
// other.
func newWatched(t *testing.T) *page {
	t.Helper()
	keys, err := heatmap.NewRecorder(heatmap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	limits, err := limit.New(limit.Table{Defaults: limit.Limits{Entities: 7}, Overrides: map[tenant.ID]limit.Limits{other: {Entities: 9999}}}, limit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reader := metric.NewManualReader()
	store, _ := tsdbtest.Open(t, tsdbtest.Options{
		StoreOptions: tsdb.StoreOptions{
			RequireTenant: true, Limits: limits, CursorKeys: [][]byte{[]byte("a key of 32 bytes for the cursor")},
			Telemetry: tsdb.Telemetry{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)), Tenants: 10},
		},
		DialOptions: keys.DialOptions(),
	}, schema)
	w, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []tenant.ID{acme, other} {
		ctx := tenant.NewContext(t.Context(), id)
		for i := range 5 {
			e := tsdb.NewEntity("site-of-"+id.String(), "device")
			if err := schema.For(store, id).Via(w).Enqueue(ctx, e, time.Now().Add(time.Duration(-i)*time.Second), map[string]any{"n": i}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return newPage(t, func(c *Config) {
		c.Store, c.Metrics, c.Keys, c.Limits = store, reader, keys, limits
		c.Operator = func(token string) bool { return token == "operator" }
		c.Tenant = func(token string) (tenant.ID, bool) {
			id, ok := tokens(token)
			if !ok {
				id = other // means nothing
			}
			return id, ok
		}
	})
}

// TestOwnFiguresOnly: a tenant sees its own figures, and nothing that has another tenant's name; the table's are for
// the operator only.
func TestOwnFiguresOnly(t *testing.T) {
	p := newWatched(t)
	for _, address := range ofTable {
		if status, _ := p.get(address); status != http.StatusUnauthorized {
			t.Errorf("%s without a session: %d, want 401", address, status)
		}
	}
	p.login("secret-of-acme")
	for _, path := range own {
		status, body := p.get("/api/acme" + path)
		if status != http.StatusOK || strings.Contains(body, "other") || strings.Contains(body, "9999") {
			t.Errorf("%s: %d %s; want acme's figures only", path, status, body)
		}
		if status, _ := p.get("/api/other" + path); status != http.StatusForbidden {
			t.Errorf("%s of another tenant: %d, want 403", path, status)
		}
	}
	for _, address := range ofTable {
		if status, body := p.get(address); status != http.StatusForbidden || strings.Contains(body, "other") {
			t.Errorf("%s with a tenant's token: %d, want 403", address, status)
		}
	}
	var session struct{ Operator bool }
	if p.read("/api/session", &session); session.Operator {
		t.Error("a tenant's token makes an operator's session")
	}
}

// TestOperatorSeesAll: the operator's token shows the figures of the process and of the table, and each tenant's pages.
func TestOperatorSeesAll(t *testing.T) {
	p := newWatched(t)
	if got := p.login("operator"); got != "/fleet" {
		t.Errorf("the operator's token leads to %s", got)
	}
	var session struct {
		Tenants  []tenant.ID
		Operator bool
	}
	if p.read("/api/session", &session); !session.Operator || len(session.Tenants) != 2 {
		t.Errorf("the operator's session is %+v, want both tenants", session)
	}
	for _, id := range []string{"acme", "other"} {
		for _, path := range append([]string{"/datasets", "/readings/latest"}, own...) {
			if status, body := p.get("/api/" + id + path); status != http.StatusOK {
				t.Errorf("%s of %s: %d %s", path, id, status, body)
			}
		}
	}
	var health struct {
		Figures *figures
		Tenants []tenantLimits
	}
	p.read("/api/table/health", &health)
	f := health.Figures
	if f == nil || f.Writer == nil || f.Writer.Stored != 10 || f.Journal == nil || f.Journal.Capacity == 0 || f.Rollups != nil || len(f.Traffic) != 2 {
		t.Errorf("the figures of the process are %+v; want those of a writer with a journal, two tenants, and no rollup worker", f)
	}
	if len(health.Tenants) != 2 || health.Tenants[1].Limits == nil || health.Tenants[1].Limits.Entities != 9999 {
		t.Errorf("the tenants are %+v, want both with their limits", health.Tenants)
	}
	var storage struct {
		Items    []struct{ Kind string }
		Forecast *struct {
			Holdings []struct{ Tenant tenant.ID }
		}
	}
	if p.read("/api/table/storage", &storage); storage.Items == nil || storage.Forecast == nil || len(storage.Forecast.Holdings) < 2 {
		t.Errorf("the storage is %+v, want a plan without items and a forecast of both tenants", storage)
	}
	var keys struct {
		Recorded bool
		Totals   totals
	}
	if p.read("/api/table/keys", &keys); !keys.Recorded || keys.Totals.Writes < 10 {
		t.Errorf("the keys are %+v, want those of 10 writes at least", keys)
	}
}

// TestHeatmapData: the operator gets the picture's lines, with the entity of a line of one, and a tenant gets nothing.
func TestHeatmapData(t *testing.T) {
	p := newWatched(t)
	p.login("operator")
	var got struct {
		Columns []struct{ Seconds float64 }
		Views   []struct {
			Lines []struct {
				Tenant, Dataset, Entity string
				Entities                int
			}
			Cells []int64
		}
	}
	p.read("/api/table/heatmap", &got)
	if len(got.Columns) == 0 || len(got.Views) != 3 || len(got.Views[0].Lines) == 0 || len(got.Views[0].Cells)%7 != 0 {
		t.Fatalf("the picture is %+v", got)
	}
	for _, line := range got.Views[0].Lines {
		var e tsdb.Entity
		if err := e.UnmarshalText([]byte(line.Entity)); err != nil || line.Tenant == "acme" && line.Entities == 1 && len(e.Parts()) != 2 {
			t.Errorf("a line of one entity is of %q: %v", line.Entity, err)
		}
	}
	p.client = p.browser()
	p.login("secret-of-acme")
	if status, body := p.get("/api/table/heatmap"); status != http.StatusForbidden || strings.Contains(body, "acme") {
		t.Errorf("a tenant gets the picture: %d %.100s", status, body)
	}
}

// TestFiguresOfAnotherProcess: a console that only reads has no figures of writers, and says so instead of showing
// zeros.
func TestFiguresOfAnotherProcess(t *testing.T) {
	p := newPage(t, func(c *Config) { c.Operator = func(token string) bool { return token == "operator" } })
	e, ctx := tsdb.NewEntity("site", "device"), tenant.NewContext(t.Context(), acme)
	if err := schema.For(p.store, acme).Put(ctx, e, time.Now(), map[string]any{"n": 1}); err != nil {
		t.Fatal(err)
	}
	p.login("secret-of-acme")
	_, health := p.get("/api/acme/health")
	_, keys := p.get("/api/acme/keys")
	if !strings.Contains(health, `"traffic":null`) || !strings.Contains(health, `"limits":null`) || !strings.Contains(keys, `"recorded":false`) {
		t.Errorf("figures of another process are shown: %s %s", health, keys)
	}
	p.client = p.browser()
	p.login("operator") // a session of its own
	if status, body := p.get("/api/table/heatmap"); status != http.StatusNotFound {
		t.Errorf("the picture without a recorder: %d %s", status, body)
	}
	if _, body := p.get("/api/table/health"); !strings.Contains(body, `"figures":null`) {
		t.Errorf("the figures of a process without metrics: %s", body)
	}
}

// TestTrafficIsARate: what a tenant wrote between two looks is divided by the time between them; a look soon after
// another one costs nothing.
func TestTrafficIsARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := metric.NewManualReader()
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{
			Telemetry: tsdb.Telemetry{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)), Tenants: 10},
		}}, schema)
		w, err := store.NewWriter(tsdb.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m := &meter{source: reader}
		first, err := m.now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := first.of("acme"); ok {
			t.Error("there is a rate after one look")
		}
		for i := range 50 {
			if err := schema.For(store, acme).Via(w).Enqueue(t.Context(), tsdb.NewEntity("s", "d"), time.Now().Add(time.Duration(i)), map[string]any{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if soon, _ := m.now(t.Context()); soon != first {
			t.Error("a second look after a second collects again")
		}
		time.Sleep(9 * time.Second)
		f, err := m.now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := f.of("acme"); !ok || got.Points != 5 || got.Bytes <= 0 {
			t.Errorf("50 points in 10 seconds: %+v, want 5 a second", got)
		}
	})
}

// TestSharedIsReadOnce: users who look at the same time cause one read, a failed one is repeated by the next user, and
// an old one too.
func TestSharedIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, fail := 0, true
		s := newShared(keepFor[int](time.Minute), func(context.Context) (*int, error) {
			time.Sleep(time.Second)
			if reads++; fail {
				return nil, errors.New("no")
			}
			return &reads, nil
		})
		if _, err := s.get(t.Context()); err == nil {
			t.Error("a failed read has a value")
		}
		fail = false
		done := make(chan error, 10)
		for range 10 {
			go func() {
				_, err := s.get(t.Context())
				done <- err
			}()
		}
		for range 10 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if reads != 2 {
			t.Errorf("10 users cause %d reads, want 1", reads-1)
		}
		time.Sleep(time.Minute)
		if _, err := s.get(t.Context()); err != nil || reads != 3 {
			t.Errorf("after a minute: %d reads, %v", reads, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.turn <- struct{}{}
		if _, err := s.get(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a user who has gone gets %v", err)
		}
	})
}

// TestStorageIsCounted: a tenant sees how many rows of each kind are among its first 10,000, and which kind goes on
// behind them.
func TestStorageIsCounted(t *testing.T) {
	small := tsdb.MustDefine("alarms", tsdb.Key("site", "device"), codec.JSON[map[string]any](), tsdb.SchemaOptions{})
	for n, next := range map[int]string{5: "", 10_001: "readings"} {
		p := newPage(t, nil)
		if err := p.store.Ensure(t.Context(), small); err != nil {
			t.Fatal(err)
		}
		for of, n := range map[*tsdb.Schema[map[string]any]]int{small: 7, schema: n} {
			var points []tsdb.Point[map[string]any]
			for i := range n {
				points = append(points, tsdb.Point[map[string]any]{Entity: tsdb.NewEntity("s", "d"), Time: time.Now().Add(time.Duration(-i) * time.Second), Value: map[string]any{"n": i}})
			}
			if _, err := of.For(p.store, acme).PutMany(tenant.NewContext(t.Context(), acme), points); err != nil {
				t.Fatal(err)
			}
		}
		p.login("secret-of-acme")
		var storage struct {
			Counted []tenants.DatasetUsage
			Next    string
		}
		p.read("/api/acme/storage", &storage)
		var rows []int64
		others := int64(0)
		for _, c := range storage.Counted {
			if c.Kind == "" {
				rows = append(rows, c.Rows)
			} else {
				others += c.Rows // the lists of fields, which are stored after the points
			}
		}
		want := []int64{7, min(int64(n), 10_000-7-others)}
		if !slices.Equal(rows, want) || others > 2 || storage.Next != next {
			t.Errorf("with %d points, the rows of points are %v, besides %d others, and go on in %q; want %v, %q", n, rows, others, storage.Next, want, next)
		}
	}
}

// TestFirstRows: the operator's page has the first tenant of a table, and its forecast the first rows, as soon as there
// is a point.
func TestFirstRows(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, schema)
	p := newPage(t, func(c *Config) {
		c.Store = store
		c.Operator = func(token string) bool { return token == "operator" }
	})
	p.login("operator")
	var health struct{ Tenants []tenantLimits }
	var storage struct {
		Forecast struct{ Cost struct{ Rows int } }
	}
	if p.read("/api/table/health", &health); len(health.Tenants) != 0 {
		t.Fatalf("an empty table has the tenants %v", health.Tenants)
	}
	p.read("/api/table/storage", &storage)
	if err := schema.For(store, acme).Put(t.Context(), tsdb.NewEntity("s", "d"), time.Now(), map[string]any{}); err != nil {
		t.Fatal(err)
	}
	if p.read("/api/table/health", &health); len(health.Tenants) != 1 {
		t.Errorf("after the first point the table has the tenants %v", health.Tenants)
	}
	if p.read("/api/table/storage", &storage); storage.Forecast.Cost.Rows == 0 {
		t.Error("after the first point the forecast has no rows")
	}
}
