package lab_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/examples/internal/lab"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// small has every kind of query and of candidate. Each entity writes every second for a minute, and twice a minute
// before.
const small = `
name: small
seed: 7
duration: 1m
heavy: 1m
tenants: {count: 2, largest: 60%}
datasets:
  - {name: readings, fields: [site(4), device], entities: 20, every: 2s, bytes: 20}
queries:
  - {kind: latest, rate: 1/s}
  - {kind: latest_many, entities: 5, rate: 1/s}
  - {kind: range, last: 20s, rate: 1/s}
  - {kind: under, fields: 1, rate: 1/s}
  - {kind: aggregate, last: 1m, every: 10s, rate: 1/s}
candidates:
  - {name: sdk, key: tenant#entity#~time}
  - {name: heads, key: tenant#entity#~time, heads: 1}
  - {name: salted, key: tenant#salt(4)#entity#~time}
  - {name: rollup, key: tenant#entity#~time, rollup: 10s}
  - {name: raw, key: tenant#site#device#time}
  - {name: time, key: time#site#device}
  - {name: salted time, key: salt(3)#~time#site#device}
  - {name: device first, key: device#tenant#site#~time}
`

func parsed(t *testing.T, text string) *lab.Plan {
	t.Helper()
	plan, err := lab.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestRun executes every kind of query with every kind of key. All candidates get the same load, and return the same
// points.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	progress := map[string]bool{}
	report, err := parsed(t, small).Run(t.Context(), lab.RunOptions{
		Scale: 1, Speed: 3600, Dir: dir,
		Progress: func(p lab.Progress) { progress[p.Candidate+" "+p.Part] = true },
	})
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]*lab.Measured{}
	for _, c := range report.Candidates {
		by[c.Name] = c.Measured
		m := c.Measured
		if m.HeavyPoints != 600 || m.Points != 600 || m.Failed != 0 || m.FirstError != "" || m.Stopped != "" {
			t.Errorf("%s: %d and %d points, %d failed, %q, %q, want 600 of each part", c.Name, m.HeavyPoints, m.Points, m.Failed, m.FirstError, m.Stopped)
		}
		for _, q := range m.Queries {
			if q.Asked < 58 || q.Asked > 61 || q.Failed != 0 || q.P99 <= 0 || q.P50 > q.P99 || q.Requests < 1 {
				t.Errorf("%s, %s: %+v, want about 60 that were answered", c.Name, q.Query, q)
			}
		}
		if !progress[c.Name+" heavy load"] || !progress[c.Name+" load"] {
			t.Errorf("no progress of %s was reported", c.Name)
		}
		if totals := m.Heatmap.Totals(); totals.Writes == 0 || totals.Reads == 0 {
			t.Errorf("%s: the heatmap has %+v", c.Name, totals)
		}
	}
	const one, several, ranged, under, buckets = 0, 1, 2, 3, 4
	near := func(candidate string, query int, what string, got, least, most float64) {
		t.Helper()
		if got < least || got > most {
			t.Errorf("%s, %s: %g %s for a query, want %g to %g", candidate, by[candidate].Queries[query].Query, got, what, least, most)
		}
	}
	for _, name := range []string{"sdk", "heads", "salted", "rollup", "raw", "device first"} {
		near(name, one, "requests", by[name].Queries[one].Requests, 1, 1)
		near(name, one, "rows looked at", by[name].Queries[one].Seen, 1, 1)
		near(name, ranged, "rows returned", by[name].Queries[ranged].Returned, 1, 12) // newer points may be under way at this speed
	}
	near("heads", several, "requests", by["heads"].Queries[several].Requests, 1, 1)
	near("raw", several, "requests", by["raw"].Queries[several].Requests, 5, 5)
	near("time", several, "rows looked at", by["time"].Queries[several].Seen, 6, 200)
	near("time", ranged, "rows looked at", by["time"].Queries[ranged].Seen, 30, 220)
	near("time", ranged, "rows returned", by["time"].Queries[ranged].Returned, 1, 12)
	near("salted time", ranged, "rows looked at", by["salted time"].Queries[ranged].Seen, 5, 120)
	near("salted time", under, "requests", by["salted time"].Queries[under].Requests, 1, 1)
	near("salted time", under, "rows returned", by["salted time"].Queries[under].Returned, 0, 12)
	near("device first", under, "rows looked at", by["device first"].Queries[under].Seen, 500, 1300)
	near("rollup", buckets, "rows returned", by["rollup"].Queries[buckets].Returned, 1, 40)
	near("sdk", buckets, "rows returned", by["sdk"].Queries[buckets].Returned, 10, 40)
	if got := by["heads"].RowsPerPoint; got <= 1 || got > 2 {
		t.Errorf("a point with a head writes %g rows, want up to 2: points of an entity in one request share a head", got)
	}
	if got := by["sdk"].RowsPerPoint; got != 1 {
		t.Errorf("a point writes %g rows, want 1", got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the run left %v, %v", left, err)
	}
	var text strings.Builder
	if err := report.WriteText(&text); err != nil || !strings.Contains(text.String(), "not those of Bigtable") || !strings.Contains(text.String(), "latest under site in readings") {
		t.Errorf("the report is\n%s\n%v", text.String(), err)
	}
}

// TestInterruptedRun: a run whose context ends reports what was done, and leaves no folder.
func TestInterruptedRun(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heavy := 0.0
	report, err := parsed(t, small).Run(ctx, lab.RunOptions{
		Candidates: []string{"sdk", "time"}, Scale: 1, Speed: 1, Dir: dir,
		Progress: func(p lab.Progress) {
			if p.Part == "load" {
				cancel()
				if p.Done >= 1 {
					t.Errorf("progress is %+v, want that the load is not done", p)
				}
			} else {
				heavy = p.Done
			}
		},
	})
	if heavy != 1 {
		t.Errorf("the heavy load ended at %g, want 1", heavy)
	}
	if !errors.Is(err, context.Canceled) || report == nil {
		t.Fatalf("got %v, %v, want a report and the context's error", report, err)
	}
	m := report.Candidates[0].Measured
	if m == nil || m.HeavyPoints != 600 || m.Stopped != "interrupted" || m.FirstError != "" || report.Candidates[1].Measured != nil {
		t.Errorf("the report has %+v and %+v, want the heavy load of the first candidate", m, report.Candidates[1].Measured)
	}
	if failures := report.Failures(); len(failures) != 1 || failures[0] != "the run of sdk ended early: interrupted" {
		t.Errorf("the failures are %q, want that it ended early", failures)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the run left %v, %v", left, err)
	}
}

// TestRunRefuses: what cannot be executed here is refused before anything is made.
func TestRunRefuses(t *testing.T) {
	huge := parsed(t, strings.Replace(small, "entities: 20,", "entities: 100M,", 1))
	for name, tc := range map[string]struct {
		plan *lab.Plan
		o    lab.RunOptions
		want string
	}{
		"zero plan": {new(lab.Plan), lab.RunOptions{}, "plan is empty"},
		"no plan":   {nil, lab.RunOptions{}, "plan is empty"},
		"scale":     {parsed(t, small), lab.RunOptions{Scale: 2}, "Scale is 2"},
		"speed":     {parsed(t, small), lab.RunOptions{Speed: 0.1}, "Speed is 0.1"},
		"candidate": {parsed(t, small), lab.RunOptions{Candidates: []string{"x"}}, `candidate is "x"; want sdk, heads`},
		"too many":  {huge, lab.RunOptions{}, "more than the 2e+07"},
		"workers":   {parsed(t, small), lab.RunOptions{Concurrency: 1000}, "Concurrency is 1000"},
		"time":      {parsed(t, small), lab.RunOptions{MaxTime: -1}, "MaxTime is -1ns"},
	} {
		if report, err := tc.plan.Run(t.Context(), tc.o); !errors.Is(err, lab.ErrInvalid) || report != nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, %v, want ErrInvalid with %q", name, report, err, tc.want)
		}
	}
}

// TestCompareRefusesBeforeItRuns: what only the model refuses is refused before anything is executed.
func TestCompareRefusesBeforeItRuns(t *testing.T) {
	testkit.Plain(t)
	many := strings.Replace(small, "entities: 20,", "entities: 21M,", 1)
	report, err := parsed(t, many).Compare(t.Context(), lab.RunOptions{
		Scale: 0.000001, Speed: 3600, Progress: func(lab.Progress) { t.Error("something is executed") },
	})
	if !errors.Is(err, lab.ErrInvalid) || report != nil || !strings.Contains(err.Error(), "entities is 21000000 in all datasets; want up to 20000000 for a simulation") {
		t.Errorf("got %v, %v, want ErrInvalid with the number of entities", report, err)
	}
	often := strings.Replace(small, "entities: 5, rate: 1/s", "entities: 5, rate: 10_000_000/s", 1)
	often = strings.Replace(often, "entities: 20,", "entities: 2M,", 1)
	often = strings.Replace(often, "kind: under, fields: 1, rate: 1/s", "kind: under, fields: 0, rate: 100_000/s", 1)
	report, err = parsed(t, often).Compare(t.Context(), lab.RunOptions{
		Scale: 0.00001, Speed: 3600, Progress: func(lab.Progress) { t.Error("something is executed") },
	})
	if !errors.Is(err, lab.ErrInvalid) || report != nil || !strings.Contains(err.Error(), "the model cannot compute candidate sdk") {
		t.Errorf("got %v, %v, want ErrInvalid with the rate of the reads", report, err)
	}
}

// TestCloud runs on a server over TCP, with the official client's own connection, and removes its tables, also when it
// is cancelled.
func TestCloud(t *testing.T) {
	server, err := embedded.NewServer(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving, lis) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	t.Setenv("BIGTABLE_EMULATOR_HOST", lis.Addr().String())
	conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	admin, err := bigtable.NewAdminClient(t.Context(), "p", "i", option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	cloud := &tsdb.Config{Project: "p", Instance: "i"}
	testPanicOnCloud(t, admin)
	const old, young, unknown, others = "tidemark-lab-20200101t000000-a", "tidemark-lab-29990101t000000-b", "tidemark-lab-c", "lab"
	for _, table := range []string{old, young, unknown, others} {
		if err := admin.CreateTable(t.Context(), table); err != nil {
			t.Fatal(err)
		}
	}
	report, err := parsed(t, small).Run(t.Context(), lab.RunOptions{Candidates: []string{"time", "raw"}, Scale: 0.1, Speed: 3600, Cloud: cloud})
	if err != nil || len(report.Leftovers) != 3 || !strings.HasPrefix(report.Leftovers[0], "removed the table "+old) || !strings.Contains(report.Leftovers[1], young+" is of a run that is under way or was killed; a run after 2999-01-01T01:00:00Z removes it") || !strings.Contains(report.Leftovers[2], unknown) {
		t.Errorf("got %v and %q, want what became of three tables", err, report.Leftovers)
	}
	for _, table := range []string{young, unknown, others} {
		if err := admin.DeleteTable(t.Context(), table); err != nil {
			t.Errorf("table %s: %v, want that the run left it", table, err)
		}
	}
	for _, cancelled := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		seen := false
		report, err := parsed(t, small).Run(ctx, lab.RunOptions{
			Candidates: []string{"sdk", "time"}, Scale: 0.5, Speed: 3600, Cloud: cloud,
			Progress: func(p lab.Progress) {
				tables, err := admin.Tables(context.Background())
				seen = seen || len(tables) == 1 && err == nil && strings.HasPrefix(tables[0], "tidemark-lab-")
				if cancelled && p.Candidate == "time" {
					cancel()
				}
			},
		})
		cancel()
		if cancelled != errors.Is(err, context.Canceled) || err != nil && !cancelled {
			t.Errorf("cancelled %v: %v", cancelled, err)
		}
		if !report.Cloud || report.Candidates[0].Measured.Points == 0 || !seen {
			t.Errorf("the report has %+v; a scratch table was seen: %v", report, seen)
		}
		if tables, err := admin.Tables(t.Context()); err != nil || len(tables) > 0 {
			t.Errorf("cancelled %v: the run left the tables %v, %v", cancelled, tables, err)
		}
	}
}

// testPanicOnCloud: a panic in a request of a worker removes the scratch table.
func testPanicOnCloud(t *testing.T, admin *bigtable.AdminClient) {
	t.Helper()
	var made atomic.Bool
	cloud := &tsdb.Config{Project: "p", Instance: "i", DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if strings.HasSuffix(method, "/MutateRows") {
				if tables, err := admin.Tables(ctx); err == nil && len(tables) == 1 { // the context of later requests has ended
					made.Store(true)
				}
				panic("a fault of the program")
			}
			return streamer(ctx, desc, cc, method, opts...)
		})}}
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, "a fault of the program") {
			t.Errorf("Run panics with %q, want the fault", p)
		}
		if tables, err := admin.Tables(t.Context()); err != nil || len(tables) > 0 || !made.Load() {
			t.Errorf("the run left the tables %v, %v; a table was made: %v", tables, err, made.Load())
		}
	}()
	_, err := parsed(t, small).Run(t.Context(), lab.RunOptions{Candidates: []string{"time"}, Scale: 1, Speed: 3600, Cloud: cloud})
	t.Errorf("Run returns %v, want a panic", err)
}
