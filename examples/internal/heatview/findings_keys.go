package heatview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/heat"
)

// leastFailures is the least share of rows that fail, of all.
const leastFailures = 0.05

// failing finds rows that fail.
func (l *load) failing() []Finding {
	t := l.Totals()
	all := float64(t.Reads) + float64(t.Writes) + float64(t.Failures)
	rate, share := l.rate(float64(t.Failures)), float64(t.Failures)/max(all, 1)
	if rate < leastGroup || share < leastFailures {
		return nil
	}
	return []Finding{{
		Rule: Failing, Rate: rate, Share: share, At: l.First,
		Reason: fmt.Sprintf("%d rows failed of %.0f that were asked for, %s, %s.", t.Failures, all, percent(share), perSecond(rate)),
		Remedy: "If there are other findings, they are the likely reason: a server that gets more than it can do refuses the rest. Else look at error.type in the telemetry of the requests.",
	}}
}

// timeline is the writes whose keys have the same beginning, and then a time.
type timeline struct {
	place
	prefix  string
	rows    float64
	samples int
	keys    map[string]bool
}

// timelines finds keys in which a time comes between other fields, such as a tenant or a salt before it and a device
// behind it: the writes below each beginning arrive at one place that moves. Failed rows count, because such a place
// refuses most of them.
func (l *load) timelines() (out []Finding) {
	found := map[string]*timeline{}
	for _, col := range l.Columns.List {
		at := l.Columns.Start(col.ID)
		for _, k := range []heat.Kind{writes, failures} {
			c := &col.Cells[k]
			for i := range c.Samples {
				key := string(c.At(i).Key)
				p := placeOf(key)
				fields := strings.Split(strings.TrimSuffix(p.entity, delim), delim)
				first := 1
				if p.tenant != "" {
					first = 3 // behind the tenant, the dataset and a field
				}
				n := first
				for n < len(fields)-1 && !isTime(fields[n], at) {
					n++
				}
				if n >= len(fields)-1 {
					continue
				}
				prefix := strings.Join(fields[:n], delim) + delim
				t := found[prefix]
				if t == nil {
					t = &timeline{place: p, prefix: prefix, keys: map[string]bool{}}
					found[prefix] = t
				}
				t.rows += c.Weight()
				t.samples++
				t.keys[p.entity] = true
			}
		}
	}
	all := 0.0
	var hot []*timeline
	for _, t := range found {
		if t.samples >= minSamples && l.rate(t.rows) >= leastSequential && len(t.keys)*3 >= t.samples*2 {
			hot = append(hot, t)
			all += t.rows
		}
	}
	if len(hot) == 0 {
		return nil
	}
	slices.SortFunc(hot, func(a, b *timeline) int { return cmp.Or(cmp.Compare(b.rows, a.rows), cmp.Compare(a.prefix, b.prefix)) })
	t := hot[0]
	f := Finding{
		Rule: Sequential, Tenant: t.tenant, Dataset: t.dataset, Key: t.prefix, Rate: l.rate(all), Share: all / max(l.asked(), 1), At: l.First,
		Reason: fmt.Sprintf("In keys that begin with %s, the time of the write comes before the entity. So %s go to %s, each on one server, and a split does not help, because the next writes come after it.",
			t.prefix, perSecond(l.rate(all)), places(len(hot))),
		Remedy: "Put all fields that identify the entity before the time: the key of each point ends with its time, newest first. Salts before the time divide the writes only by their number.",
	}
	return append(out, f)
}

// asked returns how many rows were written or failed.
func (l *load) asked() float64 {
	t := l.Totals()
	return float64(t.Writes) + float64(t.Failures)
}

func places(n int) string {
	if n == 1 {
		return "one place that moves"
	}
	return fmt.Sprintf("%d places that move", n)
}
