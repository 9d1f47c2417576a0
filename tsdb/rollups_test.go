package tsdb_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/gcrule"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/ensure"
	"github.com/tidemark-go/tidemark/internal/store/nest"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func temp(decimals int) []rollup.Measure[reading] {
	return []rollup.Measure[reading]{{Name: "temp", Of: func(r reading) (float64, bool) { return r.TempC, true }, Decimals: decimals, Max: 100}}
}

func hourly(t testing.TB, measures []rollup.Measure[reading], opts rollup.Options) *rollup.Rollup[reading] {
	t.Helper()
	return must[*rollup.Rollup[reading]](t)(rollup.Define("hour", window.Every(time.Hour), measures, opts))
}

// strange is a rollup with a catalogue entry that rollup.Define would refuse.
type strange struct{ definition }

type definition = inside.Handle[*nest.Definition]

func (s strange) Name() string { return inside.Held(s).Entry.Name }

// foreign is a Rollup type from outside this module. It can only embed one of this module.
type foreign struct{ tsdb.Rollup }

func (foreign) Name() string { return "foreign" }

// TestRollupsThatCannotBe: a schema refuses rollups that writes and workers could not maintain.
func TestRollupsThatCannotBe(t *testing.T) {
	hour := hourly(t, temp(2), rollup.Options{})
	from := func(name string, decimals int) tsdb.Rollup {
		return must[*rollup.Rollup[reading]](t)(rollup.Define("day", window.Every(24*time.Hour), temp(decimals), rollup.Options{From: name}))
	}
	fine := inside.Held(hour).Entry
	changed := func(f func(*catalog.Rollup)) []tsdb.Rollup {
		c := fine
		f(&c)
		return []tsdb.Rollup{strange{inside.Hold(&nest.Definition{Entry: c, Grid: window.Every(time.Hour), Is: func(any) bool { return true }})}}
	}
	many := make([]tsdb.Rollup, 9)
	for i := range many {
		many[i] = counted[reading](fmt.Sprintf("r%d", i), time.Hour, rollup.Options{})
	}
	other := rollup.Options{Retention: gc.Class{Name: "d90", Policy: gc.MaxAge(time.Hour)}}
	for name, opts := range map[string]tsdb.SchemaOptions{
		"nil":                      {Rollups: []tsdb.Rollup{nil}},
		"a type of its own":        {Rollups: []tsdb.Rollup{foreign{}}},
		"a type around nil":        {Rollups: []tsdb.Rollup{foreign{(*rollup.Rollup[reading])(nil)}}},
		"a type around one":        {Rollups: []tsdb.Rollup{foreign{hour}}},
		"a nil pointer":            {Rollups: []tsdb.Rollup{(*rollup.Rollup[reading])(nil)}},
		"a zero one":               {Rollups: []tsdb.Rollup{new(rollup.Rollup[reading])}},
		"twice":                    {Rollups: []tsdb.Rollup{hour, hour}},
		"too many":                 {Rollups: many},
		"from nothing":             {Rollups: []tsdb.Rollup{from("hour", 2)}},
		"from a later one":         {Rollups: []tsdb.Rollup{from("hour", 2), hour}},
		"from other measures":      {Rollups: []tsdb.Rollup{hour, from("hour", 3)}},
		"from events":              {Rollups: []tsdb.Rollup{hourly(t, temp(2), rollup.Options{Mode: rollup.ByStream}), from("hour", 2)}},
		"no points":                {Rollups: []tsdb.Rollup{hour}, Head: tsdb.Head{Points: 1, Only: true}, Precision: tsdb.Milliseconds},
		"another policy of points": {Retention: d90, Rollups: []tsdb.Rollup{hourly(t, nil, other)}},
		"another policy of one":    {Rollups: []tsdb.Rollup{counted[reading]("a", time.Hour, rollup.Options{Retention: d90}), hourly(t, nil, other)}},
		"a name":                   {Rollups: changed(func(c *catalog.Rollup) { c.Name = "a#b" })},
		"a long name":              {Rollups: changed(func(c *catalog.Rollup) { c.Name = strings.Repeat("a", 17) })},
		"a kind":                   {Rollups: changed(func(c *catalog.Rollup) { c.Kind = "" })},
		"a grid":                   {Rollups: changed(func(c *catalog.Rollup) { c.Zone = "" })},
		"a span":                   {Rollups: changed(func(c *catalog.Rollup) { c.Span = 0 })},
		"a step":                   {Rollups: changed(func(c *catalog.Rollup) { c.Step = 0 })},
		"a step beyond the span":   {Rollups: changed(func(c *catalog.Rollup) { c.Step = c.Span + 1 })},
		"a tiny step":              {Rollups: changed(func(c *catalog.Rollup) { c.Step = 1 })},
		"a lateness":               {Rollups: changed(func(c *catalog.Rollup) { c.Late = -1 })},
		"a class":                  {Rollups: changed(func(c *catalog.Rollup) { c.Class.Name = "_x" })},
		"a policy":                 {Rollups: changed(func(c *catalog.Rollup) { c.Class.Policy = "x" })},
		"versions":                 {Rollups: changed(func(c *catalog.Rollup) { c.Class.Policy = "maxversions=1" })},
		"a measure":                {Rollups: changed(func(c *catalog.Rollup) { c.Measures = []catalog.RollupMeasure{{Name: "A"}} })},
	} {
		if _, err := tsdb.Define("readings", tsdb.Key("site", "device"), codec.JSON[reading](), opts); !errors.Is(err, tsdb.ErrInvalid) && !errors.Is(err, invalid.ErrPolicy) && !errors.Is(err, invalid.ErrVersions) {
			t.Errorf("%s: %v, want an error", name, err)
		}
	}
	long := tsdb.NewEntity("a", strings.Repeat("x", 4096-len("acme#readings#a##")-19))
	s := readings(t, tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	conn.Reset()
	if err := s.For(store, acme).Put(t.Context(), long, start, reading{}); !errors.Is(err, tsdb.ErrInvalid) || len(conn.Counts().Calls) > 0 {
		t.Errorf("an entity whose marks would have too long a key: %v, want ErrInvalid and no request", err)
	}
}

// TestAnotherRollupIsRefused: no property of a stored rollup can change, because other programs read and compute it.
func TestAnotherRollupIsRefused(t *testing.T) {
	day := func(opts rollup.Options) tsdb.Rollup {
		return must[*rollup.Rollup[reading]](t)(rollup.Define("day", window.Every(24*time.Hour), temp(2), opts))
	}
	hour := hourly(t, temp(2), rollup.Options{})
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, readings(t, tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour, day(rollup.Options{})}}))
	_, admin := tsdbtest.Clients(t, conn)
	before := tableContents(t, table, admin)
	berlin := must[*time.Location](t)(time.LoadLocation("Europe/Berlin"))
	for want, rollups := range map[string][]tsdb.Rollup{
		"rollup day is stored but not declared":                             {hour},
		"kind of rollup hour declared as once, stored as derived":           {hourly(t, temp(2), rollup.Options{Mode: rollup.Once}), day(rollup.Options{})},
		"width of rollup hour declared as 2h0m0s, stored as 1h0m0s":         {must[*rollup.Rollup[reading]](t)(rollup.Define("hour", window.Every(2*time.Hour), temp(2), rollup.Options{})), day(rollup.Options{})},
		"zone of rollup day declared as Europe/Berlin, stored as UTC":       {hour, must[*rollup.Rollup[reading]](t)(rollup.Define("day", window.Every(24*time.Hour).In(berlin), temp(2), rollup.Options{}))},
		"source of rollup day declared as hour, stored as the points":       {hour, day(rollup.Options{From: "hour"})},
		"span of a row of rollup hour declared as 86400000 ms":              {hourly(t, temp(2), rollup.Options{Span: 24 * time.Hour}), day(rollup.Options{})},
		"lateness of rollup hour declared as 1000 ms, stored as 60000 ms":   {hourly(t, temp(2), rollup.Options{Lateness: time.Second}), day(rollup.Options{})},
		"retention class of rollup hour declared as d90, stored as keep":    {hourly(t, temp(2), rollup.Options{Retention: d90}), day(rollup.Options{})},
		"measures of rollup hour declared as temp (count+sum+min+max, 3":    {hourly(t, temp(3), rollup.Options{}), day(rollup.Options{})},
		"measures of rollup hour declared as temp (count+sum, 2 decimals":   {hourly(t, []rollup.Measure[reading]{{Name: "temp", Of: temp(2)[0].Of, Decimals: 2, Max: 100, Aggregates: window.Mean}}, rollup.Options{}), day(rollup.Options{})},
		"measures of rollup hour declared as , stored as temp (count+sum+m": {hourly(t, nil, rollup.Options{}), day(rollup.Options{})},
	} {
		s := readings(t, tsdb.SchemaOptions{Rollups: rollups})
		for call, err := range map[string]error{"Ensure": store.Ensure(t.Context(), s), "Verify": store.Verify(t.Context(), s)} {
			if !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want a conflict that says %q", call, err, want)
			}
		}
		if after := tableContents(t, table, admin); !reflect.DeepEqual(before, after) {
			t.Fatalf("%s: a refused Ensure changed the table from %v to %v", want, before, after)
		}
	}
}

// TestEnsureAddsRollups: Ensure probes a new rollup once, adds it, and removes the probe rows.
func TestEnsureAddsRollups(t *testing.T) {
	v1 := readings(t, tsdb.SchemaOptions{})
	v2 := readings(t, tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hourly(t, temp(2), rollup.Options{Retention: d90})}})
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, v1)
	_, admin := tsdbtest.Clients(t, conn)
	if err := store.Verify(t.Context(), v2); !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), "rollup hour is declared but not stored") {
		t.Errorf("Verify before Ensure: %v, want a conflict", err)
	}
	for range 2 {
		if err := errors.Join(store.Ensure(t.Context(), v2), store.Verify(t.Context(), v2)); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Ensure(t.Context(), v1); !errors.Is(err, tenancy.ErrSchemaConflict) {
		t.Errorf("a program without the rollup, which would not write its marks: %v, want a conflict", err)
	}
	conn.Reset()
	if err := store.Ensure(t.Context(), v2); err != nil || conn.Counts().Calls[tsdbtest.CheckAndMutateRow] > 0 {
		t.Errorf("Ensure with nothing to do: %v, requests %v", err, conn.Counts().Calls)
	}
	if len(rows(t, table)) > 0 {
		t.Errorf("rows left: %v", rows(t, table))
	}
	err := table.ReadRows(t.Context(), bigtable.PrefixRange("!probe"), func(r bigtable.Row) bool { t.Errorf("%q is left", r.Key()); return true })
	info, err2 := admin.TableInfo(t.Context(), tsdbtest.Table)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	sum := func(a bigtable.Aggregator) bigtable.Type {
		return bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: a}
	}
	want := map[string]struct {
		policy string
		sort   bigtable.Type
	}{
		"d90.s": {"maxage=90d", sum(bigtable.SumAggregator{})}, "d90.n": {"maxage=90d", sum(bigtable.MinAggregator{})},
		"d90.x": {"maxage=90d", sum(bigtable.MaxAggregator{})}, "d90.c": {"maxage=90d || maxversions=1", nil}, "_mark": {"maxversions=1", nil},
	}
	for _, f := range info.FamilyInfos {
		w, ok := want[f.Name]
		if !ok {
			continue
		}
		delete(want, f.Name)
		policy, err := gcrule.From(f.FullGCPolicy)
		a, aggregate := f.ValueType.(bigtable.AggregateType)
		if wa, ok := w.sort.(bigtable.AggregateType); err != nil || policy.String() != w.policy || aggregate != ok || ok && a.Aggregator != wa.Aggregator {
			t.Errorf("family %s: %v, %v %v, want %v", f.Name, err, policy, f.ValueType, w)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing families: %v", want)
	}
	other := must[*tsdb.Schema[reading]](t)(tsdb.Define("other", tsdb.Key("x"), codec.JSON[reading](),
		tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hourly(t, nil, rollup.Options{Retention: d90})}}))
	if err := store.Ensure(t.Context(), v2, other); err != nil {
		t.Errorf("Ensure of two datasets that share a class of rollups: %v", err)
	}
}

// TestFamiliesThatNoRollupFits: the type of a family cannot change, so Ensure refuses a family of another type before
// it writes anything.
func TestFamiliesThatNoRollupFits(t *testing.T) {
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{})
	_, admin := tsdbtest.Clients(t, conn)
	sum := bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: bigtable.SumAggregator{}}
	if err := admin.CreateTableFromConf(t.Context(), &bigtable.TableConf{TableID: tsdbtest.Table, ColumnFamilies: map[string]bigtable.Family{
		"keep.s": {GCPolicy: bigtable.NoGcPolicy()},
		"keep.n": {ValueType: sum},
		"keep.c": {GCPolicy: bigtable.MaxVersionsPolicy(1), ValueType: sum},
		"_mark":  {GCPolicy: bigtable.MaxVersionsPolicy(2)},
	}}); err != nil {
		t.Fatal(err)
	}
	before := tableContents(t, table, admin)
	err := store.Ensure(t.Context(), readings(t, tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hourly(t, nil, rollup.Options{})}}))
	for _, want := range []string{
		"family keep.s: is an ordinary family, a rollup needs one of sums of int64",
		"family keep.n: holds sums of int64, a rollup needs one of minima of int64",
		"family keep.c: is an aggregate family",
		`family _mark: policy declared as "maxversions=1", the table has "maxversions=2"`,
	} {
		if !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), want) {
			t.Errorf("Ensure: %v, want it to say %q", err, want)
		}
	}
	if after := tableContents(t, table, admin); !reflect.DeepEqual(before, after) {
		t.Errorf("a refused Ensure changed the table from %v to %v", before, after)
	}
}

// TestServiceThatDoesNotAdd: Ensure refuses rollups for which the service lacks support, except those of mode Once,
// which need none.
func TestServiceThatDoesNotAdd(t *testing.T) {
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, must[*tsdb.Schema[float64]](t)(tsdb.Define("first", tsdb.Key("x"), codec.Float64(), tsdb.SchemaOptions{})))
	once := readings(t, tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hourly(t, nil, rollup.Options{Mode: rollup.Once})}})
	for _, mode := range []rollup.Mode{rollup.Derived, rollup.ByStream, rollup.ByMessage} {
		s := readings(t, tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hourly(t, nil, rollup.Options{Mode: mode})}})
		for _, skip := range []int{0, 1} {
			conn.Inject(tsdbtest.Fail(codes.InvalidArgument).On(tsdbtest.CheckAndMutateRow).Skip(skip).Times(1))
			if err := store.Ensure(t.Context(), s); !errors.Is(err, ensure.ErrNoConditionalAggregates) {
				t.Errorf("%v with probe write %d refused: %v, want ErrNoConditionalAggregates", mode, skip, err)
			}
			conn.Clear()
		}
		conn.Inject(tsdbtest.Fail(codes.FailedPrecondition).On(tsdbtest.CheckAndMutateRow).Times(1))
		if err := store.Ensure(t.Context(), s); err == nil || !strings.Contains(err.Error(), "ConditionalAppProfile") {
			t.Errorf("%v without single-cluster routing: %v, want an error about ConditionalAppProfile", mode, err)
		}
		conn.Clear()
		if err := store.Verify(t.Context(), s); !errors.Is(err, tenancy.ErrSchemaConflict) {
			t.Errorf("the refused rollup of mode %v is in the catalogue: %v", mode, err)
		}
	}
	for _, fault := range []tsdbtest.Fault{tsdbtest.LoseResponse(codes.Unavailable), tsdbtest.Fail(codes.Unavailable)} {
		for skip := range 2 {
			name := fmt.Sprintf("second%d%p", skip, &fault)
			s := must[*tsdb.Schema[float64]](t)(tsdb.Define(name, tsdb.Key("x"), codec.Float64(), tsdb.SchemaOptions{Rollups: three[float64]()}))
			conn.Inject(fault.On(tsdbtest.CheckAndMutateRow).Skip(skip).Times(1))
			if err := store.Ensure(t.Context(), s); err != nil {
				t.Errorf("a probe whose write %d fails temporarily: %v", skip, err)
			}
			conn.Clear()
		}
	}
	conn.Reset()
	if err := store.Ensure(t.Context(), once); err != nil || conn.Counts().Calls[tsdbtest.CheckAndMutateRow] != 1 {
		t.Errorf("a rollup of mode Once: %v, requests %v", err, conn.Counts().Calls)
	}
	if err := table.ReadRows(t.Context(), bigtable.PrefixRange("!probe"), func(r bigtable.Row) bool { t.Errorf("%q is left", r.Key()); return true }); err != nil {
		t.Fatal(err)
	}
}

// TestTheDoor checks what package inside gives the packages below tsdb.
func TestTheDoor(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{Retention: d90, Salts: 16, Rollups: three[reading]()})
	c := testkit.NewClock(start)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
	in, err := inside.Of(s.For(store, acme)).Internals()
	if err != nil || in.D.Name != "readings" || len(in.Rollups) != 3 {
		t.Fatal(in, err)
	}
	if ms := in.D.OldestUnexpired(start); ms != start.Add(-90*24*time.Hour).UnixMilli() {
		t.Errorf("the oldest visible time is %d", ms)
	}
	minute, day := in.Rollups[0], in.Rollups[2]
	if minute.Families.Sum != "keep.s" || minute.Bounded || !day.Bounded || day.Families.Control != "d90.c" || day.Age != 90*24*time.Hour {
		t.Errorf("rollups are %+v and %+v", minute, day)
	}
	if got := string(day.Marks.AppendPoint(nil, inside.Of(roof).Path(), 0)); got != "acme#readings!mark.day#12#berlin#roof-7#9223372036854775807" {
		t.Errorf("marks are at %q", got)
	}
	if got := string(day.Rows.AppendPoint(nil, inside.Of(roof).Path(), 0)); got != "acme#readings!rollup.day#12#berlin#roof-7#9223372036854775807" {
		t.Errorf("buckets are at %q", got)
	}
	d, err := inside.Of(tsdb.Dataset(s)).Shape()
	if err != nil || d.Name != "readings" || d.Salts != 16 || len(d.Rollups) != 3 || d.Rollups[1].From != "minute" {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := inside.Of(tsdb.Dataset((*tsdb.Schema[reading])(nil))).Shape(); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("the dataset of no schema: %v, want ErrInvalid", err)
	}
	if inside.Of(tsdb.Entity{}).At(inside.Of(roof).Path()) != roof {
		t.Error("an entity differs after a round trip through its path")
	}
	rollups := d.ToCatalog().Rollups
	text, err := json.Marshal(rollups)
	var back []catalog.Rollup
	if err != nil || json.Unmarshal(text, &back) != nil || !reflect.DeepEqual(back, rollups) {
		t.Errorf("the catalogue's rollups are read back as %+v", back)
	}
}
