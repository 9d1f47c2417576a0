package window_test

import (
	"context"
	"encoding/json"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// fieldValues are the points of an entity, a minute apart, oldest first. They are a Ranger.
type fieldValues []codec.Value

var fieldsFrom = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func (f fieldValues) Range(_ context.Context, _ tsdb.Entity, in tsdb.Interval, opts ...tsdb.ReadOption) iter.Seq2[tsdb.Point[codec.Value], error] {
	return func(yield func(tsdb.Point[codec.Value], error) bool) {
		var points []tsdb.Point[codec.Value]
		for i, v := range f {
			if at := fieldsFrom.Add(time.Duration(i) * time.Minute); in.Contains(at) {
				points = append(points, tsdb.Point[codec.Value]{Time: at, Value: v})
			}
		}
		if !slices.Contains(opts, tsdb.ReadOption(tsdb.OldestFirst)) {
			slices.Reverse(points)
		}
		for _, p := range points {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func itself(v codec.Value) codec.Value { return v }

func ints(of ...int64) (all fieldValues) {
	for _, i := range of {
		all = append(all, codec.Int(i))
	}
	return all
}

// TestIntegersAreExact: integers that a float64 does not hold are not rounded, in one bucket, from bucket to bucket and
// in groups.
func TestIntegersAreExact(t *testing.T) {
	const big = 9007199254740993 // 2^53 + 1
	whole := window.Basic | window.Ends | window.Delta
	counter := window.Min | window.Max | window.Ends | window.Increase
	for _, tt := range []struct {
		name   string
		values fieldValues
		kind   window.Kind
		keep   window.Aggregates
		opts   window.Options
		want   string // of the bucket of the last minutes: parts of its JSON
	}{
		{"gauge", ints(big, big+2, big), window.Gauge, whole, window.Options{}, `"sum":27021597764222981 "min":9007199254740993 "max":9007199254740995 "first":9007199254740993 "last":9007199254740993 "delta":0`},
		{"counter", ints(big, big+2, big+5), window.Counter, counter, window.Options{}, `"first":9007199254740993 "last":9007199254740998 "increase":5 "max":9007199254740998`},
		{"counter reset", ints(big+2, big), window.Counter, counter, window.Options{}, `"increase":9007199254740993 "resets":1`},
		{"step from the bucket before", ints(big, big, big, big, big, big+2, big+3), window.Counter, counter, window.Options{}, `"first":9007199254740995 "increase":3 "resets":0`},
		{"delta from the bucket before", ints(big, big, big, big, big, big+2, big+3), window.Gauge, whole, window.Options{}, `"first":9007199254740995 "delta":3`},
		{"unsigned", fieldValues{codec.Uint(math.MaxUint64 - 1), codec.Uint(math.MaxUint64)}, window.Counter, counter, window.Options{}, `"first":18446744073709551614 "last":18446744073709551615 "increase":1`},
		{"signed and unsigned", fieldValues{codec.Int(-1), codec.Uint(math.MaxUint64)}, window.Gauge, whole, window.Options{}, `"sum":18446744073709551614 "min":-1 "max":18446744073709551615 "delta":18446744073709551616`},
		{"decimal text", fieldValues{codec.Str("9007199254740993"), codec.Str("x"), codec.Str("9007199254740995")}, window.Counter, counter, window.Options{}, `"count":2 "increase":2`},
		{"null and absent", fieldValues{codec.ValueOf(nil), codec.Int(7), {}}, window.Gauge, whole, window.Options{}, `"count":1 "sum":7 "min":7`},
		{"with a fraction", fieldValues{codec.Int(2), codec.Float(0.5)}, window.Gauge, whole, window.Options{}, `"sum":2.5 "min":0.5 "first":2 "delta":-1.5`},
		{"step from a fraction", fieldValues{codec.Float(0.5), codec.Int(1), codec.Int(1), codec.Int(1), codec.Float(1.5), codec.Int(2), codec.Int(3)}, window.Counter, counter, window.Options{}, `"first":2 "increase":1.5`},
		{"not finite", fieldValues{codec.Float(math.NaN()), codec.Int(big), codec.Float(math.Inf(1))}, window.Gauge, whole, window.Options{}, `"count":1 "min":9007199254740993`},
		{"carried on", ints(big, big+2), window.Gauge, whole, window.Options{Gaps: window.Previous}, `"count":0 "sum":0 "first":9007199254740993 "last":9007199254740995 "max":9007199254740995 "filled":true`},
		{"states", ints(big, big+2), window.State, 0, window.Options{}, `{"state":"9007199254740993","time_s":60,"entered":0} {"state":"9007199254740995","time_s":240,"entered":1} "last":"9007199254740995"`},
		{"states of every kind", fieldValues{codec.Bool(true), codec.Str("on"), codec.Float(7), codec.Int(7), {}}, window.State, 0, window.Options{}, `"transitions":2 "state":"true","time_s":60 "state":"on","time_s":60 "state":"7","time_s":180`},
	} {
		m := window.Measure[codec.Value]{Name: "m", Kind: tt.kind, Aggregates: tt.keep, Value: itself}
		a, err := window.New(window.Every(5*time.Minute), []window.Measure[codec.Value]{m}, tt.opts)
		if err != nil {
			t.Fatal(tt.name, err)
		}
		in := tsdb.Between(fieldsFrom, fieldsFrom.Add(time.Duration((len(tt.values)+4)/5)*5*time.Minute))
		if tt.opts.Gaps != window.LeaveOut {
			in = tsdb.Between(fieldsFrom, fieldsFrom.Add(10*time.Minute))
		}
		for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
			var last window.Bucket
			for b, err := range a.Read(t.Context(), tt.values, tsdb.NewEntity("a"), in, order) {
				if err != nil {
					t.Fatal(tt.name, err)
				}
				if last.Values == nil || order == tsdb.OldestFirst {
					last = b
				}
			}
			text, err := json.Marshal(last.Values[0])
			if err != nil {
				t.Fatal(tt.name, err)
			}
			for _, part := range strings.Fields(tt.want) {
				if !strings.Contains(string(text), part) {
					t.Errorf("%s, %v: %s, want %s", tt.name, order, text, part)
				}
			}
		}
	}
}

// entities are several of them.
type entities map[tsdb.Entity]fieldValues

func (e entities) Range(ctx context.Context, of tsdb.Entity, in tsdb.Interval, opts ...tsdb.ReadOption) iter.Seq2[tsdb.Point[codec.Value], error] {
	return e[of].Range(ctx, of, in, opts...)
}

// TestGroupsOfIntegersAreExact: groups are exact if all their entities are.
func TestGroupsOfIntegersAreExact(t *testing.T) {
	a, b, c := tsdb.NewEntity("a"), tsdb.NewEntity("b"), tsdb.NewEntity("c")
	all := entities{a: ints(9007199254740993, 9007199254740995), b: ints(5), c: {codec.Float(0.5)}}
	m := window.Measure[codec.Value]{Name: "m", Aggregates: window.Basic, Value: itself}
	agg, err := window.New(window.Every(5*time.Minute), []window.Measure[codec.Value]{m}, window.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		of   []tsdb.Entity
		want string
	}{
		{[]tsdb.Entity{a, b}, `"sum":18014398509481993 "min":5 "max":9007199254740995`},
		{[]tsdb.Entity{b, c, b}, `"sum":10.5 "min":0.5 "max":5`},
		{[]tsdb.Entity{c, b}, `"sum":5.5 "min":0.5 "max":5`},
	} {
		for bucket, err := range agg.ReadGroup(t.Context(), all, tt.of, tsdb.Between(fieldsFrom, fieldsFrom.Add(5*time.Minute))) {
			text, _ := json.Marshal(bucket.Values)
			for _, part := range strings.Fields(tt.want) {
				if err != nil || !strings.Contains(string(text), part) {
					t.Errorf("%v: %s, %v; want %s", tt.of, text, err, part)
				}
			}
		}
	}
}

// TestValueIsLikeTheOthers: a measure by Value has what the same measure by Of, Int or Text has.
func TestValueIsLikeTheOthers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 1))
	measures := append(kindMeasures(20*time.Minute),
		window.Measure[telemetry]{Name: "whole", Kind: window.Counter, Int: telemetry.milli, Aggregates: window.Min | window.Max | window.Increase},
		window.Measure[telemetry]{Name: "whole gauge", Int: telemetry.milli, Aggregates: window.Basic | window.StdDev | window.Delta | window.Integral | window.Quantiles})
	for range 20 {
		h := randomHistory(rnd, fieldsFrom, 3)
		for _, m := range measures {
			if m.Decimals > 0 || m.Kind == window.State && m.Text == nil {
				continue // Value has neither decimals nor states of the names that decimals have
			}
			same := m
			same.Of, same.Int, same.Text = nil, nil, nil
			same.Value = func(v telemetry) codec.Value {
				switch {
				case m.Text != nil:
					if text, ok := m.Text(v); ok {
						return codec.Str(text)
					}
				case m.Int != nil:
					if n, ok := m.Int(v); ok {
						return codec.Int(n)
					}
				default:
					if x, ok := m.Of(v); ok {
						return codec.Float(x)
					}
				}
				return codec.Value{}
			}
			same.Name = "same"
			agg, err := window.New(window.Every(time.Hour), []window.Measure[telemetry]{m, same}, window.Options{Gaps: window.Null})
			if err != nil {
				t.Fatal(m.Name, err)
			}
			for b, err := range agg.Read(t.Context(), h, tsdb.NewEntity("a"), tsdb.Between(fieldsFrom, fieldsFrom.Add(72*time.Hour))) {
				if err != nil {
					continue // a point that does not decode
				}
				want, _ := json.Marshal(b.Values[0])
				if got, err := json.Marshal(b.Values[1]); err != nil || string(got) != string(want) {
					t.Fatalf("%s: %s by Value, %v; %s by its function", m.Name, got, err, want)
				}
			}
		}
	}
}
