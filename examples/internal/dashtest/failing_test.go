package dashtest

import (
	"testing"
	"time"

	"github.com/prometheus/common/model"
)

// failing returns the scrapes of a program whose operations all end with an error of the given types, in equal numbers,
// from its start on.
func failing(errorTypes ...string) *Scrapes {
	s := New("ingest")
	for i := range 4 {
		s.n++
		for _, errorType := range errorTypes {
			s.put("db_client_operation_duration_seconds_count", float64(10*i), "127.0.0.1:9464", map[string]string{
				"db_system_name": "gcp.bigtable", "db_operation_name": "Put", "error_type": errorType,
			})
		}
	}
	return s
}

// put adds the last scraped value of a metric.
func (s *Scrapes) put(name string, value float64, host string, with map[string]string) {
	m := model.Metric{model.MetricNameLabel: model.LabelValue(name), "db_collection_name": "tidemark"}
	for k, v := range with {
		m[model.LabelName(k)] = model.LabelValue(v)
	}
	s.add(&model.Sample{Metric: m, Value: model.SampleValue(value), Timestamp: model.TimeFromUnixNano(s.at().UnixNano())}, host)
}

// value returns the result of a panel or an alert.
func (s *Scrapes) value(t *testing.T, all []query, name string) (v float64, ok bool) {
	t.Helper()
	for _, q := range all {
		if q.name != name {
			continue
		}
		expr, err := parseExpr(filled(t, q, s.program))
		if err != nil {
			t.Fatal(err)
		}
		found := s.run(t, newEngine(), q, expr)
		if len(found) == 0 {
			return 0, false
		}
		return found[0].F, true
	}
	t.Fatalf("no query %q", name)
	return 0, false
}

// TestShareOfFailed: the panel is correct for a program that never succeeded, and for one that never failed.
func TestShareOfFailed(t *testing.T) {
	t.Chdir("../../apps/ingest") // where an example finds the dashboard
	for errorType, want := range map[string]float64{"UNAVAILABLE": 1, "": 0} {
		if got, ok := failing(errorType).value(t, panels(t), "Failed operations"); !ok || got != want {
			t.Errorf("operations that end with %q: %v, %v; want %v", errorType, got, ok, want)
		}
	}
}

// TestNobodyIsWokenForACaller: cancelled calls, calls over a limit and invalid calls are no failures of the store;
// callers' mistakes raise a warning. A fault that no caller can cause, such as a row of another tenant, pages somebody.
func TestNobodyIsWokenForACaller(t *testing.T) {
	t.Chdir("../../apps/ingest")
	for want, errorTypes := range map[string][]string{
		"wakes": {
			"UNAVAILABLE", "DEADLINE_EXCEEDED", "INVALID_ARGUMENT", "PERMISSION_DENIED", "_OTHER", "tsdb.ErrForeignRow",
			"tsdb.ErrSchemaConflict", "tsdb.ErrNoTenant", "tsdb.ErrBufferFull", "tsdb.ErrDeliveryTimeout", "tsdb.ErrClosed",
			"tsdb.ErrUnguardedClient", "codec.ErrCorrupt", "codec.ErrUnknownTag", "codec.ErrReadOnly",
		},
		"warns": {
			"tsdb.ErrInvalid", "tsdb.ErrLate", "tsdb.ErrTooFarAhead", "tsdb.ErrExpired", "tsdb.ErrExists", "tsdb.ErrNoMerge", "tsdb.ErrCursor",
			"tsdb.ErrErased", "tsdb.ErrTenantMismatch", "tenant.ErrInvalid", "codec.ErrEncode",
		},
		"nothing": {"", "CANCELLED", "limit.ErrExceeded"},
	} {
		for _, errorType := range errorTypes {
			s := failing(errorType)
			_, wakes := s.value(t, alerts(t), "TidemarkOperationsFail")
			_, warns := s.value(t, alerts(t), "TidemarkCallsRefused")
			if wakes != (want == "wakes") || warns != (want == "warns") {
				t.Errorf("%q pages: %v, warns: %v; want that it %s", errorType, wakes, warns, want)
			}
		}
	}
}

// TestCallersHideNothing: many refused calls do not make the share of failed calls look small.
func TestCallersHideNothing(t *testing.T) {
	t.Chdir("../../apps/ingest")
	refused := "tsdb.ErrInvalid"
	s := failing("", "UNAVAILABLE", refused, "limit.ErrExceeded", "CANCELLED")
	if got, ok := s.value(t, alerts(t), "TidemarkOperationsFail"); !ok || got != 0.5 {
		t.Errorf("share of failed calls, without callers' mistakes: %v, %v; want half", got, ok)
	}
	if got, ok := s.value(t, alerts(t), "TidemarkCallsRefused"); !ok || got != 0.2 {
		t.Errorf("share of refused calls: %v, %v; want a fifth", got, ok)
	}
}

// TestWhatIsGone: a job or rollup worker that has stopped fires an alert for an hour. A job whose instances have
// changed does not.
func TestWhatIsGone(t *testing.T) {
	t.Chdir("../../apps/ingest")
	for _, tt := range []struct {
		alert, metric string
	}{
		{"TidemarkNotScraped", "db_client_operation_duration_seconds_count"},
		{"TidemarkRollupUnattended", "tidemark_rollup_lag_seconds"},
	} {
		s := New("ingest")
		scrape := func(host string, times int) {
			for range times {
				s.n++
				s.put(tt.metric, 1, host, map[string]string{"db_system_name": "gcp.bigtable", "tidemark_dataset": "temps", "tidemark_rollup": "hourly"})
			}
		}
		const minute = int(time.Minute / interval)
		fires := func(want bool, when string) {
			t.Helper()
			if v, ok := s.value(t, alerts(t), tt.alert); ok != want {
				t.Errorf("%s %s: %v, %v; want %v", tt.alert, when, v, ok, want)
			}
		}
		scrape("10.0.0.1:9464", 1)
		fires(false, "after the first scrape")
		scrape("10.0.0.1:9464", 10*minute)
		fires(false, "while it is scraped")
		scrape("10.0.0.2:9464", 10*minute)
		fires(false, "ten minutes after another instance has taken over")
		s.n += 4 * minute
		fires(false, "after four minutes of silence")
		s.n += 3 * minute
		fires(true, "after seven minutes of silence")
		s.n += 50 * minute
		fires(true, "after most of an hour")
		s.n += 10 * minute
		fires(false, "after more than an hour")
		scrape("10.0.0.3:9464", minute)
		fires(false, "when it is back")
	}
}
