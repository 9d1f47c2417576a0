package dynamic

import (
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Description is a dataset as data. It is a copy: changing it changes no schema and no table. The zero Description is
// that of no dataset. The fields have the meaning of those of tsdb.SchemaOptions.
type Description struct {
	// Name is the dataset's name.
	Name string `json:"name"`
	// Key are the key fields, most significant first.
	Key []KeyField `json:"key"`
	// Precision is the unit of time in row keys: "ns", "us" or "ms".
	Precision string `json:"precision"`
	// Identity says that points have an ID in addition to their time.
	Identity bool `json:"identity,omitempty"`
	// Salts is over how many parts of a tenant's key range entities are spread; 0 for one.
	Salts int `json:"salts,omitempty"`
	// FirstWins and Merge say what a write does if the point exists; by default it replaces the value.
	FirstWins bool `json:"first_wins,omitempty"`
	Merge     bool `json:"merge,omitempty"`
	// Immutable is the prefix of the names of fields that merging does not change; empty for none.
	Immutable string `json:"immutable,omitempty"`
	// Tags are the codec tags that payloads may have. New points get the first one.
	Tags []string `json:"tags"`
	// Classes are the retention classes of points, the default first.
	Classes []Class `json:"classes"`
	// Head says which newest points are kept together; nil for none.
	Head *tsdb.Head `json:"head,omitempty"`
	// NullClears says that a null in JSON is the value of a field. It is known only of datasets with Head.Fields.
	NullClears bool `json:"null_clears,omitempty"`
	// Rollups are the aggregates that are stored.
	Rollups []Rollup `json:"rollups,omitempty"`
}

// KeyField is a field of the key.
type KeyField struct {
	Name string `json:"name"`
	// Kind is "text", "uint5" or "int5" with the number of digits, "uuid", "reversed_id" or "reversed_domain".
	Kind string `json:"kind"`
}

// Class is a retention class.
type Class struct {
	Name string `json:"name"`
	// Policy is what gc.Parse parses, such as "maxage=30d".
	Policy string `json:"policy"`
	// Offered says that a tenant's profile may choose the class. Points of other tenants get the default. A class that
	// is neither offered nor the default is only read.
	Offered bool `json:"offered,omitempty"`
	// RollupAge is how long rollups of tenants in the class are kept at most; 0 for as long as their own class says.
	// JSON has nanoseconds.
	RollupAge time.Duration `json:"rollup_age_ns,omitempty"`
}

// Rollup is a stored aggregate. Its Go value is not known; Rollups reads what is stored of it.
type Rollup struct {
	Name string `json:"name"`
	// Kind is "derived" from points, or what adds up events: "stream", "message" or "once".
	Kind string `json:"kind"`
	// Every is the width of a bucket as window.Parse parses it, and Zone the time zone in which buckets begin.
	Every string `json:"every"`
	Zone  string `json:"zone"`
	// From is the finer rollup from which a derived one is computed; empty for the points.
	From string `json:"from,omitempty"`
	// Late is how long a bucket stays open after its end. JSON has nanoseconds.
	Late     time.Duration `json:"late_ns,omitempty"`
	Class    Class         `json:"class"`
	Measures []Measure     `json:"measures,omitempty"`
}

// Measure is a number or a state of which a rollup stores aggregates.
type Measure struct {
	Name string `json:"name"`
	// Kind is "gauge", "counter" or "state".
	Kind string `json:"kind"`
	// Field is the field of the payload that has the number, or "." for the payload itself. It is empty if only the
	// program that defines the rollup knows the number.
	Field string `json:"field,omitempty"`
	// Aggregates are the names of window.Aggregates: "count", "sum" and so on.
	Aggregates []string `json:"aggregates"`
	// Decimals is how many decimal places of a number are stored, and Max the greatest magnitude.
	Decimals int    `json:"decimals"`
	Max      string `json:"max,omitempty"`
}

// Describe returns a dataset of tsdb.Store.Datasets, or any schema, as data. For nil and the zero Schema it returns the
// zero Description. It does no I/O.
func Describe(d tsdb.Dataset) Description {
	of, err := inside.Of(d).Shape()
	if err != nil {
		return Description{}
	}
	out := Description{
		Name: of.Name, Precision: of.Precision.String(), Identity: of.Identity, Salts: of.Salts,
		FirstWins: of.FirstWins, Merge: of.Merge, Immutable: of.Immutable, Tags: slices.Clone(of.Tags),
	}
	for i, name := range of.Fields {
		field := KeyField{Name: name, Kind: rowkey.FieldKind{}.String()}
		if i < len(of.Kinds) {
			field.Kind = of.Kinds[i].String()
		}
		out.Key = append(out.Key, field)
	}
	for i := range of.Classes {
		out.Classes = append(out.Classes, classOf(&of.Classes[i]))
	}
	if of.Head.Any() {
		head := tsdb.Head(of.Head)
		out.Head = &head
	}
	out.NullClears = of.NullClears
	for i := range of.Rollups {
		out.Rollups = append(out.Rollups, rollupOf(&of.Rollups[i]))
	}
	return out
}

func classOf(c *dataset.Class) Class {
	return Class{Name: c.Name, Policy: c.Policy.String(), Offered: c.Choice, RollupAge: c.RollupAge}
}

func rollupOf(r *dataset.Rollup) Rollup {
	out := Rollup{
		Name: r.Name, Kind: r.Kind, Every: r.Every, Zone: r.Zone, From: r.From,
		Late: time.Duration(r.Late) * time.Millisecond, Class: classOf(&r.Class),
	}
	for i := range r.Rollup.Measures {
		out.Measures = append(out.Measures, measureOf(&r.Rollup.Measures[i]))
	}
	return out
}

func measureOf(m *catalog.RollupMeasure) Measure {
	kind, field := m.KindAndField()
	return Measure{Name: m.Name, Kind: kind, Field: field, Aggregates: slices.Clone(m.Aggregates), Decimals: m.Decimals, Max: m.Max}
}
