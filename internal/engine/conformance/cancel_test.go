package conformance

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// many fills a table with n rows.
func (e *env) many(id string, n int) *bigtable.Table {
	e.Helper()
	tbl := e.create(id, "f")
	const chunk = 10000
	for from := 0; from < n; from += chunk {
		var rows []string
		var muts []*bigtable.Mutation
		for i := from; i < min(n, from+chunk); i++ {
			rows, muts = append(rows, fmt.Sprintf("r%07d", i)), append(muts, set("f:q@1=some value of some length"))
		}
		if errs, err := tbl.ApplyBulk(e.ctx, rows, muts); errs != nil || err != nil {
			e.Fatal(errs, err)
		}
	}
	return tbl
}

// A scan ends soon after its context ends, also while it finds no rows.
func TestReadsEnd(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultStreams)
		rows := 100_000 / testkit.Stride(5)
		tbl := e.many("t", rows)
		nothing := bigtable.RowFilter(bigtable.ValueFilter(strings.Repeat(`\C`, 60)))
		for name, opts := range map[string][]bigtable.ReadOption{
			"forward": {nothing}, "reversed": {nothing, bigtable.ReverseScan()},
		} {
			ctx, cancel := context.WithTimeout(e.ctx, 5*time.Millisecond)
			start := time.Now()
			err := tbl.ReadRows(ctx, bigtable.InfiniteRange(""), func(bigtable.Row) bool { return true }, opts...)
			cancel()
			wantCode(t, err, codes.DeadlineExceeded, name+": a scan past its deadline")
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("%s: a scan with a deadline of 5 ms took %v", name, took)
			}
			ctx, cancel = context.WithCancel(e.ctx)
			seen := 0
			err = tbl.ReadRows(ctx, bigtable.InfiniteRange(""), func(bigtable.Row) bool {
				if seen++; seen == 10 {
					cancel()
				}
				return true
			}, opts[1:]...)
			cancel()
			if status.Code(err) != codes.Canceled && err != nil {
				t.Errorf("%s: cancelled scan: got %v, want Canceled", name, err)
			}
			if seen > rows/2 {
				t.Errorf("%s: a scan cancelled at row 10 went on to row %d", name, seen)
			}
		}
	})
}

func TestEndedContextDoesNothing(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultStreams)
		tbl := e.create("t", "f")
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		if err := tbl.Apply(ctx, "r", set("f:q@1=v")); err == nil {
			t.Error("a write under an ended context: got nil, want an error")
		}
		want(t, e.all(tbl), "", "a write under an ended context was stored")
	})
}

// Scans that stop early release their goroutines and iterators.
func TestEarlyStopLeaksNothing(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.many("t", 5000)
		stop := func() {
			if err := tbl.ReadRows(e.ctx, bigtable.InfiniteRange(""), func(bigtable.Row) bool { return false }); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		before := runtime.NumGoroutine()
		scans := 100 / testkit.Stride(5)
		for range scans {
			stop()
		}
		var after int
		for range 3000 {
			if after = runtime.NumGoroutine(); after <= before+3 {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("%d scans that stopped early leaked %d goroutines", scans, after-before)
	})
}

// A scan reads a snapshot: it does not see rows that are written or deleted after it began.
func TestReadsSeeOneMoment(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultStreams)
		tbl := e.many("t", 5000)
		seen, late := 0, 0
		if err := tbl.ReadRows(e.ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
			if seen == 0 {
				if err := e.admin.DropRowRange(e.ctx, "t", "r00049"); err != nil {
					t.Error(err)
				}
				e.put(tbl, "r0004000x", "f:q@1=late")
			}
			if strings.HasSuffix(r.Key(), "x") {
				late++
			}
			seen++
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if e.backend.name == "inproc" && (seen != 5000 || late != 0) {
			t.Errorf("got %d rows of 5000 in a scan, %d of them written after it began", seen, late)
		}
	})
}
