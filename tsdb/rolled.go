package tsdb

import (
	"fmt"
	"slices"
	"strconv"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// maxRollups is how many rollups a schema may have: a write may mark each of them.
const maxRollups = 8

// rolled is a rollup of a dataset, without its Go type.
type rolled struct {
	catalog.Rollup
	class    class
	families inside.Families
	mark     string // the kind of its marks where writes of points mark it; else ""
}

// describedRollups returns the rollups that a schema lists, as the catalogue is to know them.
func describedRollups(rollups []Rollup) ([]catalog.Rollup, error) {
	var out []catalog.Rollup
	for i, r := range rollups {
		what, e := "nil", catalog.Rollup{}
		if r != nil {
			what = "zero"
			ok := false
			if inside.Describe != nil {
				e, ok = inside.Describe(r)
			}
			if !ok {
				what = fmt.Sprintf("of type %T", r)
			}
		}
		if e.Name == "" {
			return nil, invalid.New(ErrInvalid, "rollup "+strconv.Itoa(i), what, "one from rollup.Define")
		}
		out = append(out, e)
	}
	return out, nil
}

// withRollups adds rollups to a dataset that has all else. It checks them: they may come from a file or a table.
func (d *dataset) withRollups(rollups []catalog.Rollup) error {
	if len(rollups) > maxRollups {
		return invalid.New(ErrInvalid, "Rollups", strconv.Itoa(len(rollups)), fmt.Sprintf("at most %d", maxRollups))
	}
	for i := range rollups {
		if err := d.addRollup(&rollups[i]); err != nil {
			return fmt.Errorf("rollup %s: %w", invalid.Quote(rollups[i].Name), err)
		}
	}
	return nil
}

func (d *dataset) addRollup(e *catalog.Rollup) error {
	if err := checkRollup(e); err != nil {
		return err
	}
	if d.rollup(e.Name) != nil {
		return invalid.New(ErrInvalid, "name", invalid.Quote(e.Name), "each name once")
	}
	if e.Kind == catalog.Derived && d.head.Only {
		return invalid.New(ErrInvalid, "Head.Only", "true", "false, as there are no points that it could be derived from")
	}
	if err := d.checkFrom(e); err != nil {
		return err
	}
	policy, err := gc.Parse(e.Class.Policy)
	if err != nil {
		return fmt.Errorf("retention class %s: %w", invalid.Quote(e.Class.Name), err)
	}
	classes, err := reduce([]gc.Class{{Name: e.Class.Name, Policy: policy}})
	if err != nil {
		return err
	}
	c := classes[0]
	for _, other := range d.allClasses() {
		if other.Name == c.Name && !other.Equal(c.Class) {
			return invalid.New(ErrInvalid, "retention class", invalid.Quote(c.Name), fmt.Sprintf("one policy, not both %q and %q", other.Policy, c.Policy))
		}
	}
	u := rolled{Rollup: *e, class: c, families: inside.Families{Sum: c.Name + ".s", Min: c.Name + ".n", Max: c.Name + ".x", Control: c.Name + ".c"}}
	if e.Kind == catalog.Derived && e.From == "" {
		u.mark = rowkey.MarkKind + e.Name
		d.marked++
	}
	d.rollups = append(d.rollups, u)
	return nil
}

// checkRollup refuses a rollup by what it says of itself.
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
	case e.Kind == catalog.Derived && (e.Step <= 0 || e.Step > e.Span || e.Span/e.Step > maxSlots):
		return invalid.New(ErrInvalid, "step", strconv.FormatInt(e.Step, 10)+" ms", fmt.Sprintf("1 ms to the span of %d ms, in at most %d of them", e.Span, maxSlots))
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

// maxSlots bounds the marks in a row: four a hour for 400 days are 38,400.
const maxSlots = 50_000

// checkFrom refuses a rollup that cannot be computed from the one that it names.
func (d *dataset) checkFrom(e *catalog.Rollup) error {
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
func (d *dataset) rollup(name string) *rolled {
	for i := range d.rollups {
		if d.rollups[i].Name == name {
			return &d.rollups[i]
		}
	}
	return nil
}

// allClasses returns the classes of points and of rollups.
func (d *dataset) allClasses() []class {
	out := slices.Clone(d.classes)
	for i := range d.rollups {
		out = append(out, d.rollups[i].class)
	}
	return out
}

// entryRollups returns what the catalogue is to know of the dataset's rollups.
func (d *dataset) entryRollups() []catalog.Rollup {
	var out []catalog.Rollup
	for i := range d.rollups {
		out = append(out, d.rollups[i].Rollup)
	}
	return out
}

// beside makes the space of points refuse what has too long a key in a rollup.
func (d *dataset) beside(s rowkey.Space) rowkey.Space {
	for i := range d.rollups {
		s = s.Beside(rowkey.RollupKind + d.rollups[i].Name)
	}
	return s
}

// rollupFamilies adds the column families of the dataset's rollups. What is in the rows beside their aggregates has one
// version, also where buckets are kept for ever.
func (d *dataset) rollupFamilies(families map[string]bigtable.Family) {
	for i := range d.rollups {
		u := &d.rollups[i]
		policy := u.class.Policy.Bigtable()
		families[u.families.Sum] = bigtable.Family{GCPolicy: policy, ValueType: aggregate(bigtable.SumAggregator{})}
		families[u.families.Min] = bigtable.Family{GCPolicy: policy, ValueType: aggregate(bigtable.MinAggregator{})}
		families[u.families.Max] = bigtable.Family{GCPolicy: policy, ValueType: aggregate(bigtable.MaxAggregator{})}
		families[u.families.Control] = bigtable.Family{GCPolicy: gc.Any(u.class.Policy, gc.MaxVersions(1)).Bigtable()}
		if u.Kind == catalog.Derived {
			families[inside.MarkFamily] = bigtable.Family{GCPolicy: bigtable.MaxVersionsPolicy(1)}
		}
	}
}

func aggregate(a bigtable.Aggregator) bigtable.Type {
	return bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: a}
}
