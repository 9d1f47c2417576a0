package tsdb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestDeadHistoryCostsNothing: reads of a device that was silent for a year, whose rows have expired but are not
// collected, cost as much as reads of an empty one.
func TestDeadHistoryCostsNothing(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{Retention: d90})
	c := testkit.NewClock(start)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
	repo := s.For(store, acme)
	var points []tsdb.Point[reading]
	for n := range 2000 {
		points = append(points, tsdb.Point[reading]{Entity: roof, Time: start.Add(-time.Duration(n) * time.Minute)})
	}
	if _, err := repo.PutMany(t.Context(), points); err != nil {
		t.Fatal(err)
	}
	c.Set(start.Add(365 * 24 * time.Hour))
	seen := func(e tsdb.Entity) int64 {
		conn.Reset()
		if _, err := repo.Latest(t.Context(), e); !errors.Is(err, tsdb.ErrNotFound) {
			t.Errorf("Latest(%v) = %v, want ErrNotFound", e, err)
		}
		for p, err := range repo.Range(t.Context(), e, tsdb.AllTime()) {
			t.Errorf("Range(%v) yields %v, %v", e, p, err)
		}
		return conn.Counts().RowsSeen
	}
	silent, empty := seen(roof), seen(tsdb.NewEntity("berlin", "never"))
	if silent != empty {
		t.Errorf("reads of an expired history saw %d rows, of an empty one %d; want the same", silent, empty)
	}
	if conn.Counts().Calls[tsdbtest.ReadRows] == 0 {
		t.Error("nothing was counted")
	}
}

// TestExpiredIsInvisibleAtTheMoment moves the clock over the expiry of points by milliseconds, in a table without
// garbage collection, and checks every read and predicate.
func TestExpiredIsInvisibleAtTheMoment(t *testing.T) {
	h1 := gc.Class{Name: "h1", Policy: gc.MaxAge(time.Hour)}
	for _, p := range []tsdb.Precision{tsdb.Nanoseconds, tsdb.Microseconds, tsdb.Milliseconds} {
		s := readings(t, tsdb.SchemaOptions{Retention: h1, Precision: p})
		c := testkit.NewClock(start)
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
		repo := s.For(store, acme)
		at := start.Add(-time.Minute).Add(700 * time.Microsecond) // its cell has the time -1m, truncated to the millisecond
		cell := start.Add(-time.Minute)
		if err := repo.Put(t.Context(), roof, at, reading{1}); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			now     time.Time
			visible bool
		}{
			{cell.Add(time.Hour).Add(-time.Nanosecond), true},
			{cell.Add(time.Hour), true},
			{cell.Add(time.Hour).Add(time.Nanosecond), false}, // from here on garbage collection may delete the cell
			{cell.Add(time.Hour).Add(time.Millisecond), false},
			{cell.Add(100 * time.Hour), false},
		} {
			c.Set(tt.now)
			for name, read := range map[string]func() (tsdb.Point[reading], error){
				"Latest": func() (tsdb.Point[reading], error) { return repo.Latest(t.Context(), roof) },
				"Get":    func() (tsdb.Point[reading], error) { return repo.Get(t.Context(), roof, at) },
				"AsOf":   func() (tsdb.Point[reading], error) { return repo.AsOf(t.Context(), roof, at) },
			} {
				if _, err := read(); (err == nil) != tt.visible || err != nil && !errors.Is(err, tsdb.ErrNotFound) {
					t.Errorf("%v: %s at expiry%+v: %v, want visible %v", p, name, tt.now.Sub(cell.Add(time.Hour)), err, tt.visible)
				}
			}
			points, err := repo.LatestN(t.Context(), roof, 5)
			if err != nil || (len(points) == 1) != tt.visible {
				t.Errorf("%v: LatestN at %v = %v, %v", p, tt.now, points, err)
			}
		}
	}
}

// TestExpiredCountsAsAbsent: the predicate of a conditional write does not see points that reads do not see.
func TestExpiredCountsAsAbsent(t *testing.T) {
	h1 := gc.Class{Name: "h1", Policy: gc.MaxAge(time.Hour)}
	h3 := gc.Class{Name: "h3", Policy: gc.MaxAge(3 * time.Hour)}
	short := readings(t, tsdb.SchemaOptions{Retention: h1, FormerClasses: []gc.Class{h3}})
	long := readings(t, tsdb.SchemaOptions{Retention: h3, FormerClasses: []gc.Class{h1}})
	c := testkit.NewClock(start)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, short)
	if err := short.For(store, acme).Put(t.Context(), roof, start, reading{1}); err != nil {
		t.Fatal(err)
	}
	repo := long.For(store, acme)
	if stored, err := repo.PutIfAbsent(t.Context(), roof, start, reading{2}); stored || err != nil {
		t.Errorf("PutIfAbsent on a visible point of another class = %v, %v; want false", stored, err)
	}
	c.Set(start.Add(2 * time.Hour)) // the point in h1 is expired, the same time in h3 is not
	if stored, err := repo.PutIfAbsent(t.Context(), roof, start, reading{3}); !stored || err != nil {
		t.Errorf("PutIfAbsent on an expired point = %v, %v; want true", stored, err)
	}
	if p := must[tsdb.Point[reading]](t)(repo.Latest(t.Context(), roof)); p.Value.TempC != 3 {
		t.Errorf("Latest = %v", p)
	}
}

// TestReadsCoverEveryClass: a schema that changes its class or codec continues to read older points, each with the
// retention that it was written with. A rewrite leaves one payload.
func TestReadsCoverEveryClass(t *testing.T) {
	h1 := gc.Class{Name: "h1", Policy: gc.MaxAge(time.Hour)}
	keep := gc.Class{Name: "keep", Policy: gc.Never()}
	textual := codec.Convert(codec.String(), func(s string) (reading, error) { return reading{float64(len(s))}, nil },
		func(r reading) (string, error) { return "xxxxxxxxxx"[:int(r.TempC)], nil })
	before := readings(t, tsdb.SchemaOptions{Retention: h1})
	after, err := tsdb.Define("readings", tsdb.Key("site", "device"), codec.Fallback(textual, codec.JSON[reading]()),
		tsdb.SchemaOptions{Retention: keep, FormerClasses: []gc.Class{h1}})
	if err != nil {
		t.Fatal(err)
	}
	c := testkit.NewClock(start)
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, before)
	if err := store.Ensure(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		if err := before.For(store, acme).Put(t.Context(), roof, start.Add(time.Duration(n)*time.Second), reading{1}); err != nil {
			t.Fatal(err)
		}
	}
	repo := after.For(store, acme)
	if err := repo.Put(t.Context(), roof, start, reading{7}); err != nil { // a rewrite, into the other class and codec
		t.Fatal(err)
	}
	if err := repo.Put(t.Context(), roof, start.Add(10*time.Second), reading{5}); err != nil {
		t.Fatal(err)
	}
	temps := func() (out []float64) {
		points, err := repo.LatestN(t.Context(), roof, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range points {
			out = append(out, p.Value.TempC)
		}
		return out
	}
	if got, want := temps(), []float64{5, 1, 1, 1, 7}; !equal(got, want) {
		t.Errorf("before expiry: points %v, want %v", got, want)
	}
	c.Set(start.Add(2 * time.Hour))
	if got, want := temps(), []float64{5, 7}; !equal(got, want) {
		t.Errorf("after the old class expired: points %v, want %v", got, want)
	}
	for key, row := range rows(t, table) {
		if cells := len(row["h1"]) + len(row["keep"]); cells != 1 {
			t.Errorf("row %q holds %d payloads, want 1", key, cells)
		}
	}
}

func equal(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestTwoPayloads: if two writers left two payloads in one row, the order in the catalogue decides.
func TestTwoPayloads(t *testing.T) {
	keep, d := gc.Class{Name: "keep", Policy: gc.Never()}, gc.Class{Name: "d", Policy: gc.Never()}
	s := readings(t, tsdb.SchemaOptions{Retention: keep, FormerClasses: []gc.Class{d}})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	m := bigtable.NewMutation()
	m.Set("d", "p:json", bigtable.Time(start), []byte(`{"temp_c":1}`))
	m.Set("keep", "p:json", bigtable.Time(start), []byte(`{"temp_c":2}`))
	apply(t, table, key(roof, start), m)
	repo := s.For(store, acme)
	points, err := repo.LatestN(t.Context(), roof, 10)
	if err != nil || len(points) != 1 || points[0].Value.TempC != 2 {
		t.Errorf("LatestN = %v, %v; want the payload of the class that is written", points, err)
	}
}

func TestArrivalTooLateTooEarlyExpired(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{Retention: d90, MaxLate: time.Hour, MaxFuture: time.Minute})
	onlyRetention := readings(t, tsdb.SchemaOptions{Retention: d90})
	c := testkit.NewClock(start)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
	for _, tt := range []struct {
		s    *tsdb.Schema[reading]
		at   time.Time
		want error
	}{
		{s, start.Add(-time.Hour), nil},
		{s, start.Add(-time.Hour - 1), tsdb.ErrLate},
		{s, start.Add(time.Minute), nil},
		{s, start.Add(time.Minute + 1), tsdb.ErrTooFarAhead},
		{onlyRetention, start.Add(-90 * 24 * time.Hour), nil},
		{onlyRetention, start.Add(-90*24*time.Hour - 1), tsdb.ErrExpired},
		{onlyRetention, start.AddDate(100, 0, 0), nil},
	} {
		repo := tt.s.For(store, acme)
		conn.Reset()
		errPut := repo.Put(t.Context(), roof, tt.at, reading{})
		_, errAbsent := repo.PutIfAbsent(t.Context(), roof, tt.at, reading{})
		_, errMany := repo.PutMany(t.Context(), []tsdb.Point[reading]{{Entity: roof, Time: tt.at}})
		for call, err := range map[string]error{"Put": errPut, "PutIfAbsent": errAbsent, "PutMany": errMany} {
			if !errors.Is(err, tt.want) || tt.want != nil && !errors.Is(err, tsdb.ErrRejected) {
				t.Errorf("%s at %v: error %v, want %v", call, tt.at.Sub(start), err, tt.want)
			}
			var invalid *tsdb.InvalidError
			if tt.want != nil && (!errors.As(err, &invalid) || invalid.Field != "time") {
				t.Errorf("%s: error %v, want it to name the field", call, err)
			}
		}
		if calls := conn.Counts().Calls; tt.want != nil && len(calls) > 0 {
			t.Errorf("a rejected point was sent: %v", calls)
		}
	}
}

func apply(t testing.TB, table *bigtable.Table, key string, m *bigtable.Mutation) {
	t.Helper()
	if err := table.Apply(context.Background(), key, m); err != nil {
		t.Fatal(err)
	}
}

// TestOlderClassLivesLonger: reads reach back as far as the longest class.
func TestOlderClassLivesLonger(t *testing.T) {
	d1 := gc.Class{Name: "d1", Policy: gc.MaxAge(24 * time.Hour)}
	c := testkit.NewClock(start)
	old := readings(t, tsdb.SchemaOptions{Retention: d90})
	s := readings(t, tsdb.SchemaOptions{Retention: d1, FormerClasses: []gc.Class{d90}})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
	if err := old.For(store, acme).Put(t.Context(), roof, start.Add(-10*24*time.Hour), reading{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.For(store, acme).Latest(t.Context(), roof); err != nil {
		t.Errorf("Latest: %v", err)
	}
}

// TestManyCellsInARow: the payload with the first tag counts and, in its column, the cell with the point's own time.
func TestManyCellsInARow(t *testing.T) {
	v2 := codec.Tagged("json.v2", codec.JSON[reading]())
	s := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Fallback(v2, codec.JSON[reading]()), tsdb.SchemaOptions{})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	r := s.For(store, acme)
	if err := r.Put(t.Context(), roof, start, reading{1}); err != nil {
		t.Fatal(err)
	}
	for key := range rows(t, table) {
		m := bigtable.NewMutation()
		m.Set("keep", "p:json", bigtable.Timestamp(start.UnixMicro()), []byte(`{"temp_c":2}`))
		m.Set("keep", "p:json.v2", bigtable.Timestamp(start.UnixMicro()-1000), []byte(`{"temp_c":3}`))
		m.Set("keep", "p:json.v2", bigtable.Timestamp(start.UnixMicro()+1000), []byte(`{"temp_c":4}`))
		if err := table.Apply(t.Context(), key, m); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := r.Latest(t.Context(), roof); err != nil || p.Value.TempC != 1 {
		t.Errorf("Latest = %v, %v; want the value 1", p, err)
	}
}
