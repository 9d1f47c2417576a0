package retention

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
)

// writeAges writes how long the points and rollups of datasets are kept.
func writeAges(b *strings.Builder, datasets []catalog.Dataset) {
	var lines []string
	for i := range datasets {
		lines = append(lines, datasets[i].Kept()...)
	}
	if len(lines) == 0 {
		return
	}
	b.WriteString("\nHow long tenants' points and rollups are kept:\n  " + strings.Join(lines, "\n  ") + "\n")
}

// shortened returns notes on the classes whose tenants' rollups are now kept for a shorter time.
func shortened(declared, stored catalog.Dataset) (notes []string) {
	if len(stored.Rollups) == 0 {
		return nil
	}
	for _, c := range stored.Classes {
		now, was := declared.RollupAge(c.Name), stored.RollupAge(c.Name)
		if now == 0 || was > 0 && now >= was {
			continue
		}
		notes = append(notes, fmt.Sprintf("For tenants in class %s, each bucket that began more than %s ago becomes invisible at once to programs that declare this age, and workers delete it within about a day. This cannot be undone.",
			c.Name, ageText(now)))
	}
	return notes
}

// longerRollups sets in from the time up to which finer rollups have been deleted, if rollups of a class's tenants
// are to be kept longer.
func longerRollups(from map[string]int64, declared, stored catalog.Dataset, until time.Time) {
	now, was := declared.ShortestRollupAge(), stored.ShortestRollupAge()
	if was == 0 || now > 0 && now <= was {
		return
	}
	for _, r := range declared.Rollups {
		finer := slices.IndexFunc(declared.Rollups, func(o catalog.Rollup) bool { return o.Name == r.From })
		if finer >= 0 {
			class := declared.Rollups[finer].Class.Name
			from[class] = max(from[class], until.Add(-was).UnixMilli())
		}
	}
}
