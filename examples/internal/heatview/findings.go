package heatview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/heat"
)

// What happened to a row.
const (
	reads    = heat.Reads
	writes   = heat.Writes
	failures = heat.Failures
)

// Rule names what a finding is about.
type Rule string

// The rules, in the order in which Findings returns them.
const (
	// Sequential: keys begin with a time, rise with the time, or have the time before the entity, so all writes arrive
	// at a few places.
	Sequential Rule = "sequential"
	// HotEntity: one entity has much of the load. No split can divide it.
	HotEntity Rule = "hot entity"
	// HotPrefix: a few entities that are stored next to each other have most of the load of their dataset.
	HotPrefix Rule = "hot prefix"
	// WhaleTenant: one tenant has most of the load. Its keys may look harmless.
	WhaleTenant Rule = "whale tenant"
	// SuddenIncrease: the load of a dataset rose to a multiple within one column.
	SuddenIncrease Rule = "sudden increase"
	// Periodic: the load of a dataset comes in equal intervals, with little in between.
	Periodic Rule = "periodic"
	// LargeRows: a row is larger than Bigtable recommends for a cell.
	LargeRows Rule = "large rows"
	// Failing: many rows fail.
	Failing Rule = "failing"
)

// Finding is something that a table cannot spread, or that costs more than it has to.
type Finding struct {
	Rule Rule `json:"rule"`
	// Tenant and Dataset are empty if the finding concerns more than one, or rows of other programs.
	Tenant  string `json:"tenant,omitempty"`
	Dataset string `json:"dataset,omitempty"`
	// Key is the beginning of the keys that it concerns, as it is stored: it may hold any bytes. It is empty for all.
	Key string `json:"key,omitempty"`
	// Rate is in rows a second: of the whole recording, or of the busiest column of SuddenIncrease and Periodic.
	Rate float64 `json:"rate"`
	// Share is the part of the rows of all, from 0 to 1.
	Share float64 `json:"share"`
	// At is when it began. It is the start of the recording for what holds for all of it.
	At time.Time `json:"at"`
	// Reason says what was seen, and Remedy what helps.
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

// The least rates of findings, in rows a second. A node of Bigtable does about 14,000 writes or 17,000 reads of 1 KB a
// second on SSD: https://cloud.google.com/bigtable/docs/performance
const (
	leastEntity     = 500
	leastAlone      = 5000 // of an entity with few others, or a small share
	leastGroup      = 1000 // of a prefix, a tenant, or a column
	leastSequential = 500
	leastBaseline   = 10 // before a sudden increase

	minSamples = 20       // that an estimate needs
	largeRow   = 10 << 20 // bytes, which Bigtable recommends not to exceed in a cell
)

// Findings returns what is wrong with the recorded load, each finding with a reason and a remedy. Where nothing is,
// there is none. Each rule has a least rate, from 500 rows a second on, so that small loads cause no alarm. It is
// computed from the samples, so shares are estimates.
func Findings(r *heat.Recording) []Finding {
	if len(r.List()) == 0 || !r.Last.After(r.First) {
		return nil
	}
	l := loadOf(r)
	var out []Finding
	for _, rule := range []func() []Finding{l.sequential, l.timelines, l.hotEntities, l.hotPrefixes, l.whales, l.bursts, l.largeRows, l.failing} {
		out = append(out, rule()...)
	}
	for i := range out {
		out[i].Reason = readable(out[i].Reason) // which has parts of keys, and may go to a terminal
	}
	return out
}

// seconds returns how long the recording covers.
func (l *load) seconds() float64 { return l.Last.Sub(l.First).Seconds() }

// load is a recording's load, by what it concerns.
type load struct {
	*heat.Recording
	total    float64 // rows that were read or written
	entities map[string]*entity
	groups   []*group // in the order of their keys
	tenants  map[string]float64
}

// entity is the load of an entity.
type entity struct {
	place
	rows    [failures]float64 // by kind
	samples int
}

func (e *entity) all() float64 { return e.rows[reads] + e.rows[writes] }

// group is the load of a dataset of one tenant, or that of all rows that are no tenant's.
type group struct {
	place
	entities []*entity // in the order of their keys
	rows     float64
	columns  []slice // those that have samples of the group, in order
}

// slice is a group's part of a column.
type slice struct {
	column  int // its index in the recording
	rows    float64
	samples int
	written []written
}

// written is a sample of a write.
type written struct {
	lead, entity string
	now          bool // the time in its key is close to that of the column
}

func loadOf(r *heat.Recording) *load {
	l := &load{Recording: r, entities: map[string]*entity{}, tenants: map[string]float64{}}
	groups := map[string]*group{}
	for n, col := range r.Columns.List {
		at := r.Columns.Start(col.ID)
		for k := range failures {
			c := &col.Cells[k]
			weight := c.Weight()
			for i := range c.Samples {
				key := string(c.At(i).Key)
				p := placeOf(key)
				e := l.entities[p.entity]
				if e == nil {
					e = &entity{place: p}
					l.entities[p.entity] = e
				}
				e.rows[k] += weight
				e.samples++
				g := groups[p.group]
				if g == nil {
					g = &group{place: p}
					groups[p.group] = g
					l.groups = append(l.groups, g)
				}
				if e.samples == 1 {
					g.entities = append(g.entities, e)
				}
				g.rows += weight
				if last := len(g.columns) - 1; last < 0 || g.columns[last].column != n {
					g.columns = append(g.columns, slice{column: n})
				}
				s := &g.columns[len(g.columns)-1]
				s.rows += weight
				s.samples++
				if k == writes {
					s.written = append(s.written, written{p.lead(), p.entity, p.tenant == "" || isPointNow(key, p, at)})
				}
				l.total += weight
				if p.tenant != "" {
					l.tenants[p.tenant] += weight
				}
			}
		}
	}
	slices.SortFunc(l.groups, func(a, b *group) int { return cmp.Compare(a.group, b.group) })
	for _, g := range l.groups {
		slices.SortFunc(g.entities, func(a, b *entity) int { return cmp.Compare(a.entity, b.entity) })
	}
	return l
}

func (l *load) rate(rows float64) float64 { return rows / l.seconds() }

// hotEntities finds entities with a multiple of the load of the others.
func (l *load) hotEntities() []Finding {
	n := float64(len(l.entities))
	var out []Finding
	for _, e := range l.entities {
		rate, share := l.rate(e.all()), e.all()/l.total
		least := float64(leastEntity)
		if n < 8 || share < 0.05 {
			least = leastAlone
		}
		if e.samples < minSamples || rate < least || share < min(4/n, 0.5) {
			continue
		}
		what, remedy := "reads and writes", "If its points are written more often than they are read, write fewer of them or join several in one payload. "+
			"Else divide it: a key field behind its own, such as a part of the device or a salt, makes several entities of it, which reads then have to ask for."
		switch {
		case e.rows[reads] > 9*e.rows[writes]:
			what, remedy = "reads", "Keep its latest point in memory: reads with MaxStale use the last-value cache. Where the readers are many, let one of them ask."
		case e.rows[writes] > 9*e.rows[reads]:
			what = "writes"
		}
		out = append(out, Finding{
			Rule: HotEntity, Tenant: e.tenant, Dataset: e.dataset, Key: e.entity, Rate: rate, Share: share, At: l.First,
			Reason: fmt.Sprintf("%s has %s of all rows, %s, mostly %s. The rows of an entity are stored together, so one server does all of it, and no split can divide it.",
				e.name(), percent(share), perSecond(rate), what),
			Remedy: remedy,
		})
	}
	slices.SortFunc(out, func(a, b Finding) int { return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Key, b.Key)) })
	return out[:min(len(out), mostEntities)]
}

// mostEntities bounds the findings of hot entities, which are the hottest.
const mostEntities = 5

// hotPrefixes finds neighbours that have most of the load of their dataset, none of them hot by itself.
func (l *load) hotPrefixes() (out []Finding) {
	for _, g := range l.groups {
		if l.rate(g.rows) < leastGroup {
			continue
		}
		if prefix, rows, n := g.narrowest(); prefix != "" && l.rate(rows) >= leastGroup {
			out = append(out, Finding{
				Rule: HotPrefix, Tenant: g.tenant, Dataset: g.dataset, Key: prefix, Rate: l.rate(rows), Share: rows / l.total, At: l.First,
				Reason: fmt.Sprintf("%d of %d entities, whose keys begin with %s, have %s of the rows of their dataset, %s. They are stored next to each other, so few servers do most of the work.",
					n, len(g.entities), strings.TrimSuffix(prefix, delim), percent(rows/g.rows), perSecond(l.rate(rows))),
				Remedy: "Bigtable splits such a range while the load lasts, which takes minutes. If the load comes and goes, put a field that spreads these entities before the one that they share, or give the schema Salts.",
			})
		}
	}
	return out
}

// narrowest returns the longest beginning of keys that has at least half of a group's load and at most a tenth of its
// entities, with its rows and the number of its entities.
func (g *group) narrowest() (prefix string, rows float64, n int) {
	type part struct {
		rows, most float64
		entities   int
	}
	parts := map[string]*part{}
	for _, e := range g.entities {
		below := strings.TrimSuffix(e.entity[min(len(g.group), len(e.entity)):], delim)
		for i := range len(below) {
			if below[i] != delim[0] {
				continue
			}
			at := e.entity[:len(e.entity)-len(strings.TrimPrefix(e.entity, g.group))+i+1]
			p := parts[at]
			if p == nil {
				p = new(part)
				parts[at] = p
			}
			p.rows += e.all()
			p.most = max(p.most, e.all())
			p.entities++
		}
	}
	for at, p := range parts {
		if p.rows >= g.rows/2 && p.entities > 1 && p.entities*10 <= len(g.entities) && p.most <= p.rows/2 && len(at) > len(prefix) {
			prefix, rows, n = at, p.rows, p.entities
		}
	}
	return prefix, rows, n
}

// whales finds a tenant with most of the load, compared with the others.
func (l *load) whales() []Finding {
	if len(l.tenants) < 2 {
		return nil
	}
	names := make([]string, 0, len(l.tenants))
	for name := range l.tenants {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(l.tenants[b], l.tenants[a]), cmp.Compare(a, b))
	})
	whale, rows := names[0], l.tenants[names[0]]
	median := l.tenants[names[1+(len(names)-1)/2]]
	rate, share := l.rate(rows), rows/l.total
	if rate < leastGroup || share < 0.5 || rows < 10*median {
		return nil
	}
	return []Finding{{
		Rule: WhaleTenant, Tenant: whale, Key: whale + delim, Rate: rate, Share: share, At: l.First,
		Reason: fmt.Sprintf("Tenant %s has %s of all rows, %s, and %.0f times as many as the median of the %d others. By key this looks harmless, because its own entities share the load.",
			whale, percent(share), perSecond(rate), rows/max(median, 1), len(names)-1),
		Remedy: "Limit what one tenant may use (package tenant/limit), or give this one a table or a cluster of its own. Look at the picture by tenant, too.",
	}}
}

// largeRows finds the largest row.
func (l *load) largeRows() []Finding {
	var worst heat.Row
	var when time.Time
	var what heat.Kind
	for _, col := range l.Columns.List {
		for k := range failures {
			if c := &col.Cells[k]; c.Largest.Bytes > worst.Bytes {
				worst, when, what = c.Largest, l.Columns.Start(col.ID), k
			}
		}
	}
	if worst.Bytes < largeRow {
		return nil
	}
	p := placeOf(string(worst.Key))
	return []Finding{{
		Rule: LargeRows, Tenant: p.tenant, Dataset: p.dataset, Key: string(worst.Key), At: when,
		Reason: fmt.Sprintf("A row of %s was %s with %.0f MiB. A row is always on one server and is read into its memory; Bigtable advises at most 10 MiB in a cell and 100 MiB in a row.",
			p.name(), [...]string{reads: "read", writes: "written"}[what], float64(worst.Bytes)/(1<<20)),
		Remedy: "Store a row for each point, not one for each entity. Divide large payloads, or keep them in an object store and their names here.",
	}}
}

func percent(share float64) string {
	if share >= 0.995 && share < 1 {
		return "almost all"
	}
	return fmt.Sprintf("%.0f%%", share*100)
}

func perSecond(rate float64) string { return fmt.Sprintf("%.0f a second", rate) }
