package dashtest

import (
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// failing are the scrapes of a program whose operations all end with one type of error, from its start on.
func failing(errorType string) *Scrapes {
	s := New("ingest")
	for i := range 4 {
		s.n++
		s.add(&model.Sample{
			Metric: model.Metric{
				model.MetricNameLabel: "db_client_operation_duration_seconds_count", "db_collection_name": "tidemark",
				"db_operation_name": "Put", "error_type": model.LabelValue(errorType),
			},
			Value: model.SampleValue(10 * i), Timestamp: model.TimeFromUnixNano(s.at().UnixNano()),
		}, "127.0.0.1:9464")
	}
	return s
}

// value is what a panel or an alert says.
func (s *Scrapes) value(t *testing.T, all []query, name string) (v float64, ok bool) {
	t.Helper()
	for _, q := range all {
		if q.name != name {
			continue
		}
		expr, err := parser.ParseExpr(filled(t, q, s.program))
		if err != nil {
			t.Fatal(err)
		}
		found := s.run(t, newEngine(), q, expr)
		if len(found) == 0 {
			return 0, false
		}
		return found[0].F, true
	}
	t.Fatalf("there is no %q", name)
	return 0, false
}

// TestShareOfFailed: a program that never succeeded shows that, and one that never failed shows that, too.
func TestShareOfFailed(t *testing.T) {
	t.Chdir("../../ingest") // from where an example sees the dashboard
	for errorType, want := range map[string]float64{"UNAVAILABLE": 1, "": 0} {
		if got, ok := failing(errorType).value(t, panels(t), "Failed operations"); !ok || got != want {
			t.Errorf("operations that end with %q: %v, %v; want %v", errorType, got, ok, want)
		}
	}
}

// TestNobodyIsWokenForACaller: that a caller goes away, or asks for more than its limit, is no failure of the store.
func TestNobodyIsWokenForACaller(t *testing.T) {
	t.Chdir("../../ingest")
	for errorType, want := range map[string]bool{
		"UNAVAILABLE": true, "context.DeadlineExceeded": true, "_OTHER": true, "tsdb.ErrInvalid": true,
		"CANCELLED": false, "context.Canceled": false, "limit.ErrExceeded": false,
	} {
		if _, fires := failing(errorType).value(t, alerts(t), "TidemarkOperationsFail"); fires != want {
			t.Errorf("%s wakes somebody: %v, want %v", errorType, fires, want)
		}
	}
}
