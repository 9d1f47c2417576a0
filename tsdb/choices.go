package tsdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// in returns the dataset that writes in the class of that name, or in the default class where it is none of the choices.
func (d *dataset) in(class string) *dataset {
	if c := d.choices[class]; c != nil {
		return c
	}
	return d.choices[""]
}

// writing returns the dataset that writes the tenant's points now.
func (r *Repository[T]) writing(ctx context.Context) (*dataset, error) {
	d := &r.schema.d
	if d.choices == nil {
		return d, nil
	}
	if a := r.store.classes.fresh(); a != nil {
		return a.of(r.tenant.String(), d), nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.rows.Timeouts().Write)
	defer cancel()
	a, err := r.store.classes.get(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("tsdb: read the retention classes of tenants: %w", err)
	case err != nil:
		return nil, err
	}
	return a.of(r.tenant.String(), d), nil
}

// arriving returns the dataset by which a point is refused that has expired, where that is looked at again when the point is
// sent: the one that writes the tenant's points by what is known, and as long as nothing is, the one whose class keeps longest.
// It waits for nothing.
func (s *Store) arriving(d *dataset, id tenant.ID) *dataset {
	if d.choices == nil {
		return d
	}
	if a := s.classes.glimpse(); a != nil {
		return a.of(id.String(), d)
	}
	longest := d
	for _, c := range d.choices {
		if !c.classes[0].bounded || longest.classes[0].bounded && c.classes[0].age > longest.classes[0].age {
			longest = c
		}
	}
	return longest
}

// classed gives each item the class that its tenant is in now. It reports false where nothing can be sent, as the classes
// cannot be read; the report then says what that means.
func (d delivery) classed(ctx context.Context, items []*buffer.Item, r *buffer.Report) bool {
	if !slices.ContainsFunc(items, chooses) {
		return true
	}
	a, err := d.store.classes.get(ctx)
	if err != nil {
		again := d.judge(r, err, 1)
		for _, it := range items {
			it.Again = again || d.keep || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
			it.Track.Add(bt.Outcome{State: bt.Rejected, Err: err})
		}
		return false
	}
	for _, it := range items {
		if chooses(it) {
			w := &it.Work.(*pending).write
			w.d = a.of(it.Tenant, w.d)
		}
	}
	return true
}

// chooses reports whether an item is a point of a dataset with classes to choose from.
func chooses(it *buffer.Item) bool {
	p := it.Work.(*pending)
	return p.event == nil && p.write.d.choices != nil
}

// expired refuses the cell of a point that would be invisible at once in the class that is written.
func (d *dataset) expired(cell bigtable.Timestamp, now time.Time) error {
	if c := &d.classes[0]; cell < c.cutoff(now) {
		return invalid.New(ErrExpired, "time", stamp(cell.Time()), fmt.Sprintf("what the retention class %s keeps", c.Class))
	}
	return nil
}

// withChoices completes a dataset that has all else: it adds those that write in the classes to choose from, which are the same
// with another class in the first place.
func (d *dataset) withChoices() {
	for i := range d.classes {
		if !d.classes[i].choice {
			continue
		}
		if d.choices == nil {
			d.choices = map[string]*dataset{"": d}
		}
		d.choices[d.classes[i].Name] = nil
	}
	for i := range d.classes {
		if d.classes[i].choice {
			d.choices[d.classes[i].Name] = d.writtenIn(i)
		}
	}
}

// writtenIn returns the dataset that writes in the class at an index. Its points are read alike, so it has the same layout.
func (d *dataset) writtenIn(class int) *dataset {
	to := *d
	to.classes = toFront(d.classes, class)
	to.columns = columns(to.classes, d.tags)
	if d.head.Points > 0 {
		to.headClasses = toFront(d.headClasses, class)
		to.headColumns = columns(to.headClasses, d.tags)
	}
	to.written = class * len(d.tags)
	return &to
}

func toFront(classes []class, i int) []class {
	return slices.Concat(classes[i:i+1], classes[:i], classes[i+1:])
}

// mine reports whether a payload that is equal to the one that w writes is taken for w's own. One in another class lives for
// another time, and so is another, unless the tenant was in that class: who writes a first-wins point again after the tenant
// has changed class, as a journal may, is not to find another's in the way.
func (w *write) mine(item *bigtable.ReadItem) bool {
	if item.Column == w.d.columns[0].name {
		return true
	}
	if !w.d.firstWins || w.d.choices == nil {
		return false
	}
	base := w.d.choices[""]
	i := base.columnOf(item.Column)
	if i < 0 || base.columns[i].tag != 0 {
		return false
	}
	class := i / len(base.tags)
	return class == 0 || base.classes[class].choice
}

// mostFamilies is how many column families Bigtable lets a table have.
const mostFamilies = 100

// checkFamilies refuses a dataset that no table has room for.
func (d *dataset) checkFamilies() error {
	if n := len(families([]*dataset{d})); n > mostFamilies {
		return invalid.New(ErrInvalid, "column families of classes, heads and rollups", strconv.Itoa(n), fmt.Sprintf("at most %d, as Bigtable takes", mostFamilies))
	}
	return nil
}
