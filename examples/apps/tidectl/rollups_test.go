package main

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// lift is a value whose rollup has measures of the same names as fields of the payload, which are other numbers.
type lift struct {
	Volts int64   `json:"volts"` // in mV; the measure is in V
	Kwh   float64 `json:"kwh"`   // since the meter was replaced; the measure adds what the former meters counted
	Old   float64 `json:"old"`
	Temp  float64 `json:"t"` // the measure is named temp
}

var liftMeasures = []rollup.Measure[lift]{
	{Name: "volts", Of: func(v lift) (float64, bool) { return float64(v.Volts) / 1000, true }, Decimals: 1, Max: 1000},
	{Name: "kwh", Of: func(v lift) (float64, bool) { return v.Old + v.Kwh, true }, Kind: window.Counter, Decimals: 1, Max: 1e6},
	{Name: "temp", Of: func(v lift) (float64, bool) { return v.Temp, true }, Decimals: 1, Max: 1000},
}

// rolledLifts returns the folder of a store with hours of a lift from ten o'clock on. Three of them are stored, the
// second got a late point since, and the fourth is open. The meter was replaced at noon.
func rolledLifts(t *testing.T, measures []rollup.Measure[lift]) string {
	t.Helper()
	dir := t.TempDir()
	hour := rollup.MustDefine("hour", window.Every(time.Hour), measures, rollup.Options{})
	lifts := tsdb.MustDefine("lifts", tsdb.Key("lift"), codec.JSON[lift](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
	acme := tenant.MustParse("acme")
	var store *tsdb.Store
	at := func(minutes int) (closed func() error) { // a store whose clock jumps does not work on rollups
		now := monday.Add(time.Duration(minutes) * time.Minute)
		var err error
		store, err = embedded.New(t.Context(), embedded.Options{Dir: dir, StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}, GCInterval: -1})
		if err == nil {
			err = store.Ensure(t.Context(), lifts)
		}
		if err != nil {
			t.Fatal(err)
		}
		return store.Close
	}
	put := func(minutes int, v lift) {
		t.Helper()
		if err := lifts.For(store, acme).Put(t.Context(), tsdb.NewEntity("a"), monday.Add(time.Duration(minutes)*time.Minute), v); err != nil {
			t.Fatal(err)
		}
	}
	closed := at(35)
	for i, kwh := range []float64{10, 11, 12, 13} {
		put(30*i-120, lift{Volts: 230_000 + 1000*int64(i), Kwh: kwh, Temp: 20})
	}
	put(0, lift{Volts: 234_000, Kwh: 0.5, Old: 13, Temp: 20})
	put(30, lift{Volts: 235_000, Kwh: 1.5, Old: 13, Temp: 20})
	if err := closed(); err != nil {
		t.Fatal(err)
	}
	defer at(70)()
	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{Tenants: func(context.Context) iter.Seq2[tenant.ID, error] {
		return func(yield func(tenant.ID, error) bool) { yield(acme, nil) }
	}}, lifts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := worker.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(-45, lift{Volts: 240_000, Kwh: 12.5, Temp: 30}) // late
	put(65, lift{Volts: 236_000, Kwh: 2, Old: 13, Temp: 20})
	return dir
}

// TestRollupsAreNotGuessed: a bucket that changed since it was stored is not computed from the fields that have the
// names of the measures. It is shown as it is stored and marked, and so is the hour after it, whose step from the hour
// before is not known.
func TestRollupsAreNotGuessed(t *testing.T) {
	dir := rolledLifts(t, liftMeasures)
	const header = "start,end,points,bad,partial,%s,filled,open,incomplete\n"
	const changed, open = "changed 2026-06-01T13:11:00Z", "changed 2026-06-01T14:00:00Z"
	for _, tt := range []struct{ measure, aggregates, header, want string }{
		{"volts", "mean,max", "volts.mean,volts.max", "10,2,230.5,231,|11,2,232.5,233," + changed + "|12,2,234.5,235,|13,0,,," + open},
		{"kwh:counter", "increase,resets", "kwh.increase,kwh.resets", "10,2,1,0,|11,2,1,0," + changed + "|12,2,1,0," + changed + "|13,0,,," + open},
		{"temp", "count,max", "temp.count,temp.max", "10,2,2,20,|11,2,2,20," + changed + "|12,2,2,20,|13,0,,," + open},
	} {
		command := "-o csv windows --rollups --every 1h --measure " + tt.measure + " --aggregate " + tt.aggregates + " --from 2026-06-01T10:00 --to 2026-06-01T14:00 lifts acme lift=a"
		out, remarks, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir}, strings.Fields(command)...)...)
		want(t, 0, err, command)
		text := fmt.Sprintf(header, tt.header)
		for row := range strings.SplitSeq(tt.want, "|") {
			f := strings.Split(row, ",")
			var hour int
			if _, err := fmt.Sscan(f[0], &hour); err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintf("2026-06-01T%d:00:00Z,2026-06-01T%d:00:00Z,%s,0,false,%s,%s,,false,%s\n", hour, hour+1, f[1], f[2], f[3], f[4])
		}
		if out != text {
			t.Errorf("%s prints\n%s\nwant\n%s", command, out, text)
		}
		if !strings.Contains(remarks, "rollup hour") || !strings.Contains(remarks, "incomplete") {
			t.Errorf("%s says %q; want the rollup, and that its buckets are incomplete", command, remarks)
		}
	}
}

// TestRollupsOfFields: measures that are declared by a field are computed from it, whatever their names are. So the
// windows of the rollup are those of the points.
func TestRollupsOfFields(t *testing.T) {
	dir := rolledLifts(t, []rollup.Measure[lift]{
		{Name: "volts", Field: "t", Decimals: 1, Max: 1000},
		{Name: "temp", Field: "volts", Max: 1e6, Aggregates: window.Basic | window.StdDev},
		{Name: "counted", Field: "kwh", Kind: window.Counter, Decimals: 1, Max: 1e6},
	})
	for _, tt := range []struct{ measure, field, aggregates string }{
		{"volts", "t", "count,mean,max"}, {"temp", "volts", "min,stddev"}, {"counted:counter", "kwh:counter", "increase,resets,last"},
	} {
		read := func(measure, more string) string {
			t.Helper()
			command := "-o csv windows --every 1h --measure " + measure + " --aggregate " + tt.aggregates + " --from 2026-06-01T10:00 --to 2026-06-01T14:00 " + more + "lifts acme lift=a"
			out, remarks, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir}, strings.Fields(command)...)...)
			want(t, 0, err, command)
			if (more != "") != strings.Contains(remarks, "Read from rollup hour") || strings.Contains(remarks, "incomplete") {
				t.Errorf("%s says %q", command, remarks)
			}
			_, rows, _ := strings.Cut(out, "\n")
			return rows
		}
		points := strings.ReplaceAll(read(tt.field, ""), "\n", ",false,\n") // the columns that say what is open and what is incomplete
		if rolled := read(tt.measure, "--rollups "); rolled != points || strings.Count(rolled, "\n") != 4 {
			t.Errorf("the rollup has\n%s\nand the points have\n%s", rolled, points)
		}
	}
}

// TestOpenWindows: as text, CSV and JSON, the window that may still get points is marked.
func TestOpenWindows(t *testing.T) {
	dir := rolledLifts(t, liftMeasures)
	hour := time.Now().UTC().Truncate(time.Hour)
	_, _, err := tidectl(t, t.Context(), "", "--dir", dir, "put", "--json", `{"volts":1000}`, "lifts", "acme", "lift=a")
	want(t, 0, err, "put")
	times := []string{"--from", hour.Add(-2 * time.Hour).Format(time.RFC3339), "--to", hour.Add(2 * time.Hour).Format(time.RFC3339)}
	run := func(form string) string {
		t.Helper()
		args := append([]string{"--dir", dir, "-o", form, "windows", "--rollups", "--every", "1h", "--measure", "volts", "--aggregate", "max", "--gaps", "null"}, times...)
		out, _, err := tidectl(t, t.Context(), "", append(args, "lifts", "acme", "lift=a")...)
		want(t, 0, err, form)
		return out
	}
	open := strings.Count(run("json"), `"open":true`)
	if text, csv := strings.Count(run("text"), " true "), strings.Count(run("csv"), ",true,"); open == 0 || text != open || csv != open {
		t.Errorf("%d windows are open as JSON, %d as text, %d as CSV; want some, and the same:\n%s%s", open, text, csv, run("json"), run("text"))
	}
}
