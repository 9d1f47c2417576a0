package main

import (
	"bufio"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/fieldtable"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// TestTableOfFields: get, range and windows print each field of the table with all its digits, and windows of its
// states have their names.
func TestTableOfFields(t *testing.T) {
	dir := t.TempDir()
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	cells := fieldtable.Store(t, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	of := map[string][]fieldtable.Cell{}
	for _, c := range cells {
		of[c.Dataset] = append(of[c.Dataset], c)
	}
	set, err := proto.Marshal(fieldtable.Descriptors())
	if err != nil {
		t.Fatal(err)
	}
	descriptors := filepath.Join(t.TempDir(), "descriptors.pb")
	if err := os.WriteFile(descriptors, set, 0o600); err != nil {
		t.Fatal(err)
	}
	messages := []string{"--descriptors", descriptors, "--message", fieldtable.Message}
	read := 0
	for _, dataset := range slices.Sorted(maps.Keys(of)) {
		times := []string{"--from", fieldtable.Start.Format(time.RFC3339), "--to", fieldtable.End.Format(time.RFC3339), dataset, "acme"}
		entity := fieldtable.Key + "=" + fieldtable.Entity
		in := append(slices.Clone(times), entity)
		ask := func(args ...string) []json.RawMessage {
			t.Helper()
			out, _, err := tidectl(t, t.Context(), "", slices.Concat([]string{"--dir", dir, "-o", "json"}, messages, args)...)
			if err != nil && !strings.Contains(err.Error(), "none of the points has") {
				t.Fatal(args, err)
			}
			var lines []json.RawMessage
			for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
				lines = append(lines, json.RawMessage(s.Text()))
			}
			return lines
		}
		tablePoints(t, of[dataset], "range", ask(append([]string{"range"}, times...)...))
		tablePoints(t, of[dataset], "get", ask(append([]string{"get"}, in...)...))
		newest := ask("latest", dataset, "acme")
		last := of[dataset][len(of[dataset])-1].Time
		tablePoints(t, slices.DeleteFunc(slices.Clone(of[dataset]), func(c fieldtable.Cell) bool { return c.Time.Before(last) }), "latest", newest)

		windows := []string{"windows", "--every", "1h"}
		states := slices.Clone(windows)
		for _, f := range slices.Compact(fieldsOfCells(of[dataset])) {
			windows = append(windows, "--measure", f)
			states = append(states, "--measure", f+":state")
		}
		tableWindows(t, of[dataset], ask(append(windows, in...)...))
		tableStates(t, of[dataset], ask(append(states, in...)...))
		read += len(of[dataset])
	}
	t.Logf("%d cells of %d datasets", read, len(of))
}

func fieldsOfCells(cells []fieldtable.Cell) (names []string) {
	for _, c := range cells {
		names = append(names, c.Field)
	}
	return names
}

// tablePoints compares cells with points as they are printed.
func tablePoints(t *testing.T, cells []fieldtable.Cell, command string, points []json.RawMessage) {
	t.Helper()
	byTime := map[time.Time]map[string]json.RawMessage{}
	for _, text := range points {
		var p shownPoint
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		value := json.RawMessage(p.JSON)
		if value == nil && p.Base64 != nil {
			value, _ = json.Marshal(p.Base64)
		}
		fields := map[string]json.RawMessage{}
		flat(fields, "", value)
		byTime[p.Time.Time] = fields
	}
	for _, c := range cells {
		if got := byTime[c.Time][c.Field]; !fieldtable.Same(c.Value, got) {
			t.Errorf("%s: %v is %s, want %v", command, c, got, c.Value)
		}
	}
}

// flat adds the fields of a JSON value.
func flat(to map[string]json.RawMessage, name string, value json.RawMessage) {
	var inner map[string]json.RawMessage
	if json.Unmarshal(value, &inner) != nil || inner == nil {
		to[name] = value
		return
	}
	for key, v := range inner {
		if name != "" {
			key = name + "." + key
		}
		flat(to, key, v)
	}
}

// tableBuckets are the windows of a table by their start.
func tableBuckets(t *testing.T, lines []json.RawMessage) map[time.Time]map[string]map[string]json.RawMessage {
	t.Helper()
	out := map[time.Time]map[string]map[string]json.RawMessage{}
	for _, text := range lines {
		var b struct {
			Start  time.Time
			Values map[string]map[string]json.RawMessage
		}
		if err := json.Unmarshal(text, &b); err != nil {
			t.Fatal(err)
		}
		out[b.Start] = b.Values
	}
	return out
}

func measureName(field string) string {
	if field == "" {
		return "value"
	}
	return field
}

func tableWindows(t *testing.T, cells []fieldtable.Cell, lines []json.RawMessage) {
	t.Helper()
	buckets := tableBuckets(t, lines)
	for _, c := range cells {
		got := buckets[c.Time][measureName(c.Field)]
		x, wanted := c.Number.Number()
		wanted = wanted && !math.IsNaN(x) && !math.IsInf(x, 0) // which no window counts
		if count := string(got["count"]); wanted != (count == "1") || !wanted && count != "0" && count != "" {
			t.Errorf("windows: %v counts %s, want it to count: %v", c, count, wanted)
			continue
		}
		for _, aggregate := range []string{"sum", "first", "last", "min", "max"} {
			if text := string(got[aggregate]); wanted && !fieldtable.SameNumber(c.Number, text) || !wanted && text != "null" && text != "" && aggregate != "sum" {
				t.Errorf("windows: %v has the %s %s, want %v", c, aggregate, text, c.Number)
			}
		}
	}
}

func tableStates(t *testing.T, cells []fieldtable.Cell, lines []json.RawMessage) {
	t.Helper()
	buckets := tableBuckets(t, lines)
	for _, c := range cells {
		got := buckets[c.Time][measureName(c.Field)]
		for _, aggregate := range []string{"first", "last"} {
			if !fieldtable.Same(stateOf(c), got[aggregate]) {
				t.Errorf("windows: %v has the %s state %s, want %q", c, aggregate, got[aggregate], c.State)
			}
		}
	}
}

// stateOf is the name of a state as a value.
func stateOf(c fieldtable.Cell) codec.Value {
	if c.State == "" {
		return codec.Value{}
	}
	return codec.Str(c.State)
}
