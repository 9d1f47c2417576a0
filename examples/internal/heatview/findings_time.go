package heatview

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/heat"
)

const (
	leastColumns = 6 // that show that keys rise
	leastWritten = 8 // samples of writes of a column that counts
)

// sequential finds datasets whose writes arrive at one place that moves.
func (l *load) sequential() (out []Finding) {
	for _, g := range l.groups {
		rows, total, timed, crowd, now := 0.0, 0, 0, 0, 0
		var spans []span
		for n := range g.columns {
			s := &g.columns[n]
			rows += l.writtenRows(s)
			at := l.Columns.Start(l.Columns.List[s.column].ID)
			distinct := map[string]bool{}
			for _, w := range s.written {
				total++
				if isTime(w.lead, at) {
					timed++
				}
				if w.now {
					now++
				}
				distinct[w.entity] = true
			}
			crowd += len(distinct)
			if len(s.written) >= leastWritten {
				spans = append(spans, spanOf(s.written))
			}
		}
		rate := l.rate(rows)
		if total < minSamples || rate < leastSequential {
			continue
		}
		byTime := timed*10 >= total*9
		// A walk through stored entities, as an import makes it, rises too: but it writes old points, or several of
		// each entity.
		rising := len(spans) >= leastColumns && moves(spans) && now*10 >= total*9 && crowd*3 >= total*2
		if !byTime && !rising {
			continue
		}
		f := Finding{
			Rule: Sequential, Tenant: g.tenant, Dataset: g.dataset, Key: g.group, Rate: rate, Share: rows / l.total, At: l.First,
			Reason: fmt.Sprintf("The first part of the keys is the time of the write, such as %s. All %s go to one place, on one server, and a split does not help, because the next writes come after it.",
				g.latestLead(), perSecond(rate)),
			Remedy: "Put the fields that identify the entity first, and leave the time out of them: the key of each point ends with its time, newest first. " +
				"If there is no such field, Salts divide the writes, and each read of all becomes as many reads.",
		}
		if !byTime {
			f.Reason = fmt.Sprintf("New keys always come after the ones before, such as %s. All %s go to one place, on one server, and a split does not help, because the next writes come after it.",
				g.latestLead(), perSecond(rate))
			f.Remedy = "If the field counts up, declare it as a reversed id (tsdb.KeyFields.ReversedID). Else put a field that spreads the entities before it, or give the schema Salts."
		}
		out = append(out, f)
	}
	return out
}

// writtenRows returns the rows of a slice that were writes.
func (l *load) writtenRows(s *slice) float64 {
	if s.samples == 0 {
		return 0
	}
	return s.rows * float64(len(s.written)) / float64(s.samples)
}

// latestLead returns the first field of the newest write.
func (g *group) latestLead() string {
	for _, s := range slices.Backward(g.columns) {
		if n := len(s.written); n > 0 {
			return s.written[n-1].lead
		}
	}
	return ""
}

// span is where the writes of a column are: from a quarter to three quarters of them.
type span struct{ low, high string }

func spanOf(list []written) span {
	leads := make([]string, len(list))
	for i, w := range list {
		leads[i] = w.lead
	}
	slices.Sort(leads)
	return span{leads[len(leads)/4], leads[len(leads)*3/4]}
}

// moves reports whether almost each span is behind the one before, or almost each before it.
func moves(spans []span) bool {
	up, down := 0, 0
	for i, s := range spans[1:] {
		if s.low > spans[i].high {
			up++
		}
		if s.high < spans[i].low {
			down++
		}
	}
	return max(up, down)*10 >= (len(spans)-1)*9
}

// bursts finds sudden increases, or a load that comes in equal intervals.
func (l *load) bursts() (out []Finding) {
	for _, g := range l.groups {
		if !slices.ContainsFunc(g.columns, func(s slice) bool { return s.samples >= minSamples }) {
			continue // nothing to say, and there may be a great many such groups
		}
		rates := make([]float64, 0, len(g.columns))
		at := make([]time.Time, 0, len(g.columns))
		crowded := make([]bool, 0, len(g.columns))
		next, left := int64(0), g.columns
		for n, col := range l.Columns.List {
			var part slice
			if len(left) > 0 && left[0].column == n {
				part, left = left[0], left[1:]
			}
			covered := l.Covered(col)
			if covered*4 < l.Columns.Width {
				continue // too little to say
			}
			for ; len(rates) > 0 && next < col.ID; next++ { // nothing happened
				rates, at, crowded = append(rates, 0), append(at, l.Columns.Start(next)), append(crowded, false)
			}
			next = col.ID + 1
			rates = append(rates, part.rows/covered.Seconds())
			at = append(at, l.Columns.Start(col.ID))
			crowded = append(crowded, part.samples >= minSamples)
		}
		peaks := peaksOf(rates, crowded)
		if period, ok := regular(peaks); ok {
			every := (time.Duration(period*float64(l.Columns.Width)) + time.Millisecond/2).Truncate(time.Millisecond)
			top := slices.Max(rates)
			out = append(out, Finding{
				Rule: Periodic, Tenant: g.tenant, Dataset: g.dataset, Key: g.group, Rate: top, Share: g.rows / l.total, At: at[peaks[0]],
				Reason: fmt.Sprintf("Every %v the load rises, to %s at most. Its median is %s. The table needs servers for the peaks.",
					every, perSecond(top), perSecond(median(rates))),
				Remedy: "Spread what runs by the clock: let each device or job add a delay that follows from its name. A writer with a journal smooths peaks, too.",
			})
			continue
		}
		if i, before, ok := increase(rates, crowded); ok {
			out = append(out, Finding{
				Rule: SuddenIncrease, Tenant: g.tenant, Dataset: g.dataset, Key: g.group, Rate: rates[i], Share: g.rows / l.total, At: at[i],
				Reason: fmt.Sprintf("At %s the load rose from %s to %s, by %d entities or more. Servers and splits follow such a change only after minutes.",
					at[i].Format(time.TimeOnly), perSecond(before), perSecond(rates[i]), g.distinct(l.Columns.List, at[i], &l.Columns)),
				Remedy: "If clients connect again all at once, let each wait for a random time first. Writers with a journal and LatestMany with MaxStale take the load off the table meanwhile. Before a planned increase, load the table for some minutes.",
			})
		}
	}
	return out
}

// distinct returns how many entities wrote in the column of a time, of those that were sampled.
func (g *group) distinct(list []*heat.Column, at time.Time, c *heat.Columns) int {
	i, ok := slices.BinarySearchFunc(g.columns, c.ID(at), func(s slice, id int64) int { return cmp.Compare(list[s.column].ID, id) })
	if !ok {
		return 0
	}
	seen := map[string]bool{}
	for _, w := range g.columns[i].written {
		seen[w.entity] = true
	}
	return len(seen)
}

// peak is by how much a column has to exceed the others.
const peak = 4

// peaksOf returns the columns that begin a peak.
func peaksOf(rates []float64, crowded []bool) (out []int) {
	usual := median(rates)
	high := func(i int) bool {
		return i >= 0 && crowded[i] && rates[i] >= leastGroup && rates[i] >= peak*usual
	}
	for i := range rates {
		if high(i) && !high(i-1) {
			out = append(out, i)
		}
	}
	return out
}

// regular reports whether there are at least four peaks at equal distances, up to one column, and their distance in
// columns.
func regular(peaks []int) (period float64, ok bool) {
	if len(peaks) < 4 {
		return 0, false
	}
	least, most := peaks[1]-peaks[0], peaks[1]-peaks[0]
	for i := 2; i < len(peaks); i++ {
		least, most = min(least, peaks[i]-peaks[i-1]), max(most, peaks[i]-peaks[i-1])
	}
	return float64(peaks[len(peaks)-1]-peaks[0]) / float64(len(peaks)-1), least >= 2 && most-least <= 1
}

// increase returns the first column with a multiple of the usual rate of up to 20 columns before it, and that rate.
func increase(rates []float64, crowded []bool) (i int, before float64, ok bool) {
	for i := 5; i < len(rates); i++ {
		before := median(rates[max(0, i-20):i])
		if crowded[i] && before >= leastBaseline && rates[i] >= leastGroup && rates[i] >= peak*before {
			return i, before, true
		}
	}
	return 0, 0, false
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
