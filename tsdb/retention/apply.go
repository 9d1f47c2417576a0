package retention

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/tidemark-go/tidemark/internal/gcrule"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/ensure"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
)

// ApplyOptions configure Plan.Apply. The zero value allows nothing to be deleted.
type ApplyOptions struct {
	// Allow names the retention classes, or single families, whose data may be deleted. Read the plan, then pass what
	// Plan.Destructive returns. tsdb.ErrInvalid refuses a name of which the plan deletes nothing, unless that class
	// or family already is as declared: so the same call can be repeated, and made by each replica. Nil allows none.
	Allow []string
	// IgnoreWarnings tells the service to skip its own safety checks. Without it, the service refuses a policy that
	// keeps more on a replicated table, because one cluster may already have deleted what others still have.
	IgnoreWarnings bool
}

// Apply makes the changes of the plan, and no others. It reads the table and the catalogue again, and fails with
// ErrStale if a family or an entry is neither what the plan saw nor what the plan wants. One admin call creates and
// changes all families, together or not at all; then Apply records the datasets in the catalogue. It creates a missing
// table, and never deletes a family.
//
// If the plan has a step that deletes data and is not allowed by name, or an impossible step, Apply changes nothing,
// and the error matches ErrNotAllowed, or the plan has an impossible step.
//
// Apply can be repeated, and called by many replicas at once: if the plan is already done, it changes nothing and
// reports that. After an interruption, applying the same plan continues it. One race remains, because an admin call
// takes no condition: if somebody else changes a policy in the few milliseconds between the check and the call, Apply
// overwrites that change. If two different plans are applied at once, at most one succeeds. The other fails with
// ErrStale, but may have been the last to change the table: the next plan then shows drift.
//
// It costs two admin calls that read, one that writes, two reads, and conditional writes for the catalogue; one admin
// call and two reads more if it lengthens a policy. It retries calls within the timeout of scans, and checks the result
// of a call whose response was lost. The service may take up to a week to delete what has expired; readers that declare
// the policy stop seeing it at once.
func (p *Plan) Apply(ctx context.Context, store *tsdb.Store, opts ApplyOptions) (_ Report, err error) {
	ctx, op := inside.Of(store).Watch().Begin(ctx, telemetry.RetentionApply, telemetry.Subject{})
	defer func() { op.End(err) }()
	if p == nil || p.doc.Format == "" {
		return Report{}, invalid.New(tsdb.ErrInvalid, "plan", "the zero value", "a plan from NewPlan, NewPlanFor or ReadPlan")
	}
	r, end, err := enter(ctx, store)
	if err != nil {
		return Report{}, err
	}
	defer end()
	rep := Report{Table: r.path, Applied: []Item{}}
	if r.path != p.doc.Table {
		return rep, invalid.New(tsdb.ErrInvalid, "plan", "for "+invalid.Quote(p.doc.Table), "a plan for "+r.path)
	}
	families, err := dataset.FamiliesFromCatalog(p.doc.Declared)
	if err != nil {
		return rep, err
	}
	a := applier{room: r, opts: opts, plan: p.doc, want: byName(families)}
	err = r.Whole.Retry(ctx, a.once)
	rep.Applied = append(rep.Applied, a.done...)
	return rep, err
}

// applier applies one plan.
type applier struct {
	room
	opts ApplyOptions
	plan document
	want map[string]dataset.Family

	doubt   []Item // requested, and maybe applied
	done    []Item
	checked bool            // conditional writes pass
	noted   map[string]bool // datasets whose complete range the catalogue now has
}

// once reads the table and makes the changes that are left. It reports false if the caller must try again.
func (a *applier) once(ctx context.Context) (done bool, err error) {
	have, err := a.look(ctx)
	if err != nil {
		return false, err
	}
	items := compare(a.plan.Declared, a.want, have)
	a.settle(items)
	if err := a.admit(have, items); err != nil {
		return false, err
	}
	if !have.exists {
		if err := a.Ensure(ctx, a.plan.Declared); err != nil {
			return false, err
		}
		a.done = append(a.done, steps(items)...)
		return true, nil
	}
	if err := a.checkConditional(ctx, have, items); err != nil {
		return false, err
	}
	if again, err := a.noteComplete(ctx, have); again || err != nil {
		return false, err
	}
	if again, err := a.modify(ctx, items); again || err != nil {
		return false, err
	}
	if all, err := a.record(ctx, have, items); !all || err != nil {
		return false, err
	}
	return true, a.verify(ctx, items)
}

// verify reads the changed families again: another plan that was applied at the same time may have changed them before
// it failed at the catalogue.
func (a *applier) verify(ctx context.Context, items []Item) error {
	if !slices.ContainsFunc(items, func(i Item) bool { return i.acts() }) {
		return nil
	}
	now, err := a.table(ctx)
	if err != nil {
		return err
	}
	return a.holds(familiesOf(now), items)
}

// holds fails with ErrStale if a family does not have the policy that an item gave it.
func (a *applier) holds(now map[string]family, items []Item) error {
	for _, i := range items {
		if !i.acts() {
			continue
		}
		if have, ok := now[i.Family]; !ok || have.err != nil || !have.policy.Equal(a.want[i.Family].Policy) {
			return fmt.Errorf("%w: family %s was changed to %q, but the table has %s", ErrStale, i.Family, i.Declared, orNone(have.text))
		}
	}
	return nil
}

// settle finds out whether steps were applied whose response was lost.
func (a *applier) settle(items []Item) {
	left := map[[2]string]bool{}
	for _, i := range items {
		left[i.is()] = left[i.is()] || i.steps()
	}
	for _, d := range a.doubt {
		if !left[d.is()] {
			a.done = append(a.done, d)
		}
	}
	a.doubt = nil
}

// admit refuses what must not be applied.
func (a *applier) admit(have actual, items []Item) error {
	known := map[string]bool{}
	var refused, lacks []string
	for _, i := range slices.Concat(a.plan.Items, items) {
		if i.Destructive {
			known[i.Family], known[i.allowedBy()] = true, true
		}
	}
	delete(known, "")
	for _, name := range a.opts.Allow {
		if !known[name] && !a.asDeclared(name, items) {
			names := slices.Sorted(maps.Keys(known))
			want := "a class or family of a destructive step; the plan has none"
			if len(names) > 0 {
				want = "a class or family of a destructive step: " + strings.Join(names, ", ")
			}
			return invalid.New(tsdb.ErrInvalid, "Allow", invalid.Quote(name), want)
		}
	}
	if err := a.fresh(have); err != nil {
		return err
	}
	if err := impossible(slices.Concat(a.plan.Items, items)); err != nil {
		return err
	}
	for _, i := range items {
		if i.Destructive && !slices.Contains(a.opts.Allow, i.allowedBy()) && (i.Family == "" || !slices.Contains(a.opts.Allow, i.Family)) {
			refused = append(refused, strings.TrimSuffix(i.subject()+" ("+i.policies()+")", " ()"))
			if name := i.allowedBy(); !slices.Contains(lacks, name) {
				lacks = append(lacks, name)
			}
		}
	}
	if len(refused) > 0 {
		return fmt.Errorf("%w: %s; Allow lacks %s", ErrNotAllowed, strings.Join(refused, ", "), strings.Join(lacks, ", "))
	}
	return nil
}

// asDeclared reports whether the table has the class or family of that name as the plan declares it.
func (a *applier) asDeclared(name string, items []Item) bool {
	of := func(family, class string) bool { return name != "" && (family == name || class == name) }
	for _, w := range a.want {
		if of(w.Name, w.Class.Name) {
			return !slices.ContainsFunc(items, func(i Item) bool { return of(i.Family, i.Class) })
		}
	}
	for _, d := range a.plan.Declared {
		if d.Name == name {
			return !slices.ContainsFunc(items, func(i Item) bool { return i.Dataset == name })
		}
	}
	return false
}

// fresh fails with ErrStale if something in the table is neither what the plan saw nor what the plan wants.
func (a *applier) fresh(have actual) error {
	wanted := seen{Families: map[string]string{}, Datasets: map[string]string{}}
	for name, f := range a.want {
		wanted.Families[name] = f.Policy.String() + kindOf(f.Type)
	}
	for _, d := range a.plan.Declared {
		wanted.Datasets[d.Name] = fingerprint(d)
	}
	now := have.seen()
	var stale []string
	for name := range union(a.plan.Seen.Families, now.Families) {
		is, was := now.Families[name], a.plan.Seen.Families[name]
		if is != was && is != wanted.Families[name] {
			stale = append(stale, fmt.Sprintf("family %s was %s and is %s", name, orNone(was), orNone(is)))
		}
	}
	for name := range union(a.plan.Seen.Datasets, now.Datasets) {
		is, was := now.Datasets[name], a.plan.Seen.Datasets[name]
		if is != was && is != wanted.Datasets[name] && is != a.plan.Seen.Halfway[name] {
			stale = append(stale, "the catalogue's entry of dataset "+name+" has changed")
		}
	}
	if len(stale) == 0 {
		return nil
	}
	slices.Sort(stale)
	return fmt.Errorf("%w: %s", ErrStale, strings.Join(stale, "; "))
}

func union(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}

func orNone(text string) string {
	if text == "" {
		return "not there"
	}
	return fmt.Sprintf("%q", text)
}

// modify creates and changes all families in one call. It reports true if somebody else has just created one of them.
func (a *applier) modify(ctx context.Context, items []Item) (again bool, err error) {
	req := &adminpb.ModifyColumnFamiliesRequest{Name: a.path, IgnoreWarnings: a.opts.IgnoreWarnings}
	var asked []Item
	for _, i := range items {
		if !i.acts() {
			continue
		}
		w := a.want[i.Family]
		m := &adminpb.ModifyColumnFamiliesRequest_Modification{Id: i.Family}
		cf := &adminpb.ColumnFamily{GcRule: ruleOf(gcrule.To(w.Policy))}
		if i.Kind == kindCreate {
			if cf.ValueType, err = typeOf(w.Type); err != nil {
				return false, err
			}
			m.Mod = &adminpb.ModifyColumnFamiliesRequest_Modification_Create{Create: cf}
		} else {
			m.Mod = &adminpb.ModifyColumnFamiliesRequest_Modification_Update{Update: cf}
			m.UpdateMask = &fieldmaskpb.FieldMask{Paths: []string{"gc_rule"}}
		}
		req.Modifications = append(req.Modifications, m)
		asked = append(asked, i)
	}
	if len(asked) == 0 {
		return false, nil
	}
	a.doubt = asked
	t, err := a.admin.TableAdminClientV2().ModifyColumnFamilies(ctx, req)
	switch status.Code(err) {
	case codes.OK:
	case codes.AlreadyExists, codes.NotFound:
		a.doubt = nil
		return true, nil
	default:
		return false, fmt.Errorf("retention: change the families of table %s: %w", a.Name, err)
	}
	if err := a.holds(familiesOf(t), asked); err != nil {
		return false, err
	}
	a.doubt, a.done = nil, append(a.done, asked...)
	return false, nil
}

// checkConditional tests, before Apply changes anything, whether it can write the catalogue.
func (a *applier) checkConditional(ctx context.Context, have actual, items []Item) error {
	_, ok := have.families[catalog.Family]
	if a.checked || !ok || have.catalog.Format == 0 || !slices.ContainsFunc(items, func(i Item) bool { return i.Kind == kindRecord }) {
		return nil
	}
	if _, err := catalog.WriteFormat(ctx, a.Whole); err != nil { // it exists, so this writes nothing
		return ensure.CatalogError(a.Name, err)
	}
	a.checked = true
	return nil
}

// record writes the entries of the datasets: those that differ by policies alone by their generation, the others by
// Ensure.
func (a *applier) record(ctx context.Context, have actual, items []Item) (all bool, err error) {
	declared := make(map[string]catalog.Dataset, len(a.plan.Declared))
	for _, d := range a.plan.Declared {
		declared[d.Name] = d
	}
	rest, again := have.catalog.Format == 0 && len(a.plan.Declared) > 0, false
	for _, i := range items {
		if i.Kind != kindRecord {
			continue
		}
		d := declared[i.Dataset]
		old, ok := have.catalog.Datasets[d.Name]
		next := withPolicies(old.Dataset, d)
		if !ok || !d.Same(next) {
			rest = true // which also tests what new rollups need
		}
		if !ok || next.Same(old.Dataset) {
			continue
		}
		a.doubt = []Item{i}
		written, err := catalog.Write(ctx, a.Whole, next, old)
		switch {
		case err != nil:
			return false, ensure.CatalogError(a.Name, err)
		case !written:
			a.doubt, again = nil, true
		case d.Same(next):
			a.doubt, a.done = nil, append(a.done, i)
		}
	}
	if again || !rest {
		return !again, nil
	}
	done := map[[2]string]bool{}
	for _, i := range a.done {
		done[i.is()] = true
	}
	a.doubt = slices.DeleteFunc(slices.Clone(items), func(i Item) bool { return i.Kind != kindRecord || done[i.is()] })
	if err := a.Ensure(ctx, a.plan.Declared); err != nil {
		return false, err
	}
	a.done, a.doubt = append(a.done, a.doubt...), nil
	return true, nil
}

// steps returns the items on which Apply acts.
func steps(items []Item) []Item {
	return slices.DeleteFunc(slices.Clone(items), func(i Item) bool { return !i.steps() })
}
