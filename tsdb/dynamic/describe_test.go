package dynamic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	start = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	acme  = tenant.MustParse("acme")
	d30   = gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}
	d90   = gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)}
)

// everyShape returns datasets that together use all that an entry of the catalogue can hold.
func everyShape(t *testing.T) []tsdb.Dataset {
	t.Helper()
	number := func(v float64) (float64, bool) { return v, true }
	hours, err := rollup.Define("hours", window.Every(time.Hour), []rollup.Measure[float64]{
		{Name: "temp", Of: number, Decimals: 2, Max: 1000},
		{Name: "kwh", Of: number, Kind: window.Counter, Decimals: 3, Max: 1e6},
		{Name: "power", Field: rollup.Payload, Max: 1e6, Aggregates: window.Integral, Linear: true, MaxGap: time.Hour},
	}, rollup.Options{Lateness: 10 * time.Minute, Retention: d90})
	if err != nil {
		t.Fatal(err)
	}
	events, err := rollup.Define("events", window.Every(time.Minute), []rollup.Measure[float64]{{Name: "n", Of: number, Max: 10}}, rollup.Options{Mode: rollup.ByStream})
	if err != nil {
		t.Fatal(err)
	}
	record := func(float64) (codec.Record, error) { return codec.Record{}, nil }
	kinds := tsdb.Key("line").Uint("stop", 5).Int("level", 2).UUID("device").ReversedID("order").ReversedDomain("host")
	return []tsdb.Dataset{
		tsdb.MustDefine("doors", kinds, codec.Records(), tsdb.SchemaOptions{Merge: true, Immutable: "#", Salts: 4, Precision: tsdb.Microseconds}),
		tsdb.MustDefine("logs", tsdb.Key("host"), codec.String(), tsdb.SchemaOptions{Identity: true, FirstWins: true}),
		tsdb.MustDefine("positions", tsdb.Key("fleet", "vehicle"), zstd.Wrap(codec.JSON[any](), zstd.Options{}), tsdb.SchemaOptions{
			Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 5, Only: true},
		}),
		tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Fallback(codec.Float64(), codec.Convert(codec.Int64(), func(n int64) (float64, error) { return float64(n), nil }, nil)), tsdb.SchemaOptions{
			Retention: d30, Classes: []gc.Class{d90}, FormerClasses: []gc.Class{{Name: "keep", Policy: gc.Never()}},
			RollupAges: map[string]time.Duration{"d30": 60 * 24 * time.Hour}, Rollups: []tsdb.Rollup{hours, events},
		}),
		tsdb.MustDefine("plain", tsdb.Key("k"), codec.Convert(codec.Records(), func(codec.Record) (float64, error) { return 0, nil }, record), tsdb.SchemaOptions{}),
	}
}

// TestDatasets: the catalogue lists every dataset with all that its schema declares, in the order of their names, and a
// program that reads the JSON keeps working.
func TestDatasets(t *testing.T) {
	shapes := everyShape(t)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, shapes...)
	declared := map[string]dynamic.Description{}
	for _, d := range shapes {
		declared[d.Name()] = dynamic.Describe(d)
	}
	var all []dynamic.Description
	for d, err := range store.Datasets(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got := dynamic.Describe(d)
		if text(t, got) != text(t, declared[d.Name()]) {
			t.Errorf("the catalogue describes\n%s, and the schema\n%s", text(t, got), text(t, declared[d.Name()]))
		}
		all = append(all, got)
	}
	testkit.Golden(t, "testdata/catalogue.json", text(t, all)+"\n", "programs that read the JSON of a catalogue may break")

	n := 0
	for range store.Datasets(t.Context()) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("a loop that is left after the first dataset has seen %d", n)
	}
	if got := dynamic.Describe(nil); got.Name != "" || got.Key != nil {
		t.Errorf("nil is described as %+v, want the zero Description", got)
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestDamagedEntries: a damaged entry is named, and does not hide the others.
func TestDamagedEntries(t *testing.T) {
	shapes := everyShape(t)
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, shapes...)
	for _, text := range []string{
		"", "{", "null", "7", `{"name":"other"}`, `{"name":"doors"}`, `{"name":"doors","key":["a"],"precision":"ps","tags":["str"],"classes":[{"name":"keep","policy":"never"}]}`,
		`{"name":"doors","key":["a"],"kinds":["color"],"precision":"ns","tags":["str"],"classes":[{"name":"keep","policy":"never"}]}`,
		`{"name":"doors","key":["a"],"precision":"ns","tags":["str"],"classes":[{"name":"keep","policy":"when full"}]}`,
		`{"name":"doors","key":["a"],"precision":"ns","tags":["no tag"],"classes":[{"name":"keep","policy":"never"}]}`,
		`{"name":"doors","key":["a"],"precision":"ns","tags":[],"classes":[]}`,
		`{"name":"doors","key":["a"],"precision":"ns","salts":-1,"tags":["str"],"classes":[{"name":"keep","policy":"never"}],"rollups":[{"name":"?"}]}`,
	} {
		m := bigtable.NewMutation()
		m.Set("_sys", "json", 0, []byte(text))
		if err := table.Apply(t.Context(), "!dataset#doors", m); err != nil {
			t.Fatal(err)
		}
		var names []string
		var damage error
		for d, err := range store.Datasets(t.Context()) {
			if err != nil {
				if d != nil || damage != nil {
					t.Errorf("entry %q: a dataset %v with error %v after %v", text, d, err, damage)
				}
				damage = err
				continue
			}
			names = append(names, d.Name())
		}
		if !errors.Is(damage, tsdb.ErrUnreadableEntry) || !strings.Contains(damage.Error(), "doors") {
			t.Errorf("entry %q: error %v, want ErrUnreadableEntry with the name of the dataset", text, damage)
		}
		if got := strings.Join(names, " "); got != "logs plain positions readings" {
			t.Errorf("entry %q: the others are %s", text, got)
		}
	}
}

// TestDatasetsThatCannotBeRead: an error of the service is the last pair.
func TestDatasetsThatCannotBeRead(t *testing.T) {
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, everyShape(t)...)
	conn.Inject(tsdbtest.CutStream(2, codes.PermissionDenied).On(tsdbtest.ReadRows))
	n, failed := 0, error(nil)
	for _, err := range store.Datasets(t.Context()) {
		if failed != nil {
			t.Fatalf("the sequence goes on after %v", failed)
		}
		if failed = err; err == nil {
			n++
		}
	}
	if errors.Is(failed, tsdb.ErrUnreadableEntry) || status.Code(failed) != codes.PermissionDenied && !strings.Contains(fmt.Sprint(failed), "PermissionDenied") {
		t.Errorf("%d datasets and error %v, want PermissionDenied at the end", n, failed)
	}
	conn.Clear()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for d, err := range store.Datasets(t.Context()) {
		if d != nil || !errors.Is(err, tsdb.ErrClosed) {
			t.Errorf("a closed store yields %v, %v", d, err)
		}
	}
}
