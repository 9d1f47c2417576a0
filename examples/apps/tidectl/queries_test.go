package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
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

// metered returns the folder of a store in which acme has two meters, with a reading each quarter of an hour from a
// Monday at noon on, and counters as bare numbers and as records.
func metered(t *testing.T, readings int) string {
	t.Helper()
	dir := t.TempDir()
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	meters := tsdb.MustDefine("meters", tsdb.Key("street", "meter"), codec.JSON[map[string]any](), tsdb.SchemaOptions{})
	counts := tsdb.MustDefine("counts", tsdb.Key("door"), codec.Int64(), tsdb.SchemaOptions{})
	records := tsdb.MustDefine("records", tsdb.Key("door"), codec.Records(), tsdb.SchemaOptions{})
	type volts struct {
		Volts float64 `json:"volts"`
	}
	hour := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[volts]{
		{Name: "volts", Of: func(v volts) (float64, bool) { return v.Volts, true }, Decimals: 1, Max: 1000, Aggregates: window.Basic | window.Quantiles},
	}, rollup.Options{})
	rolled := tsdb.MustDefine("rolled", tsdb.Key("meter"), codec.JSON[volts](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
	err = store.Ensure(t.Context(), meters, counts, records, rolled)
	acme := tenant.MustParse("acme")
	var points []tsdb.Point[map[string]any]
	for i := range readings {
		for _, meter := range []string{"m,1", "m2"} {
			value := map[string]any{"energy": map[string]any{"kwh": 100 + i}, "volts": 230 + i%2, "on": i%2 == 0}
			points = append(points, tsdb.Point[map[string]any]{Entity: tsdb.NewEntity("main", meter), Time: monday.Add(time.Duration(i) * 15 * time.Minute), Value: value})
		}
	}
	_, perr := meters.For(store, acme).PutMany(t.Context(), points)
	err = errors.Join(err, perr, meters.For(store, acme).Put(t.Context(), tsdb.NewEntity("side", "m3"), monday.Add(-time.Hour), map[string]any{"note": "a, \"b\""}))
	for i := range 3 {
		at := monday.Add(time.Duration(i) * time.Minute)
		err = errors.Join(err, counts.For(store, acme).Put(t.Context(), tsdb.NewEntity("north"), at, int64(5*i)),
			records.For(store, acme).Put(t.Context(), tsdb.NewEntity("north"), at, codec.NewRecord(codec.Field{Name: "open", Value: codec.Bool(i > 0)})))
	}
	for i := range 8 {
		err = errors.Join(err, rolled.For(store, acme).Put(t.Context(), tsdb.NewEntity("m1"), monday.Add(time.Duration(i)*15*time.Minute), volts{float64(230 + i)}))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var monday = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// TestQueries runs the queries on datasets that tidectl was not compiled with.
func TestQueries(t *testing.T) {
	dir := metered(t, 9)
	const noon, two = "--from 2026-06-01T12:00 ", "--to 2026-06-01T14:00"
	for _, tt := range []struct{ command, want string }{
		{
			"-o csv windows --every 1h --measure energy.kwh:counter --aggregate increase,rate --measure on " + noon + two + " meters acme street=main meter=m,1",
			"",
		},
		{
			"-o csv windows --every 1h --measure energy.kwh:counter --aggregate increase --aggregate resets " + noon + two + " meters acme street=main meter=m,1",
			"start,end,points,bad,partial,energy.kwh.increase,energy.kwh.resets,filled\n" +
				"2026-06-01T12:00:00Z,2026-06-01T13:00:00Z,4,0,false,3,0,\n2026-06-01T13:00:00Z,2026-06-01T14:00:00Z,4,0,false,4,0,\n",
		},
		{
			"windows --every 1d --zone Europe/Berlin --measure volts --aggregate mean,max --from 2026-06-01T14:00 --to 2026-06-01T16:00 meters acme street=main meter=m2",
			"START                      END                        POINTS  BAD  PARTIAL  VOLTS.MEAN  VOLTS.MAX  FILLED\n" +
				"2026-06-01T00:00:00+02:00  2026-06-02T00:00:00+02:00  8       0    true     230.5       231        -\n",
		},
		{
			"-o json windows --every 2h --measure volts --aggregate max " + noon + two + " meters acme street=main meter=m2",
			`{"start":"2026-06-01T12:00:00Z","end":"2026-06-01T14:00:00Z","points":8,"values":{"volts":{"max":231}}}` + "\n",
		},
		{
			"-o csv windows --every 1h --gaps previous --aggregate last " + noon + two + " counts acme door=north",
			"start,end,points,bad,partial,value.last,filled\n2026-06-01T12:00:00Z,2026-06-01T13:00:00Z,3,0,false,10,\n2026-06-01T13:00:00Z,2026-06-01T14:00:00Z,0,0,false,10,value\n",
		},
		{
			"-o csv windows --every 2h --measure open:state --aggregate states --aggregate last " + noon + two + " records acme door=north",
			"start,end,points,bad,partial,open.last,open.states,filled\n2026-06-01T12:00:00Z,2026-06-01T14:00:00Z,3,0,false,true," +
				`"{""times"":[{""state"":""false"",""time_s"":60,""entered"":0},{""state"":""true"",""time_s"":7140,""entered"":1}],` +
				`""transitions"":1,""unknown_s"":0,""first"":""false"",""last"":""true""}",` + "\n",
		},
		{
			"-o json windows --every 2h --measure on:state --aggregate states " + noon + "--to 2026-06-01T12:30 meters acme street=main meter=m2",
			`{"start":"2026-06-01T12:00:00Z","end":"2026-06-01T14:00:00Z","points":2,"partial":true,"values":{"on":{"states":{"times":[{"state":"false","time_s":900,"entered":1},` +
				`{"state":"true","time_s":900,"entered":0}],"transitions":1,"unknown_s":0,"first":"true","last":"false"}}}}` + "\n",
		},
		{
			"-o csv windows --every 2h --measure volts --aggregate p50,p95 " + noon + two + " meters acme street=main meter=m2",
			"start,end,points,bad,partial,volts.p50,volts.p95,filled\n2026-06-01T12:00:00Z,2026-06-01T14:00:00Z,8,0,false,230.5,231,\n",
		},
		{
			"-o csv groups --by street --every 2h --measure energy.kwh:counter --aggregate increase " + noon + two + " meters acme",
			"street,start,end,entities,points,bad,partial,energy.kwh.increase,filled\nmain,2026-06-01T12:00:00Z,2026-06-01T14:00:00Z,2,16,0,false,14,\n",
		},
		{
			"-o json groups --every 2h --measure volts --aggregate max " + noon + two + " meters acme street=main",
			`{"key":{"street":"main"},"entities":2,"buckets":[{"start":"2026-06-01T12:00:00Z","end":"2026-06-01T14:00:00Z","points":16,"entities":2,"values":{"volts":{"max":231}}}]}` + "\n",
		},
		{
			"-o csv outages --longer 15m --from 2026-06-01T11:00 " + two + " meters acme street=main meter=m2",
			"from,to\n,2026-06-01T12:00:00Z\n",
		},
		{
			"-o csv silent --since 2026-06-01T13:00 meters acme",
			"street,meter,last\nside,m3,2026-06-01T11:00:00Z\n",
		},
		{
			"-o json silent --for 1h --limit 1 meters acme street=main",
			`{"key":{"meter":"m,1","street":"main"},"last":"2026-06-01T14:00:00Z"}` + "\n",
		},
		{
			"-o csv range " + "--to 2026-06-01T12:00:01 --by time meters acme",
			"street,meter,time,tag,energy.kwh,note,on,volts,more,payload,error\n" +
				"main,\"m,1\",2026-06-01T12:00:00Z,json,100,,true,230,,,\n" +
				"main,m2,2026-06-01T12:00:00Z,json,100,,true,230,,,\n" +
				"side,m3,2026-06-01T11:00:00Z,json,,\"a, \"\"b\"\"\",,,,,\n",
		},
		{
			"-o json range --oldest-first --limit 1 meters acme street=side",
			`{"dataset":"meters","key":{"meter":"m3","street":"side"},"time":"2026-06-01T11:00:00Z","tag":"json","json":{"note":"a, \"b\""}}` + "\n",
		},
		{
			"-o csv get --limit 1 counts acme door=north",
			"door,time,tag,value,more,payload,error\nnorth,2026-06-01T12:02:00Z,i64,10,,,\n",
		},
		{
			"-o csv latest counts acme",
			"door,time,tag,value,more,payload,error\nnorth,2026-06-01T12:02:00Z,i64,10,,,\n",
		},
	} {
		out, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir}, strings.Fields(tt.command)...)...)
		if tt.want == "" { // on is a gauge, which has no increase
			want(t, exitUsage, err, tt.command)
			continue
		}
		if want(t, 0, err, tt.command); out != tt.want {
			t.Errorf("%s prints\n%s\nwant\n%s", tt.command, out, tt.want)
		}
	}
	const rolled = " -o csv windows --every 2h --measure volts --aggregate mean,p50 " + noon + two + " rolled acme meter=m1"
	out, remarks, err := tidectl(t, t.Context(), "", strings.Fields("--dir "+dir+rolled)...)
	if err != nil || !strings.Contains(out, "\n2026-06-01T12:00:00Z,2026-06-01T14:00:00Z,8,0,false,233.5,23") || remarks != "" {
		t.Errorf("windows prints %s, %s, %v", out, remarks, err)
	}
	out, remarks, err = tidectl(t, t.Context(), "", append(strings.Fields("--dir "+dir+rolled), "--rollups")...) // no worker has stored it
	if err != nil || !strings.Contains(out, "\n2026-06-01T12:00:00Z,2026-06-01T14:00:00Z,0,0,false,,,,false,changed 20") || !strings.Contains(remarks, "Read from rollup hour") {
		t.Errorf("windows --rollups prints %s, %s, %v", out, remarks, err)
	}
	if out, remarks, err := tidectl(t, t.Context(), "", "--dir", dir, "range", "--limit", "2", "meters", "acme"); err != nil || strings.Count(out, "\n") != 2 || !strings.Contains(remarks, "--limit") {
		t.Errorf("range --limit 2 prints %s and %s, %v", out, remarks, err)
	}
	if out, _, err := tidectl(t, t.Context(), "", "--dir", dir, "range", "--limit", "0", "meters", "acme"); err != nil || strings.Count(out, "\n") != 19 {
		t.Errorf("range --limit 0 prints %d points, want 19, %v", strings.Count(out, "\n"), err)
	}
}

// TestQueriesRefuse: mistakes are refused with an error that names the flag, before the store is read.
func TestQueriesRefuse(t *testing.T) {
	dir := metered(t, 2)
	const day, meter = " --from 2026-06-01 --to 2026-06-02", " meters acme street=main meter=m2"
	for command, say := range map[string]string{
		"windows --every 1h --measure volts" + meter:                                    "from",
		"windows --measure volts" + day + meter:                                         "every",
		"windows --every 1y --measure volts" + day + meter:                              "--every",
		"windows --every 1h --zone Mars --measure volts" + day + meter:                  "unknown time zone Mars",
		"windows --every 7m --zone Europe/Berlin --measure volts" + day + meter:         "width",
		"windows --every 1h --measure volts:meter" + day + meter:                        "--measure volts:meter",
		"windows --every 1h --aggregate median --measure volts" + day + meter:           "--aggregate",
		"windows --every 1h --aggregate increase --measure volts" + day + meter:         "Counter",
		"windows --every 1h --aggregate sum --measure energy.kwh:counter" + day + meter: "Increase",
		"windows --every 1h --gaps guess --measure volts" + day + meter:                 "--gaps",
		"windows --every 1h --measure volts,volts" + day + meter:                        "unique",
		"windows --every 1h --aggregate states --measure volts" + day + meter:           "State",
		"windows --every 1h --aggregate mean --measure volts:state" + day + meter:       "name",
		"groups --every 1h --by meter" + day + " meters acme":                           "--by",
		"groups --every 1h --by house" + day + " meters acme":                           "--by",
		"outages" + day + meter:                          "longer",
		"outages --longer 0s" + day + meter:              "--longer",
		"outages --longer 1m --limit -1" + day + meter:   "--limit",
		"silent meters acme":                             "--since",
		"silent --since 2026-06-01 --for 1h meters acme": "--since",
		"silent --for -1h meters acme":                   "--for",
		"silent --for 1h --limit 0 meters acme":          "--limit",
		"silent --for 1h meters acme meter=m2":           "first key fields",
		"silent --for 1h meters acme street":             "FIELD=VALUE",
		"range --by device meters acme":                  "--by",
		"range --limit -1 meters acme":                   "--limit",
		"range meters":                                   "DATASET",
		"-o csv watch" + meter:                           "--output",
		"-o csv put --json {}" + meter:                   "--output",
		"-o xml range meters acme":                       "csv",
	} {
		out, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir}, strings.Fields(command)...)...)
		if want(t, exitUsage, err, command); err != nil && !strings.Contains(err.Error(), say) || strings.Contains(out, "2026") {
			t.Errorf("%s: %v, want an error with %q\n%s", command, err, say, out)
		}
	}
	for command, say := range map[string]string{
		"windows --every 1h --measure volt" + day + meter: `"volt"`,
		"range none acme":     "catalogue",
		"range meters nobody": "nobody",
	} {
		_, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir}, strings.Fields(command)...)...)
		if want(t, exitFailed, err, command); err != nil && !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want an error with %q", command, err, say)
		}
	}
}

// stopsAt cancels a command when it has printed something.
type stopsAt struct {
	bytes.Buffer
	cancel context.CancelFunc
}

func (s *stopsAt) Write(b []byte) (int, error) {
	s.cancel()
	return s.Buffer.Write(b)
}

// TestCutCSV: the CSV of a query that fails halfway does not look complete.
func TestCutCSV(t *testing.T) {
	dir := metered(t, 3000)
	ctx, cancel := context.WithCancel(t.Context())
	out := &stopsAt{cancel: cancel}
	err := run(ctx, strings.Fields(fmt.Sprintf("--dir %s -o csv range --limit 0 meters acme", dir)), streams{strings.NewReader(""), out, new(bytes.Buffer)})
	want(t, exitInterrupted, err, "range that is interrupted")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := lines[len(lines)-1]; len(lines) < 10 || len(lines) > 5999 || !strings.HasPrefix(last, "incomplete: ") {
		t.Errorf("%d lines, the last one is %q", len(lines), last)
	}
}

// TestAggregatesOfMeasures: each measure may name its own aggregates, whose kind follows from them. People get sensible
// digits, and CSV all.
func TestAggregatesOfMeasures(t *testing.T) {
	dir := withRecords(t, codec.NewRecord(codec.Field{Name: "kwh", Value: codec.Float(100)}, codec.Field{Name: "temp", Value: codec.Float(20)}, codec.Field{Name: "on", Value: codec.Str("yes")}),
		codec.NewRecord(codec.Field{Name: "kwh", Value: codec.Float(101)}, codec.Field{Name: "temp", Value: codec.Float(20)}),
		codec.NewRecord(codec.Field{Name: "kwh", Value: codec.Float(103)}, codec.Field{Name: "temp", Value: codec.Float(21)}))
	run := func(args string) (string, error) {
		out, _, err := tidectl(t, t.Context(), "", strings.Fields("--dir "+dir+" "+args)...)
		return out, err
	}
	const command = "windows --every 1h --from 2026-06-01T12:00 --to 2026-06-01T13:00 records acme site=berlin meter=m1 "
	for measures, want := range map[string][2]string{
		"--measure kwh:increase --measure temp:mean":                      {"kwh.increase,temp.mean", "3,20.333333333333332"},
		"--measure kwh:increase+last --measure temp:mean+max":             {"kwh.last,kwh.increase,temp.mean,temp.max", "103,3,20.333333333333332,21"},
		"--measure kwh:counter:first --measure temp --aggregate min":      {"kwh.first,temp.min", "100,20"},
		"--measure on:states --measure temp:min":                          {"on.states,temp.min", `yes`},
		"--measure on:state:last --measure temp:max --aggregate mean,p95": {"on.last,temp.max", "yes,21"},
	} {
		got, err := run("-o csv " + command + measures)
		if err != nil || !strings.Contains(got, ",partial,"+want[0]+",filled\n") || !strings.Contains(got, want[1]) {
			t.Errorf("%s: %s, %v; want %v", measures, got, err, want)
		}
	}
	if got, err := run("-o csv " + command + "--rollups --measure on:state:last"); err != nil || !strings.Contains(got, ",yes,") {
		t.Errorf("windows --rollups of a state: %s, %v", got, err)
	}
	if got, err := run(command + "--measure temp:mean"); err != nil || !strings.Contains(got, " 20.3333 ") {
		t.Errorf("windows for people: %s, %v", got, err)
	}
	for _, wrong := range []string{"--measure kwh:incraese", "--measure kwh:meter:mean", "--measure temp:gauge:increase"} {
		_, err := run(command + wrong)
		want(t, exitUsage, err, wrong)
	}
	if _, err := run("-o csv range records acme site=berlin meter=m1 --measure kwh:mean"); exitCode(err) != exitUsage {
		t.Errorf("range of an aggregate: %v", err)
	}
	if got, err := run("-o csv range records acme site=berlin meter=m1 --measure kwh"); err != nil || strings.Count(got, "\n") != 4 {
		t.Errorf("range of one entity: %s, %v", got, err)
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.00 kB", 38895819: "38.9 MB", 999_600: "1.00 MB", 123_456_789_012: "123 GB"} {
		if got := size(n); got != want {
			t.Errorf("%d bytes are %s, want %s", n, got, want)
		}
	}
	for number, want := range map[string]string{"20.333333333333332": "20.3333", "123456789.25": "123456789", "0.000012345678": "0.0000123457", "9007199254740993": "9007199254740993", "21.5": "21.5", "": ""} {
		if got := sensible(number); got != want {
			t.Errorf("%s is shown as %s, want %s", number, got, want)
		}
	}
}

// TestWindowsOfDamagedPoints: a point in which a measure cannot be read is bad, and named; one with another damaged
// field is not.
func TestWindowsOfDamagedPoints(t *testing.T) {
	dir := metered(t, 1)
	put := []string{"--dir", dir, "put", "meters", "acme", "street=main", "meter=m2", "--time"}
	for time, payload := range map[string]string{
		"2026-06-01T12:01": "garbage", "2026-06-01T12:02": `{"volts":`, "2026-06-01T12:03": `{"volts":1e400}`, "2026-06-01T12:04": `{"amps":1e400,"volts":240}`,
	} {
		if _, _, err := tidectl(t, t.Context(), "", append(put, time, "--base64", base64.StdEncoding.EncodeToString([]byte(payload)))...); err != nil {
			t.Fatal(err)
		}
	}
	for command, want := range map[string][2]string{
		"windows --measure volts:sum --every 1h --from 2026-06-01T12:00 --to 2026-06-01T13:00 meters acme street=main meter=m2": {
			"start,end,points,bad,partial,volts.sum,filled\n2026-06-01T12:00:00Z,2026-06-01T13:00:00Z,2,3,false,470,\n", "2026-06-01T12:02:00Z",
		},
		"groups --measure volts:sum --every 1h --from 2026-06-01T12:00 --to 2026-06-01T13:00 meters acme street=main meter=m2": {
			"street,meter,start,end,entities,points,bad,partial,volts.sum,filled\nmain,m2,2026-06-01T12:00:00Z,2026-06-01T13:00:00Z,1,2,3,false,470,\n", "",
		},
		"groups --measure volts:sum --every 1h --from 2026-06-01T12:00 --to 2026-06-01T13:00 meters acme street=main": {
			"street,start,end,entities,points,bad,partial,volts.sum,filled\nmain,2026-06-01T12:00:00Z,2026-06-01T13:00:00Z,2,6,0,false,700,\n", `"volts" cannot be read in 3 payloads`,
		},
	} {
		out, remarks, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir, "-o", "csv"}, strings.Fields(command)...)...)
		if err != nil || out != want[0] || !strings.Contains(remarks, want[1]) {
			t.Errorf("%s prints\n%s%s%v, want\n%sand %q", command, out, remarks, err, want[0], want[1])
		}
	}
}
