package retention

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Plan is what it takes to make a table keep its data as long as is declared. NewPlan, NewPlanFor and ReadPlan make one. It
// prints as text for people (String) and marshals to JSON for machines, which ReadPlan reads. A plan is immutable and safe for
// concurrent use; Apply may be called again and by many programs at once. The zero Plan is none, and cannot be applied.
type Plan struct{ doc document }

// document returns what is in the plan: nothing for nil.
func (p *Plan) document() *document {
	if p == nil {
		return new(document)
	}
	return &p.doc
}

// document is a plan as it is marshalled.
type document struct {
	Format   string            `json:"format"`
	Version  int               `json:"version"`
	Table    string            `json:"table"`
	Items    []Item            `json:"items"`
	Declared []catalog.Dataset `json:"declared"`
	Seen     seen              `json:"seen"`
}

// NewPlan compares what the schemas declare with the table, its rollups and heads included, and changes nothing. Pass all
// datasets that share a retention class: one that is in the catalogue and not among them keeps its class from changing.
//
// Whatever differs is in the plan, also what cannot be done; the error is for what keeps from looking. Where the table is
// missing the plan is to make it, as Store.Ensure does. It costs one admin call and two reads. What fails and may succeed later
// is tried again, within the timeout of scans.
func NewPlan(ctx context.Context, store *tsdb.Store, datasets ...tsdb.Dataset) (*Plan, error) {
	declared := make([]catalog.Dataset, len(datasets))
	for i, d := range datasets {
		described, err := inside.OfDataset(d)
		if err != nil {
			return nil, err
		}
		declared[i] = described.Entry
	}
	return newPlan(ctx, store, func(actual) ([]catalog.Dataset, error) { return declared, nil })
}

// NewPlanFor is NewPlan for programs without the schemas: it goes by the catalogue, for all of its datasets, with other policies
// for the named retention classes. Nil changes nothing, and the plan shows drift alone. The programs that write to the table
// have to declare the same policies: until they do, their Ensure and Verify fail, and they read by what they declare.
//
// A name that is no class in the catalogue is refused with ErrInvalid, and so is a policy that does not fit points. Its error
// matches tsdb.ErrNoTable where the table is missing, or holds no store.
func NewPlanFor(ctx context.Context, store *tsdb.Store, classes map[string]gc.Policy) (*Plan, error) {
	classes = maps.Clone(classes)
	return newPlan(ctx, store, func(have actual) ([]catalog.Dataset, error) {
		switch {
		case !have.exists:
			return nil, tsdb.ErrNoTable
		case have.catalog.Format == 0: // by no means is a family to be made in another program's table
			return nil, fmt.Errorf("%w: the table holds no store", tsdb.ErrNoTable)
		}
		return have.with(classes)
	})
}

func newPlan(ctx context.Context, store *tsdb.Store, declare func(actual) ([]catalog.Dataset, error)) (p *Plan, err error) {
	ctx, op := inside.Watch(store).Begin(ctx, telemetry.RetentionPlan, telemetry.Subject{})
	defer func() { op.End(err) }()
	r, end, err := enter(ctx, store)
	if err != nil {
		return nil, err
	}
	defer end()
	err = r.Table.Retry(ctx, func(ctx context.Context) (bool, error) {
		have, err := r.look(ctx)
		if err != nil {
			return false, err
		}
		declared, err := declare(have)
		if err != nil {
			return false, err
		}
		p, err = r.plan(declared, have)
		return err == nil, err
	})
	return p, err
}

// The format of plans.
const (
	planFormat  = "tidemark/retention-plan"
	planVersion = 1
)

// plan compares what is declared with what the table has.
func (r room) plan(declared []catalog.Dataset, have actual) (*Plan, error) {
	families, err := r.Families(declared)
	if err != nil {
		return nil, err
	}
	declared = slices.Clone(declared)
	slices.SortFunc(declared, func(a, b catalog.Dataset) int { return cmp.Compare(a.Name, b.Name) })
	was := have.seen()
	for _, d := range declared {
		e, ok := have.catalog.Datasets[d.Name]
		if next := withPolicies(e.Dataset, d); ok && !next.Same(e.Dataset) && !next.Same(d) {
			if was.Halfway == nil {
				was.Halfway = map[string]string{}
			}
			was.Halfway[d.Name] = fingerprint(next)
		}
	}
	return &Plan{document{
		Format: planFormat, Version: planVersion, Table: r.path,
		Items:    compare(declared, byName(families), have, r.Families),
		Declared: declared,
		Seen:     was,
	}}, nil
}

// with returns the catalogue's datasets with other policies for some classes.
func (a actual) with(classes map[string]gc.Policy) ([]catalog.Dataset, error) {
	offered := map[string]string{} // policies
	var apart error
	offer := func(c *catalog.Class) {
		if p, ok := classes[c.Name]; ok {
			c.Policy = p.String()
		}
		if other, ok := offered[c.Name]; ok && other != c.Policy && apart == nil {
			apart = invalid.New(ErrInvalid, "retention class", invalid.Quote(c.Name),
				fmt.Sprintf("one that is given a policy here, as the catalogue has it with both %q and %q", other, c.Policy))
		}
		offered[c.Name] = c.Policy
	}
	out := []catalog.Dataset{}
	for _, name := range slices.Sorted(maps.Keys(a.catalog.Datasets)) {
		d := a.catalog.Datasets[name].Dataset
		d = withPolicies(d, d) // a copy
		for i := range d.Classes {
			offer(&d.Classes[i])
		}
		for i := range d.Rollups {
			offer(&d.Rollups[i].Class)
		}
		out = append(out, d)
	}
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		if _, ok := offered[name]; !ok {
			return nil, invalid.New(ErrInvalid, "retention class", invalid.Quote(name), "one of the catalogue: "+cmp.Or(quoted(slices.Sorted(maps.Keys(offered))), "there is none"))
		}
		if _, _, err := classes[name].PointAge(); err != nil {
			return nil, fmt.Errorf("retention class %s: %w", invalid.Quote(name), err)
		}
	}
	return out, apart
}

// Table returns the full name of the table: projects/p/instances/i/tables/t.
func (p *Plan) Table() string { return p.document().Table }

// Items returns the lines of the plan: what is to be created, changed, set back and recorded, what is left alone, and what
// cannot be done, in this order.
func (p *Plan) Items() []Item { return cloneItems(p.document().Items) }

// Empty reports whether there is nothing to do: Apply would change nothing. What is left alone, or cannot be done, may still
// be among the items.
func (p *Plan) Empty() bool {
	return !slices.ContainsFunc(p.document().Items, func(i Item) bool { return i.Kind.steps() })
}

// Drifted reports whether a policy was changed, or a family removed, elsewhere: by a hand in a console, or another program. What
// others' datasets have recorded counts too.
func (p *Plan) Drifted() bool {
	return slices.ContainsFunc(p.document().Items, func(i Item) bool {
		return i.Kind == Drift || i.Kind == ChangeAndDrift || i.Kind == Unlisted || i.Kind == Create && i.Recorded != ""
	})
}

// Destructive returns the names that ApplyOptions.Allow must have for the plan to be applied: retention classes, families that
// belong to none, and datasets whose rollups are kept for less by SchemaOptions.RollupAges.
func (p *Plan) Destructive() []string {
	var names []string
	for _, i := range p.document().Items {
		if name := i.allowedBy(); i.Destructive && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// impossible returns why the plan cannot be applied.
func impossible(items []Item) error {
	var why []string
	for _, i := range items {
		if i.Kind == Impossible {
			why = append(why, i.subject()+": "+strings.Join(i.Notes, " "))
		}
	}
	if len(why) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrImpossible, strings.Join(why, " "))
}

func cloneItems(items []Item) []Item {
	out := slices.Clone(items)
	for i := range out {
		out[i].Holds, out[i].Notes = slices.Clone(out[i].Holds), slices.Clone(out[i].Notes)
	}
	return out
}

func ageText(age time.Duration) string { return strings.TrimPrefix(gc.MaxAge(age).String(), "maxage=") }
