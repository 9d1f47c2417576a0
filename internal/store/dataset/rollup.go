package dataset

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/gcrule"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// MaxRollups bounds the rollups of a schema: a write may mark each of them.
const MaxRollups = 8

// Rollup is a rollup of a dataset, without its Go type.
type Rollup struct {
	catalog.Rollup
	Class    Class
	Families RollupFamilies
	Mark     string // the kind of its marks if writes of points mark it; else ""
}

// withRollups adds rollups to a dataset whose other fields are set. It validates them, because they may come from a
// file or a table.
func (d *Dataset) withRollups(rollups []catalog.Rollup) error {
	if len(rollups) > MaxRollups {
		return invalid.New(ErrInvalid, "Rollups", strconv.Itoa(len(rollups)), fmt.Sprintf("at most %d", MaxRollups))
	}
	for i := range rollups {
		if err := d.addRollup(&rollups[i]); err != nil {
			return fmt.Errorf("rollup %s: %w", invalid.Quote(rollups[i].Name), err)
		}
	}
	return nil
}

func (d *Dataset) addRollup(e *catalog.Rollup) error {
	if err := checkRollup(e); err != nil {
		return err
	}
	if d.rollup(e.Name) != nil {
		return invalid.New(ErrInvalid, "name", invalid.Quote(e.Name), "each name once")
	}
	if e.Kind == catalog.Derived && d.Head.Only {
		return invalid.New(ErrInvalid, "Head.Only", "true", "false, as there are no points that it could be derived from")
	}
	if err := d.checkFrom(e); err != nil {
		return err
	}
	policy, err := gc.Parse(e.Class.Policy)
	if err != nil {
		return fmt.Errorf("retention class %s: %w", invalid.Quote(e.Class.Name), err)
	}
	classes, err := NewClasses([]gc.Class{{Name: e.Class.Name, Policy: policy}})
	if err != nil {
		return err
	}
	c := classes[0]
	for _, other := range d.allClasses() {
		if other.Name == c.Name && !other.Policy.Equal(c.Policy) {
			return invalid.New(ErrInvalid, "retention class", invalid.Quote(c.Name), fmt.Sprintf("one policy, not both %q and %q", other.Policy, c.Policy))
		}
	}
	u := Rollup{Rollup: *e, Class: c, Families: RollupFamilies{Sum: c.Name + catalog.SumEnding, Min: c.Name + catalog.MinEnding, Max: c.Name + catalog.MaxEnding, Control: c.Name + catalog.ControlEnding}}
	if e.Kind == catalog.Derived && e.From == "" {
		u.Mark = rowkey.MarkKind + e.Name
		d.Marked++
	}
	d.Rollups = append(d.Rollups, u)
	return nil
}

// checkRollup refuses a rollup whose own fields are invalid.
func checkRollup(e *catalog.Rollup) error {
	switch {
	case !catalog.ShortName(e.Name):
		return invalid.New(ErrInvalid, "name", invalid.Quote(e.Name), "1 to 16 bytes of a-z 0-9 _")
	case !slices.Contains([]string{catalog.Derived, catalog.ByStream, catalog.ByMessage, catalog.Once}, e.Kind):
		return invalid.New(ErrInvalid, "kind", invalid.Quote(e.Kind), "derived, stream, message or once")
	case e.Every == "" || e.Zone == "":
		return invalid.New(ErrInvalid, "grid", invalid.Quote(e.Every+" in "+e.Zone), "the width of a bucket and a zone")
	case e.Span <= 0:
		return invalid.New(ErrInvalid, "span", strconv.FormatInt(e.Span, 10)+" ms", "more than 0")
	case e.Late < 0:
		return invalid.New(ErrInvalid, "lateness", strconv.FormatInt(e.Late, 10)+" ms", "0 or more")
	case e.Kind == catalog.Derived && (e.Step <= 0 || e.Step > e.Span || e.Span/e.Step > MaxSlots):
		return invalid.New(ErrInvalid, "step", strconv.FormatInt(e.Step, 10)+" ms", fmt.Sprintf("1 ms to the span of %d ms, in at most %d of them", e.Span, MaxSlots))
	case e.Kind != catalog.Derived && e.From != "":
		return invalid.New(ErrInvalid, "From", invalid.Quote(e.From), "empty where events are added up")
	}
	for i := range e.Measures {
		if !catalog.ShortName(e.Measures[i].Name) {
			return invalid.New(ErrInvalid, "name of measure "+strconv.Itoa(i), invalid.Quote(e.Measures[i].Name), "1 to 16 bytes of a-z 0-9 _")
		}
	}
	return nil
}

// MaxSlots bounds the marks in a row of a derived rollup: four an hour for 400 days are 38,400.
const MaxSlots = 50_000

// checkFrom refuses a rollup that cannot be computed from the one in its From.
func (d *Dataset) checkFrom(e *catalog.Rollup) error {
	if e.From == "" {
		return nil
	}
	from := d.rollup(e.From)
	switch {
	case from == nil:
		return invalid.New(ErrInvalid, "From", invalid.Quote(e.From), "a rollup that the schema lists before this one")
	case from.Kind != catalog.Derived:
		return invalid.New(ErrInvalid, "From", invalid.Quote(e.From)+" of the kind "+from.Kind, "a rollup that is derived")
	case !from.SameMeasures(e):
		return invalid.New(ErrInvalid, "From", invalid.Quote(e.From)+" with other measures", "a rollup with the same measures")
	}
	return nil
}

// rollup returns the rollup of that name, or nil.
func (d *Dataset) rollup(name string) *Rollup {
	for i := range d.Rollups {
		if d.Rollups[i].Name == name {
			return &d.Rollups[i]
		}
	}
	return nil
}

// allClasses returns the classes of points and of rollups.
func (d *Dataset) allClasses() []Class {
	out := slices.Clone(d.Classes)
	for i := range d.Rollups {
		out = append(out, d.Rollups[i].Class)
	}
	return out
}

// ClassNames returns the names of all classes of datasets, each once.
func ClassNames(shapes []*Dataset) (names []string) {
	for _, d := range shapes {
		for _, c := range d.allClasses() {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// entryRollups returns the description of the dataset's rollups for the catalogue.
func (d *Dataset) entryRollups() []catalog.Rollup {
	var out []catalog.Rollup
	for i := range d.Rollups {
		out = append(out, d.Rollups[i].Rollup)
	}
	return out
}

// BesideRollups makes the space of points refuse entities whose keys would be too long in a rollup.
func (d *Dataset) BesideRollups(s rowkey.Space) rowkey.Space {
	for i := range d.Rollups {
		s = s.WithSiblings(rowkey.RollupKind + d.Rollups[i].Name)
	}
	return s
}

// rollupFamilies adds the column families of the dataset's rollups. Cells that are not aggregates have one version,
// even if buckets are kept forever.
func (d *Dataset) rollupFamilies(families map[string]bigtable.Family) {
	for i := range d.Rollups {
		u := &d.Rollups[i]
		policy := gcrule.To(u.Class.Policy)
		families[u.Families.Sum] = bigtable.Family{GCPolicy: policy, ValueType: aggregate(bigtable.SumAggregator{})}
		families[u.Families.Min] = bigtable.Family{GCPolicy: policy, ValueType: aggregate(bigtable.MinAggregator{})}
		families[u.Families.Max] = bigtable.Family{GCPolicy: policy, ValueType: aggregate(bigtable.MaxAggregator{})}
		families[u.Families.Control] = bigtable.Family{GCPolicy: gcrule.To(gc.Any(u.Class.Policy, gc.MaxVersions(1)))}
		if u.Kind == catalog.Derived {
			families[MarkFamily] = bigtable.Family{GCPolicy: bigtable.MaxVersionsPolicy(1)}
		}
	}
}

func aggregate(a bigtable.Aggregator) bigtable.Type {
	return bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: a}
}

// KeptRollups returns the classes by which a rollup of any tenant may expire: its own, and those with a RollupAge.
func (d *Dataset) KeptRollups(u *Rollup) []Class {
	kept := []Class{u.Class}
	for i := range d.Classes {
		if age := d.Classes[i].RollupAge; age > 0 {
			kept = append(kept, Class{Class: gc.Class{Name: d.Classes[i].Name, Policy: gc.MaxAge(age)}})
		}
	}
	return kept
}

// DependsOnConditionalAdditions returns a rollup that needs additions in conditional writes, or nil if the dataset has
// none.
func (d *Dataset) DependsOnConditionalAdditions() *Rollup {
	for i := range d.Rollups {
		if d.Rollups[i].Kind != catalog.Once {
			return &d.Rollups[i]
		}
	}
	return nil
}

// withRollupAges sets how long rollups of tenants in a class are kept, on a dataset with classes and rollups. It
// validates the ages, because they may come from a file or a table.
func (d *Dataset) withRollupAges(ages map[string]time.Duration) error {
	if len(ages) > 0 && len(d.Rollups) == 0 {
		return invalid.New(ErrInvalid, "RollupAges", fmt.Sprint(len(ages)), "none where there are no Rollups")
	}
	for _, name := range slices.Sorted(maps.Keys(ages)) {
		field, age := "RollupAges of class "+invalid.Quote(name), ages[name]
		i := slices.IndexFunc(d.Classes, func(c Class) bool { return c.Name == name })
		if i < 0 || i > 0 && !d.Classes[i].Choice {
			return invalid.New(ErrInvalid, field, age.String(), "a class in which points are written: Retention, or one of Classes")
		}
		if err := gc.MaxAge(age).Validate(); err != nil {
			return invalid.New(ErrInvalid, field, age.String(), "a positive whole number of seconds")
		}
		c := &d.Classes[i]
		switch {
		case !c.Bounded:
			return invalid.New(ErrInvalid, field, age.String(), "none, as the class keeps points for ever")
		case age < c.Age:
			return invalid.New(ErrInvalid, field, age.String(), "at least as long as the class keeps points, "+c.Age.String())
		}
		c.RollupAge = age
	}
	return nil
}

// entryRollupAges returns the ages for the catalogue.
func (d *Dataset) entryRollupAges() (ages map[string]string) {
	for i := range d.Classes {
		if c := &d.Classes[i]; c.RollupAge > 0 {
			if ages == nil {
				ages = map[string]string{}
			}
			ages[c.Name] = gc.MaxAge(c.RollupAge).String()
		}
	}
	return ages
}

// ShortestRollupAge returns the shortest age that a class sets for rollups; 0 means none.
func (d *Dataset) ShortestRollupAge() (shortest time.Duration) {
	for i := range d.Classes {
		if age := d.Classes[i].RollupAge; age > 0 && (shortest == 0 || age < shortest) {
			shortest = age
		}
	}
	return shortest
}
