package tsdb_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// cellRanges returns the ranges of timestamps in a filter.
func cellRanges(f *btpb.RowFilter) (all []*btpb.TimestampRange) {
	for _, inner := range append(f.GetChain().GetFilters(), f.GetInterleave().GetFilters()...) {
		all = append(all, cellRanges(inner)...)
	}
	if r := f.GetTimestampRangeFilter(); r != nil {
		all = append(all, r)
	}
	return all
}

// filters records the filters of ReadRows requests.
type filters struct {
	sync.Mutex
	all []*btpb.RowFilter
}

func (f *filters) dial() grpc.DialOption {
	return onRequest("ReadRows", func(m any) {
		f.Lock()
		defer f.Unlock()
		f.all = append(f.all, m.(*btpb.ReadRowsRequest).Filter)
	}, func() {})
}

// take returns the ranges of timestamps of the requests since the last call.
func (f *filters) take() (all []*btpb.TimestampRange) {
	f.Lock()
	defer f.Unlock()
	for _, filter := range f.all {
		all = append(all, cellRanges(filter)...)
	}
	f.all = nil
	return all
}

// TestReadsBetweenTimesFilterCells: reads between two times ask for the cells of these times only, so that tiered
// storage need not look at older ones. Cells have whole milliseconds: a bound within a millisecond hides no point of
// it.
func TestReadsBetweenTimesFilterCells(t *testing.T) {
	class := gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}
	for name, opts := range map[string]tsdb.SchemaOptions{
		"ns": {}, "us": {Precision: tsdb.Microseconds}, "ms": {Precision: tsdb.Milliseconds},
		"identity":   {Identity: true},
		"retention":  {Retention: class},
		"classes":    {Retention: class, FormerClasses: []gc.Class{{Name: "d400", Policy: gc.MaxAge(400 * 24 * time.Hour)}, {Name: "keep"}}},
		"only heads": {Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 20, Only: true}},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.OneOf(t, name == "classes" || name == "only heads")
			var sent filters
			s := readings(t, opts)
			c := clock{}
			c.Set(start.Add(time.Hour))
			store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}, DialOptions: []grpc.DialOption{sent.dial()}}, s)
			repo := s.For(store, acme)
			if opts.Identity {
				repo = repo.WithID("a")
			}
			unit := map[tsdb.Precision]time.Duration{tsdb.Microseconds: time.Microsecond, tsdb.Milliseconds: time.Millisecond}[opts.Precision]
			unit = max(unit, 1)
			var edges, stored []time.Time
			for _, ms := range []int64{-40 * 24 * 3600 * 1000, -1, 0, 1, 2} {
				for _, rest := range []time.Duration{0, 1, time.Microsecond, time.Millisecond - time.Microsecond, time.Millisecond - 1} {
					edges = append(edges, start.Add(time.Duration(ms)*time.Millisecond+rest))
				}
			}
			for _, at := range edges {
				if opts.Retention.Name != "" && at.Before(start.Add(-time.Hour)) {
					continue // expired, and refused
				}
				if err := repo.Put(t.Context(), roof, at, reading{1}); err != nil {
					t.Fatal(err)
				}
				if at = at.Truncate(unit); !slices.ContainsFunc(stored, at.Equal) {
					stored = append(stored, at)
				}
			}
			check := func(what string, in tsdb.Interval, got []time.Time) {
				t.Helper()
				want := slices.DeleteFunc(slices.Clone(stored), func(at time.Time) bool { return !in.Contains(at) })
				if !slices.EqualFunc(got, want, time.Time.Equal) {
					t.Errorf("%s: points at %v, want %v", what, got, want)
				}
				from, bounded := in.Start()
				end, ends := in.End()
				ranges := sent.take()
				if bounded && ends && from.Add(unit-1).Truncate(unit).Equal(end.Add(-1).Truncate(unit)) {
					return // a read of one time is not narrowed
				}
				if bounded && len(ranges) == 0 && len(want) > 0 {
					t.Errorf("%s: a request without a range of timestamps", what)
				}
				for _, r := range ranges {
					if first := from.Add(unit - 1).Truncate(unit).Truncate(time.Millisecond); bounded && r.StartTimestampMicros < first.UnixMicro() {
						t.Errorf("%s: the request asks for cells from %d on, want %d", what, r.StartTimestampMicros, first.UnixMicro())
					}
					after := end.Add(-1).Truncate(time.Millisecond).Add(time.Millisecond)
					if ends && opts.Head.Points == 0 && (r.EndTimestampMicros == 0 || r.EndTimestampMicros > after.UnixMicro()) {
						t.Errorf("%s: the request asks for cells until %d, want %d", what, r.EndTimestampMicros, after.UnixMicro())
					}
					if r.StartTimestampMicros%1000 != 0 || r.EndTimestampMicros%1000 != 0 || r.EndTimestampMicros != 0 && r.StartTimestampMicros >= r.EndTimestampMicros {
						t.Errorf("%s: the service refuses the range %v", what, r)
					}
				}
			}
			times := func(in tsdb.Interval) (all []time.Time) {
				for p, err := range repo.Range(t.Context(), roof, in, tsdb.OldestFirst) {
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, p.Time)
				}
				return all
			}
			sent.take()
			for i, from := range edges {
				check("since "+from.String(), tsdb.Since(from), times(tsdb.Since(from)))
				check("until "+from.String(), tsdb.Until(from), times(tsdb.Until(from)))
				for _, to := range edges[i:] {
					in := tsdb.Between(from, to).ClosedEnd()
					check("between "+from.String()+" and "+to.String(), in, times(in))
				}
			}
			for _, at := range stored {
				p, err := repo.Get(t.Context(), roof, at)
				if err != nil {
					t.Errorf("Get of %v: %v", at, err)
				}
				check("Get", tsdb.Between(at, at).ClosedEnd(), []time.Time{p.Time})
				if p, err = repo.AsOf(t.Context(), roof, at); err != nil || !p.Time.Equal(at) {
					t.Errorf("AsOf of %v: %v, %v", at, p, err)
				}
				sent.take()
			}
		})
	}
}

// TestLatestManyFiltersCells: a shared request asks for no cells older than the known newest points, and misses none of
// them.
func TestLatestManyFiltersCells(t *testing.T) {
	var sent filters
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{sent.dial()}}, s)
	repo := s.For(store, acme)
	var devices []tsdb.Entity
	for n := range 8 {
		devices = append(devices, device("berlin", n))
		putAll(t, repo, []tsdb.Point[reading]{
			{Entity: devices[n], Time: start.AddDate(0, -2, 0), Value: reading{1}},
			{Entity: devices[n], Time: start.Add(time.Duration(n)*time.Millisecond + time.Millisecond - 1), Value: reading{2}},
		})
	}
	warm(t, repo, conn, devices)
	sent.take()
	sameAsLatest(t, "known devices", repo, devices)
	ranges := sent.take()
	if i := slices.IndexFunc(ranges, func(r *btpb.TimestampRange) bool { return r.StartTimestampMicros == start.UnixMicro() }); i < 0 {
		t.Errorf("the ranges of timestamps are %v, want one from %d on", ranges, start.UnixMicro())
	}
}
