package tsdb

import (
	"fmt"
	"math"
	"strconv"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// maxHead is how many points a head may keep: a head is read as one row, and beyond some tens of points a scan of their
// own rows costs as little.
const maxHead = 100

// Head asks for head rows: beside its points each entity has one row that holds its newest few as versions, so that
// LatestMany is one request for many entities, and LatestUnder and Entities read one row an entity. Reads of one entity go
// to its points, which cost the same. Head is part of the stored format and cannot change. The zero Head is none.
//
// The price is paid by writes. Each sets two rows instead of one, and the head of an entity that is written often is a hot
// row that holds all versions since Bigtable last collected; beyond some tens of writes a second to one entity go without.
// In a schema with FirstWins the head is a second request, in one with Merge, or with FirstWins and Classes, three more.
// Deletions mend the head, at the cost of a few requests an entity.
//
// Where classes that points are written in, or were, differ in their age, older points can outlive newer ones that took their
// place in the head. LatestMany then reads the points too of those entities whose head shows too few that no class lets expire
// yet, and LatestUnder and Entities go by the points alone.
//
// A write is stored once both rows are, and unknown where only one is known to be; writing it again, as anything unknown,
// puts it right, and so does repeating a deletion that failed. Two rows are not one: of two writers that write different
// values of one point at the same moment, or of one that writes a point while another deletes it, each may be the last in
// one of the rows. The points then say what is so, and the head follows when that point is written or deleted again.
// With FirstWins, or where a point has one value, that is no matter for writers.
type Head struct {
	// Points is how many of an entity's newest points its head keeps, 1 to 100. Zero is no head. A schema with heads needs
	// the precision Milliseconds, that of the cells' timestamps by which a head tells its points apart, and its payloads
	// share 10 MiB: for 5 points each may have 2 MiB.
	Points int
	// Only keeps the head and no other rows: a short history of the newest points, in one row an entity, with every call of
	// a repository. A point behind the newest ones is gone as soon as they are stored; until Bigtable has collected it, it
	// may show again when a newer one is deleted or, in a shorter class, expires, and PutIfAbsent may find it. It goes with
	// neither FirstWins nor Merge.
	Only bool
}

// heads are the heads that a dataset keeps; see tsdb.Head.
type heads struct {
	Points int
	Only   bool
}

// checkHead refuses heads that the rest of the dataset cannot have.
func (d *dataset) checkHead() error {
	switch h := d.head; {
	case h.Points < 0 || h.Points > maxHead:
		return invalid.New(ErrInvalid, "Head.Points", strconv.Itoa(h.Points), fmt.Sprintf("0 for none, or up to %d", maxHead))
	case h.Points == 0 && h.Only:
		return invalid.New(ErrInvalid, "Head.Points", "0", fmt.Sprintf("1 to %d, as Head.Only keeps nothing else", maxHead))
	case h.Points > 0 && d.precision != rowkey.Milliseconds:
		return invalid.New(ErrInvalid, "Precision", d.precision.String(), "Milliseconds, as heads tell points apart by the timestamps of cells")
	case h.Only && d.firstWins:
		return invalid.New(ErrInvalid, "FirstWins", "true", "false, as Head.Only forgets the first write of a point behind the newest")
	case h.Only && d.merge:
		return invalid.New(ErrInvalid, "Merge", "true", "false, as Head.Only keeps no rows to merge into")
	}
	return nil
}

// withHead adds what a dataset with heads needs.
func (d *dataset) withHead() error {
	h := d.head
	if h.Points > 0 && d.identity {
		return invalid.New(ErrInvalid, "Head", "with Identity", "one of the two: a head keeps one point of a time")
	}
	if err := d.checkHead(); err != nil || h.Points == 0 {
		return err
	}
	classes := make([]class, len(d.classes))
	for i, c := range d.classes {
		classes[i] = class{Class: gc.Class{Name: fmt.Sprintf("%s.h%d", c.Name, h.Points), Policy: gc.Any(c.Policy, gc.MaxVersions(h.Points))}}
		if err := classes[i].Policy.Validate(); err != nil {
			return fmt.Errorf("heads of retention class %s: %w", invalid.Quote(c.Name), err)
		}
	}
	d.headColumns = columns(classes, d.tags)
	d.headClasses = classes
	return nil
}

// ordered reports whether points expire from the oldest to the newest. Where one class keeps longer than another, points come
// to light in a head that were behind the newest when others were stored or deleted. That goes for classes too that are not
// written any more: a point of a long one that was written again in a short one has pushed others out of the head before.
func (d *dataset) ordered() bool {
	first := &d.classes[0]
	for i := range d.classes {
		if c := &d.classes[i]; c.bounded != first.bounded || c.age != first.age {
			return false
		}
	}
	return true
}

// entryHead returns what the catalogue is to know of the dataset's heads.
func (d *dataset) entryHead() *catalog.Head {
	if d.head.Points == 0 {
		return nil
	}
	return &catalog.Head{Points: d.head.Points, Only: d.head.Only}
}

// headFamilies adds the column families of the dataset's heads.
func (d *dataset) headFamilies(families map[string]bigtable.Family) {
	for _, c := range d.headClasses {
		families[c.Name] = bigtable.Family{GCPolicy: c.Policy.Bigtable()}
	}
}

// headKey returns the row key of an entity's head.
func (r *Repository[T]) headKey(path string) string {
	var buf [256]byte
	return string(r.heads.AppendEntity(buf[:0], path))
}

// cellOf returns the timestamp of the cell of a point in a head.
func (r *Repository[T]) cellOf(units int64) bigtable.Timestamp {
	return bigtable.Timestamp(r.schema.d.precision.CellMicros(units))
}

// unitsOf is the inverse of cellOf: heads are in milliseconds, as the timestamps of cells are.
func unitsOf(cell bigtable.Timestamp) int64 { return int64(cell) / 1000 }

// after returns the end of the timestamps that start and end with that cell's; 0, which Bigtable takes for none, past the
// last.
func after(cell bigtable.Timestamp) bigtable.Timestamp {
	if cell > math.MaxInt64-1000 {
		return 0
	}
	return cell + 1000
}

// headMutation is a mutation of a head row, and what it weighs.
type headMutation struct {
	*bigtable.Mutation
	count, bytes int
}

func newHeadMutation() headMutation { return headMutation{Mutation: bigtable.NewMutation()} }

// set sets a point's payload in the class and tag that are written, and clears every other place where an older payload of
// that time may stand.
func (m *headMutation) set(d *dataset, cell bigtable.Timestamp, payload []byte) {
	m.clear(d.headColumns[1:], cell, after(cell))
	c := &d.headColumns[0]
	m.Set(c.family, c.qualifier, cell, payload)
	m.count++
	m.bytes += len(payload)
}

// clear deletes the cells from one timestamp up to, not including, another.
func (m *headMutation) clear(columns []column, from, to bigtable.Timestamp) {
	for i := range columns {
		m.DeleteTimestampRange(columns[i].family, columns[i].qualifier, from, to)
	}
	m.count += len(columns)
}
