package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/devices"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// TestDevices prints the points of devices' messages as JSON: keys, times and fields with their types.
func TestDevices(t *testing.T) {
	dir := t.TempDir()
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	cases, now := devices.Cases(t), time.Now()
	for _, c := range cases {
		c.Put(t, store, tenant.MustParse("acme"), now)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		var got []tsdb.Point[codec.Record]
		names := c.Schema(t).KeyFields()
		for _, p := range c.Points {
			args := []string{"--dir", dir, "-o", "json", "get", c.Schema(t).Name(), "acme"}
			for i, name := range names {
				args = append(args, name+"="+p.Key[i])
			}
			out, _, err := tidectl(t, t.Context(), "", args...)
			if err != nil {
				t.Errorf("%s: %v", strings.Join(args, " "), err)
				continue
			}
			for line := range strings.Lines(out) {
				got = append(got, printed(t, names, line))
			}
		}
		c.Check(t, got, now)
	}
}

// printed returns the point that a line shows.
func printed(t *testing.T, names []string, line string) tsdb.Point[codec.Record] {
	t.Helper()
	var p struct {
		Key  map[string]string
		Time time.Time
		JSON codec.Record
	}
	if err := json.Unmarshal([]byte(line), &p); err != nil {
		t.Errorf("%s: %v", line, err)
	}
	var key []string
	for _, name := range names {
		key = append(key, p.Key[name])
	}
	return tsdb.Point[codec.Record]{Entity: tsdb.NewEntity(key...), Time: p.Time, Value: p.JSON}
}
