package rollup_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestJSONHasNoFirstAndLast: a rollup does not store the first and last number of a bucket, so the JSON of buckets,
// gaps and totals has no fields for them. Windows over points have these fields.
func TestJSONHasNoFirstAndLast(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		hour := rollup.MustDefine("hour", window.Every(time.Hour), measures(), rollup.Options{})
		schema := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
		c := testkit.NewClock(start.Add(5 * time.Hour))
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, schema)
		repo := schema.For(store, acme)
		for _, h := range []int{1, 3} {
			if err := repo.Put(t.Context(), roof, start.Add(time.Duration(h)*time.Hour), reading{TempC: 20}); err != nil {
				t.Fatal(err)
			}
		}
		reader := rollup.For(hour, repo)
		in := tsdb.Between(start, c.Now())
		var shown []window.Bucket
		for _, gaps := range []window.Gaps{window.LeaveOut, window.Null, window.Previous} {
			for b, err := range reader.WithGaps(window.Options{Gaps: gaps}).Buckets(t.Context(), roof, in, tsdb.OldestFirst) {
				if err != nil {
					t.Fatal(err)
				}
				shown = append(shown, b)
			}
		}
		total, err := reader.Total(t.Context(), roof, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range append(shown, total) {
			text, err := json.Marshal(b)
			if err != nil || strings.Contains(string(text), "first") || strings.Contains(string(text), "last") || !strings.Contains(string(text), `"mean":`) {
				t.Errorf("a bucket of a rollup is %s, %v", text, err)
			}
		}
		text, err := json.Marshal(window.Summary{First: 1, Last: 2})
		if err != nil || !strings.Contains(string(text), `"first":1,"last":2`) {
			t.Errorf("a summary of a window is %s, %v", text, err)
		}
	})
}

// An interval that ends before it starts is rejected by each read and by Rebuild.
func TestIntervalThatEndsBeforeItStarts(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		hour := rollup.MustDefine("hour", window.Every(time.Hour), measures(), rollup.Options{})
		schema := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, schema)
		reader := rollup.For(hour, schema.For(store, acme))
		in := tsdb.Between(start.Add(time.Millisecond), start)
		_, total := reader.Total(t.Context(), roof, in)
		_, many := reader.Many(t.Context(), nil, in, tsdb.OldestFirst)
		_, rebuilt := reader.Rebuild(t.Context(), in, rollup.RebuildOptions{})
		failures := map[string]error{"Total": total, "Many": many, "Rebuild": rebuilt}
		for _, gaps := range []window.Gaps{window.LeaveOut, window.Null} {
			for _, err := range reader.WithGaps(window.Options{Gaps: gaps}).Buckets(t.Context(), roof, in, tsdb.OldestFirst) {
				failures["Buckets "+gaps.String()] = err
			}
		}
		for name, err := range failures {
			if bad, ok := errors.AsType[*tsdb.InvalidError](err); !errors.Is(err, tsdb.ErrInvalid) || !ok || bad.Field != "interval" {
				t.Errorf("%s of an interval that ends before it starts: %v, want ErrInvalid", name, err)
			}
		}
		if len(failures) != 5 {
			t.Errorf("%d calls were rejected, want 5", len(failures))
		}
	})
}
