package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tidemark-go/tidemark/internal/engine"
)

func idempotency(token string, start time.Time) *bigtablepb.Idempotency {
	i := &bigtablepb.Idempotency{Token: []byte(token)}
	if !start.IsZero() {
		i.StartTime = timestamppb.New(start)
	}
	return i
}

func (r *rig) once(row string, i *bigtablepb.Idempotency, muts ...*bigtablepb.Mutation) error {
	_, err := r.MutateRow(r.ctx, &bigtablepb.MutateRowRequest{TableName: fullName, RowKey: []byte(row), Mutations: muts, Idempotency: i})
	return err
}

func (r *rig) wantSum(t *testing.T, when, row string, want int64) {
	t.Helper()
	if got := dump(t, r, bigtable.SingleRow(row)); !slices.Equal(got, []string{row + " sum:n@0=" + be(want)}) {
		t.Errorf("%s: got %q, want the sum %d", when, got, want)
	}
}

// A token belongs to one row, and a mutation with it is applied once: alone, in bulk, in one request, and by many at a
// time.
func TestTokensApplyOnce(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	now := time.Now()
	for range 3 {
		for _, start := range []time.Time{now, {}} {
			row := fmt.Sprint("known start ", !start.IsZero())
			if err := r.once(row, idempotency("12345678", start), addCell("sum", "n", 0, 5)); err != nil {
				t.Fatal(err)
			}
			r.wantSum(t, "repeated", row, 5)
		}
	}
	entry := func(row, token string) *bigtablepb.MutateRowsRequest_Entry {
		return &bigtablepb.MutateRowsRequest_Entry{RowKey: []byte(row), Mutations: []*bigtablepb.Mutation{addCell("sum", "n", 0, 1)}, Idempotency: idempotency(token, now)}
	}
	for range 2 {
		resp, err := r.MutateRowsAll(r.ctx, &bigtablepb.MutateRowsRequest{TableName: fullName, Entries: []*bigtablepb.MutateRowsRequest_Entry{
			entry("bulk", "token of bulk"), entry("bulk", "token of bulk"), entry("bulk", "other token"), entry("bulk2", "token of bulk"), entry("bulk3", "token of bulk"), entry("short", "1234567"),
		}})
		if err != nil {
			t.Fatal(err)
		}
		if got := codes.Code(resp.Entries[5].Status.Code); got != codes.InvalidArgument {
			t.Errorf("a token of 7 bytes: %v, want InvalidArgument", got)
		}
	}
	r.wantSum(t, "in bulk", "bulk", 2)
	r.wantSum(t, "the token of another row", "bulk2", 1)
	r.wantSum(t, "the token of another row whose key is as long", "bulk3", 1)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if err := r.once("many", idempotency("token of many", now), addCell("sum", "n", 0, 1)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	r.wantSum(t, "at once", "many", 1)
	// However many tokens one row has, those of another are not forgotten.
	flood := make([]*bigtablepb.MutateRowsRequest_Entry, 5000)
	for i := range flood {
		flood[i] = entry("flood", fmt.Sprintf("token %04d", i))
	}
	if _, err := r.MutateRowsAll(r.ctx, &bigtablepb.MutateRowsRequest{TableName: fullName, Entries: flood}); err != nil {
		t.Fatal(err)
	}
	r.wantSum(t, "many tokens", "flood", 5000)
	if err := r.once("many", idempotency("token of many", now), addCell("sum", "n", 0, 1)); err != nil {
		t.Fatal(err)
	}
	r.wantSum(t, "after many tokens of another row", "many", 1)
	// A repetition changes nothing else either, and a mutation without additions needs no token.
	for n := range 2 {
		if err := r.once("both", idempotency("token of both", now), addCell("sum", "n", 0, 1), deleteColumn("sum", "n", 0, 0), addCell("sum", "n", 0, int64(1+n))); err != nil {
			t.Fatal(err)
		}
		for _, muts := range [][]*bigtablepb.Mutation{{setCell("f", "n", 0, fmt.Sprint(n))}, {deleteColumn("f", "o", 0, 0), setCell("f", "o", 0, fmt.Sprint(n))}} {
			if err := r.once("set", idempotency("token of set", now), muts...); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.wantSum(t, "with a deletion", "both", 1)
	if got := dump(t, r, bigtable.SingleRow("set")); !slices.Equal(got, []string{"set f:n@0=1", "set f:o@0=1"}) {
		t.Errorf("cells that were set twice: %q", got)
	}
}

// A token whose start is not known is recognized for 15 minutes by a clock that goes on, and by one that is set back.
func TestTokensOfAClockSetBack(t *testing.T) {
	var c clock
	c.micros.Store(time.Hour.Microseconds())
	r := open(t, engine.Options{Clock: c.now, Steady: c.steady})
	r.create(t)
	for _, d := range []time.Duration{0, 15 * time.Minute, -30 * time.Minute} {
		c.advance(d)
		if err := r.once("row", idempotency("12345678", time.Time{}), addCell("sum", "n", 0, 1)); err != nil {
			t.Fatal(err)
		}
		r.wantSum(t, fmt.Sprint("after ", d), "row", 1)
	}
}

// While the clock is ahead, no token is forgotten, so later first attempts and repetitions are answered as before.
func TestTokensOfAClockAhead(t *testing.T) {
	w := new(wrong)
	r := open(t, engine.Options{Clock: w.now})
	r.create(t)
	start := time.Now()
	for _, by := range []time.Duration{0, year, 0} {
		w.set(by)
		row, first := "row", start
		if by > 0 {
			row, first = "other", time.Time{}
		}
		if err := r.once(row, idempotency("12345678", first), addCell("sum", "n", 0, 1)); err != nil {
			t.Errorf("with a clock that is ahead by %v: %v", by, err)
		}
		r.wantSum(t, fmt.Sprint("with a clock that is ahead by ", by), row, 1)
	}
}

// A token belongs to one table.
func TestTokensOfTwoTables(t *testing.T) {
	r := open(t, engine.Options{})
	for _, id := range []string{"t", "u"} {
		if err := r.admin.CreateTableFromConf(r.ctx, &bigtable.TableConf{TableID: id, ColumnFamilies: map[string]bigtable.Family{"sum": aggregate(bigtable.SumAggregator{})}}); err != nil {
			t.Fatal(err)
		}
		_, err := r.MutateRow(r.ctx, &bigtablepb.MutateRowRequest{
			TableName: parent + "/tables/" + id, RowKey: []byte("row"), Mutations: []*bigtablepb.Mutation{addCell("sum", "n", 0, 1)},
			Idempotency: idempotency("12345678", time.Now()),
		})
		if row, rerr := r.data.Open(id).ReadRow(r.ctx, "row"); err != nil || rerr != nil || len(row["sum"]) != 1 {
			t.Errorf("table %s: the row is %v (%v, %v), want the sum", id, row, err, rerr)
		}
	}
}

// A start that is too long ago, or too far ahead, is refused, and so is one that is not a time. A refused mutation
// changes nothing.
func TestTokensRefused(t *testing.T) {
	r := open(t, engine.Options{})
	r.create(t)
	for name, tt := range map[string]struct {
		i    *bigtablepb.Idempotency
		want codes.Code
	}{
		"no token": {&bigtablepb.Idempotency{}, codes.InvalidArgument},
		"too old":  {idempotency("12345678", time.Now().Add(-16*time.Minute)), codes.FailedPrecondition},
		"ahead":    {idempotency("12345678", time.Now().Add(16*time.Minute)), codes.FailedPrecondition},
		"invalid":  {&bigtablepb.Idempotency{Token: []byte("12345678"), StartTime: &timestamppb.Timestamp{Nanos: -5}}, codes.InvalidArgument},
	} {
		if got := status.Code(r.once("row", tt.i, addCell("sum", "n", 0, 1))); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	if got := dump(t, r, bigtable.InfiniteRange("")); len(got) > 0 {
		t.Errorf("refused mutations left %q", got)
	}
}

// Tokens survive a crash that loses everything unsynced, are recognized for 15 minutes, and are then deleted. Once they
// are, a repetition is refused, even if the clock is set back: it is never applied twice.
func TestTokensAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, w := vfs.NewCrashableMem(), new(wrong)
		options := func(fs vfs.FS) engine.Options {
			return engine.Options{Dir: "data", FS: fs, Clock: w.now, GCInterval: -1}
		}
		e, err := engine.Open(options(fs))
		if err != nil {
			t.Fatal(err)
		}
		r := dial(t, e)
		r.ctx = context.Background()
		r.create(t)
		start := time.Now()
		again := func(start time.Time) error {
			return r.once("row", idempotency(fmt.Sprint("token ", start.IsZero()), start), addCell("sum", "n", 0, 1))
		}
		for _, s := range []time.Time{start, {}} {
			if err := again(s); err != nil {
				t.Fatal(err)
			}
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{})
		r.disconnect(t)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if e, err = engine.Open(options(crashed)); err != nil {
			t.Fatal(err)
		}
		r = dial(t, e)
		r.ctx = context.Background()
		defer func() {
			r.disconnect(t)
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(15 * time.Minute)
		for _, s := range []time.Time{start, {}} {
			if err := again(s); err != nil {
				t.Fatal(err)
			}
		}
		r.wantSum(t, "after a crash and 15 minutes", "row", 2)
		if n := e.Tokens(); n != 2 {
			t.Errorf("the engine holds %d tokens, want 2", n)
		}
		time.Sleep(16 * time.Minute)
		if got := status.Code(again(start)); got != codes.FailedPrecondition {
			t.Errorf("after 31 minutes: %v, want FailedPrecondition", got)
		}
		if err := r.once("other", idempotency("another token", time.Now()), addCell("sum", "n", 0, 1)); err != nil {
			t.Fatal(err)
		}
		if n := e.Tokens(); n != 1 {
			t.Errorf("the engine holds %d tokens, want those of the last 15 to 30 minutes: 1", n)
		}
		if err := r.once("late", idempotency("late token", time.Now().Add(-15*time.Minute)), addCell("sum", "n", 0, 1)); err != nil {
			t.Errorf("a first attempt of 15 minutes ago, whose period is not forgotten: %v", err)
		}
		w.set(-31 * time.Minute)
		if got := status.Code(again(start)); got != codes.FailedPrecondition {
			t.Errorf("with the clock set back: %v, want FailedPrecondition", got)
		}
		resp, err := r.MutateRowsAll(r.ctx, &bigtablepb.MutateRowsRequest{TableName: fullName, Entries: []*bigtablepb.MutateRowsRequest_Entry{
			{RowKey: []byte("row"), Mutations: []*bigtablepb.Mutation{addCell("sum", "n", 0, 1)}, Idempotency: idempotency("bulk token", start)},
		}})
		if err != nil || codes.Code(resp.Entries[0].Status.Code) != codes.FailedPrecondition {
			t.Errorf("with the clock set back, in bulk: %v, %v; want FailedPrecondition", resp, err)
		}
		r.wantSum(t, "in the end", "row", 2)
	})
}
