package tsdb_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestIntervalEnds: an interval contains exactly the times from its start to its end, to the nanosecond.
func TestIntervalEnds(t *testing.T) {
	from, to := start, start.Add(time.Hour)
	for name, in := range map[string]tsdb.Interval{
		"between":         tsdb.Between(from, to),
		"open start":      tsdb.Between(from, to).OpenStart(),
		"closed end":      tsdb.Between(from, to).ClosedEnd(),
		"open and closed": tsdb.Between(from, to).OpenStart().ClosedEnd(),
		"since":           tsdb.Since(from),
		"until":           tsdb.Until(to),
		"all":             tsdb.AllTime(),
		"all, closed":     tsdb.AllTime().OpenStart().ClosedEnd(),
	} {
		if first, ok := in.Start(); ok && (!in.Contains(first) || in.Contains(first.Add(-1))) || !ok && !in.Contains(time.Time{}) {
			t.Errorf("%s starts at %v, %t", name, first, ok)
		}
		if end, ok := in.End(); ok && (in.Contains(end) || !in.Contains(end.Add(-1))) || !ok && !in.Contains(to.AddDate(1000, 0, 0)) {
			t.Errorf("%s ends at %v, %t", name, end, ok)
		}
	}
}

// TestIntervalThatEndsBeforeItStarts: swapped times are an error of each call, before anything is sent, and not an
// empty result.
func TestIntervalThatEndsBeforeItStarts(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	seconds(t, repo, 3)
	calls := map[string]func(in tsdb.Interval) error{
		"Range": func(in tsdb.Interval) error {
			for _, err := range repo.Range(t.Context(), roof, in) {
				return err
			}
			return nil
		},
		"Page": func(in tsdb.Interval) error {
			_, err := repo.Page(t.Context(), roof, in, 1, "")
			return err
		},
		"DeleteRange": func(in tsdb.Interval) error {
			_, err := repo.DeleteRange(t.Context(), roof, in)
			return err
		},
		"Check": func(in tsdb.Interval) error { return inside.Of(in).Check() },
	}
	later := start.Add(time.Nanosecond)
	for name, call := range calls {
		conn.Reset()
		for _, in := range []tsdb.Interval{tsdb.Between(later, start), tsdb.Between(later, start).ClosedEnd(), tsdb.Between(later, time.Time{})} {
			err := call(in)
			bad, ok := errors.AsType[*tsdb.InvalidError](err)
			if !errors.Is(err, tsdb.ErrInvalid) || !ok || bad.Field != "interval" || !strings.Contains(bad.Value, later.Format(time.RFC3339Nano)) {
				t.Errorf("%s of an interval that ends before it starts: %v, want an error with both times", name, err)
			}
		}
		if calls := conn.Counts().Calls; len(calls) > 0 {
			t.Errorf("%s sends %v for a refused interval, want nothing", name, calls)
		}
		for what, in := range map[string]tsdb.Interval{
			"zero": {}, "empty": tsdb.Between(start, start), "empty, open": tsdb.Between(start, start).OpenStart(), "one instant": tsdb.Between(start, start).ClosedEnd(),
			"since": tsdb.Since(later), "until": tsdb.Until(start),
		} {
			if err := call(in); err != nil {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
}

// TestLatestManyNamesAnEmptyEntity: the error names an empty entity by its index.
func TestLatestManyNamesAnEmptyEntity(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	_, err := latestMany(t.Context(), s.For(store, acme), []tsdb.Entity{roof, {}})
	if err == nil || !strings.Contains(err.Error(), "index 1, the empty entity") || !strings.Contains(err.Error(), "site, device") {
		t.Errorf("LatestMany with an empty entity returns %v, want its index and the key fields", err)
	}
}
