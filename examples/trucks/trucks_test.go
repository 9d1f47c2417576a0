package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

var trucks = flag.String("trucks", "", "a file of the trucks in line protocol, packed as .gz, to answer the questions of too")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loaded stores some lines, and returns the data.
func loaded(t *testing.T, text string) (*data, summary) {
	t.Helper()
	store, err := embedded.OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := store.Ensure(t.Context(), schemas...); err != nil {
		t.Fatal(err)
	}
	d, err := newData(store, tenant.MustParse("acme"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := d.load(t.Context(), strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return d, sum
}

// TestAnswers compares each answer with the result of a plain pass over the lines.
func TestAnswers(t *testing.T) {
	t.Run("made up", func(t *testing.T) { answers(t, sample()) })
	t.Run("file", func(t *testing.T) {
		if *trucks == "" {
			t.Skip("no -trucks")
		}
		r, _, err := open(*trucks)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		answers(t, string(text))
	})
}

// TestNumbersOfAnyKind: other senders write a number without a fraction as an integer, and some write numbers as text. All are stored.
func TestNumbersOfAnyKind(t *testing.T) {
	kinds := []string{"i", "u", "", `"`}
	n := 0
	text := regexp.MustCompile(`=(\d+)\.?\d*(,| )`).ReplaceAllStringFunc(sample(), func(field string) string {
		number := strings.Trim(field, "=, ")
		end := field[len(field)-1:]
		switch kind := kinds[n%len(kinds)]; kind {
		case "":
		case `"`:
			number = `"` + number + `"`
		default:
			whole, _, _ := strings.Cut(number, ".")
			number = whole + kind
		}
		n++
		return "=" + number + end
	})
	answers(t, text)
	_, sum := loaded(t, text)
	if _, plain := loaded(t, sample()); sum.points != plain.points || sum.unread != 0 {
		t.Errorf("%d points are stored and %d values are not read, want %d and 0", sum.points, sum.unread, plain.points)
	}
	var out strings.Builder
	_, sum = loaded(t, "readings,name=a,fleet=b velocity=\"fast\",elevation=\"high\" 1\n")
	sum.print(&out, "a file", 0)
	if sum.points != 0 || !strings.Contains(out.String(), "1 value that is no number") {
		t.Errorf("a velocity that is no number: %d points, and the report\n%s", sum.points, &out)
	}
}

func answers(t *testing.T, text string) {
	t.Helper()
	d, sum := loaded(t, text)
	want, now := plainPass(t, text)
	if !sum.now.Equal(now) {
		t.Errorf("now is %v, want %v", sum.now, now)
	}
	t.Logf("%d lines, %d of no truck, %d trucks", sum.lines, sum.nameless, len(want))
	fleets := map[string]int{}
	for name, p := range want {
		fleets[p.fleet]++
		truck, ok := d.truck(name)
		got, err := d.whereIs(t.Context(), truck)
		if !ok || err != nil || got.Value != p.location || !got.Time.Equal(p.located) {
			t.Errorf("%s is at %v at %v (%v), want %v at %v", name, got.Value, got.Time, err, p.location, p.located)
		}
	}
	for fleet, n := range fleets {
		found, err := d.whereAre(t.Context(), fleet)
		if err != nil || len(found) != n {
			t.Fatalf("fleet %s has %d trucks (%v), want %d", fleet, len(found), err, n)
		}
		for _, got := range found {
			if p := want[got.Entity.Parts()[1]]; p.fleet != fleet || got.Value != p.location || !got.Time.Equal(p.located) {
				t.Errorf("%v is at %v at %v, want %v at %v of %s", got.Entity, got.Value, got.Time, p.location, p.located, p.fleet)
			}
		}
	}
	limits := map[float64]bool{0: true, 0.1: true, 0.801: true, 2: true}
	for _, p := range want {
		limits[p.fuel] = true // so that one truck is just not below the limit
	}
	for below := range limits {
		answerFuel(t, d, want, below)
	}
	for _, at := range []time.Time{now, now.Add(-17 * time.Minute), now.Add(24 * time.Hour)} {
		for _, below := range []float64{1, 5, 30, 1000} {
			answerStanding(t, d, want, at, below)
		}
	}
	answerLoads(t, d, want)
}

func answerFuel(t *testing.T, d *data, want map[string]*plain, below float64) {
	t.Helper()
	found, err := d.lowOnFuel(t.Context(), below)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, f := range found {
		name := f.Entity.Parts()[1]
		got[name] = true
		if p := want[name]; f.Value != p.fuel || !f.Time.Equal(p.fueled) {
			t.Errorf("%s has %v of its fuel at %v, want %v at %v", name, f.Value, f.Time, p.fuel, p.fueled)
		}
	}
	for name, p := range want {
		if low := !p.fueled.IsZero() && p.fuel < below; low != got[name] {
			t.Errorf("%s below %v: %v, want %v", name, below, got[name], low)
		}
	}
	t.Logf("below %v of the fuel: %d trucks", below, len(found))
}

func answerStanding(t *testing.T, d *data, want map[string]*plain, now time.Time, below float64) {
	t.Helper()
	found, err := d.stoodStill(t.Context(), now, 10*time.Minute, below)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]mean{}
	for _, m := range found {
		got[m.truck.Parts()[1]] = m
	}
	for name, p := range want {
		sum, n := 0.0, int64(0)
		for at, v := range p.velocities {
			if at.After(now.Add(-10*time.Minute)) && !at.After(now) {
				sum += v
				n++
			}
		}
		m, ok := got[name]
		if stood := n > 0 && sum/float64(n) < below; ok != stood || ok && (m.of != n || !near(m.value, sum/float64(n))) {
			t.Errorf("%s, up to %v: %v of %d (%v), want %v of %d (%v)", name, now, m.value, m.of, ok, sum/float64(n), n, stood)
		}
	}
	t.Logf("mean velocity below %v up to %v: %d trucks", below, now.Format(time.DateTime), len(found))
}

func answerLoads(t *testing.T, d *data, want map[string]*plain) {
	t.Helper()
	found, err := d.averageLoads(t.Context(), tsdb.AllTime())
	if err != nil {
		t.Fatal(err)
	}
	sums, counts := map[string]float64{}, map[string]int64{}
	for _, p := range want {
		for _, share := range p.loads {
			sums[p.fleet] += share
			counts[p.fleet]++
		}
	}
	if len(found) != len(counts) {
		t.Errorf("%d fleets, want %d", len(found), len(counts))
	}
	for _, f := range found {
		if mean := sums[f.fleet] / float64(counts[f.fleet]); f.of != counts[f.fleet] || !near(f.value, mean) {
			t.Errorf("fleet %s is loaded with %v of %d, want %v of %d", f.fleet, f.value, f.of, mean, counts[f.fleet])
		}
		t.Logf("fleet %s: %d trucks, mean load %.4f of %d readings", f.fleet, f.trucks, f.value, f.of)
	}
}

// near allows for sums in another order.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Max(math.Abs(a), math.Abs(b)) }

// TestSample checks that the made-up data has something to find, and something to leave out, for each question.
func TestSample(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), nil, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"40 lines do not say which truck they are of", "\n  North  truck_1    12:59:50   52.59861   13.23241\n", "\n  South  truck_10   12:59:50    7.8 %\n",
		"\n  East   truck_8    mean velocity 0.40 of 59 readings\n", "\n  East     3 trucks     1075 readings   20.8 %\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output has no %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "none") {
		t.Errorf("a question finds nothing:\n%s", &out)
	}
}

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, test := range []struct {
		args  string
		usage bool
		want  string
	}{
		{"extra", true, "extra"},
		{"-truck=", true, "-truck"},
		{"-fuel NaN", true, "-fuel"},
		{"-span 0s", true, "-span"},
		{"-file missing", false, "missing"},
		{"-file " + file("bad.lp", "readings,name=a,fleet=b velocity=1 1\nreadings,name velocity=1\n"), false, "line 2"},
		{"-file " + file("empty.lp", "\n# nothing\n"), false, "nothing in it"},
		{"-file " + file("plain.gz", "readings,name=a,fleet=b velocity=1 1\n"), false, "gzip"},
	} {
		err := run(t.Context(), strings.Fields(test.args), io.Discard)
		if _, usage := errors.AsType[usageError](err); err == nil || usage != test.usage || !strings.Contains(err.Error(), test.want) {
			t.Errorf("run %s: %v, want %q in it", test.args, err, test.want)
		}
	}
	if err := run(t.Context(), []string{"-help"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("run -help: %v, want flag.ErrHelp", err)
	}
	var out bytes.Buffer
	one := file("one.lp", "readings,name=a,fleet=b velocity=100 1000000000\n")
	if err := run(t.Context(), []string{"-file", one, "-truck", "a"}, &out); err != nil || !strings.Contains(out.String(), "it has sent no location") {
		t.Errorf("a truck without a location: %v\n%s", err, &out)
	}
}
