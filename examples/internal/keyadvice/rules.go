package keyadvice

import (
	"cmp"
	"slices"
	"strings"
)

// input is the validated input of the rules.
type input struct {
	Dataset    string
	Fields     []string // of the key, at least one
	Salts      int
	Family     string // column family of new payloads
	Qualifier  string
	Families   int // column families of the table
	Head       int // points in a head row; 0 for none
	MaxPayload int // bytes
	Entities   []entity
	Share      float64 // fraction of all entities in the sample, above 0 up to 1
	Arrival    bool    // Entities are in the order of their first write
}

// entity is an entity of the sample.
type entity struct {
	Tenant  string
	Path    string   // as in row keys
	Parts   []string // as many as there are key fields
	Key     int      // bytes of a point's row key
	Rate    float64  // points a second, 0 or more
	Payload int      // bytes; 0 if unknown

	arrived int
}

// analysis is an input with sorted, unique entities, and the advice found so far.
type analysis struct {
	input
	total float64 // sum of the rates in the sample
	out   []Advice
}

// run returns the advice of all rules, the most severe first; never nil. The order of the entities matters only if
// in.Arrival is set.
//
// The thresholds of the rules are constants in limits.go, each with its reason. A rule reports only what the sample
// shows.
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
	slices.SortStableFunc(a.out, func(a, b Advice) int {
		return cmp.Compare(slices.Index(severities, b.Severity), slices.Index(severities, a.Severity))
	})
	return a.out
}

// merged returns the entities sorted and unique. It adds the rates of repeated entities.
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

// real converts the rate of some entities of the sample to that of all entities.
func (a *analysis) real(rate float64) float64 { return rate / a.Share }

// perServer returns the part of a rate in each of the places over which salts spread it.
func (a *analysis) perServer(rate float64) float64 { return rate / float64(max(1, a.Salts)) }

// group returns the part of an entity's key before a key field, without dataset and salt. All later fields are left
// out.
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
