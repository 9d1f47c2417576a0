package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/faultdisk"
)

// afterCrash returns the table's rows and values after a crash at this moment.
func afterCrash(t *testing.T, d *faultdisk.Disk) string {
	t.Helper()
	e, err := engine.Open(engine.Options{FS: d.Crash(), GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	got, err := readAll(t.Context(), e, &bigtablepb.ReadRowsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func readAll(ctx context.Context, e *engine.Engine, req *bigtablepb.ReadRowsRequest) (string, error) {
	req.TableName = fullName
	r, err := e.NewReader(ctx, req)
	if err != nil {
		return "", err
	}
	defer r.Close()
	var out []string
	for {
		resp := new(bigtablepb.ReadRowsResponse)
		switch err := r.Next(resp); {
		case errors.Is(err, io.EOF):
			return strings.Join(out, " "), nil
		case err != nil:
			return strings.Join(out, " "), err
		}
		for _, c := range resp.Chunks {
			out = append(out, fmt.Sprintf("%s=%s", c.RowKey, c.Value))
		}
	}
}

func setting(column, value string) []*bigtablepb.Mutation {
	return []*bigtablepb.Mutation{{Mutation: &bigtablepb.Mutation_SetCell_{SetCell: &bigtablepb.Mutation_SetCell{
		FamilyName: "f", ColumnQualifier: []byte(column), TimestampMicros: 1000, Value: []byte(value),
	}}}}
}

func deleting() []*bigtablepb.Mutation {
	return []*bigtablepb.Mutation{{Mutation: &bigtablepb.Mutation_DeleteFromRow_{DeleteFromRow: &bigtablepb.Mutation_DeleteFromRow{}}}}
}

func rowsOf(keys ...string) *bigtablepb.RowSet {
	set := new(bigtablepb.RowSet)
	for _, k := range keys {
		set.RowKeys = append(set.RowKeys, []byte(k))
	}
	return set
}

func rangeOf(from, to string) *bigtablepb.RowSet {
	return &bigtablepb.RowSet{RowRanges: []*bigtablepb.RowRange{{
		StartKey: &bigtablepb.RowRange_StartKeyClosed{StartKeyClosed: []byte(from)}, EndKey: &bigtablepb.RowRange_EndKeyOpen{EndKeyOpen: []byte(to)},
	}}}
}

func valueIs(v string) *bigtablepb.RowFilter {
	return &bigtablepb.RowFilter{Filter: &bigtablepb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte(v)}}
}

// ask makes a request and returns its answer as text.
type ask func(ctx context.Context, e *engine.Engine) (string, error)

func write(key string, muts []*bigtablepb.Mutation) ask {
	return func(ctx context.Context, e *engine.Engine) (string, error) {
		_, err := e.MutateRow(ctx, &bigtablepb.MutateRowRequest{TableName: fullName, RowKey: []byte(key), Mutations: muts})
		return "", err
	}
}

func writeBulk(muts func() []*bigtablepb.Mutation, keys ...string) ask {
	return func(ctx context.Context, e *engine.Engine) (string, error) {
		req := &bigtablepb.MutateRowsRequest{TableName: fullName}
		for _, k := range keys {
			req.Entries = append(req.Entries, &bigtablepb.MutateRowsRequest_Entry{RowKey: []byte(k), Mutations: muts()})
		}
		_, err := e.MutateRowsAll(ctx, req)
		return "", err
	}
}

func check(key string, filter *bigtablepb.RowFilter, then, otherwise []*bigtablepb.Mutation) ask {
	return func(ctx context.Context, e *engine.Engine) (string, error) {
		resp, err := e.CheckAndMutateRow(ctx, &bigtablepb.CheckAndMutateRowRequest{
			TableName: fullName, RowKey: []byte(key), PredicateFilter: filter, TrueMutations: then, FalseMutations: otherwise,
		})
		return fmt.Sprint(resp.GetPredicateMatched()), err
	}
}

func increment(key string) ask {
	return func(ctx context.Context, e *engine.Engine) (string, error) {
		_, err := e.ReadModifyWriteRow(ctx, &bigtablepb.ReadModifyWriteRowRequest{TableName: fullName, RowKey: []byte(key), Rules: []*bigtablepb.ReadModifyWriteRule{{
			FamilyName: "f", ColumnQualifier: []byte("q"), Rule: &bigtablepb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: 1},
		}}})
		if status.Code(err) == codes.FailedPrecondition {
			return "refused", nil
		}
		return "", err
	}
}

func readOf(set *bigtablepb.RowSet, filter *bigtablepb.RowFilter) ask {
	return func(ctx context.Context, e *engine.Engine) (string, error) {
		return readAll(ctx, e, &bigtablepb.ReadRowsRequest{Rows: set, Filter: filter})
	}
}

func drop(ctx context.Context, e *engine.Engine) (string, error) {
	_, err := e.DropRowRange(ctx, &adminpb.DropRowRangeRequest{Name: fullName, Target: &adminpb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: []byte("o")}})
	return "", err
}

func deleteTable(ctx context.Context, e *engine.Engine) (string, error) {
	_, err := e.DeleteTable(ctx, &adminpb.DeleteTableRequest{Name: fullName})
	return "", err
}

// unsyncedCases pair a write with a second request that arrives while the sync of the write hangs. Before them, all
// rows of the table are "old=a" and "other=a".
var unsyncedCases = []struct {
	name   string
	first  ask
	second ask
	want   string // the second request's answer
	free   bool   // the second request does not depend on the first, so it does not wait
}{
	{"insertion that finds the row", write("new", setting("q", "b")), check("new", nil, nil, setting("q", "c")), "true", false},
	{"condition that finds another value", write("old", setting("q", "b")), check("old", valueIs("a"), setting("q", "c"), nil), "false", false},
	{"condition on a deleted row", write("old", deleting()), check("old", nil, setting("q", "c"), nil), "false", false},
	{"condition that holds and writes", write("new", setting("q", "b")), check("new", nil, setting("q", "c"), nil), "true", false},
	{"no-op condition on another row", write("new", setting("q", "b")), check("other", nil, nil, setting("q", "c")), "true", true},
	{"refused increment", write("new", setting("q", "b")), increment("new"), "refused", false},
	{"deletion of a deleted row", write("old", deleting()), write("old", deleting()), "", false},
	{"bulk deletion of a deleted row", writeBulk(deleting, "old"), writeBulk(deleting, "old", "none"), "", false},
	{"deletion of a row that never existed", write("old", deleting()), write("none", deleting()), "", true},

	{"write of another row", write("new", setting("q", "b")), write("new2", setting("q", "b")), "", false}, // it waits for its own sync
}

// unsyncedReads pair a write with a read that arrives while the sync of the write hangs.
var unsyncedReads = []struct {
	name          string
	first         ask
	read          ask
	before, after string // the answers before and after the sync
}{
	{"a new row", write("new", setting("q", "b")), readOf(rowsOf("new"), nil), "", "new=b"},
	{"a row written in bulk", writeBulk(func() []*bigtablepb.Mutation { return setting("q", "b") }, "new", "new2"), readOf(rowsOf("new2"), nil), "", "new2=b"},
	{"a changed row", write("old", setting("q", "b")), readOf(rowsOf("old"), nil), "old=a", "old=b"},
	{"a filter that the changed row no longer passes", write("old", setting("q", "b")), readOf(rowsOf("old"), valueIs("a")), "old=a", ""},
	{"a deleted row", write("old", deleting()), readOf(rowsOf("old"), nil), "old=a", ""},
	{"a scan over a new row", write("new", setting("q", "b")), readOf(nil, nil), "old=a other=a", "new=b old=a other=a"},
	{"a scan over a deleted row", write("old", deleting()), readOf(rangeOf("n", "p"), nil), "old=a other=a", "other=a"},
	{"a scan over rows deleted in bulk", writeBulk(deleting, "old", "zzz"), readOf(nil, nil), "old=a other=a", "other=a"},
	{"a scan over dropped rows", drop, readOf(rangeOf("n", "p"), nil), "old=a other=a", ""},
	{"another row", write("new", setting("q", "b")), readOf(rowsOf("other"), nil), "other=a", "other=a"},
	{"a table that is being deleted", deleteTable, tolerant(readOf(nil, nil)), "old=a other=a", "not found"},
}

// tolerant answers "not found" for a table that is gone.
func tolerant(q ask) ask {
	return func(ctx context.Context, e *engine.Engine) (string, error) {
		got, err := q(ctx, e)
		if status.Code(err) == codes.NotFound {
			return "not found", nil
		}
		return got, err
	}
}

// onFaultDisk runs test with an engine that holds rows "old" and "other".
func onFaultDisk(t *testing.T, test func(t *testing.T, d *faultdisk.Disk, e *engine.Engine)) {
	synctest.Test(t, func(t *testing.T) {
		d := faultdisk.New()
		e, err := engine.Open(engine.Options{FS: d, GCInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			d.Release()
			synctest.Wait()
			_ = e.Close() // reports the failure if the test caused one
		}()
		createTable(t, e)
		for _, key := range []string{"old", "other"} {
			if _, err := write(key, setting("q", "a"))(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		test(t, d, e)
	})
}

// asked is a running request and its result.
type asked struct {
	done atomic.Bool
	got  string
	err  error
}

func start(ctx context.Context, e *engine.Engine, q ask) *asked {
	a := new(asked)
	go func() {
		a.got, a.err = q(ctx, e)
		a.done.Store(true)
	}()
	synctest.Wait()
	return a
}

// The engine gives no answer that a crash could make wrong. An answer waits for the syncs of the writes that it depends
// on, and for no others.
func TestAnswersWaitForSyncs(t *testing.T) {
	for _, c := range unsyncedCases {
		t.Run(c.name, func(t *testing.T) {
			onFaultDisk(t, func(t *testing.T, d *faultdisk.Disk, e *engine.Engine) {
				d.Hang()
				first := start(t.Context(), e, c.first)
				if first.done.Load() {
					t.Fatalf("the first write was answered before its sync: %v", first.err)
				}
				if got := afterCrash(t, d); got != "old=a other=a" {
					t.Fatalf("after a crash before the sync: got rows %q, want none of the write", got)
				}
				second := start(t.Context(), e, c.second)
				if got := second.done.Load(); got != c.free {
					t.Errorf("while the sync hangs: got answered=%v (%q, %v) for the second request, want %v", got, second.got, second.err, c.free)
				}
				d.Release()
				synctest.Wait()
				if !second.done.Load() || second.err != nil || second.got != c.want {
					t.Errorf("after the sync: got answered=%v, %q, %v for the second request, want %q", second.done.Load(), second.got, second.err, c.want)
				}
				if !first.done.Load() || first.err != nil {
					t.Errorf("after the sync: got answered=%v, %v for the first write, want true, nil", first.done.Load(), first.err)
				}
			})
		})
	}
}

// Readers see a write once it is on disk, and do not wait for that. If the sync fails, they go on to read what is on
// disk.
func TestReadersSeeWhatIsOnDisk(t *testing.T) {
	for _, c := range unsyncedReads {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, fails=%v", c.name, fails), func(t *testing.T) {
				onFaultDisk(t, func(t *testing.T, d *faultdisk.Disk, e *engine.Engine) {
					expect := func(when, want string) {
						t.Helper()
						if a := start(t.Context(), e, c.read); !a.done.Load() || a.err != nil || a.got != want {
							t.Errorf("%s: got answered=%v, %q, %v, want %q", when, a.done.Load(), a.got, a.err, want)
						}
					}
					d.Hang()
					first := start(t.Context(), e, c.first)
					expect("while the sync hangs", c.before)
					if fails {
						d.Fail()
					}
					d.Release()
					synctest.Wait()
					if !first.done.Load() || (first.err != nil) != fails {
						t.Fatalf("the write: got answered=%v, %v", first.done.Load(), first.err)
					}
					if fails {
						expect("after the failure", c.before)
					} else {
						expect("after the sync", c.after)
					}
				})
			})
		}
	}
}

// A write is answered when readers see it, even if they see an older state because of other writes in flight.
func TestAnsweredWritesAreSeen(t *testing.T) {
	onFaultDisk(t, func(t *testing.T, d *faultdisk.Disk, e *engine.Engine) {
		const writers = 8
		done := make(chan error, writers)
		for w := range writers {
			go func() {
				for i := range 50 {
					key, value := fmt.Sprintf("w%d", w), fmt.Sprint(i)
					if _, err := write(key, setting("q", value))(t.Context(), e); err != nil {
						done <- err
						return
					}
					got, err := readOf(rowsOf(key), nil)(t.Context(), e)
					if want := key + "=" + value; err != nil || got != want {
						done <- fmt.Errorf("after the write of %s: got %q, %v", want, got, err)
						return
					}
				}
				done <- nil
			}()
		}
		for range writers {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// If the sync fails, requests that depend on it fail too, waiting and later ones, with a code that no client retries.
func TestAnswersFailWithTheSync(t *testing.T) {
	for _, c := range unsyncedCases {
		t.Run(c.name, func(t *testing.T) {
			onFaultDisk(t, func(t *testing.T, d *faultdisk.Disk, e *engine.Engine) {
				d.Hang()
				first := start(t.Context(), e, c.first)
				second := start(t.Context(), e, c.second)
				d.Fail()
				d.Release()
				synctest.Wait()
				third := start(t.Context(), e, c.second)
				for name, a := range map[string]*asked{"first": first, "second": second, "third": third} {
					switch {
					case !a.done.Load():
						t.Errorf("the %s request got no answer", name)
					case c.free && name == "second":
						if a.err != nil || a.got != c.want {
							t.Errorf("the %s request: got %q, %v, want %q", name, a.got, a.err, c.want)
						}
					case status.Code(a.err) != codes.DataLoss || !errors.Is(a.err, engine.ErrStorage) || !errors.Is(a.err, syscall.EMFILE):
						t.Errorf("the %s request: got %v, want DataLoss, ErrStorage and EMFILE", name, a.err)
					}
				}
			})
		})
	}
}

// A condition that waits for a sync ends when its context ends.
func TestWaitForSyncEndsWithContext(t *testing.T) {
	onFaultDisk(t, func(t *testing.T, d *faultdisk.Disk, e *engine.Engine) {
		d.Hang()
		start(t.Context(), e, write("new", setting("q", "b")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := check("new", nil, nil, setting("q", "c"))(ctx, e); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
	})
}

// A reader keeps the state in which it began, also if that is not the newest one.
func TestReaderKeepsItsState(t *testing.T) {
	onFaultDisk(t, func(t *testing.T, d *faultdisk.Disk, e *engine.Engine) {
		var keys []string
		for i := range 100 {
			keys = append(keys, fmt.Sprintf("row%03d", i))
		}
		all := func(value string) ask {
			return writeBulk(func() []*bigtablepb.Mutation { return setting("q", value) }, keys...)
		}
		if _, err := all("a")(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		d.Hang()
		start(t.Context(), e, all("b"))
		r, err := e.NewReader(t.Context(), &bigtablepb.ReadRowsRequest{TableName: fullName, Rows: rangeOf("row", "s")})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		d.Release()
		synctest.Wait()
		for n := 0; ; {
			resp := new(bigtablepb.ReadRowsResponse)
			if err := r.Next(resp); errors.Is(err, io.EOF) {
				if n != len(keys) {
					t.Errorf("got %d rows, want %d", n, len(keys))
				}
				break
			} else if err != nil {
				t.Fatal(err)
			}
			for _, c := range resp.Chunks {
				if n++; string(c.Value) != "a" {
					t.Errorf("row %s: got %q, want the value before the write", c.RowKey, c.Value)
				}
			}
		}
	})
}

// An engine with NoSync cannot know what is on disk. After a failure it refuses all requests.
func TestNoSyncFailsWhole(t *testing.T) {
	onDisk := faultdisk.New()
	e, err := engine.Open(engine.Options{Dir: "db", FS: onDisk, GCInterval: -1, NoSync: true, MemTableBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	createTable(t, e)
	onDisk.Fail()
	for i := 0; e.Err() == nil; i++ {
		_, _ = write(fmt.Sprintf("row%06d", i), setting("q", strings.Repeat("v", 1000)))(t.Context(), e)
	}
	if _, err := readOf(rowsOf("row000000"), nil)(t.Context(), e); !errors.Is(err, engine.ErrStorage) {
		t.Errorf("reading after the failure: got %v, want ErrStorage", err)
	}
}
