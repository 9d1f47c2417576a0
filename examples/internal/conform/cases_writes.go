package conform

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/bt"
)

var writeTests = []test{
	{
		name: "outcomes/unknown family", claim: "a mutation with an invalid part changes nothing", source: dataAPI + "#mutaterowrequest", want: "NotFound, nothing stored",
		see: func(e *env) (string, error) {
			got, err := code(e.write("r", set("v"), setCell("nope", "q", 1000, nil)))
			if err != nil {
				return "", err
			}
			row, err := e.row("r")
			return got + ", " + row + " stored", err
		},
	},
	{
		name: "outcomes/bulk", claim: "each entry of a bulk write has its own outcome", source: dataAPI + "#mutaterowsresponse", want: "OK NotFound OK, q=1 nothing q=3",
		see: func(e *env) (string, error) {
			got, err := e.bulk(entry("1", nil, set("1")), entry("2", nil, setCell("nope", "q", 1000, nil)), entry("3", nil, set("3")))
			if err != nil {
				return "", err
			}
			var rows []string
			for _, k := range []string{"1", "2", "3"} {
				row, err := e.row(k)
				if err != nil {
					return "", err
				}
				rows = append(rows, strings.TrimPrefix(row, "f:"))
			}
			return strings.Join(got, " ") + ", " + strings.Join(rows, " "), nil
		},
	},
	{
		name: "outcomes/missing table", claim: "a table that does not exist is NotFound", source: errorPage, want: "NotFound",
		see: func(e *env) (string, error) {
			_, err := e.data.MutateRow(e.at(), &bigtablepb.MutateRowRequest{
				TableName: e.path(e.table + "-none"), AppProfileId: e.profile(), RowKey: []byte("r"), Mutations: []*bigtablepb.Mutation{set("v")},
			})
			return code(err)
		},
	},
	{
		name: "outcomes/fine timestamp", claim: "a timestamp that is no whole millisecond is refused", source: dataAPI + "#mutation", want: "InvalidArgument",
		see: func(e *env) (string, error) { return code(e.write("r", setCell(plain, "q", 1001, nil))) },
	},
	{
		name: "outcomes/server time", claim: "the service's time is in whole milliseconds, and near to this machine's", source: dataAPI + "#mutation", want: "in milliseconds, within 5m",
		see: func(e *env) (string, error) {
			if err := e.write("r", setCell(plain, "q", -1, nil)); err != nil {
				return "", err
			}
			r, err := e.open().ReadRow(e.ctx, e.prefix+"r")
			if err != nil || len(r[plain]) != 1 {
				return fmt.Sprintf("%d cells", len(r[plain])), err
			}
			at := r[plain][0].Timestamp
			seen := "in milliseconds"
			if at%1000 != 0 {
				seen = "in microseconds"
			}
			if off := time.Since(at.Time()).Abs(); off > 5*time.Minute {
				return fmt.Sprintf("%s, off by %v", seen, off), nil
			}
			return seen + ", within 5m", nil
		},
	},
	{
		name: "outcomes/overwritten", claim: "a cell that is written again at its timestamp holds the new value alone", source: writePage, want: "1 cell: two",
		see: func(e *env) (string, error) {
			for _, v := range []string{"one", "two"} {
				if err := e.write("r", set(v)); err != nil {
					return "", err
				}
			}
			r, err := e.open().ReadRow(e.ctx, e.prefix+"r")
			if err != nil || len(r[plain]) == 0 {
				return "no cell", err
			}
			return fmt.Sprintf("%d cell: %s", len(r[plain]), r[plain][0].Value), nil
		},
	},
	{
		name: "outcomes/deleted cells", claim: "a deletion by timestamps has the start and not the end", source: dataAPI + "#mutation", want: "4000 1000",
		see: func(e *env) (string, error) {
			return e.timestamps(bigtable.PassAllFilter(), deleteCells(kept, "q", 2000, 4000))
		},
	},
	{
		name: "outcomes/flow control", claim: "a bulk write that announces flow control has an outcome for each entry, too", source: writePage + "#flow-control", want: "OK NotFound OK",
		see: func(e *env) (string, error) { // the report counts the responses with RateLimitInfo: only a busy service gives it
			got, err := e.bulkIn(bt.AnnounceRateLimit(e.at()), entry("1", nil, set("1")), entry("2", nil, setCell("nope", "q", 1000, nil)), entry("3", nil, set("3")))
			return strings.Join(got, " "), err
		},
	},
	{
		name: "outcomes/retry info", claim: "an error of a request does not ask the SDK to repeat a refused write", source: "https://google.aip.dev/194", want: "no advice",
		see: func(e *env) (string, error) {
			err := e.write("r", setCell("nope", "q", 1000, nil))
			if n := len(status.Convert(err).Details()); n > 0 {
				return fmt.Sprintf("%d details: %v", n, status.Convert(err).Details()), nil
			}
			return "no advice", nil
		},
	},
}

// timestamps writes four versions of a cell, then a mutation if there is one, and returns the timestamps that a filter
// passes, in order.
func (e *env) timestamps(filter bigtable.Filter, then ...*bigtablepb.Mutation) (string, error) {
	for _, at := range []int64{1000, 2000, 3000, 4000} {
		if err := e.write("r", setCell(kept, "q", at, nil)); err != nil {
			return "", err
		}
	}
	if len(then) > 0 {
		if err := e.write("r", then...); err != nil {
			return "", err
		}
	}
	r, err := e.open().ReadRow(e.ctx, e.prefix+"r", bigtable.RowFilter(filter))
	var got []string
	for _, c := range r[kept] {
		got = append(got, fmt.Sprint(int64(c.Timestamp)))
	}
	return strings.Join(got, " "), err
}

// matching is a predicate that passes the cell of set if it has a value.
func matching(value string) *bigtablepb.RowFilter {
	return &bigtablepb.RowFilter{Filter: &bigtablepb.RowFilter_Chain_{Chain: &bigtablepb.RowFilter_Chain{Filters: []*bigtablepb.RowFilter{
		{Filter: &bigtablepb.RowFilter_FamilyNameRegexFilter{FamilyNameRegexFilter: plain}},
		{Filter: &bigtablepb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte(value)}},
	}}}}
}

var conditionalTests = []test{
	{
		name: "conditional/branches", claim: "a conditional write sees the row as the write before left it", source: dataAPI + "#checkandmutaterowrequest", want: "false true false: f:q=then f:r=",
		see: func(e *env) (string, error) {
			var seen []string
			for range 3 {
				matched, err := e.conditional("r", matching("otherwise"), []*bigtablepb.Mutation{set("then")}, []*bigtablepb.Mutation{setIfNone(len(seen))})
				if err != nil {
					_, err = code(err)
					return "refused", err
				}
				seen = append(seen, fmt.Sprint(matched))
			}
			row, err := e.row("r")
			return strings.Join(seen, " ") + ": " + row, err
		},
	},
	{
		name: "conditional/one winner", claim: "of inserts at the same time one is first", source: writePage, want: "1 of 8",
		see: func(e *env) (string, error) {
			var mu sync.Mutex
			var wg sync.WaitGroup
			won, errs := 0, error(nil)
			start := make(chan struct{})
			for n := range 8 {
				wg.Go(func() {
					<-start
					matched, err := e.conditional("r", nil, nil, []*bigtablepb.Mutation{set(fmt.Sprint(n))})
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						errs = err
					} else if !matched {
						won++
					}
				})
			}
			close(start)
			wg.Wait()
			return fmt.Sprintf("%d of 8", won), errs
		},
	},
	{
		name: "conditional/additions", claim: "a conditional write may add", source: dataAPI + "#checkandmutaterowrequest", want: "OK: sum:n=5 min:n=5 max:n=5", aggregates: true,
		see: func(e *env) (string, error) {
			_, err := e.conditional("r", matching("none"), nil, addAll(5))
			return e.after("r", err)
		},
	},
	{
		name: "conditional/deletion and additions", claim: "a conditional write may delete a cell that aggregates and add to it", source: dataAPI + "#checkandmutaterowrequest", want: "OK: sum:n=7 min:n=3 max:n=4", aggregates: true,
		see: func(e *env) (string, error) {
			if err := e.write("r", addAll(5)...); err != nil {
				return "", err
			}
			muts := []*bigtablepb.Mutation{deleteRange(sums), deleteRange(mins), deleteRange(maxs)}
			_, err := e.conditional("r", matching("none"), nil, append(append(muts, addAll(3)...), addAll(4)...))
			return e.after("r", err)
		},
	},
	{
		name: "profiles/conditional", claim: "a profile that routes to several clusters refuses conditional writes", source: routing, want: "FailedPrecondition",
		see: func(e *env) (string, error) {
			if e.o.ConditionalAppProfile == "" || e.o.ConditionalAppProfile == e.o.AppProfile {
				return "", skipped("there is only one app profile")
			}
			m := bigtable.NewMutation()
			m.Set(plain, "q", 1000, nil)
			return code(e.client.Open(e.table).Apply(e.ctx, e.prefix+"r", bigtable.NewCondMutation(bigtable.PassAllFilter(), nil, m)))
		},
	},
}

// setIfNone is what the n-th conditional write of a case does where nothing matches.
func setIfNone(n int) *bigtablepb.Mutation {
	if n == 0 {
		return set("otherwise")
	}
	return setCell(plain, "r", 1000, nil)
}

// after returns the code of a write, and what the row then holds.
func (e *env) after(row string, err error) (string, error) {
	got, err := code(err)
	if err != nil {
		return "", err
	}
	held, err := e.row(row)
	return got + ": " + held, err
}
