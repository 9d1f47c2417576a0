package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
)

var namedEntities = flag.Int("named.entities", 1050, "how many entities TestNamedMetrics has; 2000 is the whole check")

// vector returns the samples that a query of a range has, by series and time in ms: "id=7" or "id=7,driver=Andy".
func (s *stand) vector(query string, at time.Time) map[string]map[int64]string {
	s.Helper()
	status, body := s.get("query", "query", query, "time", fmt.Sprint(at.Unix()))
	var got struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &got); status != http.StatusOK || err != nil {
		s.Fatalf("%s: %d %v %.300s", query, status, err, body)
	}
	found := map[string]map[int64]string{}
	for _, one := range got.Data.Result {
		var parts []string
		for _, label := range slices.Sorted(maps.Keys(one.Metric)) {
			if label != "__name__" {
				parts = append(parts, label+"="+one.Metric[label])
			}
		}
		samples := map[int64]string{}
		for _, v := range one.Values {
			samples[int64(v[0].(float64)*1000+0.5)] = v[1].(string)
		}
		found[strings.Join(parts, ",")] = samples
	}
	return found
}

// TestNamedMetrics: an OpenTelemetry SDK sends some instruments at a time, so each point has three fields of forty, in
// turn. A query that names a metric gets every sample of it, of every entity, also where the newest points have other
// fields.
func TestNamedMetrics(t *testing.T) {
	testkit.Plain(t)
	const fields, each = 40, 3
	s := mappedOver(t, limits{body: 4 << 20, samples: 10_000_000, series: 100_000, timeout: time.Minute, lookback: 5 * time.Minute, requests: 64, perTenant: 32}, recorded)
	random := rand.New(rand.NewPCG(1, 2))
	want := map[int]map[string]map[int64]string{}
	for i := range fields {
		want[i] = map[string]map[int64]string{}
	}
	const turns = (fields + each - 1) / each
	begin := time.UnixMilli(start0)
	var points []tsdb.Point[codec.Record]
	for e := range *namedEntities {
		id := fmt.Sprintf("e%d", e)
		for turn := range turns {
			at := begin.Add(time.Duration(turn)*time.Second + time.Duration(e%7)*time.Millisecond)
			var record []codec.Field
			for k := range each {
				i := (turn*each + k) % fields
				x := float64(random.IntN(1000)) / 8
				v := codec.Float(x)
				if x == float64(int64(x)) {
					v = codec.Int(int64(x))
				}
				record = append(record, codec.Field{Name: fmt.Sprintf("otel.f%02d", i), Value: v})
				if want[i]["id="+id] == nil {
					want[i]["id="+id] = map[int64]string{}
				}
				want[i]["id="+id][at.UnixMilli()] = strconv.FormatFloat(x, 'f', -1, 64)
			}
			points = append(points, tsdb.Point[codec.Record]{Entity: tsdb.NewEntity(id), Time: at, Value: codec.NewRecord(record...)})
		}
	}
	for part := range slices.Chunk(points, 5000) {
		putPoints(t, s, recorded, acme, part...)
	}
	samples := 0
	for i := range fields {
		name := fmt.Sprintf("rec_otel_f%02d", i)
		got := s.vector(name+"[5m]", begin.Add(time.Minute))
		for series, all := range want[i] {
			samples += len(all)
			if !maps.Equal(got[series], all) {
				t.Fatalf("%s of %s has %v, want %v", name, series, got[series], all)
			}
		}
		if len(got) != len(want[i]) {
			t.Errorf("%s has %d series, want %d", name, len(got), len(want[i]))
		}
	}
	t.Logf("%d entities, %d points, %d samples of %d metrics", *namedEntities, len(points), samples, fields)
}

// TestNewestPayloadHasNoField: what the newest payload is decides nothing about a metric that a query names.
func TestNewestPayloadHasNoField(t *testing.T) {
	messages := tsdb.MustDefine("bus", tsdb.Key("id"), codec.JSON[any](), tsdb.SchemaOptions{})
	plain := tsdb.MustDefine("level", tsdb.Key("id"), codec.JSON[any](), tsdb.SchemaOptions{})
	type object = map[string]any
	speeds := map[int64]string{start0: "40", start0 + 1000: "41.5"}
	for name, newest := range map[string][]any{
		"a connection event":       {object{"event": "disconnected"}},
		"null":                     {nil},
		"a null field":             {object{"speed": nil}},
		"a text":                   {object{"speed": "n/a"}},
		"an empty object":          {object{}},
		"a list":                   {[]any{1, 2}},
		"another kind of messages": {object{"fuel": 0.5, "door": "open"}, object{"fuel": 0.4}},
		"a plain number":           {7},
	} {
		s := mappedOver(t, someLimits, messages, plain)
		values := append([]any{object{"speed": 40, "driver": "Ada"}, object{"speed": 41.5, "motor": object{"temp": 60}}}, newest...)
		for i, v := range values {
			at := time.UnixMilli(start0 + int64(i)*1000)
			putPoints(t, s, messages, acme, tsdb.Point[any]{Entity: tsdb.NewEntity("a"), Time: at, Value: v})
			putPoints(t, s, plain, acme, tsdb.Point[any]{Entity: tsdb.NewEntity("a"), Time: at, Value: map[int]any{0: 3.5, 1: "4"}[i]})
		}
		end := time.UnixMilli(start0 + 60_000)
		if got := s.vector("bus_speed[5m]", end); len(got) != 1 || !maps.Equal(got["id=a"], speeds) {
			t.Errorf("after %s, bus_speed has %v, want %v", name, got, speeds)
		}
		if got := s.vector(`bus_motor_temp{id=~"a|b"}[5m]`, end); len(got) != 1 || !maps.Equal(got["id=a"], map[int64]string{start0 + 1000: "60"}) {
			t.Errorf("after %s, bus_motor_temp has %v, want 60", name, got)
		}
		if got := s.vector("level[5m]", end); len(got) != 1 || !maps.Equal(got["id=a"], map[int64]string{start0: "3.5", start0 + 1000: "4"}) {
			t.Errorf("after %s, level has %v, want 3.5 and the decimal text 4", name, got)
		}
		got, all := s.vector(`bus_info{driver="Ada"}[5m]`, end), map[int64]string{}
		for _, samples := range got {
			maps.Copy(all, samples)
		}
		if len(all) != len(values) || got["driver=Ada,id=a"][start0] != "1" {
			t.Errorf("after %s, bus_info of Ada has %v, want one at each of %d points", name, got, len(values))
		}
		if now := s.vector(`bus_info{driver="Ada"}`, end); len(now) != 1 {
			t.Errorf("after %s, bus_info of Ada has %v now, want one", name, now)
		}
		for _, none := range []string{"bus_speedy[5m]", "bus_spee[5m]", "bus_[5m]", "bus[5m]", "bus_motor[5m]", `bus_info{driver="Eve"}[5m]`} {
			if got := s.vector(none, end); len(got) != 0 && !(none == "bus[5m]" && name == "a plain number") {
				t.Errorf("after %s, %s has %v, want nothing", name, none, got)
			}
		}
	}
}

// TestSearchedClash: two fields, or two datasets, that make the metric which a query names are refused with both, also
// if no newest point has them.
func TestSearchedClash(t *testing.T) {
	a := tsdb.MustDefine("a", tsdb.Key("k"), codec.JSON[map[string]any](), tsdb.SchemaOptions{})
	ab := tsdb.MustDefine("a_b", tsdb.Key("k"), codec.JSON[map[string]any](), tsdb.SchemaOptions{})
	s := mappedOver(t, someLimits, a, ab)
	put := func(schema *tsdb.Schema[map[string]any], values ...map[string]any) {
		for i, v := range append(values, map[string]any{}) {
			putPoints(t, s, schema, acme, tsdb.Point[map[string]any]{Entity: tsdb.NewEntity("x"), Time: time.UnixMilli(start0 + int64(i)), Value: v})
		}
	}
	put(a, map[string]any{"d": map[string]any{"e": 1}, "b_c": 3}, map[string]any{"d_e": 2}, map[string]any{"f": 1, "b_g": "text"})
	put(ab, map[string]any{"c": 1, "g": 5})
	for query, want := range map[string]string{"a_d_e": "the fields d.e and d_e of dataset a", "a_b_c": "a field of dataset a and one of dataset a_b"} {
		if status, got := s.get("query", "query", query, "time", at(1)); status != http.StatusUnprocessableEntity || !strings.Contains(got, want) {
			t.Errorf("%s: %d %s, want 422 with %q", query, status, got, want)
		}
	}
	for query, want := range map[string]string{"a_f": `"1"`, "a_b_g": `"5"`} {
		if status, got := s.get("query", "query", query, "time", at(1)); status != http.StatusOK || !strings.Contains(got, want) {
			t.Errorf("%s: %d %s, want %s", query, status, got, want)
		}
	}
}

// TestRemoteWriteIsNotSearched: a metric of remote write whose name begins with that of a dataset costs no read of the
// dataset's points.
func TestRemoteWriteIsNotSearched(t *testing.T) {
	bus := tsdb.MustDefine("bus", tsdb.Key("id"), codec.JSON[any](), tsdb.SchemaOptions{})
	s := mappedOver(t, someLimits, bus)
	unlisted(s)
	for i, v := range []any{map[string]any{"door": 7, "late": 1}, map[string]any{}} {
		putPoints(t, s, bus, acme, tsdb.Point[any]{Entity: tsdb.NewEntity("a"), Time: time.UnixMilli(start0 + int64(i)), Value: v})
	}
	s.put("a", line("bus_door", []string{"id", "b"}, 1))
	end := time.UnixMilli(start0 + 60_000)
	if got := s.vector("bus_door[5m]", end); len(got) != 1 || got["id=b"][start0] != "1" {
		t.Errorf("bus_door has %v, want only what remote write stored", got)
	}
	if got := s.vector("bus_late[5m]", end); len(got) != 1 || got["id=a"][start0] != "1" {
		t.Errorf("bus_late has %v, want that of the dataset", got)
	}
}
