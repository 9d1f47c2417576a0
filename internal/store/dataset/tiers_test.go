package dataset_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// entry returns a dataset with classes like "d90 maxage=90d cold=30d"; those that begin with "rollup " are of rollups.
func entry(name string, classes ...string) catalog.Dataset {
	d := catalog.Dataset{Name: name, ColdAfter: map[string]string{}}
	for _, text := range classes {
		text, rollup := strings.CutPrefix(text, "rollup ")
		f := strings.Fields(text)
		c := catalog.Class{Name: f[0], Policy: f[1]}
		if len(f) > 2 {
			d.ColdAfter[c.Name] = strings.TrimPrefix(f[2], "cold=")
		}
		if rollup {
			d.Rollups = append(d.Rollups, catalog.Rollup{Name: "r", Class: c})
		} else {
			d.Classes = append(d.Classes, c)
		}
	}
	return d
}

// TestTierOf: no cell of a class is cold at an age at which the class does not allow it, and the age is the smallest such one.
func TestTierOf(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		name    string
		entries []catalog.Dataset
		after   time.Duration
		cold    string
		against string
	}{
		{name: "no datasets"},
		{name: "no wish", entries: []catalog.Dataset{entry("a", "keep never")}},
		{name: "one class", entries: []catalog.Dataset{entry("a", "d90 maxage=90d cold=30d")}, after: 30 * day, cold: "d90 of a"},
		{name: "a class that expires before", entries: []catalog.Dataset{entry("a", "d90 maxage=90d cold=30d", "d7 maxage=7d")}, after: 30 * day, cold: "d90 of a"},
		{name: "a class that expires later", entries: []catalog.Dataset{entry("a", "d90 maxage=90d cold=30d"), entry("b", "d60 maxage=60d")}, after: 60 * day, cold: "d90 of a"},
		{name: "a class that expires just before", entries: []catalog.Dataset{entry("a", "d90 maxage=90d cold=30d"), entry("b", "m maxage=7775999s")}, after: 90*day - time.Second, cold: "d90 of a"},
		{name: "a class that expires together", entries: []catalog.Dataset{entry("a", "d90 maxage=90d cold=30d"), entry("b", "e90 maxage=90d")}, against: "e90 of b"},
		{name: "a class that keeps for ever", entries: []catalog.Dataset{entry("a", "d90 maxage=90d cold=30d"), entry("b", "keep never")}, against: "keep of b"},
		{name: "for ever, allowed by another class", entries: []catalog.Dataset{entry("a", "keep never cold=30d"), entry("b", "y maxage=365d")}, after: 365 * day, cold: "keep of a"},
		{name: "the largest wish", entries: []catalog.Dataset{entry("a", "d90 maxage=90d cold=30d"), entry("b", "y maxage=365d cold=100d")}, after: 100 * day, cold: "y of b"},
		{name: "a rollup", entries: []catalog.Dataset{entry("a", "d90 maxage=90d cold=30d", "rollup keep never")}, against: "keep of a"},
		{name: "a rollup that allows it", entries: []catalog.Dataset{entry("a", "d90 maxage=90d cold=30d", "rollup keep never cold=45d")}, after: 45 * day, cold: "d90 of a, keep of a"},
		{name: "two ages for a class", entries: []catalog.Dataset{entry("a", "d90 maxage=90d cold=30d"), entry("b", "d90 maxage=90d cold=40d")}, after: 40 * day, cold: "d90 of a and b"},
		{name: "a class that only one dataset allows", entries: []catalog.Dataset{entry("a", "d90 maxage=90d cold=30d"), entry("b", "d90 maxage=90d")}},
		{name: "a wish that expires", entries: []catalog.Dataset{entry("a", "d90 maxage=90d cold=90d")}},
	} {
		for range 2 {
			got, err := dataset.TierOf(test.entries)
			if err != nil || got.After != test.after || strings.Join(got.Cold, ", ") != test.cold || strings.Join(got.Against, ", ") != test.against {
				t.Errorf("%s: %+v, %v; want %v for %q, against it %q", test.name, got, err, test.after, test.cold, test.against)
			}
			slices.Reverse(test.entries) // the order does not matter
		}
	}
	for _, bad := range []catalog.Dataset{entry("a", "d90 maxage=x"), entry("a", "v maxversions=1"), entry("a", "d90 maxage=90d cold=x")} {
		if got, err := dataset.TierOf([]catalog.Dataset{bad}); err == nil {
			t.Errorf("an entry that cannot be read has the tier %+v", got)
		}
	}
}
