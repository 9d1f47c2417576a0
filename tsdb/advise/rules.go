package advise

import (
	"cmp"
	"slices"
	"strings"
)

// input is what the rules use. Its values were checked.
type input struct {
	Dataset    string
	Fields     []string // of the key, at least one
	Salts      int
	Family     string // in which payloads are written
	Qualifier  string
	Families   int // column families of the table
	Head       int // points in a head row; 0 for none
	MaxPayload int // bytes
	Entities   []entity
	Share      float64 // of all entities those in the sample, above 0 up to 1
	Arrival    bool    // Entities stand in the order in which they were first written
}

// entity is one of the sample.
type entity struct {
	Tenant  string
	Path    string   // as it stands in keys
	Parts   []string // as many as there are key fields
	Key     int      // bytes of a point's row key
	Rate    float64  // points a second, 0 or more
	Payload int      // bytes; 0 where it is not known

	arrived int
}

// analysis is an input with its entities sorted, each of them once, and what was found so far.
type analysis struct {
	input
	total float64 // of the rates in the sample
	out   []Advice
}

// run returns what the rules find, the most severe first; never nil. The order of the entities matters only if in.Arrival is set.
//
// Each figure that a rule needs is a constant of limits.go with its reason. A rule reports nothing that the sample does not show.
func run(in input) []Advice {
	a := &analysis{input: in, out: []Advice{}}
	a.Entities = merged(in.Entities)
	for i := range a.Entities {
		a.total += a.Entities[i].Rate
	}
	for i := range a.Fields {
		f := a.field(i)
		a.order(f)
		a.unpadded(f)
		a.hashed(f)
		a.personal(f)
	}
	a.personalTenants()
	a.hotEntities()
	a.hotHeads()
	a.tenants()
	a.keys()
	a.names()
	a.payloads()
	a.families()
	a.widePrefixes()
	slices.SortStableFunc(a.out, func(a, b Advice) int { return cmp.Compare(b.Severity, a.Severity) })
	return a.out
}

// merged returns the entities sorted, each once, with the rates of one that is listed twice added up.
func merged(in []entity) []entity {
	all := slices.Clone(in)
	for i := range all {
		all[i].arrived = i
	}
	slices.SortFunc(all, func(a, b entity) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Path, b.Path), cmp.Compare(a.Rate, b.Rate), cmp.Compare(a.arrived, b.arrived))
	})
	out := all[:0]
	for _, e := range all {
		if n := len(out); n > 0 && out[n-1].Tenant == e.Tenant && out[n-1].Path == e.Path {
			out[n-1].Rate += e.Rate
			out[n-1].Payload = max(out[n-1].Payload, e.Payload)
			out[n-1].arrived = min(out[n-1].arrived, e.arrived)
			continue
		}
		out = append(out, e)
	}
	return out
}

func (a *analysis) add(f Advice) { a.out = append(a.out, f) }

// rated reports whether rates are known.
func (a *analysis) rated() bool { return a.total > 0 }

// real scales a rate of some entities of the sample up to all that it stands for.
func (a *analysis) real(rate float64) float64 { return rate / a.Share }

// perServer is the part of a rate that comes to one of the places over which salts spread it.
func (a *analysis) perServer(rate float64) float64 { return rate / float64(max(1, a.Salts)) }

// group returns what comes before the key field at an index in the keys of an entity, without dataset and salt; all behind the last.
func (e *entity) group(field int) string {
	end := 0
	for range field {
		next := strings.IndexByte(e.Path[end:], '#')
		if next < 0 {
			return e.Tenant + "#" + e.Path
		}
		end += next + 1
	}
	return e.Tenant + "#" + e.Path[:end]
}
