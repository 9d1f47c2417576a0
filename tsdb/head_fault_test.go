package tsdb_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func headKey(e tsdb.Entity) string { return fmt.Sprintf("acme#readings!head#%s#", inside.Of(e).Path()) }

func milliKey(e tsdb.Entity, at time.Time) string {
	return fmt.Sprintf("acme#readings#%s#%019d", inside.Of(e).Path(), (1<<63-1)-at.UnixMilli())
}

// inHead reports whether a head row holds a version with this time.
func inHead(row bigtable.Row, at time.Time) bool {
	for _, items := range row {
		for _, item := range items {
			if item.Timestamp.Time().Equal(at) {
				return true
			}
		}
	}
	return false
}

// ofHead returns the points in an entity's head: reads of one entity use its points, reads of many use their heads.
func ofHead[T any](repo *tsdb.Repository[T], e tsdb.Entity, n int) ([]tsdb.Point[T], error) {
	got, err := repo.LatestMany(context.Background(), []tsdb.Entity{e}, n)
	if err != nil && (got == nil || got[0].Err == nil) {
		return nil, err
	}
	return got[0].Points, got[0].Err
}

// wholeHead fails the test if an entity's head shows anything but its newest points.
func wholeHead[T any](t *testing.T, what string, repo *tsdb.Repository[T], e tsdb.Entity, n int) {
	t.Helper()
	var points []tsdb.Point[T]
	for p, err := range repo.Range(t.Context(), e, tsdb.AllTime(), tsdb.Limit(n)) {
		if err != nil {
			t.Fatal(err)
		}
		points = append(points, p)
	}
	head, err := ofHead(repo, e, n)
	if err != nil {
		t.Fatal(err)
	}
	if len(head)+len(points) > 0 && !reflect.DeepEqual(head, points) {
		t.Errorf("%s: the head of %v shows\n%v, its points are\n%v", what, e, head, points)
	}
}

// outcomeFaults returns the faults for every method that a call with heads uses, also for its second request only.
func outcomeFaults(methods ...tsdbtest.Method) map[string]func(*tsdbtest.Conn) {
	out := map[string]func(*tsdbtest.Conn){}
	for _, m := range methods {
		for _, f := range faults {
			out[fmt.Sprintf("%s of %s", f.name, m)] = func(conn *tsdbtest.Conn) { inject(conn, m, f.fault) }
			if f.fault == nil {
				continue
			}
			out[fmt.Sprintf("%s of %s after one", f.name, m)] = func(conn *tsdbtest.Conn) {
				conn.Clear()
				conn.Inject(f.fault(m).Skip(1))
			}
		}
	}
	for name, f := range map[string]tsdbtest.Fault{
		"stream of writes cut":       tsdbtest.CutStream(1, codes.Unavailable).On(tsdbtest.MutateRows),
		"stream of writes cut once":  tsdbtest.CutStream(1, codes.Unavailable).On(tsdbtest.MutateRows).Times(1),
		"stream of writes refused":   tsdbtest.CutStream(1, codes.PermissionDenied).On(tsdbtest.MutateRows),
		"stream of reads cut":        tsdbtest.CutStream(0, codes.Unavailable).On(tsdbtest.ReadRows),
		"stream of reads cut once":   tsdbtest.CutStream(1, codes.Unavailable).On(tsdbtest.ReadRows).Times(1),
		"heads refused":              tsdbtest.FailEntries(codes.InvalidArgument, func(key string) bool { return strings.Contains(key, "!head") }),
		"heads refused once":         tsdbtest.FailEntries(codes.Unavailable, func(key string) bool { return strings.Contains(key, "!head") }).Times(1),
		"heads unavailable":          tsdbtest.FailEntries(codes.Unavailable, func(key string) bool { return strings.Contains(key, "!head") }),
		"points refused":             tsdbtest.FailEntries(codes.InvalidArgument, func(key string) bool { return !strings.Contains(key, "!head") }),
		"points unavailable":         tsdbtest.FailEntries(codes.Unavailable, func(key string) bool { return !strings.Contains(key, "!head") }),
		"one of them refused":        tsdbtest.FailEntries(codes.InvalidArgument, func(key string) bool { return strings.Contains(key, "d1#") }),
		"one point of them refused":  tsdbtest.FailEntries(codes.InvalidArgument, func(key string) bool { return strings.Contains(key, "s#berlin#d1#") }),
		"one head of them throttled": tsdbtest.FailEntries(codes.ResourceExhausted, func(key string) bool { return strings.Contains(key, "d#berlin#d1#") }),
	} {
		out[name] = func(conn *tsdbtest.Conn) {
			conn.Clear()
			conn.Inject(f)
		}
	}
	return out
}

// TestAcknowledgedIsInBothRows: whatever fault occurs, a write reported as stored is in its point's row and in the
// head. A write reported as rejected is in neither. Repeating the write makes both rows equal.
func TestAcknowledgedIsInBothRows(t *testing.T) {
	stores := map[*tsdb.Repository[reading]]*tsdb.Store{}
	type putMany func(context.Context, []tsdb.Point[reading]) ([]tsdb.Outcome, error)
	manyTo := func(ctx context.Context, put putMany, at time.Time) ([]tsdb.Point[reading], []tsdb.State) {
		var points []tsdb.Point[reading]
		for i := range 8 {
			points = append(points, tsdb.Point[reading]{Entity: tsdb.NewEntity("berlin", fmt.Sprintf("d%d", i%2)), Time: at.Add(time.Duration(i/2) * time.Millisecond), Value: reading{7}})
		}
		outcomes, _ := put(ctx, points)
		states := make([]tsdb.State, len(outcomes))
		for i, o := range outcomes {
			states[i] = o.State
		}
		return points, states
	}
	many := func(ctx context.Context, r *tsdb.Repository[reading], at time.Time) ([]tsdb.Point[reading], []tsdb.State) {
		return manyTo(ctx, r.PutMany, at)
	}
	one := func(ctx context.Context, r *tsdb.Repository[reading], at time.Time) ([]tsdb.Point[reading], []tsdb.State) {
		return []tsdb.Point[reading]{{Entity: roof, Time: at}}, []tsdb.State{state(t, r.Put(ctx, roof, at, reading{7}))}
	}
	absent := func(ctx context.Context, r *tsdb.Repository[reading], at time.Time) ([]tsdb.Point[reading], []tsdb.State) {
		_, err := r.PutIfAbsent(ctx, roof, at, reading{7})
		return []tsdb.Point[reading]{{Entity: roof, Time: at}}, []tsdb.State{state(t, err)}
	}
	// through sends many points through a writer.
	through := func(ctx context.Context, r *tsdb.Repository[reading], at time.Time) ([]tsdb.Point[reading], []tsdb.State) {
		w, err := stores[r].NewWriter(tsdb.WriterOptions{DeliveryTimeout: faultTimeout() / 2})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = w.Close(ctx) }()
		return manyTo(ctx, r.Via(w).EnqueueMany, at)
	}
	for offset, call := range []struct {
		name string
		opts tsdb.SchemaOptions
		put  func(ctx context.Context, r *tsdb.Repository[reading], at time.Time) ([]tsdb.Point[reading], []tsdb.State)
	}{
		{"Put", tsdb.SchemaOptions{}, one},
		{"PutMany", tsdb.SchemaOptions{}, many},
		{"PutIfAbsent", tsdb.SchemaOptions{}, absent},
		{"Put, first wins", tsdb.SchemaOptions{FirstWins: true}, one},
		{"PutMany, first wins", tsdb.SchemaOptions{FirstWins: true}, many},
		{"Put, head only", tsdb.SchemaOptions{Head: tsdb.Head{Only: true}}, one},
		{"PutMany, head only", tsdb.SchemaOptions{Head: tsdb.Head{Only: true}}, many},
		{"writer", tsdb.SchemaOptions{}, through},
		{"writer, first wins", tsdb.SchemaOptions{FirstWins: true}, through},
		{"writer, head only", tsdb.SchemaOptions{Head: tsdb.Head{Only: true}}, through},
		{"PutIfAbsent, head only", tsdb.SchemaOptions{Head: tsdb.Head{Only: true}}, absent},
	} {
		t.Run(call.name, func(t *testing.T) {
			longBubble(t, func(t *testing.T) {
				call.opts.Head.Points, call.opts.Precision = kept, tsdb.Milliseconds
				s := readings(t, call.opts)
				store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: faultTimeout() / 5}}}, s)
				repo := s.For(store, acme)
				stores[repo] = store
				cases := outcomeFaults(tsdbtest.MutateRow, tsdbtest.MutateRows, tsdbtest.CheckAndMutateRow)
				stored := 0
				for i, name := range some(offset, slices.Sorted(maps.Keys(cases))) {
					at := start.Add(time.Duration(i) * time.Second)
					cases[name](conn)
					points, states := call.put(t.Context(), repo, at)
					conn.Clear()
					there := rows(t, table)
					inBatch := map[tsdb.Entity]int{}
					for n := len(points) - 1; n >= 0; n-- {
						p := points[n]
						_, row := there[milliKey(p.Entity, p.Time)]
						head := inHead(there[headKey(p.Entity)], p.Time)
						inBatch[p.Entity]++
						if call.opts.Head.Only {
							row = head
						}
						displaced := inBatch[p.Entity] > kept && !call.opts.FirstWins
						if states[n] == tsdb.Stored && (!row && !(displaced && call.opts.Head.Only) || !head && inBatch[p.Entity] <= kept) ||
							states[n] == tsdb.Rejected && (row || head) {
							t.Errorf("%s: point %d is reported as %v; in its row: %v, in the head: %v", name, n, states[n], row, head)
						}
						if states[n] == tsdb.Stored {
							stored++
						}
					}
					if _, again := call.put(t.Context(), repo, at); slices.ContainsFunc(again, func(s tsdb.State) bool { return s != tsdb.Stored }) {
						t.Errorf("%s: repeated write: states %v, want all stored", name, again)
					}
					there = rows(t, table)
					for _, p := range points {
						if !inHead(there[headKey(p.Entity)], points[len(points)-1].Time) {
							t.Errorf("%s: the repeated write does not repair the head", name)
						}
						wholeHead(t, name, repo, p.Entity, kept)
					}
					if _, err := repo.DeletePrefix(t.Context(), tsdb.AllEntities()); err != nil {
						t.Fatal(err)
					}
				}
				if stored == 0 {
					t.Error("no write was stored under any fault, so the test proves nothing")
				}
			})
		})
	}
}

// TestDeletedIsInNeitherRow: whatever fault occurs, a deletion reported as done leaves the point in neither row and the
// head complete. Repeating a failed deletion has the same result.
func TestDeletedIsInNeitherRow(t *testing.T) {
	offset := 0
	for name, del := range map[string]func(ctx context.Context, r *tsdb.Repository[reading], at time.Time) error{
		"Delete": func(ctx context.Context, r *tsdb.Repository[reading], at time.Time) error {
			return r.Delete(ctx, roof, at)
		},
		"DeleteRange": func(ctx context.Context, r *tsdb.Repository[reading], at time.Time) error {
			_, err := r.DeleteRange(ctx, roof, tsdb.Since(at))
			return err
		},
		"DeleteRange of all": func(ctx context.Context, r *tsdb.Repository[reading], _ time.Time) error {
			_, err := r.DeleteRange(ctx, roof, tsdb.AllTime())
			return err
		},
		"DeletePrefix": func(ctx context.Context, r *tsdb.Repository[reading], _ time.Time) error {
			_, err := r.DeletePrefix(ctx, tsdb.AllEntities())
			return err
		},
	} {
		for _, only := range []bool{false, true} {
			offset++
			t.Run(fmt.Sprintf("%s,only=%v", name, only), func(t *testing.T) {
				longBubble(t, func(t *testing.T) {
					s := readings(t, tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: kept, Only: only}})
					short := faultTimeout() / 5
					store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: short, Read: short, Scan: 3 * short}}}, s)
					repo := s.For(store, acme)
					cases := outcomeFaults(tsdbtest.MutateRow, tsdbtest.MutateRows, tsdbtest.ReadRows)
					failed := 0
					for _, what := range some(offset, slices.Sorted(maps.Keys(cases))) {
						var points []tsdb.Point[reading]
						for i := range 6 {
							points = append(points, tsdb.Point[reading]{Entity: roof, Time: start.Add(time.Duration(i) * time.Second), Value: reading{float64(i)}})
						}
						putAll(t, repo, points[:3]) // as many as a head keeps, so that it holds more than it shows
						putAll(t, repo, points[3:])
						late := bigtable.NewMutation() // a head looks like this after garbage collection
						late.DeleteTimestampRange("keep.h3", "p:json", 0, bigtable.Time(points[2].Time))
						apply(t, table, headKey(roof), late)
						at := points[5].Time
						cases[what](conn)
						err := del(t.Context(), repo, at)
						conn.Clear()
						if err != nil {
							failed++
							if name == "Delete" {
								state(t, err)
							}
							if err := del(t.Context(), repo, at); err != nil {
								t.Errorf("%s: repeated deletion: %v, want nil", what, err)
							}
						}
						there := rows(t, table)
						if there[milliKey(roof, at)] != nil || inHead(there[headKey(roof)], at) {
							t.Errorf("%s: the deleted point still exists", what)
						}
						wholeHead(t, what, repo, roof, kept)
						if !only && (name == "Delete" || name == "DeleteRange") {
							if got, err := ofHead(repo, roof, kept); err != nil || len(got) != kept || got[0].Time != points[4].Time {
								t.Errorf("%s: the head shows %v, %v", what, got, err)
							}
						}
						if _, err := repo.DeleteRange(t.Context(), roof, tsdb.AllTime()); err != nil {
							t.Fatal(err)
						}
					}
					if failed == 0 {
						t.Error("no deletion failed under any fault, so the test proves nothing")
					}
				})
			})
		}
	}
}
