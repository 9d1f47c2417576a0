package bench

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var measure = flag.Bool("figures", false, "run the benchmarks of the tables of figures, and write the tables")

const figuresRun = "testdata/figures.txt"

// figures are the tables that one run fills. {Put/raw} is the range of the times of BenchmarkPut/raw, {Put/raw
// allocs/op} that of another of its figures.
var figures = []struct {
	file string
	rows []string
}{
	{"README.md", []string{
		"| | Official client by hand | Tidemark |",
		"|---|---|---|",
		"| put one point | {Put/raw}, {Put/raw allocs/op} allocations | {Put/sdk}, {Put/sdk allocs/op} allocations |",
		"| the latest of 10,000 points | {Latest/raw} | {Latest/sdk} |",
		"| a range of 1,000 points | {Range1000/raw} | {Range1000/sdk} |",
		"| points written one by one, 5 ms | {IngestRTT/apply points/s} a second | {IngestRTT/writer points/s} a second, by a writer |",
		"| the latest of 500 devices, 5 ms | {LatestMany/sequential}, one after the other | {LatestMany/sdk}, once the store has met them; with heads {LatestMany/head} |",
		"| a month of a device by the hour | {RollupRead/raw}, from 43,200 points | {RollupRead/rollup}, from a rollup |",
	}},
	{"docs/performance.md", []string{
		"| | By hand | With Tidemark |",
		"|---|---|---|",
		"| points written, `ApplyBulk` of 1,000 in a tight loop, 5 ms | {IngestRTT/applybulk points/s} a second | {IngestRTT/writer points/s} through a writer |",
		"| the same without delay | {Ingest/applybulk points/s} a second | {Ingest/writer points/s}; with a journal {Ingest/journal points/s} |",
		"| the newest point of 100 devices | {Latest100/first}, `Under(prefix).Latest` at the first call | {Latest100/scan}, at later calls; {Latest100/head}, from heads |",
		"| the latest of a device from the last-value cache | {CachedLatest/table}, from the table | {CachedLatest/memory} |",
	}},
}

// placeholder is the name of a benchmark, and the unit of the figure if that is not a time.
var placeholder = regexp.MustCompile(`\{([\w/=]+)(?: ([\w/]+))?\}`)

// TestFigures checks that the tables of figures are those of the run in testdata. With -figures, it makes the run and
// writes the tables: on a machine that does nothing else, with go test ./internal/bench -run TestFigures -figures
// -timeout 30m.
func TestFigures(t *testing.T) {
	if *measure {
		runFigures(t)
	}
	text, err := os.ReadFile(figuresRun)
	if err != nil {
		t.Fatal(err)
	}
	run := parseRun(string(text))
	for _, table := range figures {
		var rows strings.Builder
		for _, row := range table.rows {
			rows.WriteString(placeholder.ReplaceAllStringFunc(row, func(p string) string {
				m := placeholder.FindStringSubmatch(p)
				values := run[m[1]+" "+m[2]]
				if len(values) == 0 {
					t.Errorf("%s has no figure for %s", figuresRun, p)
					return p
				}
				return spread(values, m[2])
			}) + "\n")
		}
		path := filepath.Join("..", "..", table.file)
		doc, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, _ := strings.Cut(string(doc), "<!-- figures -->\n")
		have, after, ok := strings.Cut(rest, "<!-- end of figures -->\n")
		switch {
		case !ok:
			t.Errorf("%s has no marks for its table of figures", table.file)
		case have == rows.String():
		case !*measure:
			t.Errorf("the table of %s is\n%swant, from %s,\n%s", table.file, have, figuresRun, rows.String())
		default:
			doc := before + "<!-- figures -->\n" + rows.String() + "<!-- end of figures -->\n" + after
			if err := os.WriteFile(path, []byte(doc), 0o644); err != nil { //nolint:gosec // a document
				t.Fatal(err)
			}
		}
	}
}

// runFigures runs each benchmark of the tables four times, in a process of its own, and keeps what it prints.
func runFigures(t *testing.T) {
	var names []string
	for _, table := range figures {
		for _, m := range placeholder.FindAllStringSubmatch(strings.Join(table.rows, "\n"), -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	var out bytes.Buffer
	for _, name := range slices.Compact(names) {
		bench := "^Benchmark" + strings.ReplaceAll(name, "/", "$/^") + "$"
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$", "-test.bench="+bench, "-test.count=4")
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out.String())
		}
	}
	lines := slices.DeleteFunc(strings.SplitAfter(out.String(), "\n"), func(l string) bool { return !strings.HasPrefix(l, "Benchmark") })
	if err := os.WriteFile(figuresRun, []byte(strings.Join(lines, "")), 0o644); err != nil { //nolint:gosec // as other testdata
		t.Fatal(err)
	}
}

// parseRun returns the figures of a run by name and unit; nanoseconds have no unit.
func parseRun(text string) map[string][]float64 {
	run := map[string][]float64{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 {
			continue
		}
		name := strings.TrimPrefix(fields[0][:max(strings.LastIndexByte(fields[0], '-'), 0)], "Benchmark")
		for i := 2; i+1 < len(fields); i += 2 {
			if x, err := strconv.ParseFloat(fields[i], 64); err == nil {
				key := name + " " + strings.TrimSuffix(fields[i+1], "ns/op")
				run[key] = append(run[key], x)
			}
		}
	}
	return run
}

// spread returns the least and the greatest figure.
func spread(values []float64, unit string) string {
	least, most := slices.Min(values), slices.Max(values)
	scale, suffix := 1.0, ""
	if unit == "" {
		suffix = " ns"
		for _, u := range []struct {
			scale  float64
			suffix string
		}{{1e3, " µs"}, {1e6, " ms"}, {1e9, " s"}} {
			if most >= u.scale {
				scale, suffix = u.scale, u.suffix
			}
		}
	}
	from, to := short(least/scale), short(most/scale)
	if from == to {
		return to + suffix
	}
	return from + " to " + to + suffix
}

// short returns a figure with three digits.
func short(x float64) string {
	if x == math.Trunc(x) && x < 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	if x < 1000 {
		return strconv.FormatFloat(x, 'f', max(0, 2-int(math.Floor(math.Log10(x)))), 64)
	}
	unit := math.Pow10(int(math.Floor(math.Log10(x))) - 2)
	text := fmt.Sprintf("%.0f", math.Round(x/unit)*unit)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		unit   string
		want   string
	}{
		{[]float64{7904, 10980}, "", "7.90 to 11.0 µs"},
		{[]float64{999, 520}, "", "520 to 999 ns"},
		{[]float64{2.651e9}, "", "2.65 s"},
		{[]float64{62, 62}, "allocs/op", "62"},
		{[]float64{516449, 571003}, "points/s", "516,000 to 571,000"},
		{[]float64{1234567}, "points/s", "1,230,000"},
		{[]float64{0}, "points/s", "0"},
	} {
		if got := spread(tt.values, tt.unit); got != tt.want {
			t.Errorf("spread(%v, %q) = %q, want %q", tt.values, tt.unit, got, tt.want)
		}
	}
}
