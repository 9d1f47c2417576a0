package window_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestMistakesAreRefusedWithTheReason: a query that makes no sense for the kind of its measure is refused when it is
// defined. The error names what was asked, and says why it makes no sense.
func TestMistakesAreRefusedWithTheReason(t *testing.T) {
	of := func(x float64) (float64, bool) { return x, true }
	units := func(float64) (int64, bool) { return 1, true }
	text := func(float64) (string, bool) { return "on", true }
	type measure = window.Measure[float64]
	all := []window.Aggregates{
		window.Count, window.Sum, window.Min, window.Max, window.Ends, window.StdDev, window.Delta, window.Increase, window.Integral, window.Quantiles, window.Durations,
	}
	refused := func(name string, m measure, opts window.Options, field, reason string) {
		t.Helper()
		m.Name = "x"
		_, err := window.New(window.Days(1), []measure{m}, opts)
		bad, ok := errors.AsType[*tsdb.InvalidError](err)
		switch {
		case reason == "" && err != nil:
			t.Errorf("%s: %v, want it accepted", name, err)
		case reason != "" && (!ok || !strings.HasPrefix(bad.Field, field) || !strings.Contains(bad.Limit, reason)):
			t.Errorf("%s: %v, want an error of %s with %q", name, err, field, reason)
		}
	}
	for kind, fits := range map[window.Kind]struct {
		allowed []window.Aggregates
		reason  string
	}{
		window.Gauge:   {slices.DeleteFunc(slices.Clone(all), func(a window.Aggregates) bool { return a == window.Increase || a == window.Durations }), "declare Kind: "},
		window.Counter: {[]window.Aggregates{window.Count, window.Min, window.Max, window.Ends, window.Increase}, "totals since a reset"},
		window.State:   {[]window.Aggregates{window.Count, window.Ends, window.Durations}, "is a name and not an amount"},
	} {
		for _, a := range all {
			reason := fits.reason
			if slices.Contains(fits.allowed, a) {
				reason = ""
			} else if a == window.Durations {
				reason = "only a state lasts until the next one"
			}
			refused(a.String()+" of a "+kind.String(), measure{Kind: kind, Int: units, Aggregates: a}, window.Options{}, "Aggregates", reason)
		}
	}
	for _, tt := range []struct {
		name    string
		measure measure
		opts    window.Options
		field   string
		reason  string
	}{
		{"no function", measure{}, window.Options{}, "Of, Int, Text and Value", "one function"},
		{"two functions", measure{Of: of, Int: units}, window.Options{}, "Of, Int, Text and Value", "one function"},
		{"a text that is a gauge", measure{Text: text}, window.Options{}, "Kind", "a text is no amount"},
		{"a text that is a counter", measure{Text: text, Kind: window.Counter}, window.Options{}, "Kind", "a text is no amount"},
		{"durations of a float", measure{Of: of, Kind: window.State, Aggregates: window.Durations}, window.Options{}, "Aggregates", "a state is a text or a whole number"},
		{"decimals of a float", measure{Of: of, Decimals: 2}, window.Options{}, "Decimals", "0 with Of"},
		{"too many decimals", measure{Int: units, Decimals: 19}, window.Options{}, "Decimals", "0 to 18"},
		{"an unknown kind", measure{Of: of, Kind: 7}, window.Options{}, "Kind", "Gauge, Counter or State"},
		{"a line without an integral", measure{Of: of, Linear: true}, window.Options{}, "Linear", "nothing else uses it"},
		{"a hold without an integral", measure{Of: of, Hold: true}, window.Options{}, "Hold", "nothing else uses it"},
		{"a hold of a state", measure{Text: text, Kind: window.State, Hold: true}, window.Options{}, "Hold", "nothing else uses it"},
		{"a line that holds", measure{Of: of, Linear: true, Hold: true, Aggregates: window.Integral}, window.Options{}, "Hold and Linear", "one of them"},
		{"a dip of a gauge", measure{Of: of, MaxDip: 1}, window.Options{}, "MaxDip", "nothing else uses it"},
		{"a dip without an increase", measure{Of: of, Kind: window.Counter, Aggregates: window.Ends, MaxDip: 1}, window.Options{}, "MaxDip", "nothing else uses it"},
		{"a negative dip", measure{Of: of, Kind: window.Counter, MaxDip: -1}, window.Options{}, "MaxDip", "0 for none, or more"},
		{"an endless dip", measure{Of: of, Kind: window.Counter, MaxDip: math.Inf(1)}, window.Options{}, "MaxDip", "0 for none, or more"},
		{"a dip that is no number", measure{Of: of, Kind: window.Counter, MaxDip: math.NaN()}, window.Options{}, "MaxDip", "0 for none, or more"},
		{"a gap without an integral", measure{Of: of, MaxGap: time.Hour}, window.Options{}, "MaxGap", "nothing else uses it"},
		{"a negative gap", measure{Of: of, MaxGap: -1, Aggregates: window.Integral}, window.Options{}, "MaxGap", "0 for none, or more"},
		{"a line between states", measure{Text: text, Kind: window.State}, window.Options{Gaps: window.Linear}, "Gaps", "nothing between two states"},
	} {
		refused(tt.name, tt.measure, tt.opts, tt.field, tt.reason)
	}
}
