// Package advise judges row keys before they are written: from a sample of a dataset's entities and their rates it finds what
// makes hot spots, breaks scans or wastes room. It is pure computation on values that were checked, and never fails.
//
// Where a rule needs a figure, the figure is a constant of limits.go with its reason. What cannot be told from the sample is not
// guessed at: keys of which nothing is known to be wrong get no advice.
//
// The rules follow the public guides of Cloud Bigtable: https://cloud.google.com/bigtable/docs/schema-design,
// https://cloud.google.com/bigtable/docs/schema-design-time-series, https://cloud.google.com/bigtable/docs/performance and
// https://cloud.google.com/bigtable/quotas.
package advise

import (
	"cmp"
	"slices"
	"strings"
)

// Input is what the rules go by.
type Input struct {
	Dataset    string
	Fields     []string // of the key, at least one
	Salts      int
	Family     string // in which payloads are written
	Qualifier  string
	Families   int // column families of the table
	Head       int // points in a head row; 0 for none
	MaxPayload int // bytes
	Entities   []Entity
	Share      float64 // of all entities those in the sample, above 0 up to 1
	Arrival    bool    // Entities stand in the order in which they were first written
}

// Entity is one of the sample.
type Entity struct {
	Tenant  string
	Path    string   // as it stands in keys
	Parts   []string // as many as there are key fields
	Key     int      // bytes of a point's row key
	Rate    float64  // points a second, 0 or more
	Payload int      // bytes; 0 where it is not known

	arrived int
}

// Finding is one piece of advice.
type Finding struct {
	Cause    string
	Severity int
	Field    string // the key field it is about; "" for none
	Found    string
	Why      string
	Remedy   string
}

// The severities.
const (
	Info = iota
	Warning
	Critical
)

// sample is an Input in the order of its entities, each of them once.
type sample struct {
	Input
	total float64 // of the rates in the sample
	out   []Finding
}

// Run returns what the rules find, the severest first. The order of the entities matters only where in.Arrival is set.
func Run(in Input) []Finding {
	s := &sample{Input: in}
	s.Entities = merged(in.Entities)
	for i := range s.Entities {
		s.total += s.Entities[i].Rate
	}
	for i := range s.Fields {
		f := s.field(i)
		s.order(f)
		s.unpadded(f)
		s.hashed(f)
		s.personal(f)
	}
	s.personalTenants()
	s.hotEntities()
	s.hotHeads()
	s.tenants()
	s.keys()
	s.names()
	s.payloads()
	s.families()
	s.widePrefixes()
	slices.SortStableFunc(s.out, func(a, b Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	return s.out
}

// merged returns the entities sorted, each once, with the rates of one that is listed twice added up.
func merged(in []Entity) []Entity {
	all := slices.Clone(in)
	for i := range all {
		all[i].arrived = i
	}
	slices.SortFunc(all, func(a, b Entity) int {
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

func (s *sample) add(f Finding) { s.out = append(s.out, f) }

// rated reports whether rates are known.
func (s *sample) rated() bool { return s.total > 0 }

// real scales a rate of some entities of the sample up to all that it stands for.
func (s *sample) real(rate float64) float64 { return rate / s.Share }

// perServer is the part of a rate that comes to one of the places over which salts spread it.
func (s *sample) perServer(rate float64) float64 { return rate / float64(max(1, s.Salts)) }

// group returns what comes before the key field at an index in the keys of an entity, without dataset and salt; all behind the last.
func (e *Entity) group(field int) string {
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
