package tenants

import (
	"context"
	"slices"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// census counts a tenant's rows, page by page.
type census struct {
	room
	rep      UsageReport
	exact    bool
	most     int
	datasets map[string]counted
	kinds    int    // the most kinds of rows that the known datasets can have
	versions bool   // some datasets store their points as versions of heads
	last     string // the last key counted
}

// counted is a dataset of the catalogue whose rows are counted.
type counted struct {
	points, heads rowkey.Space
	precision     rowkey.Precision
	only          bool // heads and no other rows
}

// know adds a dataset of the catalogue.
func (c *census) know(id tenant.ID, d catalog.Dataset) error {
	space, _, precision, err := spaceOf(id, d)
	if err != nil {
		return err
	}
	known := counted{points: space, heads: space.Heads(), precision: precision, only: d.Head != nil && d.Head.Only}
	c.datasets[d.Name] = known
	c.versions = c.versions || known.only
	c.kinds += 3 + 2*len(d.Rollups) // points, heads, fields; buckets and marks
	return nil
}

// page counts a page of rows, and returns the rest of the range. With an error it has counted nothing.
func (c *census) page(ctx context.Context, rng rowkey.Range) (rowkey.Range, error) {
	filter := bt.KeysOnly()
	switch {
	case c.exact:
		filter = bigtable.PassAllFilter()
	case c.versions:
		filter = bigtable.StripValueFilter()
	}
	before, last := c.rep, c.last
	before.Kinds = slices.Clone(before.Kinds)
	tally := sample{map[kindOf]int64{}, map[kindOf]int64{}, map[string]kindOf{}}
	var keys []string
	err := c.rows(ctx, rng, filter, int64(c.most), func(row *bt.Row) {
		keys = append(keys, row.Key())
		k := c.count(row)
		if c.exact {
			k.Bytes += rowBytes(row)
			return
		}
		tally.add(kindOf{k.Dataset, k.Kind}, row.Key())
	})
	if err == nil && !c.exact {
		err = c.estimate(ctx, tally)
	}
	if err != nil {
		c.rep, c.last = before, last
		return rng, err
	}
	return after(rng, keys, c.most), nil
}

// count counts a row, and returns the figures of its kind.
func (c *census) count(row *bt.Row) *DatasetUsage {
	key := row.Key()
	dataset, kind, _ := rowkey.KindOf(key)
	d, known := c.datasets[dataset]
	k := c.kind(dataset, kind, known)
	k.Rows++
	if path, units, ok := d.points.Split(key); known && kind == "" && ok {
		k.Points++
		k.note(d.precision.Time(units))
		if was, _, ok := d.points.Split(c.last); !ok || was != path {
			k.Entities++
		}
	}
	if _, ok := d.heads.SplitEntity(key); known && kind == headKind && ok {
		k.Entities++
		if d.only {
			c.countVersions(k, row)
		}
	}
	c.last = key
	return k
}

// headKind is the reserved kind of heads.
const headKind = "head"

func (c *census) countVersions(k *DatasetUsage, row *bt.Row) {
	times := map[bigtable.Timestamp]bool{}
	for _, cell := range row.Cells() {
		if !times[cell.Timestamp] {
			times[cell.Timestamp] = true
			k.note(cell.Timestamp.Time().UTC())
		}
	}
	k.Points += int64(len(times))
}

// note records the time of a point.
func (k *DatasetUsage) note(t time.Time) {
	if k.Newest.IsZero() || t.After(k.Newest) {
		k.Newest = t
	}
	if k.Oldest.IsZero() || t.Before(k.Oldest) {
		k.Oldest = t
	}
}

// kind returns the figures of a kind of row.
func (c *census) kind(dataset, kind string, known bool) *DatasetUsage {
	return kindIn(&c.rep.Kinds, mostKinds+c.kinds, kindOf{dataset, kind},
		func(u DatasetUsage) kindOf { return kindOf{u.Dataset, u.Kind} },
		func(of kindOf) DatasetUsage {
			return DatasetUsage{Dataset: of.dataset, Kind: of.kind, Known: known && of.dataset != "", Estimated: !c.exact}
		})
}

func rowBytes(row *bt.Row) (n int64) {
	n = int64(len(row.Key()))
	for family, cells := range row.Families() {
		for _, cell := range cells {
			n += int64(len(cell.Column) - len(family) - 1 + len(cell.Value))
		}
	}
	return n
}
