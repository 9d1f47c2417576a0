package rollup_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestZoneIsWhatItsNameSays: other programs load the zone by its name, so a zone whose clock differs from that name's
// zone is refused.
func TestZoneIsWhatItsNameSays(t *testing.T) {
	for _, tc := range []struct {
		zone *time.Location
		ok   bool
	}{
		{berlin, true},
		{mustZone("Africa/Casablanca"), true},
		{time.FixedZone("Etc/GMT-1", 3600), true}, // the same clock
		{time.FixedZone("Europe/Berlin", 3600), false},
		{time.FixedZone("Europe/Berlin", 7200), false},
		{time.FixedZone("UTC", 3600), false},
		{time.FixedZone("CEST", 7200), false},
		{time.FixedZone("", 0), false},
	} {
		for _, grid := range []window.Grid{window.Every(time.Hour), window.Days(1)} {
			_, err := rollup.Define("r", grid.In(tc.zone), measures(), rollup.Options{})
			if (err == nil) != tc.ok || err != nil && !errors.Is(err, tsdb.ErrInvalid) {
				t.Errorf("Define with %v at %v: %v", grid.In(tc.zone), time.Unix(0, 0).In(tc.zone), err)
			}
		}
	}
}

// TestBucketsStartAtWholeMilliseconds: a stored bucket has its start in milliseconds. A read of narrower parts of them
// would never end.
func TestBucketsStartAtWholeMilliseconds(t *testing.T) {
	for width, ok := range map[time.Duration]bool{
		time.Second: true, 1500 * time.Millisecond: true, 86_400 * time.Second / 1024: true,
		time.Second - time.Millisecond: false, time.Minute / 7: false, 1500*time.Millisecond + 1: false, 86_400 * time.Second / 65_536: false,
	} {
		if _, err := rollup.Define("r", window.Every(width), measures(), rollup.Options{}); (err == nil) != ok || err != nil && !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("Define with a width of %v: %v", width, err)
		}
	}
}

// TestGapsWithoutMeasures: a rollup that only counts points can be read with any fill of gaps.
func TestGapsWithoutMeasures(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		hour := rollup.MustDefine[reading]("hour", window.Every(time.Hour), nil, rollup.Options{})
		schema := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
		c := testkit.NewClock(start.Add(5 * time.Hour))
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, schema)
		repo := schema.For(store, acme)
		for _, h := range []int{1, 3} {
			if err := repo.Put(t.Context(), roof, start.Add(time.Duration(h)*time.Hour), reading{}); err != nil {
				t.Fatal(err)
			}
		}
		for gaps, want := range map[window.Gaps][]int64{
			window.LeaveOut: {1, 1},
			window.Null:     {0, 1, 0, 1, 0},
			window.Previous: {0, 1, 0, 1, 0},
			window.Linear:   {0, 1, 0, 1, 0},
		} {
			for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
				var got []int64
				for b, err := range rollup.For(hour, repo).WithGaps(window.Options{Gaps: gaps}).Buckets(t.Context(), roof, tsdb.Between(start, start.Add(5*time.Hour)), order) {
					if err != nil {
						t.Fatalf("%v: %v", gaps, err)
					}
					got = append(got, b.Points)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%v: buckets with %v points, want %v", gaps, got, want)
				}
			}
		}
	})
}

// TestGapsAtEdgesOfWindowsWithoutEnds: windows from a rollup fill the gaps at the ends of an interval as those from
// points do, also of measures that are asked for without Ends.
func TestGapsAtEdgesOfWindowsWithoutEnds(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		load := rollup.Measure[metered]{Name: "load", Int: metered.load, Max: 1e6, Aggregates: window.Basic | window.Ends}
		hour := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[metered]{load}, rollup.Options{})
		schema := tsdb.MustDefine("r", tsdb.Key("meter"), codec.JSON[metered](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
		c := testkit.NewClock(start.Add(10 * time.Hour))
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, schema)
		repo, e, from := schema.For(store, acme), tsdb.NewEntity("m-17"), hour.Grid().Start(start)
		for i, n := range []int64{10, 20, 40} {
			if err := repo.Put(t.Context(), e, from.Add(time.Duration(i)*3*time.Hour), metered{Load: &n}); err != nil {
				t.Fatal(err)
			}
		}
		in := tsdb.Between(from.Add(time.Hour), from.Add(6*time.Hour))
		for _, gaps := range []window.Gaps{window.Previous, window.Linear} {
			for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
				var read [2][]window.Bucket
				for i := range read {
					by, err := window.New(hour.Grid(), []window.Measure[metered]{{Name: "load", Int: metered.load, Aggregates: window.Max}}, window.Options{Gaps: gaps, FromPoints: i == 0})
					if err != nil {
						t.Fatal(err)
					}
					if from, err := by.Source(t.Context(), repo, in); err != nil || (from == "hour") != (i == 1) {
						t.Fatalf("windows come from %q, %v", from, err)
					}
					read[i] = all(t, by.Read(t.Context(), repo, e, in, order))
				}
				for i, want := range read[0] {
					got := read[1][i]
					if !want.Values[0].Filled && want.Points == 0 {
						t.Errorf("%v, order %v: the bucket at %v of points is not filled", gaps, order, want.Start)
					}
					sameValues(t, gaps.String()+" at "+want.Start.String(), got.Values, want.Values)
				}
			}
		}
	})
}

// TestIntervalsAboutTheEpoch: an interval holds the buckets that start in it, also if one starts before 1970. Reads
// with gaps return the same buckets.
func TestIntervalsAboutTheEpoch(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		for _, zone := range []string{"UTC", "Asia/Kolkata", "America/New_York"} {
			day := rollup.MustDefine("day", window.Days(1).In(mustZone(zone)), measures(), rollup.Options{})
			schema := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{day}})
			c := testkit.NewClock(time.Unix(0, 0))
			store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, schema)
			repo := schema.For(store, acme)
			epoch := time.Unix(0, 0).UTC()
			for _, at := range []time.Time{epoch, epoch.Add(72 * time.Hour)} {
				if err := repo.Put(t.Context(), roof, at, reading{TempC: 1}); err != nil {
					t.Fatal(err)
				}
			}
			first, last := day.Grid().Start(epoch), day.Grid().Start(epoch.Add(72*time.Hour))
			worker, err := rollup.NewWorker(store, rollup.WorkerOptions{Tenants: only(acme)}, schema)
			if err != nil {
				t.Fatal(err)
			}
			for _, stored := range []bool{false, true} {
				for _, in := range []tsdb.Interval{
					tsdb.AllTime(), tsdb.Since(first), tsdb.Since(first.Add(time.Nanosecond)), tsdb.Since(first).OpenStart(), tsdb.Since(epoch), tsdb.Since(epoch.Add(-48 * time.Hour)), tsdb.Since(epoch.Add(1)),
					tsdb.Until(first), tsdb.Until(first).ClosedEnd(), tsdb.Until(epoch), tsdb.Until(epoch).ClosedEnd(), tsdb.Between(epoch, epoch.Add(96*time.Hour)), tsdb.Between(first, epoch),
					tsdb.Between(epoch.Add(-72*time.Hour), epoch.Add(time.Hour)), tsdb.Until(epoch.Add(-48 * time.Hour)),
				} {
					var want []time.Time
					for _, s := range []time.Time{first, last} {
						if in.Contains(s) {
							want = append(want, s)
						}
					}
					for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
						for _, gaps := range []window.Gaps{window.LeaveOut, window.Null} {
							var got []time.Time
							for b, err := range rollup.For(day, repo).WithGaps(window.Options{Gaps: gaps}).Buckets(t.Context(), roof, in, order) {
								if err != nil {
									t.Errorf("%s, %v, %v: %v", zone, in, gaps, err)
									break
								}
								if b.Points > 0 {
									got = append(got, b.Start)
								}
							}
							if order == tsdb.NewestFirst {
								slices.Reverse(got)
							}
							if !slices.EqualFunc(got, want, time.Time.Equal) {
								t.Errorf("%s, stored %v, %v, %v, gaps %v: buckets at %v, want %v", zone, stored, in, order, gaps, got, want)
							}
						}
					}
					total, err := rollup.For(day, repo).Total(t.Context(), roof, in)
					if err != nil || total.Points != int64(len(want)) {
						t.Errorf("%s, %v: total of %d points, want %d, %v", zone, in, total.Points, len(want), err)
					}
				}
				c.Set(epoch.Add(120 * time.Hour))
				if _, err := worker.Pass(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
