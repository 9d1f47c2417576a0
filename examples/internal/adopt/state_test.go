package adopt_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/examples/internal/adopt"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestStateOfOtherTables continues a copy with a state that is not of its tables. It would leave out points.
func TestStateOfOtherTables(t *testing.T) {
	ctx, l := t.Context(), layouts[0]
	w := newWorld(t)
	table := w.create(l.name)
	l.put(t, table, devices, 0, perDevice, 0)
	s := l.source(t, table)
	state, err := s.Copy(ctx, w.store, adopt.CopyOptions{Rate: 10_000_000})
	w.ok(err)

	twin := w.create("twin") // the mapping file is the same, but the command line names another table or instance
	l.put(t, twin, devices, 0, perDevice, 0)
	if _, err := l.source(t, twin).Copy(ctx, w.store, adopt.CopyOptions{State: state}); !errors.Is(err, adopt.ErrState) || !strings.Contains(err.Error(), "tables/twin") {
		t.Errorf("Copy of another table = %v, want ErrState with its name", err)
	}
	other, err := tsdb.New(w.client, "other", tsdb.Options{Admin: w.admin})
	w.ok(err)
	defer other.Close()
	if _, err := s.Copy(ctx, other, adopt.CopyOptions{State: state}); !errors.Is(err, adopt.ErrState) || !strings.Contains(err.Error(), "tables/other") {
		t.Errorf("Copy to another store = %v, want ErrState with its table", err)
	}
	w.remove("weather")
	if _, err := s.Copy(ctx, w.store, adopt.CopyOptions{State: state}); !errors.Is(err, adopt.ErrState) || !strings.Contains(err.Error(), "no dataset weather") {
		t.Errorf("Copy to a dataset that was deleted = %v, want ErrState", err)
	}
	if v := w.verify(s, -1); v.Stored != 0 {
		t.Errorf("the refused copies wrote %d points", v.Stored)
	}
	begun := state
	begun.Ranges = slices.Clone(state.Ranges)
	for i := range begun.Ranges {
		begun.Ranges[i].Done = false
	}
	last := &begun.Ranges[len(begun.Ranges)-1]
	if last.After = []byte(""); len(last.Start) == 0 {
		last.Start, begun.Ranges = []byte("m"), append([]adopt.Range{{End: []byte("m")}}, begun.Ranges...)
		last = &begun.Ranges[len(begun.Ranges)-1]
		last.Start, last.After = []byte("m"), []byte("a")
	}
	if _, err := s.Copy(ctx, w.store, adopt.CopyOptions{State: begun}); !errors.Is(err, adopt.ErrState) {
		t.Errorf("Copy with a last key outside of its range = %v, want ErrState", err)
	}
}

// TestOwnTable names the store's own table as the foreign one. A copy would read what it writes.
func TestOwnTable(t *testing.T) {
	l := layouts[0]
	w := newWorld(t)
	w.create("tidemark")
	s := l.source(t, w.client.OpenTable("tidemark"))
	_, copied := s.Copy(t.Context(), w.store, adopt.CopyOptions{})
	_, checked := s.Check(t.Context(), w.store, adopt.CheckOptions{})
	_, verified := s.Verify(t.Context(), w.store, adopt.VerifyOptions{})
	for call, err := range map[string]error{"Copy": copied, "Check": checked, "Verify": verified} {
		if !errors.Is(err, adopt.ErrInvalid) || !strings.Contains(err.Error(), "the store's") {
			t.Errorf("%s of the store's own table = %v, want ErrInvalid", call, err)
		}
	}
}

// TestVerifyRefusesUnfitRows adds a row that is no point, and that the mapping does not skip, after a copy. The dataset
// has all other points, but a copy would end there.
func TestVerifyRefusesUnfitRows(t *testing.T) {
	l := layouts[1]
	w := newWorld(t)
	table := w.create(l.name)
	l.put(t, table, devices, 0, perDevice, 0)
	s := l.source(t, table)
	_, err := s.Copy(t.Context(), w.store, adopt.CopyOptions{Rate: 10_000_000})
	w.ok(err)
	m := bigtable.NewMutation()
	m.Set("d", "", written, []byte("{}"))
	w.ok(table.Apply(t.Context(), "7|now", m))
	if v := w.verify(s, -1); v.Same() || v.Refused != 1 || v.Skipped["times"] != 1 || len(v.Different) > 0 {
		t.Errorf("Verify = %+v, want one row that is refused, and not the same", v)
	}
}

// TestCheckReadsNoMoreThanAsked checks a few rows of a table. A chunk of each range would be many times as many.
func TestCheckReadsNoMoreThanAsked(t *testing.T) {
	_, conn, _ := tsdbtest.OpenTable(t, tsdbtest.Options{})
	client, admin := tsdbtest.Clients(t, conn)
	w := &world{t: t, client: client, admin: admin}
	l := layouts[0]
	table := w.create(l.name)
	l.put(t, table, devices, 0, 100, 0)
	s := l.source(t, table)
	for _, c := range []struct {
		rows, want int
		whole      bool
	}{{10, 10, false}, {devices*100 - 1, devices*100 - 1, false}, {devices * 100, devices * 100, true}, {-1, devices * 100, true}} {
		before := conn.Counts().RowsReturned
		report, err := s.Check(t.Context(), nil, adopt.CheckOptions{Rows: c.rows})
		w.ok(err)
		if read := conn.Counts().RowsReturned - before; report.Rows != int64(c.want) || report.Whole != c.whole || int(read) > c.want+1 {
			t.Errorf("Check of %d rows: %d rows were read for a report on %d, whole: %v; want %d, %v", c.rows, read, report.Rows, report.Whole, c.want, c.whole)
		}
	}
}
