package web

import (
	"flag"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/fieldtest"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

var turnEntities = flag.Int("turn.entities", 50, "how many entities TestTurnsModel has; 5000 is the whole check")

// TestTurnsModel compares the newest value and time of fields, of which devices send three at a time, with what was
// sent. Values that were not found are counted.
func TestTurnsModel(t *testing.T) {
	p := newPage(t, nil)
	p.login("secret-of-acme")
	all := fieldtest.Turns(*turnEntities)
	var points []tsdb.Point[map[string]any]
	for _, m := range all {
		points = append(points, tsdb.Point[map[string]any]{Entity: tsdb.NewEntity("s", strconv.Itoa(m.Entity)), Time: m.Time, Value: m.Values})
	}
	if _, err := schema.For(p.store, acme).PutMany(tenant.NewContext(t.Context(), acme), points); err != nil {
		t.Fatal(err)
	}
	began, found := time.Now(), map[int]map[string]fieldtest.Newest{}
	for first := 0; first < fieldtest.TurnFields; first += maxListFields {
		p.turns(found, first, min(fieldtest.TurnFields, first+maxListFields))
	}
	took, tally := time.Since(began).Round(time.Millisecond), fieldtest.Tally{}
	for i, want := range fieldtest.NewestOf(all, fieldtest.TurnStart.Add(time.Hour)) {
		if wrong := tally.Compare(found[i], want); wrong != "" && tally.Wrong < 5 {
			t.Errorf("%d: %s", i, wrong)
		}
	}
	t.Logf("%d entities, %d values compared in %v: %d wrong, %d not found", *turnEntities, tally.Compared, took, tally.Wrong, tally.Lacking)
	if tally.Wrong > 0 || tally.Lacking > 0 && *turnEntities <= 50 {
		t.Errorf("%d wrong, %d not found", tally.Wrong, tally.Lacking)
	}
}

// turns reads the newest values of the fields from one to another, of all devices.
func (p *page) turns(found map[int]map[string]fieldtest.Newest, first, last int) {
	p.t.Helper()
	query := url.Values{}
	for f := first; f < last; f++ {
		query.Add("field", fieldtest.TurnName(f))
	}
	var list struct {
		Rows []struct {
			ID string
			T  float64
			V  []any
			At []any
		}
	}
	p.read("/api/acme/readings/latest?"+query.Encode(), &list)
	if len(list.Rows) != *turnEntities {
		p.t.Fatalf("%d rows", len(list.Rows))
	}
	for _, r := range list.Rows {
		e, err := strconv.Atoi(strings.TrimPrefix(r.ID, "s/"))
		if err != nil {
			p.t.Fatal(err)
		}
		if found[e] == nil {
			found[e] = map[string]fieldtest.Newest{}
		}
		for i, v := range r.V {
			at := r.T
			if r.At != nil && r.At[i] != nil {
				at = r.At[i].(float64)
			}
			if x, ok := v.(float64); ok {
				found[e][fieldtest.TurnName(first+i)] = fieldtest.Newest{Time: time.UnixMilli(int64(at)), Value: x}
			}
		}
	}
}
