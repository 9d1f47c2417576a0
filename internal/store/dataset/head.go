package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/gcrule"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// maxHead bounds the points of a head: a head is read as one row, and beyond some tens of points a scan of the points'
// own rows costs as little.
const maxHead = 100

// Head describes the heads of a dataset; see tsdb.Head.
type Head struct {
	Points int
	Only   bool
	Fields bool
}

// Any reports whether the dataset has head rows.
func (h Head) Any() bool { return h.Points > 0 || h.Fields }

// checkHead refuses heads that do not fit the rest of the dataset.
func (d *Dataset) checkHead() error {
	switch h := d.Head; {
	case h.Points < 0 || h.Points > maxHead:
		return invalid.New(ErrInvalid, "Head.Points", strconv.Itoa(h.Points), fmt.Sprintf("0 for none, or up to %d", maxHead))
	case h.Points == 0 && h.Only:
		return invalid.New(ErrInvalid, "Head.Points", "0", fmt.Sprintf("1 to %d, as Head.Only keeps nothing else", maxHead))
	case h.Any() && d.Precision != rowkey.Milliseconds:
		return invalid.New(ErrInvalid, "Precision", d.Precision.String(), "Milliseconds, as heads tell points apart by the timestamps of cells")
	case h.Only && d.FirstWins:
		return invalid.New(ErrInvalid, "FirstWins", "true", "false, as Head.Only forgets the first write of a point behind the newest")
	case h.Only && d.Merge:
		return invalid.New(ErrInvalid, "Merge", "true", "false, as Head.Only keeps no rows to merge into")
	}
	return nil
}

// withHead checks the head and sets the columns of heads.
func (d *Dataset) withHead() error {
	h := d.Head
	if h.Any() && d.Identity {
		return invalid.New(ErrInvalid, "Head", "with Identity", "one of the two: a head keeps one point of a time")
	}
	if err := d.checkHead(); err != nil || !h.Any() {
		return err
	}
	if err := d.withFields(); err != nil || h.Points == 0 {
		return err
	}
	classes, err := d.headClasses(h.Points)
	if err != nil {
		return err
	}
	d.HeadColumns = columns(classes, d.Tags)
	d.HeadClasses = classes
	return nil
}

// headClasses returns the families that keep n versions of a column of a head, by class.
func (d *Dataset) headClasses(n int) ([]Class, error) {
	classes := make([]Class, len(d.Classes))
	for i, c := range d.Classes {
		classes[i] = Class{Class: gc.Class{Name: fmt.Sprintf("%s.h%d", c.Name, n), Policy: gc.Any(c.Policy, gc.MaxVersions(n))}}
		if err := classes[i].Policy.Validate(); err != nil {
			return nil, fmt.Errorf("heads of retention class %s: %w", invalid.Quote(c.Name), err)
		}
	}
	return classes, nil
}

// Ordered reports whether points expire from the oldest to the newest. They do not if one class keeps points longer
// than another: when a newer point of the shorter class expires, an older one becomes the newest, and the head may have
// dropped it. This holds for former classes, too.
func (d *Dataset) Ordered() bool {
	first := &d.Classes[0]
	for i := range d.Classes {
		if c := &d.Classes[i]; c.Bounded != first.Bounded || c.Age != first.Age {
			return false
		}
	}
	return true
}

// entryHead returns the description of the dataset's heads for the catalogue.
func (d *Dataset) entryHead() *catalog.Head {
	if !d.Head.Any() {
		return nil
	}
	out := &catalog.Head{Points: d.Head.Points, Only: d.Head.Only}
	if d.Head.Fields {
		out.Fields, out.NullClears, out.Shape = true, d.NullClears, d.Shape
		if others := d.former.Load(); others != nil {
			out.Former = *others
		}
	}
	return out
}

// headFamilies adds the column families of the dataset's heads.
func (d *Dataset) headFamilies(families map[string]bigtable.Family) {
	for _, c := range slices.Concat(d.HeadClasses, d.fields) {
		families[c.Name] = bigtable.Family{GCPolicy: gcrule.To(c.Policy)}
	}
}

// unitsOf is the inverse of cellOf: heads count in milliseconds, as the timestamps of cells do.
func unitsOf(cell bigtable.Timestamp) int64 { return int64(cell) / 1000 }

// After returns the end of the range of timestamps that holds only that cell's. After the last timestamp it returns 0,
// which Bigtable treats as no end.
func After(cell bigtable.Timestamp) bigtable.Timestamp {
	if cell > math.MaxInt64-1000 {
		return 0
	}
	return cell + 1000
}

// HeadMutation is a mutation of a head row, and its size.
type HeadMutation struct {
	*bigtable.Mutation
	Count, Bytes int
}

// NewHeadMutation returns an empty mutation.
func NewHeadMutation() HeadMutation { return HeadMutation{Mutation: bigtable.NewMutation()} }

// SetPoint writes a point's payload in the current class and tag, and clears every other column that may hold an older
// payload of that time.
func (m *HeadMutation) SetPoint(d *Dataset, cell bigtable.Timestamp, payload []byte) {
	m.Clear(d.HeadColumns[1:], cell, After(cell))
	c := &d.HeadColumns[0]
	m.Set(c.Family, c.Qualifier, cell, payload)
	m.Count++
	m.Bytes += len(payload)
}

// Clear deletes the cells from one timestamp up to, but not including, another.
func (m *HeadMutation) Clear(columns []Column, from, to bigtable.Timestamp) {
	for i := range columns {
		m.DeleteTimestampRange(columns[i].Family, columns[i].Qualifier, from, to)
	}
	m.Count += len(columns)
}
