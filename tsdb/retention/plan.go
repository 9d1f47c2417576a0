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
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Plan lists the changes that make a table keep its data as declared. NewPlan, NewPlanFor and ReadPlan make one.
// String returns it as text; MarshalJSON returns JSON that ReadPlan reads. A plan is immutable and safe for
// concurrent use. Apply may be called again, and by many programs at once. The zero Plan is empty and cannot be
// applied.
type Plan struct{ doc document }

// document returns the plan's content; empty for nil.
func (p *Plan) document() *document {
	if p == nil {
		return new(document)
	}
	return &p.doc
}

// document is a plan in its JSON form.
type document struct {
	Format   string            `json:"format"`
	Version  int               `json:"version"`
	Table    string            `json:"table"`
	Items    []Item            `json:"items"`
	Declared []catalog.Dataset `json:"declared"`
	Seen     seen              `json:"seen"`
	Backups  string            `json:"backups,omitempty"` // for people; Apply ignores it
}

// NewPlan compares what the schemas declare with the table, including rollups and heads, and changes nothing. Pass
// all datasets that share a retention class. If the catalogue has another dataset of the class, the class cannot
// change.
//
// The plan has all differences, also impossible changes. The error says why the table could not be read. If the table
// is missing, the plan creates it, as Store.Ensure does. NewPlan costs one admin call and two reads, and holds every
// entry of the catalogue in memory, some kilobytes each. It retries temporary errors within the scan timeout.
func NewPlan(ctx context.Context, store *tsdb.Store, datasets ...tsdb.Dataset) (*Plan, error) {
	declared := make([]catalog.Dataset, len(datasets))
	for i, d := range datasets {
		described, err := inside.Of(d).Shape()
		if err != nil {
			return nil, err
		}
		declared[i] = described.ToCatalog()
	}
	return newPlan(ctx, store, func(actual) ([]catalog.Dataset, error) { return declared, nil })
}

// NewPlanFor is NewPlan for programs without the schemas. It plans for all datasets of the catalogue, with other
// policies for the named retention classes. Nil changes nothing, and the plan shows only drift. The programs that
// write to the table must then declare the same policies. Until they do, their Ensure and Verify fail, and their
// reads use their own policies.
//
// The error matches tsdb.ErrInvalid for a name that is not a class of the catalogue, and for a policy that does not fit
// points. It matches tsdb.ErrNoTable if the table is missing or holds no store.
func NewPlanFor(ctx context.Context, store *tsdb.Store, classes map[string]gc.Policy) (*Plan, error) {
	classes = maps.Clone(classes)
	return newPlan(ctx, store, func(have actual) ([]catalog.Dataset, error) {
		switch {
		case !have.exists:
			return nil, tsdb.ErrNoTable
		case have.catalog.Format == 0: // never create a family in another program's table
			return nil, fmt.Errorf("%w: the table holds no store", tsdb.ErrNoTable)
		}
		return have.with(classes)
	})
}

func newPlan(ctx context.Context, store *tsdb.Store, declare func(actual) ([]catalog.Dataset, error)) (p *Plan, err error) {
	ctx, op := inside.Of(store).Watch().Begin(ctx, telemetry.RetentionPlan, telemetry.Subject{})
	defer func() { op.End(err) }()
	r, end, err := enter(ctx, store)
	if err != nil {
		return nil, err
	}
	defer end()
	err = r.Whole.Retry(ctx, func(ctx context.Context) (bool, error) {
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

// plan compares the declared datasets with the table.
func (r room) plan(declared []catalog.Dataset, have actual) (*Plan, error) {
	families, err := dataset.FamiliesFromCatalog(declared)
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
		Items:    compare(declared, byName(families), have),
		Declared: declared,
		Seen:     was,
		Backups:  have.backups,
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
			apart = invalid.New(tsdb.ErrInvalid, "retention class", invalid.Quote(c.Name),
				fmt.Sprintf("a policy for it in this call, because the catalogue has both %q and %q", other, c.Policy))
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
			return nil, invalid.New(tsdb.ErrInvalid, "retention class", invalid.Quote(name), "a class in the catalogue ("+cmp.Or(quoted(slices.Sorted(maps.Keys(offered))), "it has none")+")")
		}
		if _, _, err := classes[name].PointAge(); err != nil {
			return nil, fmt.Errorf("%w: retention class %s: %w", tsdb.ErrInvalid, invalid.Quote(name), err)
		}
	}
	return out, apart
}

// Items returns the lines of the plan in this order: families to create, to change and to restore; entries to
// record; families to leave alone; impossible changes.
func (p *Plan) Items() []Item { return cloneItems(p.document().Items) }

// Empty reports whether Apply would change nothing. The items may still contain families to leave alone and
// impossible changes.
func (p *Plan) Empty() bool {
	return !slices.ContainsFunc(p.document().Items, func(i Item) bool { return i.steps() })
}

// Drifted reports whether somebody changed a policy or removed a family elsewhere, such as in a console or with
// another program. It includes the families of datasets that are not in the plan.
func (p *Plan) Drifted() bool {
	return slices.ContainsFunc(p.document().Items, func(i Item) bool {
		return i.Kind == kindDrift || i.Kind == kindChangeAndDrift || i.Kind == kindUnlisted || i.Kind == kindCreate && i.Recorded != ""
	})
}

// Destructive returns the names that ApplyOptions.Allow must contain: retention classes, families without a class,
// and datasets whose rollups SchemaOptions.RollupAges now keeps for a shorter time.
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

// impossible returns the reason why the plan cannot be applied, or nil.
func impossible(items []Item) error {
	var why []string
	for _, i := range items {
		if i.Kind == kindImpossible {
			why = append(why, i.subject()+": "+strings.Join(i.Notes, " "))
		}
	}
	if len(why) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", errtype.ErrPlan, strings.Join(why, " "))
}

func cloneItems(items []Item) []Item {
	out := slices.Clone(items)
	for i := range out {
		out[i].Holds, out[i].Notes = slices.Clone(out[i].Holds), slices.Clone(out[i].Notes)
	}
	return out
}

func ageText(age time.Duration) string { return strings.TrimPrefix(gc.MaxAge(age).String(), "maxage=") }
