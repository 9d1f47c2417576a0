package tsdbtest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hand returns a plain client, as a program without this module uses, and the connection with its faults.
func hand(t *testing.T) (*bigtable.Table, *tsdbtest.Conn) {
	t.Helper()
	_, conn, _ := tsdbtest.OpenTable(t, tsdbtest.Options{}, temps)
	client, _ := tsdbtest.Clients(t, conn)
	return client.Open(tsdbtest.Table), conn
}

func set(value string) *bigtable.Mutation {
	m := bigtable.NewMutation()
	m.Set("keep", "q", 0, []byte(value))
	return m
}

// short returns a context for calls that are expected to fail.
func short(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func keys(t *testing.T, tbl *bigtable.Table) (out []string) {
	t.Helper()
	if err := tbl.ReadRows(t.Context(), bigtable.PrefixRange("row"), func(r bigtable.Row) bool {
		out = append(out, r.Key())
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFaultsDoWhatTheySay checks each fault with the plain client, because other tests rely on them.
func TestFaultsDoWhatTheySay(t *testing.T) {
	for _, tt := range []struct {
		name    string
		fault   tsdbtest.Fault
		want    codes.Code
		applied bool
	}{
		{"fail", tsdbtest.Fail(codes.PermissionDenied), codes.PermissionDenied, false},
		{"lose", tsdbtest.LoseResponse(codes.FailedPrecondition), codes.FailedPrecondition, true},
		{"delay past the deadline", tsdbtest.Delay(time.Hour), codes.DeadlineExceeded, false},
		{"another method", tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.ReadRows), codes.OK, true},
		{"used up", tsdbtest.Fail(codes.PermissionDenied).Times(1).Skip(5), codes.OK, true},
		{"repeat", tsdbtest.Repeat(), codes.OK, true},
		{"none", tsdbtest.Fault{}, codes.OK, true},
	} {
		tbl, conn := hand(t)
		conn.Inject(tt.fault)
		ctx := t.Context()
		if tt.want == codes.DeadlineExceeded {
			ctx = short(t)
		}
		err := tbl.Apply(ctx, "row", set("x"))
		conn.Clear()
		if status.Code(err) != tt.want || (len(keys(t, tbl)) == 1) != tt.applied {
			t.Errorf("%s: Apply = %v, applied %v; want %v, %v", tt.name, err, keys(t, tbl), tt.want, tt.applied)
		}
	}
}

func TestFaultsOnBulkWrites(t *testing.T) {
	write := func(tbl *bigtable.Table, ctx context.Context) ([]error, error) {
		var names []string
		var muts []*bigtable.Mutation
		for i := range 5 {
			names, muts = append(names, fmt.Sprintf("row%d", i)), append(muts, set("x"))
		}
		return tbl.ApplyBulk(ctx, names, muts)
	}
	tbl, conn := hand(t)
	conn.Inject(tsdbtest.FailEntries(codes.InvalidArgument, func(key string) bool { return key == "row1" || key == "row4" }))
	errs, err := write(tbl, t.Context())
	if err != nil || len(errs) != 5 || status.Code(errs[1]) != codes.InvalidArgument || status.Code(errs[4]) != codes.InvalidArgument ||
		errs[0] != nil || errs[2] != nil || errs[3] != nil {
		t.Errorf("FailEntries: %v, %v", errs, err)
	}
	conn.Clear()
	if got := keys(t, tbl); !slices.Equal(got, []string{"row0", "row2", "row3"}) {
		t.Errorf("FailEntries: applied %v", got)
	}

	tbl, conn = hand(t)
	conn.Inject(tsdbtest.FailEntries(codes.InvalidArgument, func(string) bool { return true }))
	errs, err = write(tbl, t.Context())
	conn.Clear()
	if err != nil || len(errs) != 5 || len(keys(t, tbl)) != 0 {
		t.Errorf("FailEntries of all: %v, %v", errs, err)
	}

	for _, after := range []int{0, 3, 5} {
		tbl, conn = hand(t)
		conn.Inject(tsdbtest.CutStream(after, codes.FailedPrecondition).On(tsdbtest.MutateRows))
		errs, err = write(tbl, t.Context())
		conn.Clear()
		if err == nil && errs == nil || len(keys(t, tbl)) != 5 {
			t.Errorf("CutStream(%d): %v, %v, applied %v", after, errs, err, keys(t, tbl))
		}
	}
}

func TestFaultsOnReads(t *testing.T) {
	tbl, conn := hand(t)
	for i := range 10 {
		if err := tbl.Apply(t.Context(), fmt.Sprintf("row%d", i), set(strings.Repeat("x", i))); err != nil {
			t.Fatal(err)
		}
	}
	for _, after := range []int{0, 4, 10} {
		conn.Clear()
		conn.Inject(tsdbtest.CutStream(after, codes.FailedPrecondition).On(tsdbtest.ReadRows))
		n := 0
		err := tbl.ReadRows(t.Context(), bigtable.PrefixRange("row"), func(bigtable.Row) bool {
			n++
			return true
		})
		if n != after || status.Code(err) != codes.FailedPrecondition {
			t.Errorf("CutStream(%d): %d rows, then %v", after, n, err)
		}
	}
	conn.Clear()
	conn.Reset()
	if got := keys(t, tbl); len(got) != 10 {
		t.Fatal(got)
	}
	if c := conn.Counts(); c.RowsReturned != 10 || c.RowsSeen != 10 || c.Calls[tsdbtest.ReadRows] != 1 {
		t.Errorf("counts are %+v", c)
	}
}

func TestOutagesOverlap(t *testing.T) {
	tbl, conn := hand(t)
	first, second := conn.Outage(), conn.Outage()
	first()
	first()
	if err := tbl.Apply(short(t), "row", set("x")); err == nil {
		t.Error("the end of one outage also ends another one")
	}
	second()
	if err := tbl.Apply(t.Context(), "row", set("x")); err != nil {
		t.Errorf("after all outages: %v", err)
	}
}

// TestDelayMayAskTheConnection: the function of DelayBy may call the connection, because it is called without the
// connection's lock.
func TestDelayMayAskTheConnection(t *testing.T) {
	tbl, conn := hand(t)
	conn.Inject(tsdbtest.DelayBy(func() time.Duration { return time.Duration(conn.Counts().Calls[tsdbtest.MutateRow]) }))
	if err := tbl.Apply(t.Context(), "row", set("x")); err != nil {
		t.Error(err)
	}
}
