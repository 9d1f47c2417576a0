package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// counted returns a rollup that counts.
func counted[T any](name string, every time.Duration, opts rollup.Options) *rollup.Rollup[T] {
	return rollup.MustDefine[T](name, window.Every(every), nil, opts)
}

// three returns rollups of minutes from points, hours from minutes, and days from points.
func three[T any]() []tsdb.Rollup {
	return []tsdb.Rollup{
		counted[T]("minute", time.Minute, rollup.Options{}),
		counted[T]("hour", time.Hour, rollup.Options{From: "minute"}),
		counted[T]("day", 24*time.Hour, rollup.Options{Retention: d90}),
	}
}

// marksIn returns the marks in a table, sorted, as the row key without its time and the start of the slot:
// "acme#readings!mark.day#berlin#roof-7# 2026-01-01".
func marksIn(t testing.TB, table *bigtable.Table) []string {
	t.Helper()
	var out []string
	for key, row := range rows(t, table) {
		name := ""
		if _, rest, ok := strings.Cut(key, "!mark."); ok {
			name, _, _ = strings.Cut(rest, "#")
		}
		for family, items := range row {
			if (family == "_mark") != (name != "") {
				t.Errorf("row %q has cells in %s", key, family)
			}
			if family != "_mark" {
				continue
			}
			var reverse, slot int64
			if _, err := fmt.Sscan(key[len(key)-19:], &reverse); err != nil {
				t.Fatal(err)
			}
			start := time.UnixMilli(1<<63 - 1 - reverse).UTC()
			step := map[string]time.Duration{"minute": time.Minute, "day": 24 * time.Hour}[name]
			for _, item := range items {
				if _, err := fmt.Sscan(strings.TrimPrefix(item.Column, "_mark:"), &slot); err != nil {
					t.Fatal(err)
				}
				at := start.Add(time.Duration(slot) * step)
				out = append(out, key[:len(key)-19]+" "+at.Format("01-02T15:04"))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out) // there may be versions that are not collected yet
}

// wipe deletes all marks.
func wipe(t testing.TB, table *bigtable.Table) {
	t.Helper()
	for key := range rows(t, table) {
		if !strings.Contains(key, "!mark.") {
			continue
		}
		m := bigtable.NewMutation()
		m.DeleteRow()
		if err := table.Apply(context.Background(), key, m); err != nil {
			t.Fatal(err)
		}
	}
}

// wantMarks returns the marks for points of an entity at these times, in minutes and days.
func wantMarks(dataset, salt, entity string, times ...time.Time) []string {
	set := map[string]bool{}
	for _, at := range times {
		set["acme#"+dataset+"!mark.minute#"+salt+entity+"# "+at.Truncate(time.Minute).Format("01-02T15:04")] = true
		set["acme#"+dataset+"!mark.day#"+salt+entity+"# "+at.Truncate(24*time.Hour).Format("01-02T15:04")] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// markCall is a call that changes points, and the times whose slots it must mark.
type markCall struct {
	name    string
	call    func(ctx context.Context, r *tsdb.Repository[codec.Record], journal string) error
	times   []time.Time
	deletes bool
}

func record(n int64) codec.Record {
	return codec.NewRecord(codec.Field{Name: "n", Value: codec.Int(n)})
}

// markCalls returns all ways to write and to delete, for a repository that holds a point of roof at each of times.
func markCalls(times []time.Time, add time.Time) []markCall {
	point := func(at time.Time) tsdb.Point[codec.Record] {
		return tsdb.Point[codec.Record]{Entity: roof, Time: at, Value: record(1)}
	}
	via := func(do func(ctx context.Context, in *tsdb.Sink[codec.Record]) error) func(context.Context, *tsdb.Repository[codec.Record], string) error {
		return func(ctx context.Context, r *tsdb.Repository[codec.Record], journal string) error {
			w, err := r.Store().NewWriter(tsdb.WriterOptions{Linger: -1, Journal: tsdb.JournalOptions{Dir: journal}})
			if err != nil {
				return err
			}
			return errors.Join(do(ctx, r.Via(w)), w.Close(ctx))
		}
	}
	put := via(func(ctx context.Context, in *tsdb.Sink[codec.Record]) error {
		return in.Enqueue(ctx, roof, add, record(1))
	})
	return []markCall{
		{"Put", func(ctx context.Context, r *tsdb.Repository[codec.Record], _ string) error {
			return r.Put(ctx, roof, add, record(1))
		}, []time.Time{add}, false},
		{"Put again", func(ctx context.Context, r *tsdb.Repository[codec.Record], _ string) error {
			return r.Put(ctx, roof, times[0], record(0))
		}, times[:1], false},
		{"PutIfAbsent", func(ctx context.Context, r *tsdb.Repository[codec.Record], _ string) error {
			_, err := r.PutIfAbsent(ctx, roof, add, record(1))
			return err
		}, []time.Time{add}, false},
		{"PutIfAbsent where it is", func(ctx context.Context, r *tsdb.Repository[codec.Record], _ string) error {
			_, err := r.PutIfAbsent(ctx, roof, times[0], record(0))
			return err
		}, times[:1], false},
		{"PutMany", func(ctx context.Context, r *tsdb.Repository[codec.Record], _ string) error {
			_, err := r.PutMany(ctx, []tsdb.Point[codec.Record]{point(add), point(add.Add(time.Second)), point(add.Add(-26 * time.Hour)), point(add.Add(2 * time.Second))})
			return err
		}, []time.Time{add, add.Add(-26 * time.Hour)}, false},
		{"a writer's Put", func(ctx context.Context, r *tsdb.Repository[codec.Record], _ string) error { return put(ctx, r, "") }, []time.Time{add}, false},
		{"a journal's Put", put, []time.Time{add}, false},
		{"a writer's PutMany", via(func(ctx context.Context, in *tsdb.Sink[codec.Record]) error {
			_, err := in.EnqueueMany(ctx, []tsdb.Point[codec.Record]{point(add), point(add.Add(time.Hour))})
			return err
		}), []time.Time{add, add.Add(time.Hour)}, false},
		{"Delete", func(ctx context.Context, r *tsdb.Repository[codec.Record], _ string) error {
			return r.Delete(ctx, roof, times[1])
		}, times[1:2], true},
		{"DeleteRange", func(ctx context.Context, r *tsdb.Repository[codec.Record], _ string) error {
			_, err := r.DeleteRange(ctx, roof, tsdb.Since(times[1]))
			return err
		}, times[1:], true},
		{"DeleteRange of all", func(ctx context.Context, r *tsdb.Repository[codec.Record], _ string) error {
			_, err := r.DeleteRange(ctx, roof, tsdb.AllTime())
			return err
		}, times, true},
		{"DeletePrefix", func(ctx context.Context, r *tsdb.Repository[codec.Record], _ string) error {
			_, err := r.DeletePrefix(ctx, tsdb.NewPrefix("berlin"))
			return err
		}, times, true},
	}
}

// TestMarks: each way to write or delete a point marks its slot in the rollups that are derived from points, and
// nothing else. Without a mark, a slot would keep its wrong sum for ever.
func TestMarks(t *testing.T) {
	times := []time.Time{start.Add(-30 * time.Hour), start, start.Add(61 * time.Minute)}
	add := start.Add(5*time.Hour + 17*time.Second)
	for name, opts := range map[string]tsdb.SchemaOptions{
		"plain":            {},
		"salted, older":    {Salts: 16, Precision: tsdb.Microseconds},
		"heads":            {Head: tsdb.Head{Points: 2}, Precision: tsdb.Milliseconds},
		"first wins":       {FirstWins: true},
		"first wins heads": {FirstWins: true, Head: tsdb.Head{Points: 2}, Precision: tsdb.Milliseconds},
		"merge":            {Merge: true},
		"merge heads":      {Merge: true, Head: tsdb.Head{Points: 2}, Precision: tsdb.Milliseconds, Salts: 16},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.OneOf(t, name == "merge heads" || name == "first wins heads")
			opts.Rollups = three[codec.Record]()
			s := must[*tsdb.Schema[codec.Record]](t)(tsdb.Define("r", tsdb.Key("site", "device"), codec.Records(), opts))
			store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
			repo, salt := s.For(store, acme), ""
			if opts.Salts > 0 {
				salt = "12#"
			}
			for _, c := range markCalls(times, add) {
				must[int](t)(repo.DeletePrefix(t.Context(), tsdb.AllEntities()))
				for _, at := range times {
					if err := repo.Put(t.Context(), roof, at, record(0)); err != nil {
						t.Fatal(err)
					}
				}
				wipe(t, table)
				if err := c.call(t.Context(), repo, t.TempDir()); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				if got, want := marksIn(t, table), wantMarks("r", salt, "berlin#roof-7", c.times...); !slices.Equal(got, want) {
					t.Errorf("%s marks %q, want %q", c.name, got, want)
				}
			}
		})
	}
}

// TestAMarkThatFails: a point whose mark is not stored is not reported as stored, and repeating the call repairs this.
func TestAMarkThatFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		times := []time.Time{start.Add(-30 * time.Hour), start, start.Add(61 * time.Minute)}
		add := start.Add(5 * time.Hour)
		isMark := func(key string) bool { return strings.Contains(key, "!mark.") }
		for _, opts := range []tsdb.SchemaOptions{{}, {FirstWins: true}, {Merge: true}, {Head: tsdb.Head{Points: 2}, Precision: tsdb.Milliseconds}} {
			if testkit.Raced && opts.Head.Points == 0 {
				continue // one kind of schema is enough
			}
			opts.Rollups = three[codec.Record]()
			s := must[*tsdb.Schema[codec.Record]](t)(tsdb.Define("r", tsdb.Key("site", "device"), codec.Records(), opts))
			store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: faultTimeout()}}}, s)
			repo := s.For(store, acme)
			for _, c := range markCalls(times, add) {
				if strings.Contains(c.name, "journal") {
					continue // it waits
				}
				must[int](t)(repo.DeletePrefix(t.Context(), tsdb.AllEntities()))
				for _, at := range times {
					if err := repo.Put(t.Context(), roof, at, record(0)); err != nil {
						t.Fatal(err)
					}
				}
				wipe(t, table)
				conn.Inject(tsdbtest.FailEntries(codes.InvalidArgument, isMark).On(tsdbtest.MutateRows))
				err := c.call(t.Context(), repo, "")
				conn.Clear()
				if err == nil || !strings.Contains(err.Error(), "mark") {
					t.Errorf("%+v, %s without its mark: %v, want an error about the mark", opts.Head, c.name, err)
				}
				if err := c.call(t.Context(), repo, ""); err != nil {
					t.Fatalf("%s again: %v", c.name, err)
				}
				if got, want := marksIn(t, table), wantMarks("r", "", "berlin#roof-7", c.times...); !slices.Equal(got, want) {
					t.Errorf("%+v, %s again marks %q, want %q", opts, c.name, got, want)
				}
			}
		}
	})
}

// TestMarksSurviveFaults: whatever happens to requests and responses, a call that returns nil has marked.
func TestMarksSurviveFaults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		times := []time.Time{start.Add(-30 * time.Hour), start, start.Add(61 * time.Minute)}
		add := start.Add(5 * time.Hour)
		for _, opts := range []tsdb.SchemaOptions{{}, {FirstWins: true}, {Merge: true}, {Head: tsdb.Head{Points: 2}, Precision: tsdb.Milliseconds}} {
			if testkit.Raced && opts.Head.Points == 0 {
				continue // one kind of schema is enough
			}
			opts.Rollups = three[codec.Record]()
			s := must[*tsdb.Schema[codec.Record]](t)(tsdb.Define("r", tsdb.Key("site", "device"), codec.Records(), opts))
			store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
			repo := s.For(store, acme)
			isMark := func(key string) bool { return strings.Contains(key, "!mark.") }
			for name, fault := range map[string]tsdbtest.Fault{
				"answer lost":     tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.MutateRows).Times(1),
				"stream cut":      tsdbtest.CutStream(1, codes.Unavailable).On(tsdbtest.MutateRows).Times(1),
				"marks refused":   tsdbtest.FailEntries(codes.Unavailable, isMark).On(tsdbtest.MutateRows).Times(1),
				"points refused":  tsdbtest.FailEntries(codes.Unavailable, func(key string) bool { return !isMark(key) }).On(tsdbtest.MutateRows).Times(1),
				"condition lost":  tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Times(1),
				"condition fails": tsdbtest.Fail(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Times(1),
			} {
				if testkit.Raced && !strings.HasSuffix(name, "lost") {
					continue // lost responses represent all faults here
				}
				for _, c := range markCalls(times, add) {
					must[int](t)(repo.DeletePrefix(t.Context(), tsdb.AllEntities()))
					for _, at := range times {
						if err := repo.Put(t.Context(), roof, at, record(0)); err != nil {
							t.Fatal(err)
						}
					}
					wipe(t, table)
					conn.Inject(fault)
					err := c.call(t.Context(), repo, "")
					conn.Clear()
					got, want := marksIn(t, table), wantMarks("r", "", "berlin#roof-7", c.times...)
					if err != nil || !slices.Equal(got, want) {
						t.Errorf("%+v, %s with %s: %v, marks are %q, want %q", opts.Head, c.name, name, err, got, want)
					}
				}
			}
		}
	})
}

// TestMarksOfManyPoints: a batch in which each point has its own marks stays within the limits of a request.
func TestMarksOfManyPoints(t *testing.T) {
	if sampling() {
		t.Skip("counts only; it runs in process, without the race detector")
	}
	s := must[*tsdb.Schema[float64]](t)(tsdb.Define("r", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{Rollups: three[float64]()}))
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	points := make([]tsdb.Point[float64], 12_000)
	for i := range points {
		points[i] = tsdb.Point[float64]{Entity: tsdb.NewEntity(fmt.Sprint(i)), Time: start, Value: 1}
	}
	must[[]tsdb.Outcome](t)(repo.PutMany(t.Context(), points))
	if n := conn.Counts().Calls[tsdbtest.MutateRows]; n != 4 {
		t.Errorf("36,000 entries took %d requests, want 4", n)
	}
	if got := len(marksIn(t, table)); got != 2*len(points) {
		t.Errorf("%d points have %d marks", len(points), got)
	}
	wipe(t, table)
	if n, err := repo.DeletePrefix(t.Context(), tsdb.AllEntities()); n != len(points) || err != nil {
		t.Fatal(n, err)
	}
	if got := len(marksIn(t, table)); got != 2*len(points) {
		t.Errorf("%d deleted points have %d marks", len(points), got)
	}
}

// TestMarksCarryTheTimeOfTheAttempt: a mark has the time of the last attempt, which workers rely on.
func TestMarksCarryTheTimeOfTheAttempt(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := must[*tsdb.Schema[float64]](t)(tsdb.Define("r", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{Rollups: three[float64]()}))
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute - time.Millisecond))) // retries fall into the next minute
		began := time.Now()
		conn.Inject(tsdbtest.Fail(codes.Unavailable).On(tsdbtest.MutateRows).Times(6))
		if err := s.For(store, acme).Put(t.Context(), tsdb.NewEntity("x"), began.Add(-48*time.Hour), 1); err != nil {
			t.Fatal(err)
		}
		ended := time.Now()
		if !ended.After(began.Add(time.Millisecond)) {
			t.Fatalf("the call was not retried in the next minute: it took %v", ended.Sub(began))
		}
		for key, row := range rows(t, table) {
			for _, item := range row["_mark"] {
				if at := item.Timestamp.Time(); !at.Equal(ended.Truncate(time.Minute).Add(time.Minute)) {
					t.Errorf("mark %q has the timestamp %v, want the end of the minute of the last attempt at %v", key, at, ended)
				}
				if len(item.Value) > 0 {
					t.Errorf("mark %q has the value %q", key, item.Value)
				}
			}
		}
	})
}
