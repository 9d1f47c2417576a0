package retention_test

import (
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestAPolicyThatCannotBeRead: an unreadable policy is reported, and treated as one that keeps everything. Keeping less
// must be allowed; keeping everything deletes nothing.
func TestAPolicyThatCannotBeRead(t *testing.T) {
	forever := class("keep", gc.Never())
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, define(t, "readings", days("d90", 90)), define(t, "events", forever))
	a := admin(t, conn)
	seen := map[string]bool{}
	for _, age := range []time.Duration{500 * time.Millisecond, 250 * time.Millisecond, 36*time.Hour + 1500*time.Millisecond} {
		set(t, a, "d90", bigtable.MaxAgePolicy(age))
		set(t, a, "keep", bigtable.MaxAgePolicy(age))
		p, err := retention.NewPlanFor(t.Context(), store, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Destructive(); len(got) != 1 || got[0] != "d90" || !strings.Contains(p.String(), "is not known") {
			t.Errorf("%v: the plan deletes %v\n%v", age, got, p)
		}
		if text := p.Items()[0].Actual; seen[text] {
			t.Errorf("%v has the text %q, as another policy does", age, text)
		} else {
			seen[text] = true
		}
	}
}
