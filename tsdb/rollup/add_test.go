package rollup_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// addBubble runs a test with a simulated clock; over TCP, where synctest does not work, with the real one.
func addBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if os.Getenv("TIDEMARK_TEST_TCP") != "" {
		f(t)
		return
	}
	synctest.Test(t, f)
}

// fewer returns how often to repeat a part of a test: n times, or a quarter of that under the race detector and over
// TCP, which take ten times as long.
func fewer(n int) int {
	if testkit.Raced || os.Getenv("TIDEMARK_TEST_TCP") != "" {
		return max(1, n/4)
	}
	return n
}

// view is a view of an advertisement.
type view struct {
	Cents float64 `json:"cents"`
	Shown *int64  `json:"shown,omitempty"`
}

var viewMeasures = []rollup.Measure[view]{
	{Name: "cents", Of: func(v view) (float64, bool) { return v.Cents, true }, Decimals: 2, Max: 1000},
	{Name: "shown", Of: func(v view) (float64, bool) {
		if v.Shown == nil {
			return 0, false
		}
		return float64(*v.Shown), true
	}, Max: 1 << 20, Aggregates: window.Mean},
}

// ads is a rollup by hour with its store, and a model of its rows.
type ads struct {
	t      testing.TB
	rollup *rollup.Rollup[view]
	schema *tsdb.Schema[view]
	store  *tsdb.Store
	conn   *tsdbtest.Conn
	table  *bigtable.Table
	repo   *tsdb.Repository[view]
	model  map[string]int64 // by row, column and timestamp
}

func newAds(t testing.TB, opts rollup.Options, schema tsdb.SchemaOptions) *ads {
	t.Helper()
	a := &ads{t: t, model: map[string]int64{}}
	a.rollup = rollup.MustDefine("hour", window.Every(time.Hour), viewMeasures, opts)
	schema.Rollups = []tsdb.Rollup{a.rollup}
	a.schema = tsdb.MustDefine("views", tsdb.Key("ip", "ad"), codec.JSON[view](), schema)
	a.store, a.conn, a.table = tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: 2 * time.Second}}}, a.schema)
	a.repo = a.schema.For(a.store, acme)
	return a
}

// count adds an event to the model.
func (a *ads) count(p tsdb.Point[view]) {
	bucket := p.Time.Truncate(time.Hour).UnixMilli()
	described := inside.Held(a.rollup).Entry
	span := described.Span
	row := fmt.Sprintf("acme#views!rollup.hour#%s#%019d", inside.Of(p.Entity).Path(), (1<<63-1)-bucket/span*span)
	at := func(column string) string { return fmt.Sprintf("%s %s@%d", row, column, bucket) }
	cents := int64(p.Value.Cents*100 + 0.5)
	_, known := a.model[at("keep.n:cents")]
	a.model[at("keep.s:n")]++
	a.model[at("keep.s:c.cents")]++
	a.model[at("keep.s:s.cents")] += cents
	if lo := at("keep.n:cents"); !known || cents < a.model[lo] {
		a.model[lo] = cents
	}
	if hi := at("keep.x:cents"); !known || cents > a.model[hi] {
		a.model[hi] = cents
	}
	if p.Value.Shown != nil {
		a.model[at("keep.s:c.shown")]++
		a.model[at("keep.s:s.shown")] += *p.Value.Shown
	}
}

// stored returns the content of the table in the form of the model, and the control cells.
func (a *ads) stored() (cells map[string]int64, control map[string]string) {
	a.t.Helper()
	cells, control = map[string]int64{}, map[string]string{}
	err := a.table.ReadRows(context.Background(), bigtable.PrefixRange("acme#"), func(row bigtable.Row) bool {
		if strings.Contains(row.Key(), "!fields#") {
			return true
		}
		for family, items := range row {
			for _, item := range items {
				if family == "keep.c" {
					control[row.Key()+" "+item.Column] = string(item.Value)
					continue
				}
				cells[fmt.Sprintf("%s %s@%d", row.Key(), item.Column, int64(item.Timestamp)/1000)] = int64(binary.BigEndian.Uint64(item.Value))
			}
		}
		return true
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return cells, control
}

func (a *ads) check(when string) {
	a.t.Helper()
	if got, _ := a.stored(); !maps.Equal(got, a.model) {
		for k, want := range a.model {
			if got[k] != want {
				a.t.Errorf("%s: %s is %d, want %d", when, k, got[k], want)
			}
		}
		for k := range got {
			if _, ok := a.model[k]; !ok && !strings.Contains(k, "#"+onlyPoints+"#") {
				a.t.Errorf("%s: %s is %d, want nothing", when, k, got[k])
			}
		}
	}
}

// events returns random events of a few entities and hours.
func (a *ads) events(r *rand.Rand, n int) []tsdb.Point[view] {
	out := make([]tsdb.Point[view], n)
	for i := range out {
		out[i] = tsdb.Point[view]{
			Entity: tsdb.NewEntity(fmt.Sprintf("10.0.0.%d", r.IntN(3)), "x"),
			Time:   start.Add(time.Duration(r.IntN(3*3600)) * time.Second),
			Value:  view{Cents: float64(r.IntN(1000)) / 100},
		}
		if r.IntN(2) == 0 {
			shown := int64(r.IntN(100))
			out[i].Value.Shown = &shown
		}
	}
	return out
}

func (a *ads) writer(dir string) *tsdb.Writer {
	a.t.Helper()
	w, err := a.store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: dir}})
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = w.Close(context.Background()) })
	return w
}

var addFaults = []struct {
	name  string
	fault tsdbtest.Fault
}{
	{"none", tsdbtest.Fault{}},
	{"fails before", tsdbtest.Fail(codes.Unavailable).Times(1)},
	{"fails twice before", tsdbtest.Fail(codes.Unavailable).Times(2)},
	{"answer lost", tsdbtest.LoseResponse(codes.Unavailable).Times(1)},
	{"answer lost twice", tsdbtest.LoseResponse(codes.Unavailable).Times(2)},
	{"answer lost, internal", tsdbtest.LoseResponse(codes.Internal).Times(1)},
	{"answer lost, overload", tsdbtest.LoseResponse(codes.ResourceExhausted).Times(1)},
	{"answer too late", tsdbtest.LoseResponse(codes.DeadlineExceeded).Times(3)},
	{"second answer lost", tsdbtest.LoseResponse(codes.Unavailable).Skip(1).Times(1)},
	{"answers lost for a while", tsdbtest.LoseResponse(codes.Unavailable)},
	{"fails for a while", tsdbtest.Fail(codes.Unavailable)},
	{"stream cut", tsdbtest.CutStream(0, codes.Unavailable).Times(2)},
}

// TestStreamCountsOnceUnderEveryFault: whatever responses are lost, each event in the journal counts exactly once, also
// while the service asks the writer for less.
func TestStreamCountsOnceUnderEveryFault(t *testing.T) {
	t.Run("plain", func(t *testing.T) { streamCountsOnce(t, false) })
	t.Run("limited", func(t *testing.T) { streamCountsOnce(t, true) })
}

// onlyPoints is an entity with points and without events.
const onlyPoints = "10.1.0.1"

func streamCountsOnce(t *testing.T, limited bool) {
	addBubble(t, func(t *testing.T) {
		a := newAds(t, rollup.Options{Mode: rollup.ByStream}, tsdb.SchemaOptions{})
		w, err := a.store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: filepath.Join(t.TempDir(), "journal")}, FlowControl: limited})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Close(context.Background()) })
		limits := 0
		in := rollup.NewAdder(a.rollup, a.repo, w)
		r := rand.New(rand.NewPCG(1, 2))
		for _, f := range addFaults {
			for _, method := range []tsdbtest.Method{tsdbtest.CheckAndMutateRow, tsdbtest.ReadRows} {
				if f.name != "none" {
					a.conn.Inject(f.fault.On(method))
				}
				if limited {
					a.conn.Inject(tsdbtest.LimitRate(0.7, time.Second))
				}
				for range fewer(3) {
					if limited { // only bulk writes of points get advice
						pt := a.events(r, 1)[0]
						if err := a.repo.Via(w).Enqueue(t.Context(), tsdb.NewEntity(onlyPoints, "x"), pt.Time, pt.Value); err != nil {
							t.Fatal(err)
						}
					}
					events := a.events(r, 40)
					outcomes, err := in.AddMany(t.Context(), events)
					if err != nil {
						t.Fatalf("%s: AddMany = %v, %v", f.name, outcomes, err)
					}
					for _, ev := range events {
						a.count(ev)
					}
					time.Sleep(300 * time.Millisecond)
				}
				a.conn.Clear()
				if err := w.Flush(t.Context()); err != nil {
					t.Fatalf("%s: %v", f.name, err)
				}
				a.check(f.name + " on " + string(method))
				limits += min(1, int(w.Stats().RateLimit))
			}
		}
		if limited && limits == 0 {
			t.Error("the writer never had a limit")
		}
		if st := w.Stats(); st.Journal.Points != 0 || st.Journal.DeadLetters != 0 || st.Rejected+st.Unknown != 0 {
			t.Errorf("the journal still holds %+v", st)
		}
	})
}

// TestStreamGoesOnWhereAnotherLeftOff: writers end early, with responses lost. The next writer delivers the journal,
// and each event counts exactly once.
func TestStreamGoesOnWhereAnotherLeftOff(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		a := newAds(t, rollup.Options{Mode: rollup.ByStream}, tsdb.SchemaOptions{})
		dir := filepath.Join(t.TempDir(), "journal")
		r := rand.New(rand.NewPCG(3, 4))
		for round := range 12 {
			w := a.writer(dir)
			switch round % 4 {
			case 1:
				a.conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Skip(r.IntN(3)))
			case 2:
				a.conn.Inject(tsdbtest.Fail(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Skip(r.IntN(3)))
			case 3:
				a.conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Times(2))
			}
			for range 3 {
				events := a.events(r, 20)
				if _, err := rollup.NewAdder(a.rollup, a.repo, w).AddMany(t.Context(), events); err != nil {
					t.Fatal(err)
				}
				for _, ev := range events {
					a.count(ev)
				}
				time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(30))*time.Millisecond)
			if err := w.Close(ctx); err != nil && !errors.Is(err, tsdb.ErrUndelivered) {
				t.Fatalf("round %d: Close = %v", round, err)
			}
			cancel()
			a.conn.Clear()
		}
		w := a.writer(dir)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.check("in the end")
	})
}

// TestStreamsShareARow: two journals add to the same rows in parallel.
func TestStreamsShareARow(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		a := newAds(t, rollup.Options{Mode: rollup.ByStream}, tsdb.SchemaOptions{})
		one, two := a.writer(filepath.Join(t.TempDir(), "one")), a.writer(filepath.Join(t.TempDir(), "two"))
		r := rand.New(rand.NewPCG(5, 6))
		a.conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Skip(1).Times(3))
		for i := range 20 {
			w := one
			if i%2 == 1 {
				w = two
			}
			events := a.events(r, 10)
			if _, err := rollup.NewAdder(a.rollup, a.repo, w).AddMany(t.Context(), events); err != nil {
				t.Fatal(err)
			}
			for _, ev := range events {
				a.count(ev)
			}
		}
		for _, w := range []*tsdb.Writer{one, two} {
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		a.check("two journals")
		if _, control := a.stored(); len(control) != 6 { // three rows with two streams each
			t.Errorf("the rows hold %d marks of streams, want 6: %v", len(control), control)
		}
	})
}

// TestStreamMergesWhatWaits: a thousand events of one row take few requests.
func TestStreamMergesWhatWaits(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		a := newAds(t, rollup.Options{Mode: rollup.ByStream}, tsdb.SchemaOptions{})
		w := a.writer(filepath.Join(t.TempDir(), "journal"))
		var events []tsdb.Point[view]
		for range 1000 {
			events = append(events, tsdb.Point[view]{Entity: tsdb.NewEntity("10.0.0.1", "x"), Time: start, Value: view{Cents: 0.01}})
			a.count(events[0])
		}
		a.conn.Inject(tsdbtest.Delay(50 * time.Millisecond).On(tsdbtest.CheckAndMutateRow))
		if _, err := rollup.NewAdder(a.rollup, a.repo, w).AddMany(t.Context(), events); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.check("merged")
		if n := a.conn.Counts().Calls[tsdbtest.CheckAndMutateRow]; n > 20 {
			t.Errorf("%d requests for a thousand events of one row, want at most 20", n)
		}
	})
}

// TestStreamDeadLetters: an event that the service refuses becomes a dead letter at once and is not counted. A retry
// counts it once, although later events of the row were added before.
func TestStreamDeadLetters(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		a := newAds(t, rollup.Options{Mode: rollup.ByStream}, tsdb.SchemaOptions{})
		w := a.writer(filepath.Join(t.TempDir(), "journal"))
		in := rollup.NewAdder(a.rollup, a.repo, w)
		r := rand.New(rand.NewPCG(7, 8))
		a.conn.Inject(tsdbtest.Fail(codes.InvalidArgument).On(tsdbtest.CheckAndMutateRow))
		refused := a.events(r, 15)
		if _, err := in.AddMany(t.Context(), refused); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.conn.Clear()
		a.check("refused")
		later := a.events(r, 15)
		if _, err := in.AddMany(t.Context(), later); err != nil {
			t.Fatal(err)
		}
		for _, ev := range later {
			a.count(ev)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.check("later ones")
		var ids []uint64
		for l, err := range w.DeadLetters(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if l.Rollup != "hour" || l.Dataset != "views" || l.Tenant != acme || l.Time.Before(start.Truncate(time.Hour)) || l.Entity == (tsdb.Entity{}) {
				t.Errorf("dead letter %+v", l)
			}
			ids = append(ids, l.ID)
		}
		if len(ids) != len(refused) {
			t.Fatalf("%d dead letters of %d events", len(ids), len(refused))
		}
		if _, err := w.RetryDeadLetters(t.Context(), ids...); err != nil {
			t.Fatal(err)
		}
		for _, ev := range refused {
			a.count(ev)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.check("retried")
	})
}
