package rollup_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

var (
	loadBefore = rollup.Measure[metered]{Name: "load", Int: metered.load, Decimals: 2, Max: 1e6, Aggregates: window.Mean}
	loadAfter  = rollup.Measure[metered]{Name: "load", Int: metered.load, Decimals: 2, Max: 1e6, Aggregates: window.Mean | window.Delta | window.StdDev | window.Quantiles, Added: true}
	kwhAfter   = rollup.Measure[metered]{Name: "kwh", Kind: window.Counter, Int: metered.energy, Decimals: 3, Max: 1e9, Added: true}
)

// grown returns a program's definition of two rollups, the second from the first.
func grown(measures ...rollup.Measure[metered]) ([]*rollup.Rollup[metered], *tsdb.Schema[metered]) {
	hour := rollup.MustDefine("hour", window.Every(time.Hour), measures, rollup.Options{})
	day := rollup.MustDefine("day", window.Days(1), measures, rollup.Options{From: "hour"})
	return []*rollup.Rollup[metered]{hour, day}, tsdb.MustDefine("r", tsdb.Key("meter"), codec.JSON[metered](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour, day}})
}

func TestWhatMayBeAddedToARollup(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		kwh, load, plain := kwhAfter, loadAfter, loadAfter
		kwh.Added, plain.Added = false, false
		with := func(change func(*rollup.Measure[metered])) rollup.Measure[metered] {
			m := load
			change(&m)
			return m
		}
		count := rollup.Measure[metered]{Name: "n", Int: metered.load, Max: 1e6, Aggregates: window.Count}
		_, before := grown(loadBefore, count)
		l := newLife(t, before)
		for name, measures := range map[string][]rollup.Measure[metered]{
			"a measure without Added":    {loadBefore, count, kwh},
			"aggregates without Added":   {plain, count},
			"Added alone":                {with(func(m *rollup.Measure[metered]) { m.Aggregates = window.Mean }), count},
			"one gained and one lost":    {with(func(m *rollup.Measure[metered]) { m.Aggregates = window.Count | window.Max }), count},
			"a lost measure":             {load, kwhAfter},
			"other decimals":             {with(func(m *rollup.Measure[metered]) { m.Decimals = 3 }), count},
			"another kind":               {with(func(m *rollup.Measure[metered]) { m.Kind, m.Aggregates = window.State, 0 }), count},
			"an integral":                {with(func(m *rollup.Measure[metered]) { m.Aggregates |= window.Integral }), count},
			"aggregates of a mere count": {load, with(func(m *rollup.Measure[metered]) { m.Name, m.Decimals = "n", 0 })},
		} {
			_, after := grown(measures...)
			if err := l.store.Ensure(t.Context(), after); !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), "measures of rollup hour declared as") {
				t.Errorf("%s: %v, want a conflict", name, err)
			}
		}
		_, after := grown(load, count, kwhAfter)
		if err := l.store.Verify(t.Context(), after); !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), "of rollup day declared, but not stored (Ensure adds it)") {
			t.Errorf("Verify before Ensure: %v", err)
		}
		if err := l.store.Ensure(t.Context(), after); err != nil {
			t.Fatal(err)
		}
		if err := l.store.Verify(t.Context(), after); err != nil {
			t.Errorf("Verify after Ensure: %v", err)
		}
		client, _ := tsdbtest.Clients(t, l.conn)
		row, err := client.Open(tsdbtest.Table).ReadRow(t.Context(), "!dataset#r")
		if err != nil {
			t.Fatal(err)
		}
		stored := `"measures":[{"name":"load","decimals":2,"max":"1000000","aggregates":["count","sum","min","max","ends","stddev","delta","quantiles"],"added":true},` +
			`{"name":"n","decimals":0,"max":"1000000","aggregates":["count"]},` +
			`{"name":"kwh","decimals":3,"max":"1000000000","aggregates":["count","ends","increase"],"kind":"counter","added":true}]`
		if !slices.ContainsFunc(row["_sys"], func(c bigtable.ReadItem) bool { return strings.Count(string(c.Value), stored) == 2 }) {
			t.Errorf("the catalogue has %v, want twice %s", row["_sys"], stored)
		}
		for _, call := range []func() error{func() error { return l.store.Ensure(t.Context(), before) }, func() error { return l.store.Verify(t.Context(), before) }} {
			if err := call(); !errors.Is(err, tenancy.ErrSchemaConflict) {
				t.Errorf("a program of before: %v, want a conflict", err)
			}
		}
		more := kwhAfter
		more.Aggregates = window.Count | window.Ends | window.Increase | window.Max
		_, again := grown(load, count, more)
		if err := l.store.Ensure(t.Context(), again); err != nil {
			t.Errorf("an added measure that gains an aggregate: %v", err)
		}
	})
}

// A bucket of before says which aggregates it lacks, in its rollup and in the coarser one, in JSON and in totals;
// nothing is filled or joined across it. A changed bucket has them, and Rebuild computes the others. A worker of before
// leaves the rows that have new buckets as they are.
func TestAddedMeasures(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		_, before := grown(loadBefore)
		rollups, after := grown(loadAfter, kwhAfter)
		l := newLife(t, before)
		repo := after.For(l.store, acme)
		l.put(t, before, start, 100, 200)
		l.put(t, before, start.Add(time.Hour), 300, 500)
		l.put(t, before, start.Add(26*time.Hour), 700) // of the next day
		l.work(t, before)
		if err := l.store.Ensure(t.Context(), after); err != nil {
			t.Fatal(err)
		}
		hours, days := rollup.For(rollups[0], repo), rollup.For(rollups[1], repo)
		lacks := func(seq []window.Bucket) (out []string) {
			for _, b := range seq {
				out = append(out, fmt.Sprintf("%d: %v; %v", b.Values[0].Count, b.Values[0].Missing, b.Values[1].Missing))
			}
			return out
		}
		want := func(what string, got []window.Bucket, want ...string) {
			t.Helper()
			if lines := lacks(got); !slices.Equal(lines, want) {
				t.Errorf("%s: counts of load, and what load and kwh lack, are %q, want %q", what, lines, want)
			}
		}
		const load, kwh = "min+max+ends+stddev+delta+quantiles", "count+ends+increase"
		old := func(n int) string { return fmt.Sprintf("%d: %s; %s", n, load, kwh) }
		full := func(n int) string { return fmt.Sprintf("%d: ; ", n) }
		want("hours of before", all(t, hours.Buckets(t.Context(), l.meter, tsdb.AllTime(), tsdb.OldestFirst)), old(2), old(2), old(1))
		want("days of before", all(t, days.Buckets(t.Context(), l.meter, tsdb.AllTime())), old(1), old(4))
		total, err := days.Total(t.Context(), l.meter, tsdb.AllTime())
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(total.Values)
		if err != nil {
			t.Fatal(err)
		}
		if want := `[{"count":5,"sum":18,"mean":3.6,"missing":["min","max","ends","stddev","delta","quantiles"]},{"missing":["count","ends","increase"]}]`; string(text) != want {
			t.Errorf("the total of before is\n%s, want\n%s", text, want)
		}
		if x := total.Values[0].Quantile(0.5); x == x {
			t.Errorf("the median of a bucket of before is %v, want NaN", x)
		}

		l.put(t, after, start.Add(90*time.Minute), 900)
		mixed := []string{old(2), full(3), old(1)}
		want("hours with a late point", all(t, hours.Buckets(t.Context(), l.meter, tsdb.AllTime(), tsdb.OldestFirst)), mixed...)
		l.work(t, after)
		want("hours with a stored late point", all(t, hours.Buckets(t.Context(), l.meter, tsdb.AllTime(), tsdb.OldestFirst)), mixed...)
		want("days with a late point", all(t, days.Buckets(t.Context(), l.meter, tsdb.AllTime())), old(1), old(5))
		for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
			for _, gaps := range []window.Gaps{window.Null, window.Previous} {
				in := tsdb.Between(start, start.Add(4*time.Hour))
				for _, b := range all(t, hours.WithGaps(window.Options{Gaps: gaps}).Buckets(t.Context(), l.meter, in, order)) {
					s := b.Values[0]
					if s.Missing != 0 && (s.Filled || s.Count == 0) || b.Start.Equal(start.Add(time.Hour)) && (s.Delta != 6 || !s.Since.Equal(s.FirstTime)) {
						t.Errorf("gaps %v, order %v: %+v: want no step from the bucket of before, and that not filled", gaps, order, s)
					}
				}
			}
		}
		if got := l.cells(t, "keep.c:g"); !slices.ContainsFunc(got, func(s string) bool { return strings.HasSuffix(s, fmt.Sprintf(" %x", "11:2")) }) {
			t.Errorf("generations are %q, want 11 added aggregates and the second generation in one", got)
		}

		cells := l.cells(t, "")
		l.put(t, before, start.Add(95*time.Minute), 1100)
		l.Add(48 * time.Hour)
		if p, err := l.worker(t, before).Pass(t.Context()); err == nil || !strings.Contains(err.Error(), "more aggregates") || p.Marks != 0 {
			t.Errorf("a worker of before processed %d marks: %v; want an error", p.Marks, err)
		}
		if got := l.cells(t, ""); !slices.Equal(got, cells) {
			t.Errorf("a worker of before changed the cells from %q to %q", cells, got)
		}
		l.work(t, after)

		for i, r := range []*rollup.Reader[metered]{hours, days} {
			if _, err := r.Rebuild(t.Context(), tsdb.AllTime(), rollup.RebuildOptions{}); err != nil {
				t.Fatal(err)
			}
			if n, err := r.Rebuild(t.Context(), tsdb.AllTime(), rollup.RebuildOptions{}); n != 0 || err != nil {
				t.Errorf("a second Rebuild replaced %d buckets, %v", n, err)
			}
			sameAsPoints(t, "rebuilt", rollups[i], windowsOf(loadAfter, kwhAfter), repo, l.meter, tsdb.AllTime(), window.Options{})
		}
		want("rebuilt hours", all(t, hours.Buckets(t.Context(), l.meter, tsdb.AllTime(), tsdb.OldestFirst)), full(2), full(4), full(1))
		want("rebuilt days", all(t, days.Buckets(t.Context(), l.meter, tsdb.AllTime())), full(1), full(6))
		if got := l.cells(t, "keep.s:c.kwh"); len(got) != 5 || !strings.HasSuffix(got[0], " 0000000000000000") {
			t.Errorf("counts of kwh are %q, want a stored 0 in each bucket", got)
		}
	})
}

// A bucket of before does not know its count of an added measure, also if that keeps no Count: it is not 0, and not a
// gap.
func TestAddedMeasureWithoutCount(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		_, before := grown(loadBefore)
		rollups, after := grown(loadBefore, rollup.Measure[metered]{Name: "most", Int: metered.load, Decimals: 2, Max: 1e6, Aggregates: window.Max, Added: true})
		l := newLife(t, before)
		for h := range 3 {
			l.put(t, before, start.Add(time.Duration(h)*time.Hour), 100, 200)
		}
		l.work(t, before)
		if err := l.store.Ensure(t.Context(), after); err != nil {
			t.Fatal(err)
		}
		l.put(t, after, start, 300)
		l.put(t, after, start.Add(2*time.Hour), 300)
		hours := rollup.For(rollups[0], after.For(l.store, acme)).WithGaps(window.Options{Gaps: window.Previous})
		for range 2 {
			for i, b := range all(t, hours.Buckets(t.Context(), l.meter, tsdb.AllTime(), tsdb.OldestFirst)) {
				missing, count, s := window.Aggregates(0), int64(2), b.Values[1]
				if i == 1 {
					missing, count = window.Count|window.Max, 0
				}
				if s.Missing != missing || s.Count != count || s.Filled {
					t.Errorf("hour %d: %d numbers, filled %v, missing %v; want %d, missing %v", i, s.Count, s.Filled, s.Missing, count, missing)
				}
			}
			total, err := rollup.For(rollups[1], after.For(l.store, acme)).Total(t.Context(), l.meter, tsdb.AllTime())
			if s := total.Values[1]; err != nil || s.Count != 0 || s.Missing != window.Count|window.Max {
				t.Errorf("the day: %d numbers, missing %v, %v; want a count that is missing", s.Count, s.Missing, err)
			}
			l.work(t, after)
		}
	})
}

func windowsOf(measures ...rollup.Measure[metered]) (out []window.Measure[metered]) {
	for _, m := range measures {
		out = append(out, window.Measure[metered]{Name: m.Name, Int: m.Int, Decimals: m.Decimals, Kind: m.Kind, Aggregates: m.Aggregates})
	}
	return out
}

// Workers of before and of now run at once, points come late and are deleted, and entities are rebuilt now and then:
// what a bucket does not call missing always equals what the points say, and in the end Rebuild leaves nothing missing.
func TestGrowthIsTheModel(t *testing.T) {
	for seed := uint64(0); seed < uint64(*seeds)*2; seed += uint64(testkit.Stride(2)) {
		addBubble(t, func(t *testing.T) { lifeOfGrowth(t, rand.New(rand.NewPCG(seed, 20))) })
	}
}

func lifeOfGrowth(t *testing.T, rnd *rand.Rand) {
	kwh, load := kwhAfter, loadAfter
	kwh.Kind, kwh.Aggregates, load.Aggregates = window.Gauge, window.Quantiles, window.Basic|window.StdDev|window.Quantiles // nothing that is joined
	_, before := grown(loadBefore)
	rollups, after := grown(load, kwh)
	measures := windowsOf(load, kwh)
	l := newLife(t, before)
	l.Add(70 * time.Hour)
	repo := after.For(l.store, acme)
	workers := []*rollup.Worker{l.worker(t, before), l.worker(t, after)}
	missing, compared := 0, 0
	for step := range 60 {
		if step == 15 {
			if err := l.store.Ensure(t.Context(), after); err != nil {
				t.Fatal(err)
			}
		}
		at := start.Add(time.Duration(rnd.Int64N(int64(60 * time.Hour)))).Truncate(time.Minute)
		switch rnd.IntN(5) {
		case 0, 1:
			for i := range rnd.IntN(20) {
				a, b := rnd.Int64N(2000)-1000, rnd.Int64N(100)
				v := metered{Load: &a}
				if rnd.IntN(3) == 0 {
					v.WattHours = &b
				}
				if err := repo.Put(t.Context(), l.meter, at.Add(time.Duration(i*7)*time.Minute), v); err != nil {
					t.Fatal(err)
				}
			}
		case 2:
			if _, err := repo.DeleteRange(t.Context(), l.meter, tsdb.Between(at, at.Add(3*time.Hour))); err != nil {
				t.Fatal(err)
			}
		case 3:
			l.Add(30 * time.Hour)
			w := 0
			if step >= 15 {
				w = rnd.IntN(2)
			}
			if _, err := workers[w].Pass(t.Context()); err != nil && !(step > 15 && strings.Contains(err.Error(), "more aggregates")) {
				t.Fatal(err)
			}
		case 4:
			if step > 15 {
				if _, err := rollup.For(rollups[0], repo).Rebuild(t.Context(), tsdb.Between(at, at.Add(5*time.Hour)), rollup.RebuildOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if step < 15 || step%3 > 0 {
			continue
		}
		for _, r := range rollups {
			agg, err := window.New(r.Grid(), measures, window.Options{FromPoints: true})
			if err != nil {
				t.Fatal(err)
			}
			want := all(t, agg.Read(t.Context(), repo, l.meter, tsdb.AllTime(), tsdb.OldestFirst))
			got := all(t, rollup.For(r, repo).Buckets(t.Context(), l.meter, tsdb.AllTime(), tsdb.OldestFirst))
			if len(got) != len(want) {
				t.Fatalf("step %d: %d buckets of %s, by the points %d", step, len(got), r.Name(), len(want))
			}
			for i, b := range got {
				for j, s := range b.Values {
					w := want[i].Values[j]
					name := fmt.Sprintf("step %d: %s of the bucket of %s at %v", step, s.Name, r.Name(), b.Start)
					if s.Missing == 0 {
						sameValues(t, name, b.Values[j:j+1], want[i].Values[j:j+1])
						compared++
						continue
					}
					missing++
					if s.Missing&s.Aggregates != 0 || s.Missing&window.Count == 0 && (s.Count != w.Count || s.Sum != w.Sum) || !math.IsNaN(s.Quantile(0.5)) {
						t.Fatalf("%s is %+v, by the points %+v", name, s, w)
					}
				}
			}
		}
	}
	if missing < 5 || compared < 50 {
		t.Errorf("%d summaries lacked something and %d did not: too few to test anything", missing, compared)
	}
	l.work(t, after)
	for _, r := range rollups {
		if _, err := rollup.For(r, repo).Rebuild(t.Context(), tsdb.AllTime(), rollup.RebuildOptions{}); err != nil {
			t.Fatal(err)
		}
		sameAsPoints(t, "in the end, "+r.Name(), r, measures, repo, l.meter, tsdb.AllTime(), window.Options{})
	}
}

// Rows with a generation that no program writes are refused, not overwritten.
func TestStrangeGenerations(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		_, schema := sketched(true)
		l := newLife(t, schema)
		l.put(t, schema, start, 100)
		l.work(t, schema)
		client, _ := tsdbtest.Clients(t, l.conn)
		key := ""
		err := client.Open(tsdbtest.Table).ReadRows(t.Context(), bigtable.PrefixRange("acme#r!rollup."), func(r bigtable.Row) bool {
			key = r.Key()
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		at := bigtable.Timestamp(0)
		for _, cell := range l.cells(t, "keep.c:g") {
			var ms int64
			if _, err := fmt.Sscanf(cell, "keep.c:g@%d", &ms); err != nil {
				t.Fatal(cell, err)
			}
			at = bigtable.Timestamp(ms * 1000)
		}
		for _, value := range []string{"", "x", "0", "4:", ":4", "4:0", "0:4", "-1:4", "4:4:4", "5:1"} {
			m := bigtable.NewMutation()
			m.Set("keep.c", "g", at, []byte(value))
			if err := client.Open(tsdbtest.Table).Apply(t.Context(), key, m); err != nil {
				t.Fatal(err)
			}
			l.put(t, schema, start, 200)
			l.Add(48 * time.Hour)
			if p, err := l.worker(t, schema).Pass(t.Context()); err == nil || p.Buckets != 0 {
				t.Errorf("generation %q: %d buckets replaced, %v; want an error", value, p.Buckets, err)
			}
		}
	})
}

// A bucket of before that lacks one measure does not end the search for the nearest number of another one.
func TestNearestNumberBehindABucketOfBefore(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		kwh, load := kwhAfter, loadAfter
		kwh.Added, load.Aggregates = false, window.Delta
		_, before := grown(kwh)
		rollups, after := grown(kwh, load)
		l := newLife(t, before)
		put := func(schema *tsdb.Schema[metered], hour int, v metered) {
			t.Helper()
			if err := schema.For(l.store, acme).Put(t.Context(), l.meter, start.Add(time.Duration(hour)*time.Hour), v); err != nil {
				t.Fatal(err)
			}
		}
		five, nine := int64(5), int64(9)
		put(before, 0, metered{WattHours: &five})
		put(before, 1, metered{Load: &five})
		l.work(t, before)
		if err := l.store.Ensure(t.Context(), after); err != nil {
			t.Fatal(err)
		}
		put(after, 2, metered{Load: &five})
		put(after, 3, metered{Load: &nine, WattHours: &nine})
		l.work(t, after)
		in := tsdb.Since(start.Add(3 * time.Hour))
		got := all(t, rollup.For(rollups[0], after.For(l.store, acme)).Buckets(t.Context(), l.meter, in))
		if len(got) != 1 || got[0].Values[0].Exact().Increase != "0.004" || !got[0].Values[0].Since.Equal(start) || got[0].Values[1].Exact().Delta != "0.04" {
			t.Errorf("the increase and the step into the last bucket are %+v, want 0.004 from three hours before and 0.04", got)
		}
	})
}

// A bucket of before that lacks a measure may hide its nearest number: nothing is joined across it.
func TestNothingIsJoinedAcrossABucketOfBefore(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		kwh, load := kwhAfter, loadAfter
		kwh.Added, load.Aggregates = false, window.Delta
		_, before := grown(kwh)
		rollups, after := grown(kwh, load)
		l := newLife(t, before)
		l.put(t, before, start.Add(time.Hour), 500)
		l.work(t, before)
		if err := l.store.Ensure(t.Context(), after); err != nil {
			t.Fatal(err)
		}
		l.put(t, after, start, 300)
		l.put(t, after, start.Add(2*time.Hour), 900)
		l.work(t, after)
		got := all(t, rollup.For(rollups[0], after.For(l.store, acme)).Buckets(t.Context(), l.meter, tsdb.Since(start.Add(2*time.Hour))))
		if len(got) != 1 || got[0].Values[1].Delta != 0 || !got[0].Values[1].Since.Equal(start.Add(2*time.Hour)) {
			t.Errorf("the last bucket is %+v, want no step into it", got)
		}
	})
}
