package retention

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/nest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// maxFamilies is how many column families the service advises a table to have at most.
const maxFamilies = 100

// comparison compares the declared datasets with the catalogue and the table.
type comparison struct {
	declared []catalog.Dataset // in the order of their names
	listed   map[string]bool   // their names
	want     map[string]dataset.Family
	have     actual
	recorded map[string]*record // by family
	items    []Item
}

// record is a family as the catalogue describes it.
type record struct {
	policies []gc.Policy // without duplicates
	holds    []string    // of datasets that are not declared
}

// compare returns the differences, in the order of a plan.
func compare(declared []catalog.Dataset, want map[string]dataset.Family, have actual) []Item {
	c := comparison{
		declared: declared, listed: map[string]bool{}, want: want, have: have,
		recorded: map[string]*record{}, items: []Item{},
	}
	for i := range declared {
		c.listed[declared[i].Name] = true
	}
	c.readCatalog()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		c.family(want[name])
	}
	for _, name := range slices.Sorted(maps.Keys(have.families)) {
		if _, ok := want[name]; !ok && c.recorded[name] == nil {
			c.items = append(c.items, Item{Kind: kindForeign, Family: name, Actual: have.families[name].text})
		}
	}
	for _, d := range declared {
		c.dataset(d)
	}
	c.format()
	c.count()
	sortItems(c.items)
	return c.items
}

func sortItems(items []Item) {
	order := []string{kindCreate, kindChange, kindDrift, kindChangeAndDrift, kindRecord, kindUnlisted, kindForeign, kindImpossible}
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind))
	})
}

// readCatalog records each family of the catalogue, and conflicts with datasets that are not declared.
func (c *comparison) readCatalog() {
	classes := map[string]gc.Class{}
	for _, w := range c.want {
		classes[w.Class.Name] = w.Class
	}
	for _, name := range slices.Sorted(maps.Keys(c.have.catalog.Datasets)) {
		families, err := dataset.FamiliesFromCatalog([]catalog.Dataset{c.have.catalog.Datasets[name].Dataset})
		if err != nil {
			c.impossible(Item{Dataset: name}, fmt.Sprintf("This version cannot read its entry in the catalogue, so it is not known which families it needs: %v.", err))
			continue
		}
		listed := c.listed[name]
		var clashes []string
		for _, f := range families {
			r := c.recorded[f.Name]
			if r == nil {
				r = &record{}
				c.recorded[f.Name] = r
			}
			if !slices.ContainsFunc(r.policies, f.Policy.Equal) {
				r.policies = append(r.policies, f.Policy)
			}
			if listed {
				continue
			}
			r.holds = append(r.holds, holds(f)...)
			if w, ok := classes[f.Class.Name]; ok && !w.Policy.Equal(f.Class.Policy) && !slices.Contains(clashes, f.Class.Name) {
				clashes = append(clashes, f.Class.Name)
				c.impossible(Item{Dataset: name, Class: f.Class.Name, Declared: w.Policy.String(), Recorded: f.Class.Policy.String()},
					fmt.Sprintf("It is in the catalogue but not in this plan, and declares the retention class %s as %q; this plan declares it as %q. Plan with all datasets of the class, or use NewPlanFor.",
						f.Class.Name, f.Class.Policy, w.Policy))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.recorded)) {
		if _, ok := c.want[name]; !ok {
			c.unlisted(name, c.recorded[name])
		}
	}
}

// unlisted adds an item for a family that only other datasets use and that differs from the catalogue.
func (c *comparison) unlisted(name string, r *record) {
	i := Item{Kind: kindUnlisted, Family: name, Recorded: texts(r.policies), Holds: r.holds}
	if f, ok := c.have.families[name]; ok {
		if i.Actual = f.text; f.err == nil && slices.ContainsFunc(r.policies, f.policy.Equal) {
			return
		}
	}
	c.items = append(c.items, i)
}

// family compares a declared family.
func (c *comparison) family(w dataset.Family) {
	i := Item{Family: w.Name, Class: w.Class.Name, Declared: w.Policy.String(), Holds: holds(w)}
	var recorded []gc.Policy
	if r := c.recorded[w.Name]; r != nil {
		recorded = r.policies
		i.Recorded = texts(r.policies)
		i.Holds = append(i.Holds, r.holds...)
	}
	have, ok := c.have.families[w.Name]
	i.Actual = have.text
	switch {
	case !ok:
		i.Kind = kindCreate
		if len(recorded) > 0 {
			i.Notes = []string{"The catalogue lists it: it was removed from the table elsewhere, with all its data."}
		}
		c.items = append(c.items, i)
		return
	case w.Differs(have.kind) != "":
		c.impossible(i, sentence(w.Differs(have.kind))+" The kind of a family cannot be changed: use another retention class, or remove the family by hand, with all its data.")
		return
	case have.err == nil && have.policy.Equal(w.Policy):
		return
	}
	changed := !slices.ContainsFunc(recorded, w.Policy.Equal)
	drifted := len(recorded) > 0 && (have.err != nil || !slices.ContainsFunc(recorded, have.policy.Equal))
	switch {
	case changed && drifted:
		i.Kind = kindChangeAndDrift
		i.Notes = []string{"The table's policy was changed elsewhere, and the declared one is new."}
	case drifted:
		i.Kind = kindDrift
		i.Notes = []string{"The table's policy was changed elsewhere."}
	default:
		i.Kind = kindChange
		if len(recorded) == 0 {
			i.Notes = []string{"The family is in the table, but the catalogue does not list it."}
		}
	}
	i.Destructive = !inside.Of(w.Policy).KeepsAllOf(have.policy)
	i.Notes = append(i.Notes, effects(w, have, changed)...)
	c.items = append(c.items, i)
}

// effects returns notes on the effect of setting the policy of a family. changed says that the policy is new to
// readers.
func effects(w dataset.Family, have family, changed bool) (notes []string) {
	keeps := have.policy
	if have.err != nil {
		notes = append(notes, fmt.Sprintf("This version cannot read the table's policy (%v), so what it keeps is not known.", have.err))
	}
	if age, bounded, err := w.Class.Policy.PointAge(); err == nil && bounded && !inside.Of(gc.MaxAge(age)).KeepsAllOf(keeps) {
		visible := "becomes invisible at once to programs that declare this policy"
		if !changed {
			visible = "is already invisible to programs that declare this policy"
		}
		what := "Data older than " + ageText(age)
		if w.Rollups() {
			what = "Each bucket that began more than " + ageText(age) + " ago"
		}
		notes = append(notes, fmt.Sprintf("%s %s, and is deleted within about a week. This cannot be undone.", what, visible))
	}
	if w.Versions > 0 && !inside.Of(gc.MaxVersions(w.Versions)).KeepsAllOf(keeps) {
		notes = append(notes, fmt.Sprintf("All cells of a column but the newest %d are deleted within about a week. This cannot be undone.", w.Versions))
	}
	if have.err == nil && !inside.Of(have.policy).KeepsAllOf(w.Policy) {
		notes = append(notes, "Expired data that is not deleted yet may become visible again for a while. Which part is not predictable.")
	}
	return notes
}

// sources rejects policies that no schema may declare, because they remove a rollup's source too early.
func (c *comparison) sources(d catalog.Dataset) {
	for _, r := range d.Rollups {
		if r.Kind != catalog.Derived {
			continue
		}
		classes := d.Classes
		for _, finer := range d.Rollups {
			if finer.Name == r.From {
				classes = []catalog.Class{finer.Class}
				for _, class := range slices.Sorted(maps.Keys(d.RollupAges)) {
					classes = append(classes, catalog.Class{Name: class, Policy: d.RollupAges[class]})
				}
			}
		}
		kept := make([]gc.Policy, len(classes))
		var err error
		for i := range classes {
			var bad error
			kept[i], bad = gc.Parse(classes[i].Policy)
			err = errors.Join(err, bad)
		}
		if err == nil {
			err = checkSource(&r, kept)
		}
		if err != nil {
			c.impossible(Item{Dataset: d.Name}, fmt.Sprintf("No program can declare this for rollup %s: %v.", r.Name, err))
		}
	}
}

// checkSource checks the policies of a derived rollup's source, as a schema does.
func checkSource(r *catalog.Rollup, kept []gc.Policy) error {
	grid, err := inside.Of[*window.Aggregator[struct{}]](nil).Grid(r.Every, r.Zone)
	if err != nil {
		return err
	}
	return nest.CheckSource(r, grid, kept)
}

// dataset compares a dataset's entry.
func (c *comparison) dataset(d catalog.Dataset) {
	c.sources(d)
	e, ok := c.have.catalog.Datasets[d.Name]
	if !ok {
		c.items = append(c.items, Item{Kind: kindRecord, Dataset: d.Name, Notes: []string{"It is added to the catalogue."}})
		return
	}
	if conflicts := d.Conflicts(withPolicies(e.Dataset, d)); len(conflicts) > 0 {
		for i, text := range conflicts {
			conflicts[i] = sentence(text)
		}
		c.impossible(Item{Dataset: d.Name}, conflicts...)
		return
	}
	if d.Same(e.Dataset) {
		return
	}
	i := Item{Kind: kindRecord, Dataset: d.Name, Notes: shortened(d, e.Dataset)}
	i.Destructive = len(i.Notes) > 0
	for _, text := range d.Differences(e.Dataset) {
		i.Notes = append(i.Notes, sentence(text))
	}
	if len(i.Notes) == 0 {
		i.Notes = []string{"The order of its codec tags, retention classes or rollups differs, or the classes that tenants can be assigned."}
	}
	c.items = append(c.items, i)
}

// withPolicies returns the stored dataset with the declared policies and rollup ages of its classes.
func withPolicies(stored, declared catalog.Dataset) catalog.Dataset {
	stored.Classes, stored.Rollups = slices.Clone(stored.Classes), slices.Clone(stored.Rollups)
	for i := range stored.Classes {
		for _, c := range declared.Classes {
			if c.Name == stored.Classes[i].Name {
				stored.Classes[i].Policy = c.Policy
			}
		}
	}
	for i := range stored.Rollups {
		r := &stored.Rollups[i]
		for _, o := range declared.Rollups {
			if o.Name == r.Name && o.Class.Name == r.Class.Name {
				r.Class.Policy = o.Class.Policy
			}
		}
	}
	var ages map[string]string
	for _, c := range stored.Classes {
		if age, ok := declared.RollupAges[c.Name]; ok {
			if ages == nil {
				ages = map[string]string{}
			}
			ages[c.Name] = age
		}
	}
	stored.RollupAges = ages
	return stored
}

// format rejects a format that a newer version of this module has written.
func (c *comparison) format() {
	if v := c.have.catalog.Format; v > catalog.FormatVersion {
		c.impossible(Item{}, fmt.Sprintf("The stored format has version %d; this program supports version %d.", v, catalog.FormatVersion))
	}
}

// count refuses to create more families than the service advises.
func (c *comparison) count() {
	n := len(c.have.families)
	for name := range c.want {
		if _, ok := c.have.families[name]; !ok {
			n++
		}
	}
	if n > maxFamilies && n > len(c.have.families) {
		c.impossible(Item{}, fmt.Sprintf("The table would have %d column families, including those of aggregates and of other programs; want at most %d.", n, maxFamilies))
	}
}

func (c *comparison) impossible(i Item, notes ...string) {
	i.Kind, i.Notes = kindImpossible, notes
	c.items = append(c.items, i)
}

// holds lists the contents of a family.
func holds(f dataset.Family) []string {
	if f.Name == catalog.Family {
		return []string{"the store's own rows"}
	}
	out := make([]string, len(f.Uses))
	for i, u := range f.Uses {
		out[i] = u.What + " of " + u.Dataset
	}
	return out
}

func texts(policies []gc.Policy) string {
	out := make([]string, len(policies))
	for i, p := range policies {
		out[i] = p.String()
	}
	return strings.Join(out, " and ")
}

// sentence makes a sentence of a difference reported by package catalog.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

// byName returns families by their names.
func byName(families []dataset.Family) map[string]dataset.Family {
	out := make(map[string]dataset.Family, len(families))
	for _, f := range families {
		out[f.Name] = f
	}
	return out
}

// quoted lists names for an error.
func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = invalid.Quote(n)
	}
	return strings.Join(out, ", ")
}
