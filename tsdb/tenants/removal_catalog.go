package tenants

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
)

// entryOf reads the catalogue's entry of the part's dataset; the zero Entry for none.
func (rm *removal) entryOf(ctx context.Context) (*catalog.Entry, error) {
	if rm.part.Dataset == "" {
		return &catalog.Entry{}, nil
	}
	st, err := catalog.Load(ctx, rm.Whole.SingleCluster(), []string{rm.part.Dataset})
	if err != nil {
		return nil, rm.Explain(err)
	}
	entry := st.Datasets[rm.part.Dataset]
	return &entry, nil
}

// known reports whether the catalogue has the part.
func (rm *removal) known() bool {
	switch {
	case rm.part.Dataset == "":
		return false
	case rm.part.whole():
		return rm.entry.Name != ""
	}
	return rm.entry.Has(rm.part.entry())
}

// rewrite changes the entry of the part's dataset. It retries if another process changed the entry first. It calls
// change between reading and writing the entry; change returns false if nothing is left to change.
func (rm *removal) rewrite(ctx context.Context, change func(*catalog.Dataset) (bool, error)) error {
	err := rm.Whole.Retry(ctx, func(ctx context.Context) (bool, error) {
		entry, err := rm.entryOf(ctx)
		if err != nil || entry.Name == "" {
			return err == nil, err
		}
		d := entry.Dataset
		if changed, err := change(&d); err != nil || !changed {
			return err == nil, err
		}
		return catalog.Rewrite(ctx, rm.Whole, d, *entry)
	})
	return rm.Explain(err)
}

// dropEntry deletes the dataset's entry, including one written by a program that had not read the mark.
func (rm *removal) dropEntry(ctx context.Context) error {
	err := rm.Whole.Retry(ctx, func(ctx context.Context) (bool, error) {
		entry, err := rm.entryOf(ctx)
		if err != nil || entry.Name == "" {
			return err == nil, err
		}
		if err := rm.save(ctx, nil); err != nil {
			return false, err // another call has taken over, and the entry may be of a new dataset with this name
		}
		return false, catalog.DeleteEntry(ctx, rm.Whole, *entry)
	})
	return rm.Explain(err)
}

// dropFromEntry removes the part from the dataset's entry.
func (rm *removal) dropFromEntry(ctx context.Context) error {
	return rm.rewrite(ctx, func(d *catalog.Dataset) (bool, error) {
		if !d.Has(rm.part.entry()) {
			return false, nil
		}
		if err := rm.save(ctx, nil); err != nil {
			return false, err // another call has taken over, and the part may be in use again
		}
		d.Remove(rm.part.entry())
		return true, nil
	})
}

// findReasons records why the part cannot be removed.
func (rm *removal) findReasons(ctx context.Context) (err error) {
	rm.rec.Impossible, err = rm.reasons(ctx)
	return err
}

// reasons returns why the part cannot be removed: its users, and, after counting, the visible data.
func (rm *removal) reasons(ctx context.Context) (why []string, err error) {
	why = []string{}
	say := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	p, entry := rm.part, rm.entry
	switch {
	case p.whole():
		return why, nil
	case p.Dataset == "":
		users, err := rm.users(ctx, p.Class, "")
		if err != nil {
			return why, err
		}
		if len(users) > 0 {
			say("Datasets use the class: %s.", list(users))
		}
		if rm.rec.Visible > 0 && !rm.unexpired && !rm.rec.Unexpired {
			say("%d rows have cells in the class's families, but no dataset in the catalogue says when they expire.", rm.rec.Visible)
		}
		return why, nil
	case p.Class != "":
		if len(entry.Classes) > 0 && entry.Classes[0].Name == p.Class {
			say("New points are written in %s unless a profile says otherwise.", p.entry())
		}
		names, err := rm.assigned(ctx)
		if err != nil {
			return why, err
		}
		if len(names) > 0 {
			say("Profiles assign the class to tenants: %s.", list(names))
		}
	case p.Tag != "":
		if len(entry.Tags) > 0 && entry.Tags[0] == p.Tag {
			say("New points are written with %s.", p.entry())
		}
	default:
		for _, r := range entry.Rollups {
			if r.From == p.Rollup && r.Name != p.Rollup {
				say("Rollup %s is computed from it.", r.Name)
			}
		}
	}
	if rm.rec.Visible > 0 && !rm.unexpired && !rm.rec.Unexpired {
		say("%d rows hold data that has not expired.", rm.rec.Visible)
	}
	return why, nil
}

// mostNamed is how many names a reason lists.
const mostNamed = 10

// list joins names, and replaces those after mostNamed by "…".
func list(names []string) string {
	if len(names) > mostNamed {
		names = append(slices.Clone(names[:mostNamed]), "…")
	}
	return strings.Join(names, ", ")
}

func sentences(why []string) string { return strings.Join(why, " ") }

// assigned returns the first tenants whose profiles assign the class for the dataset.
func (rm *removal) assigned(ctx context.Context) (names []string, err error) {
	for a, err := range catalog.Assignments(ctx, rm.Whole.SingleCluster(), nil) {
		if err != nil {
			return nil, rm.Explain(err)
		}
		if a.Of(rm.part.Dataset) == rm.part.Class && len(names) <= mostNamed {
			names = append(names, a.Tenant)
		}
	}
	return names, nil
}

// users returns the first datasets of the catalogue, except but, that use a class for points or rollups.
func (rm *removal) users(ctx context.Context, class, but string) (names []string, err error) {
	for d, err := range catalog.Each(ctx, rm.Whole.SingleCluster()) {
		if err != nil {
			return nil, rm.Explain(err)
		}
		if slices.Contains(classesOf(d.Dataset), class) && d.Name != but && len(names) <= mostNamed {
			names = append(names, d.Name)
		}
	}
	return names, nil
}

// classesOf returns the names of the classes that a dataset uses for points or rollups, in order.
func classesOf(d catalog.Dataset) (classes []string) {
	for _, c := range d.Classes {
		classes = append(classes, c.Name)
	}
	for _, r := range d.Rollups {
		classes = append(classes, r.Class.Name)
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

// describe records which families are deleted, and which classes no dataset will use.
func (rm *removal) describe(ctx context.Context) (err error) {
	rm.rec.Unused = []string{}
	if rm.part.Dataset == "" {
		rm.rec.Families, err = rm.families(ctx)
		return err
	}
	after := rm.entry.Dataset
	after.Remove(rm.part.entry())
	for _, class := range classesOf(rm.entry.Dataset) {
		if !rm.part.whole() && slices.Contains(classesOf(after), class) {
			continue
		}
		users, err := rm.users(ctx, class, rm.part.Dataset)
		if err != nil {
			return err
		}
		if len(users) == 0 {
			rm.rec.Unused = append(rm.rec.Unused, class)
		}
	}
	return nil
}

// families returns the table's column families of the class.
func (rm *removal) families(ctx context.Context) ([]string, error) {
	admin, end, err := rm.Admin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	info, err := admin.TableInfo(ctx, rm.Name)
	if err != nil {
		return nil, fmt.Errorf("tenants: read table %s: %w", rm.Name, err)
	}
	names := []string{}
	for _, f := range info.Families {
		if class, _, _ := strings.Cut(f, "."); class == rm.part.Class {
			names = append(names, f)
		}
	}
	slices.Sort(names)
	return names, nil
}

// dropFamilies deletes the column families of the class.
func (rm *removal) dropFamilies(ctx context.Context) error {
	admin, end, err := rm.Admin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return rm.Whole.Retry(ctx, func(ctx context.Context) (bool, error) {
		for _, name := range rm.rec.Families {
			if err := rm.save(ctx, nil); err != nil { // Release may have stopped the removal
				return false, err
			}
			if err := admin.DeleteColumnFamily(ctx, rm.Name, name); err != nil && status.Code(err) != codes.NotFound {
				return false, fmt.Errorf("tenants: drop family %s of table %s: %w", name, rm.Name, err)
			}
		}
		return true, nil
	})
}
