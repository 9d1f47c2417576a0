package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/tsdb"
)

// TestLongAttributes: an attribute that is too long is shortened, and two that differ at their end are two series.
func TestLongAttributes(t *testing.T) {
	r := newOTLP(t, ample)
	long := strings.Repeat("é", 1000)
	r.sendAll(t, request(gauge("all.g", number(1, attr("x", long+"a")), number(2, attr("x", long+"b")))))
	var keys []string
	for e, err := range r.repository(t, "every", acme).Under(tsdb.NewPrefix("a")).Entities(t.Context(), tsdb.AllTime()) {
		if err != nil {
			t.Fatal(err)
		}
		key := e.String()
		keys = append(keys, key)
		if len(key) > 4096 || !strings.Contains(key, "sha256:") {
			t.Errorf("the key %s, want a short one with a hash", key)
		}
	}
	if len(keys) != 2 || keys[0] == keys[1] {
		t.Errorf("%d series, want 2: %v", len(slices.Compact(keys)), keys)
	}
	if short := strings.Repeat("y", maxAttributeBytes); shortened(short) != short {
		t.Error("a value of the longest size is shortened")
	}
}

// TestShippedMap: metrics of the collector's hostmetrics are stored apart for each process, also without a host's name.
func TestShippedMap(t *testing.T) {
	r := newRig(t, ample, "-routes", "otlp.map")
	for pid := range 2 {
		req := request(gauge("process.memory.usage", number(pid)), gauge("system.memory.usage", number(3)))
		req.ResourceMetrics[0].Resource.Attributes = req.ResourceMetrics[0].Resource.Attributes[:0]
		req.ResourceMetrics[0].Resource.Attributes = append(req.ResourceMetrics[0].Resource.Attributes, attr("process.pid", pid), attr("process.command_line", "a b"))
		r.sendAll(t, req)
	}
	r.stored(t, "host", acme, start, "{process.memory.usage=0i system.memory.usage=3i}", "-", "resource.process.pid=0")
	r.stored(t, "host", acme, start, "{process.memory.usage=1i system.memory.usage=3i}", "-", "resource.process.pid=1")
}
