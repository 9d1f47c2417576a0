//go:build unix

package window_test

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/sketch"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// postgres is a Postgres server that only this test reaches: it listens on a socket in a temporary folder.
type postgres struct {
	t   *testing.T
	bin func(name string, args ...string) *exec.Cmd
	dir string
}

// startPostgres starts a server, or skips the test if this machine has none.
func startPostgres(t *testing.T) *postgres {
	t.Helper()
	const advice = "no %s here, so nothing is compared with SQL. On Debian and Ubuntu, get it with: apt-get install postgresql"
	paths := map[string]string{}
	for _, name := range []string{"initdb", "postgres", "psql"} {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
		if path, err := exec.LookPath(name); err == nil && len(found) == 0 {
			found = []string{path}
		}
		if len(found) == 0 {
			t.Skipf(advice, name)
		}
		paths[name] = found[len(found)-1]
	}
	dir, err := os.MkdirTemp("", "sql") // not t.TempDir, whose parent only its owner may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	attr := &syscall.SysProcAttr{}
	if os.Getuid() == 0 { // the server refuses to run as root
		other, err := user.Lookup("postgres")
		if err != nil {
			other, err = user.Lookup("nobody")
		}
		if err != nil {
			t.Skipf(advice, "user postgres or nobody")
		}
		uid, _ := strconv.Atoi(other.Uid)
		gid, _ := strconv.Atoi(other.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Skipf("a server cannot run as root, and this machine allows no other user: %v", err)
		}
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	p := &postgres{t: t, dir: dir}
	p.bin = func(name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), paths[name], args...)
		cmd.Dir, cmd.SysProcAttr, cmd.Env = dir, attr, []string{"HOME=" + dir, "LC_ALL=C"}
		return cmd
	}
	data := filepath.Join(dir, "data")
	if out, err := p.bin("initdb", "-D", data, "-U", "test", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	server := p.bin("postgres", "-D", data, "-k", dir, "-c", "listen_addresses=", "-F", "-c", "shared_buffers=8MB", "-c", "autovacuum=off")
	log, err := server.StderrPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	server.Cancel = func() error { return server.Process.Signal(syscall.SIGQUIT) } // at once; the context ends before the cleanups
	t.Cleanup(func() { _ = server.Wait() })
	said := ""
	for lines := bufio.NewScanner(log); lines.Scan(); {
		said += lines.Text() + "\n"
		if strings.Contains(lines.Text(), "ready to accept connections") {
			return p
		}
	}
	t.Fatalf("the server ended:\n%s", said)
	return nil
}

// run passes a script to psql, and returns the fields of the lines of its output.
func (p *postgres) run(script string) (lines [][]string) {
	p.t.Helper()
	cmd := p.bin("psql", "-h", p.dir, "-U", "test", "-d", "postgres", "-XqAt", "-v", "ON_ERROR_STOP=1")
	cmd.Stdin = strings.NewReader(script)
	cmd.Stderr = &strings.Builder{}
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("psql: %v\n%v", err, cmd.Stderr)
	}
	for line := range strings.Lines(string(out)) {
		lines = append(lines, strings.Split(strings.TrimSpace(line), "|"))
	}
	return lines
}

const (
	sqlGap    = 70 * time.Minute // MaxGap
	sqlSeries = 12
)

// queries are what SQL says of hours: a name, the series and the number of the hour, then the numbers. The steps and
// the states of a series cross the bounds of hours and of the interval, whose ends are :lo and :hi in milliseconds.
const queries = `
select 'gauge', series, t/3600000, count(*), sum(g), min(g), max(g), (array_agg(g order by t))[1], (array_agg(g order by t desc))[1],
	percentile_disc(0.5) within group (order by g), percentile_disc(0.95) within group (order by g)
	from p where g is not null and t >= :lo and t < :hi group by 2, 3;

select 'counter', series, t/3600000, count(*), sum(case when before is null then 0 when c < before then c else c - before end), count(*) filter (where c < before)
	from (select *, lag(c) over (partition by series order by t) as before from p where c is not null) steps
	where t >= :lo and t < :hi group by 2, 3;

select 'integral', series, hour, sum(g * (least(next, (hour+1)*3600000, :hi) - greatest(t, hour*3600000, :lo))) / 1000,
		sum(least(next, (hour+1)*3600000, :hi) - greatest(t, hour*3600000, :lo)) / 1000
	from (select *, lead(t) over (partition by series order by t) as next from p where g is not null) held,
		generate_series(greatest(t, :lo)/3600000, (least(next, :hi) - 1)/3600000) as hour
	where next - t <= :gap and next > :lo and t < :hi group by 2, 3;

select 'state ' || s, series, hour, sum(least(ends, (hour+1)*3600000) - greatest(t, hour*3600000, :lo)) / 1000
	from (select *, least(lead(t) over (partition by series order by t), t + :gap, :hi) as ends from p where s is not null) states,
		generate_series(greatest(t, :lo)/3600000, (ends - 1)/3600000) as hour
	where ends > :lo and t < :hi group by 1, 2, 3;
`

// TestHoursAreThoseOfSQL: hours of random series have the numbers that a database computes from the same points with
// window functions.
func TestHoursAreThoseOfSQL(t *testing.T) {
	testkit.Plain(t)
	db := startPostgres(t)
	rnd := rand.New(rand.NewPCG(8, 11))
	origin := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	lo, hi := origin.Add(5*time.Hour+17*time.Minute), origin.Add(40*time.Hour+3*time.Minute)
	var script strings.Builder
	script.WriteString("create table p (series int, t bigint, g float8, c float8, s text);\ncopy p from stdin;\n")
	all := make([]history, sqlSeries)
	for i := range all {
		at, total := origin, 0.0
		for range 300 {
			at = at.Add(time.Duration(1+rnd.IntN(600_000)) * time.Millisecond)
			if rnd.IntN(30) == 0 {
				at = at.Add(time.Duration(rnd.IntN(200)) * time.Minute)
			}
			if total += float64(rnd.IntN(50)); rnd.IntN(20) == 0 {
				total = float64(rnd.IntN(20))
			}
			var v telemetry
			columns := []string{`\N`, `\N`, `\N`}
			if rnd.IntN(8) > 0 {
				x := float64(rnd.IntN(8000)-4000) / 8 // sums of these have no rounding
				v.gauge, columns[0] = &x, fmt.Sprint(x)
			}
			if rnd.IntN(8) > 0 {
				x := total
				v.counter, columns[1] = &x, fmt.Sprint(x)
			}
			if rnd.IntN(3) > 0 {
				x := []string{"off", "idle", "on"}[rnd.IntN(3)]
				v.mode, columns[2] = &x, x
			}
			all[i] = append(all[i], pointOrError{p: tsdb.Point[telemetry]{Time: at, Value: v}})
			fmt.Fprintf(&script, "%d\t%d\t%s\n", i, at.UnixMilli(), strings.Join(columns, "\t"))
		}
	}
	fmt.Fprintf(&script, "\\.\n\\set lo %d\n\\set hi %d\n\\set gap %d\n%s", lo.UnixMilli(), hi.UnixMilli(), sqlGap.Milliseconds(), queries)
	type key struct {
		name         string
		series, hour int64
	}
	truth := map[key][]float64{}
	for _, line := range db.run(script.String()) {
		var numbers []float64
		for _, field := range line[1:] {
			x, err := strconv.ParseFloat(field, 64)
			if err != nil {
				t.Fatal(line, err)
			}
			numbers = append(numbers, x)
		}
		truth[key{line[0], int64(numbers[0]), int64(numbers[1])}] = numbers[2:]
	}
	byHour, err := window.New(window.Every(time.Hour), []window.Measure[telemetry]{
		{
			Name: "gauge", Of: func(v telemetry) (float64, bool) { return number(v.gauge) }, MaxGap: sqlGap,
			Aggregates: window.Basic | window.Ends | window.Integral | window.Quantiles,
		},
		{Name: "counter", Kind: window.Counter, Of: func(v telemetry) (float64, bool) { return number(v.counter) }},
		{Name: "mode", Kind: window.State, Text: telemetry.state, MaxGap: sqlGap},
	}, window.Options{Gaps: window.Null})
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
		used := map[key]bool{}
		for i, h := range all {
			buckets, bad, err := collect(t, byHour.Read(t.Context(), h, tsdb.Entity{}, tsdb.Between(lo, hi), order))
			if err != nil || len(bad) > 0 {
				t.Fatal(err, bad)
			}
			for _, b := range buckets {
				check := func(name string, within float64, got ...float64) {
					k := key{name, int64(i), b.Start.UnixMilli() / time.Hour.Milliseconds()}
					want := truth[k]
					used[k] = want != nil
					for n, x := range got {
						if want == nil && x != 0 && !math.IsNaN(x) || want != nil && !(math.Abs(x-want[n]) <= within*math.Abs(want[n])+1e-9) {
							t.Errorf("order %v: %s of series %d in the hour of %v is %v, SQL says %v", order, name, i, b.Start, got, want)
							return
						}
					}
				}
				g, c := b.Values[0], b.Values[1]
				check("gauge", 0, float64(g.Count), g.Sum, g.Min, g.Max, g.First, g.Last)
				if k := (key{"gauge", int64(i), b.Start.UnixMilli() / time.Hour.Milliseconds()}); truth[k] != nil {
					truth[key{"percentiles", k.series, k.hour}] = truth[k][6:]
				}
				check("percentiles", sketch.Error, g.Quantile(0.5), g.Quantile(0.95))
				check("integral", 1e-12, g.Integral, g.Covered.Seconds())
				check("counter", 0, float64(c.Count), c.Increase, float64(c.Resets))
				for _, s := range []string{"off", "idle", "on"} {
					check("state "+s, 1e-12, b.Values[2].States.Time(s).Seconds())
				}
			}
		}
		for k := range truth {
			if !used[k] {
				t.Errorf("order %v: SQL has %v, which is not in a bucket", order, k)
			}
		}
	}
	if len(truth) < 1000 {
		t.Errorf("SQL has %d groups: too few to test anything", len(truth))
	}
}
