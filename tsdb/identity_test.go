package tsdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func eventsOf(t testing.TB, opts tsdb.SchemaOptions) *tsdb.Schema[string] {
	t.Helper()
	opts.Identity = true
	return defined(t, "events", tsdb.Key("user"), opts)
}

var ada = tsdb.NewEntity("ada")

// shownEvents returns the points of an entity as text, newest first.
func shownEvents(t *testing.T, r *tsdb.Repository[string], e tsdb.Entity) (out []string) {
	t.Helper()
	for p, err := range r.Range(t.Context(), e, tsdb.AllTime()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%d %s %s", p.Time.Sub(start)/time.Second, p.ID, p.Value))
	}
	return out
}

func wantEvents(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestEventsOfOneInstant: every way of writing keeps events of one entity at one instant apart, every read shows all of
// them, and every deletion takes exactly the named ones.
func TestEventsOfOneInstant(t *testing.T) {
	for _, opts := range []tsdb.SchemaOptions{{}, {FirstWins: true}, {Salts: 4, Precision: tsdb.Milliseconds}} {
		s := eventsOf(t, opts)
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 10}}}, s)
		repo := s.For(store, acme)
		ctx := t.Context()
		w := writer(t, store, tsdb.WriterOptions{Linger: together})
		sink := repo.Via(w)
		outcomes, _ := repo.PutMany(ctx, []tsdb.Point[string]{
			{Entity: ada, Time: start, ID: "m2", Value: "many"},
			{Entity: ada, Time: start, ID: "m1", Value: "many"},
			{Entity: ada, Time: start, Value: "none"},
			{Entity: ada, Time: start, ID: "a/b"},
			{Entity: ada, Time: start, ID: strings.Repeat("x", 65)},
		})
		for i, o := range outcomes {
			if i < 2 && o.State != tsdb.Stored || i >= 2 && !errors.Is(o.Err, tsdb.ErrInvalid) {
				t.Errorf("PutMany, point %d: %+v", i, o)
			}
		}
		stored, errAbsent := repo.WithID("b").PutIfAbsent(ctx, ada, start, "absent")
		again, errAgain := repo.WithID("b").PutIfAbsent(ctx, ada, start, "again")
		callback := func(o tsdb.Outcome) {
			if o.Err != nil {
				t.Error(o.Err)
			}
		}
		if err := errors.Join(errAbsent, errAgain,
			repo.WithID("a").Put(ctx, ada, start, "put"),
			repo.WithID("w1").Via(w).EnqueueFunc(ctx, ada, start, "via", callback),
			repo.WithID("w2").Via(w).EnqueueFunc(ctx, ada, start, "via", callback),
			repo.WithID("a").Put(ctx, ada, start.Add(time.Second), "later"),
			w.Flush(ctx)); err != nil || !stored || again {
			t.Fatal(err, stored, again)
		}
		for call, err := range map[string]error{
			"Put": repo.Put(ctx, ada, start, "x"), "Delete": repo.Delete(ctx, ada, start), "Sink.Enqueue": sink.Enqueue(ctx, ada, start, "x"),
			"Get": func() error { _, err := repo.Get(ctx, ada, start); return err }(),
		} {
			if !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), "id is empty") {
				t.Errorf("%s without an ID: %v", call, err)
			}
		}
		wantEvents(t, "all", shownEvents(t, repo, ada), "1 a later", "0 a put", "0 b absent", "0 m1 many", "0 m2 many", "0 w1 via", "0 w2 via")
		for range 2 { // the second read may come from the cache
			p, err := repo.Latest(ctx, ada, tsdb.MaxStale(time.Hour))
			answers, errMany := latestMany(ctx, repo, []tsdb.Entity{ada}, tsdb.MaxStale(time.Hour))
			if err := errors.Join(err, errMany); err != nil || p.ID != "a" || p.Value != "later" || answers[0].Point != p {
				t.Errorf("Latest = %+v, LatestMany = %+v, %v", p, answers, err)
			}
		}
		for p, err := range repo.Under(tsdb.AllEntities()).Latest(ctx) {
			if err != nil || p.ID != "a" || p.Value != "later" {
				t.Errorf("Under.Latest: %+v, %v", p, err)
			}
		}
		if p, err := repo.AsOf(ctx, ada, start); err != nil || p.ID != "a" || p.Value != "put" {
			t.Errorf("AsOf = %+v, %v; want the event with the smallest ID", p, err)
		}
		if p, err := repo.WithID("m2").Get(ctx, ada, start); err != nil || p.ID != "m2" {
			t.Errorf("Get = %+v, %v", p, err)
		}
		if err := repo.WithID("m2").Delete(ctx, ada, start); err != nil {
			t.Error(err)
		}
		wantEvents(t, "one deleted", shownEvents(t, repo, ada), "1 a later", "0 a put", "0 b absent", "0 m1 many", "0 w1 via", "0 w2 via")
		if n, err := repo.DeleteRange(ctx, ada, tsdb.Between(start, start.Add(1))); n != 5 || err != nil {
			t.Errorf("DeleteRange of an instant = %d, %v", n, err)
		}
		wantEvents(t, "an instant deleted", shownEvents(t, repo, ada), "1 a later")
	}
}

// TestEventsThroughAJournal: journal records hold IDs, also for a writer that does not know the schema.
func TestEventsThroughAJournal(t *testing.T) {
	s := eventsOf(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	opts := journaled(t)
	end := conn.Outage()
	w := must[*tsdb.Writer](t)(store.NewWriter(opts))
	repo := s.For(store, acme)
	for _, id := range []string{"b", "a"} {
		if err := repo.WithID(id).Via(w).Enqueue(t.Context(), ada, start, "x"); err != nil {
			t.Fatal(err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_ = w.Close(gone) // both stay on disk
	end()
	w = must[*tsdb.Writer](t)(store.NewWriter(opts))
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, "delivered", shownEvents(t, repo, ada), "0 a x", "0 b x")
}

// TestEventsAreCounted: a derived rollup counts each event of an instant, also after one of them is deleted.
func TestEventsAreCounted(t *testing.T) {
	hour := rollup.MustDefine[string]("hour", window.Every(time.Hour), nil, rollup.Options{})
	s := eventsOf(t, tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
	c := testkit.NewClock(start.Add(time.Minute))
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
	repo := s.For(store, acme)
	ctx := t.Context()
	for _, id := range []string{"a", "b", "c"} {
		if err := repo.WithID(id).Put(ctx, ada, start, id); err != nil {
			t.Fatal(err)
		}
	}
	worker := must[*rollup.Worker](t)(rollup.NewWorker(store, rollup.WorkerOptions{}, s))
	reader := rollup.For(hour, repo)
	count := func(want int64) {
		t.Helper()
		b, err := reader.Total(ctx, ada, tsdb.Between(start, start.Add(time.Hour)))
		if err != nil || b.Points != want {
			t.Errorf("%d events, %v, want %d", b.Points, err, want)
		}
	}
	count(3)
	c.Set(start.Add(3 * time.Hour))
	if _, err := worker.Pass(ctx); err != nil {
		t.Fatal(err)
	}
	count(3)
	if err := repo.WithID("b").Delete(ctx, ada, start); err != nil {
		t.Fatal(err)
	}
	count(2)
}

// TestEventsAreMovedAndErased: export files hold IDs, and an erasure takes events with any ID.
func TestEventsAreMovedAndErased(t *testing.T) {
	s := eventsOf(t, tsdb.SchemaOptions{})
	ctx := t.Context()
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	var points []tsdb.Point[string]
	for i := range 2500 { // more than two blocks, which end within an instant
		points = append(points, tsdb.Point[string]{Entity: ada, Time: start.Add(time.Duration(i/1500) * time.Second), ID: fmt.Sprintf("e%d", i), Value: "x"})
	}
	if _, err := repo.PutMany(ctx, points); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := transfer.Export(ctx, store, acme, &file, transfer.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(file.String(), `"time":"2026-01-01T00:00:00Z","id":"e7","class":`) {
		t.Errorf("exported file: %.500s", &file)
	}
	at, _, err := transfer.Recover(ctx, bytes.NewReader(file.Bytes()[:file.Len()/2]), nil) // after a block that ends within an instant
	if err != nil || at.Line == 0 {
		t.Fatalf("%+v, %v", at, err)
	}
	rest := bytes.NewBuffer(slices.Clone(file.Bytes()[:at.Offset]))
	if _, err := transfer.Export(ctx, store, acme, rest, transfer.ExportOptions{Continue: at}); err != nil || !bytes.Equal(rest.Bytes(), file.Bytes()) {
		t.Errorf("a continued export differs from the whole file: %d and %d bytes, %v", rest.Len(), file.Len(), err)
	}
	other, _, fresh := tsdbtest.OpenTable(t, tsdbtest.Options{})
	got, err := transfer.Import(ctx, other, acme, bytes.NewReader(file.Bytes()), transfer.ImportOptions{Create: true})
	if err != nil || got.Stored != 2500 {
		t.Fatalf("%+v, %v", got, err)
	}
	if dump(t, fresh) != dump(t, table) {
		t.Error("the imported table differs from the exported one")
	}
	if usage, err := tenants.Usage(ctx, store, acme, tenants.UsageOptions{}); err != nil || len(usage.Kinds) != 1 || usage.Kinds[0].Points != 2500 || usage.Kinds[0].Entities != 1 {
		t.Errorf("Usage = %+v, %v", usage, err)
	}
	if rep, err := tenants.EraseEntity(ctx, store, acme, "", map[string]string{"user": "ada"}, tenants.EraseOptions{Settle: 1, RowsPerSecond: -1}); err != nil || rep.Rows != 2500 {
		t.Errorf("EraseEntity = %+v, %v", rep, err)
	}
}

// TestIdentityCannotChange: the catalogue stores Identity, and programs that declare it differently are refused.
func TestIdentityCannotChange(t *testing.T) {
	events := eventsOf(t, tsdb.SchemaOptions{})
	plain := defined(t, "events", tsdb.Key("user"), tsdb.SchemaOptions{})
	for _, order := range [][2]*tsdb.Schema[string]{{events, plain}, {plain, events}} {
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, order[0])
		for call, err := range map[string]error{"Ensure": store.Ensure(t.Context(), order[1]), "Verify": store.Verify(t.Context(), order[1])} {
			if !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), "precision declared as ") || !strings.Contains(err.Error(), "ns+id") {
				t.Errorf("%s: %v", call, err)
			}
		}
	}
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, plain)
	if err := plain.For(store, acme).WithID("a").Put(t.Context(), ada, start, "x"); !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), "the dataset has no Identity") {
		t.Errorf("Put with an ID in a dataset without Identity: %v", err)
	}
	opts := tsdb.SchemaOptions{Identity: true, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 1}}
	if _, err := tsdb.Define("x", tsdb.Key("k"), codec.String(), opts); !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), "Head is with Identity") {
		t.Errorf("Define with a head: %v", err)
	}
}

// TestStoredBytesOfEvents compares rows and the catalogue's entry with a golden file, as TestStoredBytes does.
func TestStoredBytesOfEvents(t *testing.T) {
	c := testkit.NewClock(start)
	s := eventsOf(t, tsdb.SchemaOptions{Salts: 3})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
	for _, id := range []string{"e-1", "01JZ:x_y.z", "9223372036854775807"} {
		for _, name := range []string{"acme", "acme2"} {
			if err := s.For(store, tenant.MustParse(name)).WithID(id).Put(t.Context(), ada, start, "x"); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := dump(t, table)
	testkit.Golden(t, "testdata/events.golden", got, breaksRows)
}
