package keyadvice

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// hotEntities finds entities that use most of their server's capacity.
func (a *analysis) hotEntities() {
	if !a.rated() {
		return
	}
	mean := a.total / float64(len(a.Entities))
	n := 0
	for i := range a.Entities {
		e := &a.Entities[i]
		if e.Rate >= busyWrites || e.Rate >= hotWrites && e.Rate >= hotShare*a.real(a.total) && e.Rate >= hotTimes*mean {
			n++
		}
	}
	if n == 0 {
		return
	}
	busiest := a.most(rateOf)
	severity, _ := severityAt(busiest.Rate)
	a.add(Advice{
		Cause: causeHotEntity, Severity: severity,
		Found: fmt.Sprintf("%s among %d: %s of tenant %s writes %s, %s of all.", counted(n, "hot entity", "hot entities"), len(a.Entities),
			shown(rowkey.Text(rowkey.Path(busiest.Parts...))), busiest.Tenant, rate(busiest.Rate), percent(busiest.Rate, a.real(a.total))),
		Why: fmt.Sprintf("The newest points of an entity are stored next to each other, so one server takes all its writes: at most about %d a second, for rows of 1 KB. Neither splits nor salts divide an entity.",
			serverWrites),
		Remedy: "Divide it: add a key field, such as a channel or a shard, write to its values in turn, and read them with Under(prefix).Latest. Or write less: put several readings into one point.",
	})
}

// hotHeads finds entities whose head rows are written too often.
func (a *analysis) hotHeads() {
	if a.Head == 0 {
		return
	}
	n := 0
	for i := range a.Entities {
		if a.Entities[i].Rate >= headWrites {
			n++
		}
	}
	if n == 0 {
		return
	}
	busiest := a.most(rateOf)
	severity := warning
	found := fmt.Sprintf("%s with %d or more writes a second to a head row; the busiest is %s of tenant %s with %s.",
		counted(n, "entity", "entities"), headWrites, shown(rowkey.Text(rowkey.Path(busiest.Parts...))), busiest.Tenant, rate(busiest.Rate))
	if row := busiest.Rate * float64(busiest.Payload) * daySeconds; row >= maxRow {
		found += fmt.Sprintf(" In a day without a compaction its row grows to %s; Bigtable advises against more than %s.", bytes(row), bytes(maxRow))
		severity = critical
	}
	a.add(Advice{
		Cause: causeHotHead, Severity: severity, Found: found,
		Why:    "Each write leaves a version in the entity's head row. The versions behind the newest stay until Bigtable compacts the row, which can take days, and reads skip them.",
		Remedy: "Remove Head from this dataset, and read with Latest or LatestN. Or write such entities less often.",
	})
}

func rateOf(e *entity) float64 { return e.Rate }

// most returns the first entity with the greatest figure. There must be entities.
func (a *analysis) most(figure func(*entity) float64) *entity {
	most := &a.Entities[0]
	for i := range a.Entities {
		if e := &a.Entities[i]; figure(e) > figure(most) {
			most = e
		}
	}
	return most
}

// load is one tenant's part of the sample.
type load struct {
	tenant   string
	entities []*entity
	rate     float64
}

func (a *analysis) loads() []load {
	var out []load
	for i := range a.Entities {
		e := &a.Entities[i]
		if n := len(out); n == 0 || out[n-1].tenant != e.Tenant {
			out = append(out, load{tenant: e.Tenant})
		}
		l := &out[len(out)-1]
		l.entities = append(l.entities, e)
		l.rate += e.Rate
	}
	return out
}

// tenants finds tenants that write more than a server handles.
func (a *analysis) tenants() {
	if a.Salts > 0 || !a.rated() {
		return
	}
	var busiest, narrow load
	var few []string
	for _, l := range a.loads() {
		if l.rate > busiest.rate {
			busiest = l
		}
		if v := a.fewValues(l); v != nil && l.rate > narrow.rate {
			narrow, few = l, v
		}
	}
	if at := a.real(narrow.rate); few != nil && at >= busyWrites {
		severity := info
		if at >= serverWrites {
			severity = warning
		}
		a.add(Advice{
			Cause: causeFewFirstValues, Severity: severity, Field: a.Fields[0],
			Found: fmt.Sprintf("%s of key field %s hold %.0f%% or more of the %s of tenant %s, in %d entities: %s.", counted(len(few), "value", "values"), a.Fields[0],
				100*mostRate, rate(at), narrow.tenant, len(narrow.entities), strings.Join(few, ", ")),
			Why: "Nearly all writes go to a few parts of the key range. Bigtable splits these between entities while the load lasts, but a new table and a sudden load start on just as few servers.",
			Remedy: fmt.Sprintf("If nothing reads by %s alone, put a field with more values before it. Otherwise give the schema Salts: %d, or let the load grow slowly.",
				a.Fields[0], saltsFor(at)),
		})
	}
	at := a.real(busiest.rate)
	salts := saltsFor(at)
	if at < serverWrites || float64(len(busiest.entities))/a.Share < float64(salts) {
		return
	}
	a.add(Advice{
		Cause: causeBusyTenant, Severity: info,
		Found: fmt.Sprintf("Tenant %s writes %s in one range of keys; a server takes about %d.", busiest.tenant, rate(at), serverWrites),
		Why: "Bigtable splits a range by its load, so writes to many entities are spread over servers after some minutes. Bursts are too short for that, " +
			"and a new table starts on one server.",
		Remedy: fmt.Sprintf("If the load comes suddenly, or Key Visualizer shows the tenant as one bright line, give the schema Salts: %d. They cannot be changed after points are stored.", salts),
	})
}

// saltsFor returns the number of salts with which each salt has half of a server's capacity.
func saltsFor(rate float64) int {
	return int(min(maxSalts, max(minSalts, math.Ceil(rate/busyWrites))))
}

// fewValues returns the values of the first field that have most of a tenant's writes, the busiest first, if they are
// few and have many entities each.
func (a *analysis) fewValues(l load) []string {
	if len(a.Fields) < 2 || len(l.entities) < manyEntities {
		return nil
	}
	type value struct {
		text     string
		rate     float64
		entities int
	}
	var values []value
	for _, e := range l.entities {
		if n := len(values); n == 0 || values[n-1].text != e.Parts[0] { // entities are sorted
			values = append(values, value{text: e.Parts[0]})
		}
		v := &values[len(values)-1]
		v.rate += e.Rate
		v.entities++
	}
	slices.SortStableFunc(values, func(a, b value) int { return cmp.Compare(b.rate, a.rate) })
	var out []string
	sum := 0.0
	for _, v := range values {
		if len(out) == fewValues || v.entities < manyEntities {
			return nil
		}
		out = append(out, shown(v.text))
		if sum += v.rate; sum >= mostRate*l.rate {
			return out
		}
	}
	return nil
}
