package keyadvice

import (
	"fmt"
	"slices"
	"strings"
)

// end is the load at the end of the key range of a group of entities, where the newest values of a field are.
type end struct {
	group   string
	tenant  string
	entries int // values of the field in the group
	rate    float64
	end     float64 // writes of the upper tenth, or all if everything new is at the end
	uneven  bool
}

// order finds fields whose new values all sort after the old ones, so that all new points are written in one place.
func (a *analysis) order(f *field) {
	switch f.form {
	case clock:
		a.clock(f)
	case clockID, counter, named, arrival:
		a.sequence(f)
	}
}

func (a *analysis) clock(f *field) {
	e := a.busiestEnd(f, true)
	at := a.perServer(a.real(e.rate))
	severity, ok := severityAt(at)
	switch {
	case f.index == 0 && a.Salts == 0:
		severity = atLeastWarning(severity) // even at a low load: load grows, and keys stay
	case !ok:
		return
	}
	found := fmt.Sprintf("Key field %s holds %s, such as %s.", f.name, f.what, shown(f.values[0]))
	if a.rated() {
		found += fmt.Sprintf(" Tenant %s writes %s%s, all at its newest end%s.", e.tenant, rate(a.real(e.rate)), a.below(f), a.overSalts(at))
	}
	a.add(Advice{
		Cause: causeTimeFirst, Severity: severity, Field: f.name, Found: found,
		Why: "Rows are stored in the order of their keys. If a time comes before the fields that identify an entity, all current writes go to one place, " +
			"on one server. Splits do not help, because the next writes sort after the split.",
		Remedy: fmt.Sprintf("Remove %s from the key fields: the key of each point already ends with its time, newest first, and Range reads any interval.", f.name),
	})
}

func (a *analysis) sequence(f *field) {
	e := a.busiestEnd(f, false)
	at := a.perServer(a.real(e.end))
	severity, ok := severityAt(at)
	switch {
	case e.uneven && f.index == 0:
		severity = atLeastWarning(severity)
	case e.uneven && ok:
	case f.index > 0 || a.Salts > 0 || f.form == named || a.rated() && f.form == clockID:
		return
	default:
		severity = info
	}
	found := fmt.Sprintf("Key field %s holds %s, such as %s.", f.name, f.what, shown(f.values[len(f.values)-1]))
	switch {
	case e.uneven:
		found += fmt.Sprintf(" The tenth with the highest values holds %s of the writes of tenant %s%s, %s%s.",
			percent(e.end, e.rate), e.tenant, a.below(f), rate(a.real(e.end)), a.overSalts(at))
	case a.rated():
		found += " Writes are spread evenly over them in this sample."
	}
	a.add(Advice{
		Cause: causeSequential, Severity: severity, Field: f.name, Found: found,
		Why: "Consecutive ids are stored next to each other. New ones are often the busiest, and then one server has most of the writes. " +
			"There is no problem while old and new ids write equally.",
		Remedy: fmt.Sprintf("%s No change is needed if old and new values will continue to write equally.", sequenceRemedy(f)),
	})
}

func sequenceRemedy(f *field) string {
	if f.form == counter || f.form == named {
		return "Declare the field as a reversed id (tsdb.KeyFields.ReversedID), or put a field before it that reads use and that spreads the entities."
	}
	return "Put a field before it that reads use and that spreads the entities, or give the schema Salts."
}

// below returns the scope of a figure, if f is not the first field.
func (a *analysis) below(f *field) string {
	if f.index == 0 {
		return ""
	}
	return " below one value of " + strings.Join(a.Fields[:f.index], " and ")
}

func (a *analysis) overSalts(at float64) string {
	if a.Salts == 0 {
		return ""
	}
	return fmt.Sprintf(", or %s in each of %d salts", rate(at), a.Salts)
}

// severityAt returns the severity of this load in one place, and false if it is no problem.
func severityAt(perServer float64) (string, bool) {
	switch {
	case perServer >= busyWrites:
		return critical, true
	case perServer >= noticeableWrites:
		return warning, true
	}
	return info, false
}

func atLeastWarning(severity string) string {
	if severity == critical {
		return critical
	}
	return warning
}

// busiestEnd returns the group with the most writes at its newest end. The entities of a group are equal in all
// fields before f. If there are uneven groups, it returns one of them.
func (a *analysis) busiestEnd(f *field, everything bool) end {
	groups := map[string][]*entity{}
	for i := range a.Entities {
		e := &a.Entities[i]
		g := e.group(f.index)
		groups[g] = append(groups[g], e)
	}
	var best end
	for name, members := range groups {
		e := a.endOf(f, members, everything)
		e.group = name
		if better(e, best) {
			best = e
		}
	}
	return best
}

// better is a total order of ends, so that the result does not depend on the order of the search.
func better(a, b end) bool {
	switch {
	case b.group == "" || a.uneven != b.uneven:
		return b.group == "" || a.uneven
	case a.end != b.end:
		return a.end > b.end
	}
	return a.group < b.group
}

func (a *analysis) endOf(f *field, members []*entity, everything bool) end {
	rates := f.rates(members)
	e := end{tenant: members[0].Tenant, rate: sum(rates), entries: len(rates)}
	if everything {
		e.end = e.rate
		return e
	}
	cut := len(rates) - len(rates)/endPart
	old, fresh := rates[:cut], rates[cut:]
	e.end = sum(fresh)
	e.uneven = len(rates) >= fewestAtTheEnd && e.end >= endShare*e.rate && e.end > 0 && median(fresh) > endTimes*median(old)
	return e
}

// rates returns the writes per value of f of some entities, in the order of the values.
func (f *field) rates(members []*entity) []float64 {
	sorted := slices.Clone(members)
	slices.SortStableFunc(sorted, func(a, b *entity) int {
		x, y := a.Parts[f.index], b.Parts[f.index]
		if (f.form == counter || f.form == named || f.form == clockID) && len(x) != len(y) {
			return len(x) - len(y) // by number, even if not padded; of ids by time, only snowflakes differ in length
		}
		return strings.Compare(x, y)
	})
	var out []float64
	for i, m := range sorted {
		if i > 0 && sorted[i-1].Parts[f.index] == m.Parts[f.index] {
			out[len(out)-1] += m.Rate
			continue
		}
		out = append(out, m.Rate)
	}
	return out
}

func sum(v []float64) (all float64) {
	for _, x := range v {
		all += x
	}
	return all
}

// median returns the lower median, or 0 for no values. It sorts v.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[(len(v)-1)/2]
}
