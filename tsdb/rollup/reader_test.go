package rollup_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestReads reads the latest bucket, totals, many entities, gaps and partial intervals, from stored and computed
// buckets.
func TestReads(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		o := newOne(t, rollup.Options{}, gc.Class{})
		for _, hour := range []int{0, 1, 4} {
			o.put(t, start.Add(time.Duration(hour)*time.Hour), float64(hour+1))
		}
		o.Set(start.Add(3 * time.Hour))
		o.pass(t) // stores the first two buckets
		o.Set(start.Add(5 * time.Hour))
		r := rollup.For(o.hour, o.repo)
		ctx := t.Context()
		latest, err := r.Latest(ctx, roof, 2)
		if err != nil || len(latest) != 2 || latest[0].Values[0].Sum != 5 || latest[1].Values[0].Sum != 2 || !latest[0].Open || latest[1].Open {
			t.Errorf("Latest = %+v, %v", latest, err)
		}
		total, err := r.Total(ctx, roof, tsdb.Since(start))
		if err != nil || total.Points != 3 || total.Values[0].Sum != 8 || total.Values[0].Min != 1 || total.Values[0].Max != 5 || !total.Start.Equal(start) || !total.End.Equal(start.Add(5*time.Hour)) || !total.Open {
			t.Errorf("Total = %+v, %v", total, err)
		}
		if total, err = r.Total(ctx, roof, tsdb.Until(start)); err != nil || total.Points != 0 || !total.Start.IsZero() {
			t.Errorf("Total of an empty interval = %+v, %v", total, err)
		}
		// A bucket belongs as a whole to the interval in which it starts.
		half := start.Add(30 * time.Minute)
		for _, in := range []tsdb.Interval{tsdb.Until(half), tsdb.Between(start, half)} {
			if total, err = r.Total(ctx, roof, in); err != nil || total.Points != 1 {
				t.Errorf("Total up to half past = %+v, %v", total, err)
			}
		}
		if total, err = r.Total(ctx, roof, tsdb.Since(half)); err != nil || total.Points != 2 {
			t.Errorf("Total from half past = %+v, %v", total, err)
		}
		var counts []string
		for b, err := range r.WithGaps(window.Options{Gaps: window.Previous}).Buckets(ctx, roof, tsdb.Between(start.Add(-time.Hour), start.Add(6*time.Hour))) {
			if err != nil {
				t.Fatal(err)
			}
			counts = append(counts, fmt.Sprintf("%d/%v/%v", b.Points, b.Values[0].Max, b.Partial))
		}
		if want := []string{"0/5/false", "1/5/false", "0/2/false", "0/2/false", "1/2/false", "1/1/false", "0/NaN/false"}; !slices.Equal(counts, want) {
			t.Errorf("counts with gaps: %v, want %v", counts, want)
		}
		answers, err := r.Many(ctx, []tsdb.Entity{roof, tsdb.NewEntity("x", "y"), tsdb.NewEntity("bad")}, tsdb.AllTime(), tsdb.OldestFirst, tsdb.Concurrency(2))
		if err == nil || len(answers) != 3 || len(answers[0].Buckets) != 3 || answers[1].Err != nil || len(answers[1].Buckets) != 0 || !errors.Is(answers[2].Err, tsdb.ErrInvalid) {
			t.Errorf("Many = %+v, %v", answers, err)
		}
		n := 0
		for _, err := range r.Buckets(ctx, roof, tsdb.AllTime(), tsdb.OldestFirst) {
			if n++; err != nil || n > 1 {
				t.Fatal(n, err)
			}
			break
		}
	})
}

func TestRefusedReads(t *testing.T) {
	o := newOne(t, rollup.Options{}, gc.Class{})
	foreign := rollup.MustDefine("hour", window.Every(time.Hour), measures(), rollup.Options{})
	ctx := t.Context()
	for name, r := range map[string]*rollup.Reader[reading]{
		"nil":            nil,
		"zero":           {},
		"another schema": rollup.For(foreign, o.repo),
		"no repository":  rollup.For[reading](o.hour, nil),
	} {
		if _, err := r.Latest(ctx, roof, 1); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		for _, err := range r.WithGaps(window.Options{Gaps: window.Null}).Buckets(ctx, roof, tsdb.AllTime()) {
			if !errors.Is(err, tsdb.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	r := rollup.For(o.hour, o.repo)
	if _, err := r.Latest(ctx, roof, -1); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("Latest of -1 buckets: %v, want ErrInvalid", err)
	}
	other := tenant.NewContext(ctx, acme2)
	if _, err := r.Latest(other, roof, 1); !errors.Is(err, tsdb.ErrTenantMismatch) {
		t.Errorf("another tenant in the context: %v, want ErrTenantMismatch", err)
	}
	if _, err := r.Total(other, roof, tsdb.AllTime()); !errors.Is(err, tsdb.ErrTenantMismatch) {
		t.Errorf("another tenant in the context: %v, want ErrTenantMismatch", err)
	}
	if _, err := r.Many(other, []tsdb.Entity{roof}, tsdb.AllTime()); !errors.Is(err, tsdb.ErrTenantMismatch) {
		t.Errorf("another tenant in the context: %v, want ErrTenantMismatch", err)
	}
	if _, err := r.Rebuild(other, tsdb.AllTime(), rollup.RebuildOptions{}); !errors.Is(err, tsdb.ErrTenantMismatch) {
		t.Errorf("another tenant in the context: %v, want ErrTenantMismatch", err)
	}
}

// TestRebuild: a rollup that is added to a schema with existing points is complete after a rebuild, also after an
// interruption. Stored buckets of entities without points are removed.
func TestRebuild(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		ctx := t.Context()
		c := testkit.NewClock(start.Add(48 * time.Hour))
		class := gc.Class{Name: "d7", Policy: gc.MaxAge(7 * 24 * time.Hour)}
		plain := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Retention: class})
		def := newThree(tsdb.SchemaOptions{Retention: class})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, plain)
		old := plain.For(store, acme)
		var entities []tsdb.Entity
		points := map[tsdb.Entity]map[time.Time]reading{}
		for i := range 5 {
			e := tsdb.NewEntity("site", fmt.Sprint("device-", i))
			entities = append(entities, e)
			points[e] = map[time.Time]reading{}
			for k := range 30 {
				at, v := start.Add(time.Duration(k*k*i)*time.Minute), reading{TempC: float64(k)}
				points[e][at] = v
				if err := old.Put(ctx, e, at, v); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := store.Ensure(ctx, def.schema); err != nil {
			t.Fatal(err)
		}
		repo := def.schema.For(store, acme)
		stop := errors.New("stop")
		for _, r := range def.all() {
			reader := rollup.For(r, repo)
			if got, err := reader.Latest(ctx, entities[0], 10); err != nil || len(got) != 0 {
				t.Fatalf("before the rebuild: %v, %v", got, err)
			}
			resume, done := "", 0
			for done < 5 {
				_, err := reader.Rebuild(ctx, tsdb.AllTime(), rollup.RebuildOptions{Resume: resume, OnEntity: func(e rollup.Rebuilt) error {
					if e.Entity != entities[done] || e.Buckets == 0 {
						t.Fatalf("progress %+v after %d entities", e, done)
					}
					done++
					if resume = e.Resume; done == 2 {
						return stop
					}
					return nil
				}})
				if err != nil && !errors.Is(err, stop) {
					t.Fatal(err)
				}
			}
			if n, err := reader.Rebuild(ctx, tsdb.AllTime(), rollup.RebuildOptions{}); n != 0 || err != nil {
				t.Errorf("a second rebuild changed %d buckets, want 0 (error %v)", n, err)
			}
			for _, e := range entities {
				var got []window.Bucket
				for b, err := range reader.Buckets(ctx, e, tsdb.AllTime(), tsdb.OldestFirst) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, b)
				}
				same(t, fmt.Sprint(r.Name(), e), got, expected(r, points[e], c.Now()), tsdb.OldestFirst)
			}
		}
		// A program without the rollup deletes points, and so writes no mark.
		if _, err := old.DeleteRange(ctx, entities[3], tsdb.AllTime()); err != nil {
			t.Fatal(err)
		}
		reader := rollup.For(def.minute, repo)
		if n, err := reader.Rebuild(ctx, tsdb.AllTime(), rollup.RebuildOptions{}); n == 0 || err != nil {
			t.Errorf("rebuild changed %d buckets, %v", n, err)
		}
		if got, err := reader.Latest(ctx, entities[3], 1); err != nil || len(got) != 0 {
			t.Errorf("buckets of an entity without points: %v, %v; want none", got, err)
		}
		if _, err := reader.Rebuild(ctx, tsdb.Since(c.Now().Add(-8*24*time.Hour)), rollup.RebuildOptions{}); !errors.Is(err, tsdb.ErrExpired) {
			t.Errorf("rebuild of an expired interval: %v, want ErrExpired", err)
		}
		if _, err := reader.Rebuild(ctx, tsdb.AllTime(), rollup.RebuildOptions{Resume: "x"}); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("an invalid Resume: %v, want ErrInvalid", err)
		}
	})
}

// TestBadPoints: a point that does not decode is counted as bad in its bucket, and the other points are in it.
func TestBadPoints(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		o := newOne(t, rollup.Options{}, gc.Class{})
		o.put(t, start, 1)
		broken := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[string](), tsdb.SchemaOptions{})
		if err := broken.For(o.store, acme).Put(t.Context(), roof, start.Add(time.Second), "no reading"); err != nil {
			t.Fatal(err)
		}
		check := func(what string) {
			t.Helper()
			got, err := rollup.For(o.hour, o.repo).Latest(t.Context(), roof, 1)
			if err != nil || len(got) != 1 || got[0].Points != 1 || got[0].Bad != 1 {
				t.Errorf("%s: %+v, %v", what, got, err)
			}
		}
		check("computed")
		o.Set(start.Add(3 * time.Hour))
		o.pass(t)
		check("stored")
	})
}
