package tenants_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// Records of calls that were killed while they deleted, as programs of version 0 stored them.
const (
	killedErasure = `{"by":"ops","dataset":"","dead_letters":3,"deleted":5,"ended":"0001-01-01T00:00:00Z","journals":1,"keep":0,` +
		`"kinds":[{"dataset":"readings","rows":50}],"late":0,"method":"pages","next":"YWNtZSNyZWFkaW5ncw==","profile":true,"reason":"closed",` +
		`"rows":50,"run":"OTHER","settle":1,"started":"2026-04-11T00:00:00Z","state":"deleting","tenant":"acme","unreached":["x"],` +
		`"until":"0001-01-01T00:00:00Z","verified":"0001-01-01T00:00:00Z"}`
	killedRemoval = `{"by":"ops","deleted":5,"dry_run":false,"ended":"0001-01-01T00:00:00Z","families":[],"impossible":[],` +
		`"kinds":[{"dataset":"readings","rows":50}],"last":"acme","late":0,"next":"YWNtZSNyZWFkaW5ncw==","other_tenants":0,"part":{"dataset":"readings"},` +
		`"reason":"closed","retires":false,"rows":50,"run":"OTHER","settle":1,"started":"2026-04-11T00:00:00Z","state":"deleting",` +
		`"tenants":[{"tenant":"acme","rows":50}],"unexpired":false,"unused":[],"visible":0}`
)

// TestContinuesWhatOtherVersionsBegan: a call continues from the record of a killed call of an earlier version. It
// keeps what was counted, deletes the rest, also rows before the stored key, and stores the same members.
func TestContinuesWhatOtherVersionsBegan(t *testing.T) {
	f, store, _, table := open(t, tsdbtest.Options{})
	f.fill(t, store, acme)
	killed := func(key, record string) {
		t.Helper()
		m := newOwn("json", record)
		for column, value := range map[string]string{"gen": "7", "m": "", "e": ""} {
			m.Set("_sys", column, 0, []byte(value))
		}
		if err := table.Apply(t.Context(), key, m); err != nil {
			t.Fatal(err)
		}
	}
	var states []tenants.State
	progress := func(p tenants.Progress) { states = append(states, p.State) }
	same := func(what, key, record string) {
		t.Helper()
		if len(states) == 0 || states[0] != tenants.Deleting || slices.Contains(states, "counting") {
			t.Errorf("%s went through %v; want it to continue deleting", what, states)
		}
		states = nil
		row, err := table.ReadRow(t.Context(), key, bigtable.RowFilter(bigtable.ChainFilters(bigtable.ColumnFilter("json"), bigtable.LatestNFilter(1))))
		if err != nil || len(row["_sys"]) != 1 {
			t.Fatalf("%s: %v, %v", what, row, err)
		}
		var was, is map[string]any
		if err := json.Unmarshal([]byte(record), &was); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(row["_sys"][0].Value, &is); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(slices.Sorted(maps.Keys(is)), slices.Sorted(maps.Keys(was))) {
			t.Errorf("%s stores the members %v, and other versions know %v", what, slices.Sorted(maps.Keys(is)), slices.Sorted(maps.Keys(was)))
		}
		if is["run"] == was["run"] {
			t.Errorf("%s did not take over: the killed call would not notice", what)
		}
	}

	killed("!erased#!readings", killedRemoval)
	removeOpts := swift
	removeOpts.Progress = progress
	removed, err := tenants.Remove(t.Context(), store, readings, removeOpts)
	if err != nil || removed.State != tenants.Erased || removed.By != "ops" || removed.Reason != "closed" || removed.Rows != 50 || len(removed.Tenants) != 1 {
		t.Errorf("removal %+v, %v", removed, err)
	}
	same("the removal", "!erased#!readings", killedRemoval)
	if left := dump(t, table, func(key string) bool { return strings.HasPrefix(key, "acme#readings") }); len(left) > 0 {
		t.Errorf("the removal left %v", left)
	}

	killed("!erased#acme", killedErasure)
	opts := quick
	opts.Progress, opts.By = progress, "another"
	erased, err := tenants.Erase(t.Context(), store, acme, opts)
	if err != nil || erased.State != tenants.Erased || erased.By != "ops" || erased.Reason != "closed" || erased.Rows != 50 || erased.DeadLetters != 3 || erased.Late == 0 {
		t.Errorf("erasure %+v, %v", erased, err)
	}
	same("the erasure", "!erased#acme", killedErasure)
	if left := dump(t, table, ofTenant("acme")); len(left) > 0 {
		t.Errorf("the erasure left %v", left)
	}
}
