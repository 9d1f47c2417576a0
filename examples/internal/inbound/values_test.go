package inbound

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestValues: the fields of a row make the same point as JSON does, and the row itself does not change.
func TestValues(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	r, ds := route(t, store, "+/# dataset=d key=site,device time=ts,ms text=serial number=wh")
	const at = "2026-01-01T00:00:00Z"
	for _, test := range []struct {
		values map[string]any
		want   string
	}{
		{map[string]any{"site": "a", "device": json.Number("7"), "ts": json.Number("1767225600000"), "serial": json.Number("0070"), "wh": "1.5", "on": true}, `a/7 ` + at + ` {"on":true,"serial":"0070","wh":1.5}`},
		{map[string]any{"site": "a", "device": int64(7), "ts": int64(1767225600000), "x": 2.0}, `a/7 ` + at + ` {"x":2.0}`},
		{map[string]any{"site": "a", "device": "b", "ts": 1767225600000.0, "x": uint64(1 << 63)}, `a/b ` + at + ` {"x":9223372036854775808}`},
		{map[string]any{"site": "a", "device": "b", "ts": at, "x": int64(1), "list": []any{1}}, `a/b ` + at + ` {"x":1}`},
	} {
		before := len(test.values)
		events, err := r.Events(t.Context(), ds, acme, Message{Values: test.values})
		if err != nil || len(events) != 1 {
			t.Errorf("%v: %d events, %v", test.values, len(events), err)
			continue
		}
		e := events[0]
		fields, err := json.Marshal(e.Record)
		if got := e.Entity.String() + " " + e.Time.UTC().Format(time.RFC3339Nano) + " " + string(fields); err != nil || got != test.want {
			t.Errorf("%v: %s, %v; want %s", test.values, got, err, test.want)
		}
		if len(test.values) != before {
			t.Errorf("the row has changed to %v", test.values)
		}
	}
	for text, values := range map[string]map[string]any{
		"neither":   {"site": "a", "device": "b", "ts": true, "x": 1},
		"missing":   {"site": "a", "device": "b", "x": 1},
		"no fields": {"site": "a", "device": "b", "ts": at},
	} {
		_, err := r.Events(t.Context(), ds, acme, Message{Values: values})
		if _, refused := errors.AsType[*Error](err); !refused || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v, want a final error with %q", values, err, text)
		}
	}
}
