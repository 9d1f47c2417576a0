package tsdb_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// key returns the row key of a point of acme's readings, unsalted, in nanoseconds.
func key(e tsdb.Entity, at time.Time) string {
	return fmt.Sprintf("acme#readings#%s#%019d", inside.Of(e).Path(), (1<<63-1)-at.UnixNano())
}

// TestOneCorruptCell: a corrupt point is an error in its place, and the other points are returned.
func TestOneCorruptCell(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	for n := range 5 {
		if err := repo.Put(t.Context(), roof, start.Add(time.Duration(n)*time.Second), reading{float64(n)}); err != nil {
			t.Fatal(err)
		}
	}
	set := func(n int, qualifier, value string) {
		m := bigtable.NewMutation()
		m.DeleteRow()
		m.Set("keep", qualifier, bigtable.Time(start), []byte(value))
		apply(t, table, key(roof, start.Add(time.Duration(n)*time.Second)), m)
	}
	set(1, "p:json", `{"temp_c":`)
	set(3, "p:pb9", "from a newer program")
	wantErr := []error{nil, codec.ErrUnknownTag, nil, codec.ErrCorrupt, nil} // newest first
	check := func(call string, i int, p tsdb.Point[reading], err error) {
		t.Helper()
		n := 4 - i
		if !errors.Is(err, wantErr[i]) || !p.Time.Equal(start.Add(time.Duration(n)*time.Second)) || p.Entity != roof {
			t.Errorf("%s: index %d is %v, %v; want error %v", call, i, p, err, wantErr[i])
		}
		var pe *tsdb.PointError
		if wantErr[i] != nil && (!errors.As(err, &pe) || pe.Entity != roof || !pe.Time.Equal(p.Time)) {
			t.Errorf("%s: index %d: the error %v does not identify the point", call, i, err)
		}
		if wantErr[i] == nil && p.Value.TempC != float64(n) {
			t.Errorf("%s: index %d is %v", call, i, p)
		}
	}
	i := 0
	for p, err := range repo.Range(t.Context(), roof, tsdb.AllTime()) {
		check("Range", i, p, err)
		i++
	}
	if i != 5 {
		t.Errorf("Range yields %d of 5 points", i)
	}
	points, err := repo.LatestN(t.Context(), roof, 5)
	var bad tsdb.PointErrors
	if !errors.As(err, &bad) || len(bad) != 2 || len(points) != 5 {
		t.Fatalf("LatestN = %v, %v", points, err)
	}
	check("LatestN", 0, points[0], nil)
	check("LatestN", 1, points[1], bad[0])
	check("LatestN", 2, points[2], nil)
	check("LatestN", 3, points[3], bad[1])
	p, err := repo.AsOf(t.Context(), roof, start.Add(3*time.Second))
	check("AsOf", 1, p, err)
	p, err = repo.Get(t.Context(), roof, start.Add(time.Second))
	check("Get", 3, p, err)
}

// TestForeignRowsAreIgnored: reads skip rows of other programs in the same table, even between the store's own rows,
// and such rows do not use up a limit.
func TestForeignRowsAreIgnored(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	if err := errors.Join(repo.Put(t.Context(), roof, start, reading{1}), repo.Put(t.Context(), roof, start.Add(time.Second), reading{2})); err != nil {
		t.Fatal(err)
	}
	foreign := []string{
		"acme#readings#berlin#roof-7#", "acme#readings#berlin#roof-7#5", "acme#readings#berlin#roof-7#0000000000000000000x",
		"acme#readings#berlin#roof-7#0000000000000000000#x", key(roof, start) + "#x", key(roof, start)[:40] + "x",
		"acme#readings", "acme", "acme#readings#berlin", "zzz", "acme#readings!head#berlin#roof-7#",
	}
	for _, k := range foreign {
		m := bigtable.NewMutation()
		m.Set("keep", "p:json", bigtable.Time(start), []byte(`{"temp_c":99}`))
		apply(t, table, k, m)
	}
	m := bigtable.NewMutation()
	m.Set("keep", "other", bigtable.Time(start), []byte("x"))
	apply(t, table, key(roof, start.Add(2*time.Second)), m) // a point's key without a payload
	points, err := repo.LatestN(t.Context(), roof, 2)
	if err != nil || len(points) != 2 || points[0].Value.TempC != 2 || points[1].Value.TempC != 1 {
		t.Errorf("LatestN = %v, %v", points, err)
	}
	var first tsdb.Point[reading]
	for p, err := range repo.Range(t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst, tsdb.Limit(1)) {
		if err != nil {
			t.Fatal(err)
		}
		first = p
	}
	if first.Value.TempC != 1 {
		t.Errorf("the oldest point is %v", first)
	}
	if _, err := repo.DeletePrefix(t.Context(), tsdb.AllEntities()); err != nil {
		t.Fatal(err)
	}
	left := rows(t, table)
	for _, k := range foreign {
		if left[k] == nil {
			t.Errorf("DeletePrefix deleted the foreign row %q", k)
		}
	}
}

// TestReadsEqualAModel compares every read with a slice of the same points, over random histories.
func TestReadsEqualAModel(t *testing.T) {
	for _, opts := range []tsdb.SchemaOptions{{}, {Precision: tsdb.Milliseconds, Salts: 5}, {Precision: tsdb.Microseconds}, {Identity: true}, {Identity: true, Salts: 3, Precision: tsdb.Milliseconds, FirstWins: true}} {
		s := readings(t, opts)
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		rnd := rand.New(rand.NewPCG(1, uint64(opts.Precision)))
		at := func() time.Time { return start.Add(time.Duration(rnd.IntN(100)) * time.Millisecond) }
		ids := []string{""}
		if opts.Identity {
			ids = []string{"a", "a-b", "z", "9"}
		}
		point := func() instant { return instant{at(), ids[rnd.IntN(len(ids))]} }
		model := map[instant]float64{}
		for n := range 60 * len(ids) {
			when := point()
			_, there := model[when]
			switch err := repo.WithID(when.id).Put(t.Context(), roof, when.time, reading{float64(n)}); {
			case opts.FirstWins && there && errors.Is(err, tsdb.ErrExists):
			case err != nil || opts.FirstWins && there:
				t.Fatal(err)
			default:
				model[when] = float64(n)
			}
			if n%7 == 0 {
				when = point()
				delete(model, when)
				if err := repo.WithID(when.id).Delete(t.Context(), roof, when.time); err != nil {
					t.Fatal(err)
				}
			}
		}
		var all []tsdb.Point[reading]
		for when, v := range model {
			all = append(all, tsdb.Point[reading]{Entity: roof, Time: when.time, ID: when.id, Value: reading{v}})
		}
		slices.SortFunc(all, func(a, b tsdb.Point[reading]) int { return instantOf(a).newestFirst(instantOf(b)) })
		for range 200 / testkit.Stride(3) {
			from, to := at().Add(-time.Duration(rnd.IntN(2))), at().Add(time.Duration(rnd.IntN(2)))
			if to.Before(from) {
				from, to = to, from
			}
			in := []tsdb.Interval{
				tsdb.Between(from, to), tsdb.Between(from, to).ClosedEnd(), tsdb.Between(from, to).OpenStart(), tsdb.Since(from),
				tsdb.Since(from).OpenStart(), tsdb.Until(to), tsdb.Until(to).ClosedEnd(), tsdb.AllTime(), tsdb.Since(time.Time{}),
				tsdb.Until(time.Date(250000, 1, 1, 0, 0, 0, 0, time.UTC)), tsdb.Between(from, to).OpenStart().ClosedEnd(),
			}[rnd.IntN(11)]
			limit, oldestFirst := rnd.IntN(80), rnd.IntN(2) == 0
			want := slices.DeleteFunc(slices.Clone(all), func(p tsdb.Point[reading]) bool { return !in.Contains(p.Time) })
			rangeOpts := []tsdb.ReadOption{tsdb.Limit(limit)}
			if oldestFirst {
				slices.Reverse(want)
				rangeOpts = append(rangeOpts, tsdb.OldestFirst)
			}
			want = want[:min(limit, len(want))]
			var got []tsdb.Point[reading]
			for p, err := range repo.Range(t.Context(), roof, in, rangeOpts...) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, p)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("Range(%+v, limit %d, oldest first %v) = %v, want %v", in, limit, oldestFirst, got, want)
			}
			asOf, err := repo.AsOf(t.Context(), roof, to)
			i := slices.IndexFunc(all, func(p tsdb.Point[reading]) bool { return !p.Time.After(to) })
			if i < 0 != errors.Is(err, tsdb.ErrNotFound) || i >= 0 && asOf != all[i] {
				t.Fatalf("AsOf(%v) = %v, %v", to, asOf, err)
			}
		}
		if got := must[[]tsdb.Point[reading]](t)(repo.LatestN(t.Context(), roof, 10)); !slices.Equal(got, all[:10]) {
			t.Fatalf("LatestN = %v", got)
		}
		for _, p := range all {
			if got, err := repo.WithID(p.ID).Get(t.Context(), roof, p.Time); got != p || err != nil {
				t.Fatalf("Get = %v, %v, want %v", got, err, p)
			}
		}
		gone := tsdb.Between(all[20].Time, all[10].Time)
		left := slices.DeleteFunc(slices.Clone(all), func(p tsdb.Point[reading]) bool { return gone.Contains(p.Time) })
		n := must[int](t)(repo.DeleteRange(t.Context(), roof, gone))
		if got := must[[]tsdb.Point[reading]](t)(repo.LatestN(t.Context(), roof, 1000)); n != len(all)-len(left) || n == 0 || !slices.Equal(got, left) {
			t.Fatalf("after DeleteRange of %d: %v", n, got)
		}
	}
}

func TestRangeSurvivesCutStreamsAndStopsEarly(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	var points []tsdb.Point[reading]
	for n := range 500 {
		points = append(points, tsdb.Point[reading]{Entity: roof, Time: start.Add(time.Duration(n) * time.Second), Value: reading{float64(n)}})
	}
	if _, err := repo.PutMany(t.Context(), points); err != nil {
		t.Fatal(err)
	}
	for _, opts := range [][]tsdb.ReadOption{nil, {tsdb.OldestFirst}, {tsdb.Limit(300)}} {
		conn.Clear()
		conn.Inject(tsdbtest.CutStream(100, codes.Unavailable).On(tsdbtest.ReadRows).Times(2))
		var got []tsdb.Point[reading]
		for p, err := range repo.Range(t.Context(), roof, tsdb.AllTime(), opts...) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, p)
		}
		if want := 500; len(opts) == 1 && opts[0] == tsdb.Limit(300) && len(got) != 300 || opts == nil && len(got) != want {
			t.Errorf("%v: %d points with a stream cut twice", opts, len(got))
		}
		if !slices.IsSortedFunc(got, func(a, b tsdb.Point[reading]) int { return cmp.Compare(b.Value.TempC, a.Value.TempC) }) && (opts == nil || opts[0] != tsdb.OldestFirst) {
			t.Errorf("%v: points out of order or repeated", opts)
		}
	}
	conn.Clear()
	for range repo.Range(t.Context(), roof, tsdb.AllTime()) {
		break // goleak checks that the stream has ended
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	var last error
	for _, err := range repo.Range(ctx, roof, tsdb.AllTime()) {
		if last = err; err == nil {
			n++
		}
		if n == 3 {
			cancel()
		}
	}
	if n != 3 || !errors.Is(last, context.Canceled) {
		t.Errorf("after the context was cancelled at the third point: %d points, then %v", n, last)
	}
}

func TestReadFailures(t *testing.T) {
	parallelIfSlow(t)
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Read: faultTimeout(), Scan: faultTimeout()}}}, s)
		repo := s.For(store, acme)
		for _, f := range []tsdbtest.Fault{tsdbtest.Fail(codes.PermissionDenied), tsdbtest.Fail(codes.Unavailable), tsdbtest.Delay(time.Hour)} {
			conn.Clear()
			conn.Inject(f)
			if _, err := repo.Latest(t.Context(), roof); err == nil || errors.Is(err, tsdb.ErrNotFound) {
				t.Errorf("Latest under a fault: %v, want an error other than ErrNotFound", err)
			}
			n := 0
			for _, err := range repo.Range(t.Context(), roof, tsdb.AllTime()) {
				n++
				if err == nil {
					t.Error("Range under a fault yields a point")
				}
			}
			if n != 1 {
				t.Errorf("Range under a fault yields %d pairs, want only the error", n)
			}
		}
	})
}

// TestWhichTimeoutBoundsARead: the scan timeout bounds Range, the read timeout all other reads of one entity.
func TestWhichTimeoutBoundsARead(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		repo, conn, devices := fleet(t, 1, tsdb.Timeouts{Read: time.Second, Scan: time.Hour})
		conn.Inject(tsdbtest.Delay(time.Minute).On(tsdbtest.ReadRows))
		e := devices[0]
		for name, err := range map[string]error{
			"Get":     second(repo.Get(t.Context(), e, start)),
			"Latest":  second(repo.Latest(t.Context(), e)),
			"LatestN": second(repo.LatestN(t.Context(), e, 2)),
			"Page":    second(repo.Page(t.Context(), e, tsdb.AllTime(), 2, "")),
			"fields":  second(repo.LatestFields(t.Context(), e, tsdb.FieldOptions{})),
		} {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s after the read timeout: %v, want DeadlineExceeded", name, err)
			}
		}
		if n, err := pairs(repo.Range(t.Context(), e, tsdb.AllTime())); n != 1 || err != nil {
			t.Errorf("Range within the scan timeout: %d points, %v", n, err)
		}
	})
}
