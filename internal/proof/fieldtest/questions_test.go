package fieldtest

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// These datasets hold whole lines, as an ingestion service stores them. If the newest point of a truck lacks a field,
// the answer comes from an older one. The key is the fleet and the truck.
var (
	readings    = tsdb.MustDefine("readings", tsdb.Key("fleet", "name"), codec.Records(), tsdb.SchemaOptions{})
	diagnostics = tsdb.MustDefine("diagnostics", tsdb.Key("fleet", "name"), codec.Records(), tsdb.SchemaOptions{})
)

// sighting is one occurrence of some fields of a truck, from a plain pass over the lines.
type sighting struct {
	time   time.Time
	values []float64
}

// byTruck are all sightings of some fields, by truck, in the order of the lines.
type byTruck map[tsdb.Entity][]sighting

func (b byTruck) newest(e tsdb.Entity) (s sighting, ok bool) {
	for _, one := range b[e] {
		if !ok || !one.time.Before(s.time) {
			s, ok = one, true
		}
	}
	return s, ok
}

// TestTruckQuestions answers the questions of the benchmark that the data comes from through the public API, and
// compares each answer with a plain pass over the lines. Other senders write a number without a fraction as an integer,
// and some write numbers as text: the answers stay the same.
func TestTruckQuestions(t *testing.T) {
	text := []byte(sample())
	if *trucks != "" {
		var err error
		if text, err = io.ReadAll(input(t)); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("as sent", func(t *testing.T) { answers(t, text) })
	kinds, n := []string{"i", "u", "", `"`}, 0
	mixed := regexp.MustCompile(`=(\d+)\.?\d*(,| )`).ReplaceAllFunc(text, func(field []byte) []byte {
		number := strings.Trim(string(field), "=, ")
		switch kind := kinds[n%len(kinds)]; kind {
		case "":
		case `"`:
			number = `"` + number + `"`
		default:
			whole, _, _ := strings.Cut(number, ".")
			number = whole + kind
		}
		n++
		return []byte("=" + number + string(field[len(field)-1:]))
	})
	t.Run("numbers of any kind", func(t *testing.T) { answers(t, mixed) })
}

func answers(t *testing.T, text []byte) {
	t.Helper()
	lines := trucksOf(t, text)
	store, err := embedded.New(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(t.Context(), readings, diagnostics); err != nil {
		t.Fatal(err)
	}
	q := questions{t, readings.For(store, tenant.MustParse("fleet")), diagnostics.For(store, tenant.MustParse("fleet")), lines}
	for repo, points := range map[*tsdb.Repository[codec.Record]][]tsdb.Point[codec.Record]{q.readings: lines.readings, q.diagnostics: lines.diagnostics} {
		for part := range slices.Chunk(points, 1000) {
			if _, err := repo.PutMany(t.Context(), part); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d lines of readings, %d of diagnostics, %d without a truck; the newest time is %v", len(lines.readings), len(lines.diagnostics), lines.nameless, lines.now)
	q.lastLocations()
	for _, below := range []float64{0.05, 0.1, 0.5, 0.801, 1.01} {
		q.lowFuel(below)
	}
	for _, below := range []float64{1, 5, 20, 200} {
		q.stoodStill(10*time.Minute, below)
	}
	q.averageLoad()
}

type questions struct {
	t                     *testing.T
	readings, diagnostics *tsdb.Repository[codec.Record]
	truckLines
}

// newest reads back from a truck's newest point to the first with all the fields. That is mostly the newest: the loop
// ends the scan there.
func (q *questions) newest(repo *tsdb.Repository[codec.Record], e tsdb.Entity, fields ...string) (s sighting, ok bool) {
	q.t.Helper()
	for p, err := range repo.Range(context.Background(), e, tsdb.AllTime()) {
		if err != nil {
			q.t.Fatal(err)
		}
		if values, ok := floats(p.Value, fields); ok {
			return sighting{p.Time, values}, true
		}
	}
	return s, false
}

// newestUnder is newest for each truck below a prefix: one scan for all trucks, and another for each truck whose newest
// point lacks a field.
func (q *questions) newestUnder(repo *tsdb.Repository[codec.Record], p tsdb.Prefix, fields ...string) map[tsdb.Entity]sighting {
	q.t.Helper()
	found := map[tsdb.Entity]sighting{}
	again := 0
	for p, err := range repo.Under(p).Latest(context.Background()) {
		if err != nil {
			q.t.Fatal(err)
		}
		values, ok := floats(p.Value, fields)
		s := sighting{p.Time, values}
		if !ok {
			again++
			s, ok = q.newest(repo, p.Entity, fields...)
		}
		if ok {
			found[p.Entity] = s
		}
	}
	q.t.Logf("%v below %q: %d trucks, %d of them read again", fields, p, len(found), again)
	return found
}

func (q *questions) same(what string, e tsdb.Entity, got, want sighting) {
	q.t.Helper()
	if !got.time.Equal(want.time) || !slices.Equal(got.values, want.values) {
		q.t.Errorf("%s of %v: got %v at %v, want %v at %v", what, e, got.values, got.time, want.values, want.time)
	}
}

func (q *questions) lastLocations() {
	q.t.Helper()
	fleets := map[string]int{}
	for e := range q.locations {
		fleets[e.Parts()[0]]++
		want, _ := q.locations.newest(e)
		got, _ := q.newest(q.readings, e, "latitude", "longitude")
		q.same("location", e, got, want)
	}
	for fleet, trucks := range fleets {
		found := q.newestUnder(q.readings, tsdb.NewPrefix(fleet), "latitude", "longitude")
		if len(found) != trucks {
			q.t.Errorf("fleet %s: got %d trucks, want %d", fleet, len(found), trucks)
		}
		for e, got := range found {
			want, _ := q.locations.newest(e)
			q.same("location", e, got, want)
		}
	}
}

func (q *questions) lowFuel(below float64) {
	q.t.Helper()
	got := q.newestUnder(q.diagnostics, tsdb.AllEntities(), "fuel_state")
	n := 0
	for e := range q.fuel {
		want, _ := q.fuel.newest(e)
		q.same("fuel", e, got[e], want)
		if got[e].values[0] < below {
			n++
		}
		if low := want.values[0] < below; low != (got[e].values[0] < below) {
			q.t.Errorf("%v: got low on fuel=%v", e, !low)
		}
	}
	if len(got) != len(q.fuel) {
		q.t.Errorf("got %d trucks with fuel, want %d", len(got), len(q.fuel))
	}
	q.t.Logf("%d trucks have less than %v of their fuel", n, below)
}

// stoodStill finds trucks that stood still: their mean velocity up to now is below a limit.
func (q *questions) stoodStill(span time.Duration, below float64) {
	q.t.Helper()
	since := q.now.Add(-span)
	got := q.means(q.readings, tsdb.Between(since, q.now).OpenStart().ClosedEnd(), field("velocity"))
	n := 0
	for e, all := range q.velocities {
		var sum, count float64
		for _, s := range all {
			if s.time.After(since) {
				sum += s.values[0]
				count++
			}
		}
		if m := got[e]; m.Count != int64(count) || !near(m.Sum, sum) {
			q.t.Errorf("%v: got %d velocities with the sum %v, want %v with %v", e, m.Count, m.Sum, count, sum)
		}
		standing := count > 0 && sum/count < below
		if m := got[e]; standing != (m.Count > 0 && m.Sum/float64(m.Count) < below) {
			q.t.Errorf("%v: got stood still=%v, want %v", e, !standing, standing)
		}
		if standing {
			n++
		}
	}
	q.t.Logf("%d trucks were slower than %v for %v", n, below, span)
}

func (q *questions) averageLoad() {
	q.t.Helper()
	type total struct {
		sum   float64
		count int64
	}
	got, want := map[string]total{}, map[string]total{}
	for e, m := range q.means(q.diagnostics, tsdb.AllTime(), func(r codec.Record) (float64, bool) {
		values, ok := floats(r, []string{"current_load", "load_capacity"})
		if !ok {
			return 0, false
		}
		return values[0] / values[1], true
	}) {
		fleet := e.Parts()[0]
		got[fleet] = total{got[fleet].sum + m.Sum, got[fleet].count + m.Count}
	}
	for e, all := range q.loads {
		fleet := e.Parts()[0]
		for _, s := range all {
			want[fleet] = total{want[fleet].sum + s.values[0]/s.values[1], want[fleet].count + 1}
		}
	}
	if len(got) != len(want) {
		q.t.Errorf("got %d fleets, want %d", len(got), len(want))
	}
	for fleet, w := range want {
		if g := got[fleet]; g.count != w.count || !near(g.sum, w.sum) {
			q.t.Errorf("fleet %s: got a load of %v in %d readings, want %v in %d", fleet, g.sum, g.count, w.sum, w.count)
		}
		q.t.Logf("fleet %s is loaded to %.4f of its capacity, of %d readings", fleet, w.sum/float64(w.count), w.count)
	}
}

// means summarizes a number of each truck in an interval, in windows of ten minutes.
func (q *questions) means(repo *tsdb.Repository[codec.Record], in tsdb.Interval, of func(codec.Record) (float64, bool)) map[tsdb.Entity]window.Summary {
	q.t.Helper()
	w, err := window.New(window.Every(10*time.Minute), []window.Measure[codec.Record]{{Name: "value", Of: of}}, window.Options{})
	if err != nil {
		q.t.Fatal(err)
	}
	found := map[tsdb.Entity]window.Summary{}
	for e, err := range repo.Under(tsdb.AllEntities()).Entities(context.Background(), tsdb.AllTime()) {
		if err != nil {
			q.t.Fatal(err)
		}
		var sum window.Summary
		for b, err := range w.Read(context.Background(), repo, e, in, tsdb.OldestFirst) {
			if err != nil {
				q.t.Fatal(err)
			}
			sum.Count += b.Values[0].Count
			sum.Sum += b.Values[0].Sum
		}
		found[e] = sum
	}
	return found
}

func field(name string) func(codec.Record) (float64, bool) {
	return func(r codec.Record) (float64, bool) {
		values, ok := floats(r, []string{name})
		if !ok {
			return 0, false
		}
		return values[0], true
	}
}

// floats returns the fields of a record, and false if one is missing. It reads their text, which the programs do not.
func floats(r codec.Record, fields []string) (values []float64, ok bool) {
	for _, name := range fields {
		v, ok := r.Lookup(name)
		x, err := strconv.ParseFloat(strings.Trim(v.String(), `"iu`), 64)
		if !ok || err != nil {
			return nil, false
		}
		values = append(values, x)
	}
	return values, true
}

// near reports whether two sums are equal, apart from rounding in another order of additions.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

// truckLines are the lines as points, and the results of a plain pass over them.
type truckLines struct {
	readings, diagnostics              []tsdb.Point[codec.Record]
	nameless                           int
	now                                time.Time
	locations, velocities, fuel, loads byTruck
}

// trucksOf makes one pass over the lines. A truck's fleet comes from those of its lines that name one.
func trucksOf(t *testing.T, text []byte) truckLines {
	t.Helper()
	out := truckLines{locations: byTruck{}, velocities: byTruck{}, fuel: byTruck{}, loads: byTruck{}}
	fleets := map[string]string{}
	points := parse(t, bytes.NewReader(text))
	in := bufio.NewScanner(bytes.NewReader(text))
	for _, p := range points {
		in.Scan()
		series, _, _ := strings.Cut(in.Text(), " ")
		measurement, list, _ := strings.Cut(series, ",")
		tags := map[string]string{}
		for tag := range strings.SplitSeq(list, ",") {
			name, value, _ := strings.Cut(tag, "=")
			tags[name] = value
		}
		if tags["fleet"] != "" {
			fleets[tags["name"]] = tags["fleet"]
		}
		if p.Time.After(out.now) {
			out.now = p.Time
		}
		if tags["name"] == "" {
			out.nameless++
			continue
		}
		if fleets[tags["name"]] == "" {
			t.Fatalf("no line up to %q names the fleet of %s", in.Text(), tags["name"])
		}
		p.Entity = tsdb.NewEntity(fleets[tags["name"]], tags["name"])
		switch measurement {
		case "readings":
			out.readings = append(out.readings, p)
		case "diagnostics":
			out.diagnostics = append(out.diagnostics, p)
		default:
			t.Fatalf("unknown measurement %q", measurement)
		}
		for _, kept := range []struct {
			in     byTruck
			fields []string
		}{
			{out.locations, []string{"latitude", "longitude"}},
			{out.velocities, []string{"velocity"}},
			{out.fuel, []string{"fuel_state"}},
			{out.loads, []string{"current_load", "load_capacity"}},
		} {
			if values, ok := floats(p.Value, kept.fields); ok {
				kept.in[p.Entity] = append(kept.in[p.Entity], sighting{p.Time, values})
			}
		}
	}
	return out
}
