package points

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// Raw is a tenant's points of a dataset that only the catalogue describes.
type Raw struct {
	table  *Table
	tenant tenant.ID
	entry  catalog.Dataset
	d      *dataset.Dataset
	points rowkey.Space
	heads  rowkey.Space
	mu     sync.Mutex
	as     map[[2]string]*dataset.Dataset // the dataset that writes a class and a tag
}

// RawPoint is one point as it is stored.
type RawPoint struct {
	Path       string // of the entity
	Units      int64  // the time in units of the dataset's precision
	ID         string // in a dataset whose points have an identity; else empty
	Class, Tag string // of the payload
	Payload    []byte
	Unread     error // not nil if the catalogue does not know the payload's tag; Payload is then nil
}

// Selection selects the points to read.
type Selection struct {
	Entity         string    // the path of the only entity; empty for all
	Oldest, Newest int64     // in units, both inclusive
	After          *RawPoint // the last point read; nil means from the start. Only its path, time and ID count
	Bulk           bool      // read through the app profile of bulk reads, which may lack the last half hour
}

// Raw returns a tenant's points of a dataset, for code that moves them without their Go type. Its error matches
// ErrTenantMismatch if ctx carries another tenant, and ErrErased if the tenant is erased.
func (t *Table) Raw(ctx context.Context, e catalog.Dataset, id tenant.ID) (*Raw, error) {
	d, err := dataset.FromCatalog(e)
	if err != nil {
		return nil, err
	}
	space, err := d.Space(id)
	if err != nil {
		return nil, err
	}
	space = d.BesideRollups(space)
	r := &Raw{table: t, tenant: id, entry: e, d: d, points: space, heads: space.Heads(), as: map[[2]string]*dataset.Dataset{}}
	return r, r.admit(ctx)
}

func (r *Raw) admit(ctx context.Context) error {
	if err := r.table.AdmitOpen(); err != nil {
		return err
	}
	return r.table.Admit(ctx, r.tenant)
}

// Write stores points as any other write does, and returns their outcomes in order. No two points may be in one row. A
// point that cannot be stored does not affect the others. With dry it only checks the points and sends nothing.
func (r *Raw) Write(ctx context.Context, points []RawPoint, dry bool) []bt.Outcome {
	outs := make([]bt.Outcome, len(points))
	writes := make([]*Write, 0, len(points))
	index := make([]int, 0, len(points))
	refused := r.admit(ctx)
	for i := range points {
		w, err := r.prepare(&points[i])
		if refused != nil {
			err = refused
		}
		if err != nil {
			outs[i] = bt.Outcome{State: bt.Rejected, Err: err}
			continue
		}
		outs[i] = bt.Outcome{State: bt.Stored}
		writes, index = append(writes, &w), append(index, i)
	}
	if dry {
		return outs
	}
	for i, o := range r.table.SendMany(ctx, r.table.Rows(r.tenant), writes) {
		outs[index[i]] = o
	}
	return outs
}

// prepare checks a point and returns its write. No part of the point is trusted.
func (r *Raw) prepare(p *RawPoint) (Write, error) {
	if err := r.points.CheckPath(p.Path); err != nil {
		return Write{}, err
	}
	if p.Units < 0 || p.Units > r.d.Precision.Max() {
		return Write{}, invalid.New(dataset.ErrInvalid, "time", fmt.Sprint(p.Units), fmt.Sprintf("0 to %d %s", r.d.Precision.Max(), r.d.Precision))
	}
	if err := r.table.Erased.AdmitEntity(r.tenant, r.d.Name, p.Path); err != nil {
		return Write{}, err
	}
	if err := r.points.CheckID(p.ID); err != nil {
		return Write{}, err
	}
	d, err := r.writer(p.Class, p.Tag)
	if err != nil {
		return Write{}, err
	}
	if _, err := d.CheckArrival(d.Precision.Time(p.Units), r.table.Clock()); err != nil {
		return Write{}, err
	}
	if limit := d.MaxPayload(); len(p.Payload) > limit {
		return Write{}, invalid.New(dataset.ErrInvalid, "payload", fmt.Sprintf("%d bytes", len(p.Payload)), fmt.Sprintf("at most %d bytes", limit))
	}
	w := NewWrite(d, r.points, r.heads, p.Path, p.Units, p.ID, p.Payload)
	if _, _, ok := r.points.Split(w.Key); !ok {
		return Write{}, invalid.New(dataset.ErrInvalid, "entity", invalid.Quote(p.Path), "an escaped path")
	}
	return w, nil
}

// writer returns a copy of the dataset that writes in a class and a tag: classes and tags are reordered, so that these
// come first. In a dataset with Merge, points of a tag that cannot be merged are written only if no point exists.
func (r *Raw) writer(class, tag string) (*dataset.Dataset, error) {
	key := [2]string{class, tag}
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.as[key]; d != nil {
		return d, nil
	}
	e := r.entry
	c := slices.IndexFunc(e.Classes, func(c catalog.Class) bool { return c.Name == class })
	t := slices.Index(e.Tags, tag)
	switch {
	case c < 0:
		return nil, invalid.New(dataset.ErrInvalid, "retention class", invalid.Quote(class), "a class in the catalogue for dataset "+e.Name)
	case t < 0:
		return nil, invalid.New(dataset.ErrInvalid, "codec tag", invalid.Quote(tag), "a tag in the catalogue for dataset "+e.Name)
	}
	if e.Merge && t > 0 {
		e.Merge, e.Fixed, e.FirstWins = false, "", true
	}
	e.Classes = append([]catalog.Class{e.Classes[c]}, slices.Delete(slices.Clone(e.Classes), c, c+1)...)
	for i := range e.Classes {
		e.Classes[i].Choice = false // the class is chosen
	}
	e.Tags = append([]string{tag}, slices.Delete(slices.Clone(e.Tags), t, t+1)...)
	d, err := dataset.FromCatalog(e)
	if err == nil {
		r.as[key] = d
	}
	return d, err
}
