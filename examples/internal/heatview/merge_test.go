package heatview

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/heat"
)

func samplesOf(r *heat.Recording, k heat.Kind) (keys []string) {
	for _, col := range r.List() {
		c := &col.Cells[k]
		for i := range c.Samples {
			keys = append(keys, string(c.At(i).Key))
		}
	}
	return keys
}

// TestMerge: merged recordings count all rows exactly, and a process with many rows does not outweigh the samples of
// one with few.
func TestMerge(t *testing.T) {
	small, large := newTestRecorder(time.Second), newTestRecorder(4*time.Second)
	for i := range 1000 {
		small.note(writes, fmt.Sprintf("small#%06d", i), 1)
	}
	for i := range 100_000 {
		large.note(writes, fmt.Sprintf("large#%06d", i), 1)
	}
	a, b := small.recording(), large.recording()
	for _, order := range [][2]*heat.Recording{{a, b}, {b, a}} {
		merged, err := Merge(order[0], nil, order[1], &heat.Recording{})
		if err != nil {
			t.Fatal(err)
		}
		if total := merged.Totals(); total.Writes != 101_000 || merged.Columns.Width != 4*time.Second {
			t.Errorf("%+v in columns of %v", total, merged.Columns.Width)
		}
		for _, col := range merged.List() {
			c := &col.Cells[writes]
			n := 0
			for i := range c.Samples {
				if strings.HasPrefix(string(c.At(i).Key), "small") {
					n++
				}
			}
			// The share of a process in the samples is that in the rows. A column may hold the small one's alone.
			if got, want := float64(n)*c.Weight(), 1000.0; n > 0 && c.Rows > 50_000 && math.Abs(got-want) > 6*math.Sqrt(want*c.Weight()) {
				t.Errorf("samples say %.0f rows of the small process, want about %.0f", got, want)
			}
		}
		if again, err := Merge(order[0], order[1]); err != nil || !bytes.Equal(fileOf(t, again), fileOf(t, merged)) {
			t.Errorf("a merge of the same recordings differs: %v", err)
		}
	}
}

// TestMergeRefuses what has no common meaning.
func TestMergeRefuses(t *testing.T) {
	a, b := newTestRecorder(time.Second), newTestRecorder(3*time.Second)
	a.note(writes, "a", 1)
	b.note(writes, "b", 1)
	if _, err := Merge(a.recording(), b.recording()); err == nil {
		t.Errorf("columns of 1 and 3 seconds: %v", err)
	}
	if _, err := Merge(a.recording(), Rank(a.recording())); err == nil {
		t.Errorf("names and ranks: %v", err)
	}
	long := a.recording()
	long.Columns.List[0].ID += 100_000
	merged, err := Merge(a.recording(), long)
	if err != nil || merged.Columns.Span() > heat.MostColumns || merged.Totals().Writes != 2 {
		t.Errorf("a day apart: %v, %d columns", err, merged.Columns.Span())
	}
}

// TestRanked: nothing of a name is left, the order of keys is, and so is what belongs together.
func TestRanked(t *testing.T) {
	r := recorded(7, 4000)
	ranked := Rank(r)
	file := string(fileOf(t, ranked))
	for _, name := range []string{"acme", "umbrella", "readings", "events", "site", "device", "head", "script", "other", "tenant", "id-7"} {
		if strings.Contains(file, name) {
			t.Errorf("%q is left", name)
		}
	}
	if ranked.Totals() != r.Totals() {
		t.Errorf("the totals are %+v, want %+v", ranked.Totals(), r.Totals())
	}
	names := map[string]string{}
	for k := range heat.Kinds {
		before, after := samplesOf(r, k), samplesOf(ranked, k)
		for i, key := range before {
			if was, ok := names[key]; ok && was != after[i] {
				t.Fatalf("%q is %q and %q", key, was, after[i])
			}
			names[key] = after[i]
			a, b := placeOf(key), placeOf(after[i])
			if (a.tenant == "") != (b.tenant == "") || len(a.fields()) != len(b.fields()) && a.tenant != "" {
				t.Fatalf("%q is %q, which is another kind of row", key, after[i])
			}
		}
	}
	keys := make([]string, 0, len(names))
	for key := range names {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for i, key := range keys[1:] {
		if names[keys[i]] >= names[key] {
			t.Errorf("%q sorts before %q, but %q does not before %q", keys[i], key, names[keys[i]], names[key])
		}
	}
	if want := regexp.MustCompile(`^t\d#d\d#\d#\d+#7443056836731319018$`); !slices.ContainsFunc(samplesOf(ranked, writes), want.MatchString) {
		t.Errorf("no key looks like a point's: %q", samplesOf(ranked, writes)[:5])
	}
	if again := Rank(ranked); again != ranked {
		t.Error("ranks are ranked again")
	}
}

// TestRankedKeepsOnlyTimes: a name is not kept because a time is before it.
func TestRankedKeepsOnlyTimes(t *testing.T) {
	r := newTestRecorder(time.Second)
	today := time.Now().UTC()
	for _, name := range []string{today.Format(time.DateOnly) + "-alice", today.Format(time.RFC3339) + " alice", today.Format("20060102") + "alice", "bob"} {
		r.note(writes, name+"#x", 1)
	}
	stay := []string{today.Format(time.DateOnly), today.Format(time.RFC3339Nano), today.Format(time.DateTime), fmt.Sprint(today.UnixMilli())}
	for _, text := range stay {
		r.note(writes, text+"#x", 1)
	}
	keys := strings.Join(samplesOf(Rank(r.recording()), writes), " ")
	if strings.Contains(keys, "alice") || strings.Contains(keys, "bob") {
		t.Errorf("names are left: %s", keys)
	}
	for _, text := range stay {
		if !strings.Contains(keys, text+"#") {
			t.Errorf("the time %s is gone: %s", text, keys)
		}
	}
}

func TestPlaces(t *testing.T) {
	for key, want := range map[string]place{
		"acme#readings#berlin#roof-7#7443056836731319018":         {"acme", "readings", "acme#readings#", "acme#readings#berlin#roof-7#"},
		"acme#readings#berlin#roof-7#7443056836731319018#event-1": {"acme", "readings", "acme#readings#", "acme#readings#berlin#roof-7#"},
		"acme#readings!head#berlin#roof-7#":                       {"acme", "readings!head", "acme#readings!head#", "acme#readings!head#berlin#roof-7#"},
		"acme#readings!rollup.hourly#berlin#7443056836731319018":  {"acme", "readings!rollup.hourly", "acme#readings!rollup.hourly#", "acme#readings!rollup.hourly#berlin#"},
		"!tenant#acme":              {entity: "!tenant#acme"},
		"1780315200#device-7":       {entity: "1780315200#device-7"},
		"device-7#1780315200":       {entity: "device-7"},
		"device-7#17#1780315200000": {entity: "device-7#17"},
		"":                          {},
		"#":                         {entity: "#"},
		"##":                        {entity: "##"},
	} {
		if got := placeOf(key); got != want {
			t.Errorf("%q: %+v, want %+v", key, got, want)
		}
	}
}

func TestTimes(t *testing.T) {
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, field := range []string{
		fmt.Sprint(at.Unix()), fmt.Sprint(at.UnixMilli()), fmt.Sprint(at.UnixMicro()), fmt.Sprint(at.UnixNano()), fmt.Sprintf("%020d", at.UnixNano()),
		fmt.Sprint(math.MaxInt64 - at.UnixNano()), fmt.Sprint(math.MaxInt64 - at.UnixMilli()), "20260601", "202606011159", "2026-06-01", "2026-06-01T11:59:58Z",
	} {
		if !isTime(field, at) {
			t.Errorf("%q is not taken for a time", field)
		}
		if isTime(field, at.Add(100*time.Hour)) {
			t.Errorf("%q is taken for a time four days later", field)
		}
	}
	for _, field := range []string{"", "7", "00000007", "12345678", "device-2026-06-01", "490154203237518", "99999999999999999999", "20261301"} {
		if isTime(field, at) {
			t.Errorf("%q is taken for a time", field)
		}
	}
}
