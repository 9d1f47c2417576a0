package retention

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
)

// agesOf returns one line for each class of datasets with rollups: how long points and rollups are kept.
func agesOf(datasets ...catalog.Dataset) (lines []string) {
	for i := range datasets {
		d := &datasets[i]
		if len(d.Rollups) == 0 {
			continue
		}
		for _, class := range d.Offers() {
			lines = append(lines, fmt.Sprintf("%s, class %s: %v", d.Name, class, d.Keeping(class)))
		}
	}
	return lines
}

// writeAges writes the lines of agesOf.
func writeAges(b *strings.Builder, lines []string) {
	if len(lines) == 0 {
		return
	}
	b.WriteString("\nHow long tenants' points and rollups are kept:\n")
	for _, line := range lines {
		b.WriteString("  " + line + "\n")
	}
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
