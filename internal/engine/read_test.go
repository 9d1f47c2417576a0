package engine_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// seed writes n rows r00, r01 and so on, each with two columns; the first column has three versions.
func seed(t testing.TB, r *rig, n int) {
	t.Helper()
	keys, muts := make([]string, n), make([]*bigtable.Mutation, n)
	for i := range n {
		m := bigtable.NewMutation()
		for v := range 3 {
			m.Set("f", "a", bigtable.Timestamp((v+1)*1000), fmt.Appendf(nil, "%d.%d", i, v))
		}
		m.Set("g", "b", 5000, []byte("x"))
		keys[i], muts[i] = fmt.Sprintf("r%02d", i), m
	}
	if errs, err := r.data.Open(tableID).ApplyBulk(r.ctx, keys, muts); err != nil || errs != nil {
		t.Fatalf("ApplyBulk: %v %v", err, errs)
	}
}

func rowKeys(lines []string) []string {
	var out []string
	for _, l := range lines {
		key, _, _ := strings.Cut(l, " ")
		if len(out) == 0 || out[len(out)-1] != key {
			out = append(out, key)
		}
	}
	return out
}

func TestReadOrder(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	apply(t, r, "a", set("f", "q", 1000, "one"))
	apply(t, r, "b", set("f", "q", 2000, "two"))
	apply(t, r, "a", set("f", "q", 3000, "three"))
	apply(t, r, "a", set("f", "p\x00", 1000, "zero byte"))
	got := dump(t, r, bigtable.InfiniteRange(""))
	want := []string{"a f:p\x00@1000=zero byte", "a f:q@3000=three", "a f:q@1000=one", "b f:q@2000=two"}
	if !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

func TestReadRowSets(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	seed(t, r, 20)
	for _, tt := range []struct {
		name string
		set  bigtable.RowSet
		opts []bigtable.ReadOption
		want string
	}{
		{"limit", bigtable.InfiniteRange(""), []bigtable.ReadOption{bigtable.LimitRows(3)}, "r00 r01 r02"},
		{"range", bigtable.NewRange("r03", "r06"), nil, "r03 r04 r05"},
		{"open start", bigtable.NewOpenRange("r03", "r06"), nil, "r04 r05"},
		{"closed end", bigtable.NewClosedRange("r03", "r05"), nil, "r03 r04 r05"},
		{"open start closed end", bigtable.NewOpenClosedRange("r03", "r05"), nil, "r04 r05"},
		{"infinite reverse", bigtable.InfiniteReverseRange("r01"), nil, "r00 r01"},
		{"keys, unsorted and twice", bigtable.RowList{"r07", "r02", "r07", "none"}, nil, "r02 r07"},
		{
			"overlapping ranges", bigtable.RowRangeList{
				bigtable.NewRange("r10", "r13"), bigtable.NewRange("r01", "r02"),
				bigtable.NewRange("r12", "r14"),
			}, nil, "r01 r10 r11 r12 r13",
		},
		{
			"ranges in reverse",
			bigtable.RowRangeList{bigtable.NewRange("r10", "r13"), bigtable.NewRange("r01", "r02")},
			[]bigtable.ReadOption{bigtable.ReverseScan()},
			"r12 r11 r10 r01",
		},
		{"reverse", bigtable.InfiniteRange(""), []bigtable.ReadOption{bigtable.ReverseScan(), bigtable.LimitRows(2)}, "r19 r18"},
		{"prefix", bigtable.PrefixRange("r1"), []bigtable.ReadOption{bigtable.LimitRows(2)}, "r10 r11"},
		{"no row in the range", bigtable.PrefixRange("x"), nil, ""},
		{
			"limit counts returned rows", bigtable.InfiniteRange(""),
			[]bigtable.ReadOption{bigtable.RowFilter(bigtable.ValueFilter("1[0-9]\\.2")), bigtable.LimitRows(2)},
			"r10 r11",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(rowKeys(dump(t, r, tt.set, tt.opts...)), " "); got != tt.want {
				t.Errorf("got rows %q, want %q", got, tt.want)
			}
		})
	}
}

func TestReadFilters(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	seed(t, r, 3)
	row := bigtable.SingleRow("r01")
	for _, tt := range []struct {
		name   string
		filter bigtable.Filter
		want   []string
	}{
		{"none", nil, []string{"r01 f:a@3000=1.2", "r01 f:a@2000=1.1", "r01 f:a@1000=1.0", "r01 g:b@5000=x"}},
		{"latest", bigtable.LatestNFilter(1), []string{"r01 f:a@3000=1.2", "r01 g:b@5000=x"}},
		{"family", bigtable.FamilyFilter("g"), []string{"r01 g:b@5000=x"}},
		{"column range", bigtable.ColumnRangeFilter("f", "a", "b"), []string{"r01 f:a@3000=1.2", "r01 f:a@2000=1.1", "r01 f:a@1000=1.0"}},
		{"time range", bigtable.TimestampRangeFilterMicros(2000, 3000), []string{"r01 f:a@2000=1.1"}},
		{"strip", bigtable.ChainFilters(bigtable.LatestNFilter(1), bigtable.StripValueFilter()), []string{"r01 f:a@3000=", "r01 g:b@5000="}},
		{"block", bigtable.BlockAllFilter(), []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, reverse := range []bool{false, true} {
				var opts []bigtable.ReadOption
				if tt.filter != nil {
					opts = append(opts, bigtable.RowFilter(tt.filter))
				}
				if reverse {
					opts = append(opts, bigtable.ReverseScan())
				}
				if got := dump(t, r, row, opts...); !slices.Equal(got, tt.want) {
					t.Errorf("reverse=%v: read %q, want %q", reverse, got, tt.want)
				}
			}
		})
	}
}

// Each filter gives the right cells of wide rows, whichever way the scanner takes through a row.
func TestReadWideRows(t *testing.T) {
	testkit.Plain(t)
	r := open(t, engine.Options{})
	r.create(t)
	for _, key := range []string{"a", "b", "c"} {
		m := bigtable.NewMutation()
		for c := range 30 {
			for v := range 40 {
				m.Set("f", fmt.Sprintf("c%02d", c), bigtable.Timestamp((v+1)*1000), fmt.Appendf(nil, "%s%d.%d", key, c, v))
			}
		}
		m.Set("g", "z", 1000, []byte("end "+key))
		apply(t, r, key, m)
	}
	for _, reverse := range []bool{false, true} {
		for _, f := range []bigtable.Filter{
			bigtable.PassAllFilter(), bigtable.LatestNFilter(1), bigtable.LatestNFilter(20),
			bigtable.TimestampRangeFilterMicros(3000, 5000),
			bigtable.ChainFilters(bigtable.TimestampRangeFilterMicros(0, 10_000), bigtable.LatestNFilter(2)),
			bigtable.FamilyFilter("g"), bigtable.ColumnFilter("c1.*"), bigtable.ColumnRangeFilter("f", "c05", "c07"),
		} {
			opts := []bigtable.ReadOption{bigtable.RowFilter(f)}
			if reverse {
				opts = append(opts, bigtable.ReverseScan())
			}
			got := dump(t, r, bigtable.InfiniteRange(""), opts...)
			want := expect(f, reverse)
			if !slices.Equal(got, want) {
				t.Errorf("reverse=%v, %v: got %d cells %.60q…, want %d %.60q…", reverse, f, len(got), got, len(want), want)
			}
		}
	}
}

// expect evaluates the filters of TestReadWideRows without the engine.
func expect(f bigtable.Filter, reverse bool) []string {
	out := []string{}
	keys := []string{"a", "b", "c"}
	if reverse {
		slices.Reverse(keys)
	}
	name := f.String()
	for _, key := range keys {
		for c := range 30 {
			column := fmt.Sprintf("c%02d", c)
			n := 0
			for v := 39; v >= 0; v-- {
				ts := (v + 1) * 1000
				ok := true
				switch name {
				case bigtable.LatestNFilter(1).String():
					ok = n < 1
				case bigtable.LatestNFilter(20).String():
					ok = n < 20
				case bigtable.TimestampRangeFilterMicros(3000, 5000).String():
					ok = ts >= 3000 && ts < 5000
				case bigtable.ChainFilters(bigtable.TimestampRangeFilterMicros(0, 10_000), bigtable.LatestNFilter(2)).String():
					ok = ts < 10_000 && n < 2
				case bigtable.FamilyFilter("g").String():
					ok = false
				case bigtable.ColumnFilter("c1.*").String():
					ok = column[1] == '1'
				case bigtable.ColumnRangeFilter("f", "c05", "c07").String():
					ok = column == "c05" || column == "c06"
				}
				if ok {
					n++
					out = append(out, fmt.Sprintf("%s f:%s@%d=%s%d.%d", key, column, ts, key, c, v))
				}
			}
		}
		switch name {
		case bigtable.PassAllFilter().String(), bigtable.LatestNFilter(1).String(), bigtable.LatestNFilter(20).String(),
			bigtable.FamilyFilter("g").String(),
			bigtable.ChainFilters(bigtable.TimestampRangeFilterMicros(0, 10_000), bigtable.LatestNFilter(2)).String():
			out = append(out, fmt.Sprintf("%s g:z@1000=end %s", key, key))
		}
	}
	return out
}

func TestReadStats(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	seed(t, r, 50)
	var got bigtable.FullReadStats
	dump(t, r, bigtable.InfiniteRange(""), bigtable.LimitRows(5), bigtable.RowFilter(bigtable.ValueFilter("x")),
		bigtable.WithFullReadStats(func(s *bigtable.FullReadStats) { got = *s }))
	want := bigtable.ReadIterationStats{RowsSeenCount: 5, RowsReturnedCount: 5, CellsSeenCount: 20, CellsReturnedCount: 5}
	if got.ReadIterationStats != want {
		t.Errorf("got stats %+v, want %+v: a read must stop at its limit", got.ReadIterationStats, want)
	}
}

func TestReadRefusals(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	closed := func(start, end string) *bigtablepb.RowSet {
		return &bigtablepb.RowSet{RowRanges: []*bigtablepb.RowRange{{
			StartKey: &bigtablepb.RowRange_StartKeyClosed{StartKeyClosed: []byte(start)},
			EndKey:   &bigtablepb.RowRange_EndKeyOpen{EndKeyOpen: []byte(end)},
		}}}
	}
	for _, tt := range []struct {
		name string
		req  *bigtablepb.ReadRowsRequest
		want codes.Code
	}{
		{"nil", nil, codes.NotFound},
		{"no table", &bigtablepb.ReadRowsRequest{}, codes.NotFound},
		{"unknown table", &bigtablepb.ReadRowsRequest{TableName: parent + "/tables/x"}, codes.NotFound},
		{"bad view", &bigtablepb.ReadRowsRequest{AuthorizedViewName: "x"}, codes.InvalidArgument},
		{"unknown view", &bigtablepb.ReadRowsRequest{AuthorizedViewName: fullName + "/authorizedViews/v"}, codes.NotFound},
		{"materialized view", &bigtablepb.ReadRowsRequest{MaterializedViewName: "x"}, codes.Unimplemented},
		{"both", &bigtablepb.ReadRowsRequest{TableName: fullName, AuthorizedViewName: "x"}, codes.InvalidArgument},
		{"negative limit", &bigtablepb.ReadRowsRequest{TableName: fullName, RowsLimit: -1}, codes.InvalidArgument},
		{"inverted", &bigtablepb.ReadRowsRequest{TableName: fullName, Rows: closed("b", "a")}, codes.InvalidArgument},
		{"empty key", &bigtablepb.ReadRowsRequest{TableName: fullName, Rows: &bigtablepb.RowSet{RowKeys: [][]byte{{}}}}, codes.InvalidArgument},
		{"large set", &bigtablepb.ReadRowsRequest{TableName: fullName, Rows: closed("a", strings.Repeat("b", 600<<10))}, codes.InvalidArgument},
		{"bad filter", &bigtablepb.ReadRowsRequest{TableName: fullName, Filter: &bigtablepb.RowFilter{
			Filter: &bigtablepb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte("[")},
		}}, codes.InvalidArgument},
		{"nil range", &bigtablepb.ReadRowsRequest{TableName: fullName, Rows: &bigtablepb.RowSet{RowRanges: []*bigtablepb.RowRange{nil}}}, codes.OK},
		{"empty range", &bigtablepb.ReadRowsRequest{TableName: fullName, Rows: closed("a", "a")}, codes.OK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rd, err := r.NewReader(r.ctx, tt.req)
			if err == nil {
				err = rd.Next(new(bigtablepb.ReadRowsResponse))
				if err == io.EOF {
					err = nil
				}
				rd.Close()
			}
			if got := status.Code(err); got != tt.want {
				t.Errorf("got %v (%v), want %v", got, err, tt.want)
			}
		})
	}
}

// impatient is a context that ends after it was asked for its error a number of times.
type impatient struct {
	context.Context
	asks int
}

func (c *impatient) Err() error {
	if c.asks--; c.asks < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// A filter for times before 1970, which no cell has, ends at a column with many cells.
func TestReadBefore1970(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	m := bigtable.NewMutation()
	for i := range 20 {
		m.Set("f", "q", bigtable.Timestamp(i*1000), nil)
	}
	apply(t, r, "row", m)
	rd, err := r.NewReader(&impatient{r.ctx, 10}, &bigtablepb.ReadRowsRequest{TableName: fullName, Filter: &bigtablepb.RowFilter{
		Filter: &bigtablepb.RowFilter_TimestampRangeFilter{TimestampRangeFilter: &bigtablepb.TimestampRange{StartTimestampMicros: -10, EndTimestampMicros: -5}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	if err := rd.Next(new(bigtablepb.ReadRowsResponse)); err != io.EOF {
		t.Errorf("got %v, want the end of the read without rows", err)
	}
}

// A scan that finds nothing reports its position, and ends when its caller's context ends.
func TestReadCancelledWhileSilent(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	fillRows(t, r, 20_000)
	ctx, cancel := context.WithCancel(r.ctx)
	req := &bigtablepb.ReadRowsRequest{TableName: fullName, Filter: &bigtablepb.RowFilter{
		Filter: &bigtablepb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte("never")},
	}}
	rd, err := r.NewReader(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	var resp bigtablepb.ReadRowsResponse
	if err := rd.Next(&resp); err != nil || len(resp.LastScannedRowKey) == 0 {
		t.Fatalf("first response: got %v, last scanned row %q; want a last scanned row", err, resp.LastScannedRowKey)
	}
	cancel()
	if err := rd.Next(&resp); status.Code(err) != codes.Canceled {
		t.Errorf("after cancel: %v, want Canceled", err)
	}
}

func fillRows(t testing.TB, r *rig, n int) {
	t.Helper()
	keys, muts := make([]string, n), make([]*bigtable.Mutation, n)
	for i := range n {
		keys[i], muts[i] = fmt.Sprintf("row%07d", i), set("f", "q", 1000, "value")
	}
	if errs, err := r.data.Open(tableID).ApplyBulk(r.ctx, keys, muts); err != nil || errs != nil {
		t.Fatalf("ApplyBulk: %v %v", err, errs)
	}
}

// However a caller leaves a stream, the engine can close. An open iterator would keep files forever.
func TestReadersAreReleased(t *testing.T) {
	r := open(t, engine.Options{})
	tbl := r.create(t)
	fillRows(t, r, 5000)
	n := 0
	err := tbl.ReadRows(r.ctx, bigtable.InfiniteRange(""), func(bigtable.Row) bool { n++; return n < 10 })
	if err != nil || n != 10 {
		t.Fatalf("ReadRows: %v after %d rows", err, n)
	}
	waitForReaders(t, r, 0)

	ctx, cancel := context.WithCancel(r.ctx)
	rd, err := r.NewReader(ctx, &bigtablepb.ReadRowsRequest{TableName: fullName})
	if err != nil {
		t.Fatal(err)
	}
	if err := rd.Next(new(bigtablepb.ReadRowsResponse)); err != nil {
		t.Fatal(err)
	}
	if got := r.OpenReaders(); got != 1 {
		t.Fatalf("got %d open readers, want 1", got)
	}
	cancel() // the caller never calls Next or Close again
	waitForReaders(t, r, 0)

	// A reader that nobody calls Next on.
	if _, err := r.NewReader(r.ctx, &bigtablepb.ReadRowsRequest{TableName: fullName}); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("Close with an open reader: got %v, want nil", err)
	}
}

func waitForReaders(t *testing.T, r *rig, want int) {
	t.Helper()
	for range 3000 {
		if r.OpenReaders() == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("got %d open readers, want %d", r.OpenReaders(), want)
}

// A read returns a snapshot of the table, however long it takes and whatever is written meanwhile.
func TestReadIsASnapshot(t *testing.T) {
	r := open(t, engine.Options{})
	tbl := r.create(t)
	fillRows(t, r, 3000)
	n := 0
	err := tbl.ReadRows(r.ctx, bigtable.InfiniteRange(""), func(row bigtable.Row) bool {
		if n++; n == 1 {
			apply(t, r, "row0002999x", set("f", "q", 1000, "later"))
			m := bigtable.NewMutation()
			m.DeleteRow()
			apply(t, r, "row0002998", m)
		}
		return true
	})
	if err != nil || n != 3000 {
		t.Errorf("read %d rows (%v), want 3000", n, err)
	}
	if got := len(rowKeys(dump(t, r, bigtable.InfiniteRange("")))); got != 3000 {
		t.Errorf("a later read: got %d rows, want 3000 (one more, one less)", got)
	}
}
