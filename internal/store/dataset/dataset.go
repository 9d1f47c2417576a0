// Package dataset is the shape of one dataset: its key fields, retention classes, codec tags, heads and rollups, the column
// families and columns in which they are stored, what is visible at a time, and its entry in the catalogue. It does no I/O.
package dataset

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// Dataset is what a schema says apart from its type.
type Dataset struct {
	Name        string
	Fields      []string
	Kinds       []rowkey.FieldKind  // of the fields
	Tags        []string            // the one that is written first
	Classes     []Class             // the one that is written first
	Columns     []Column            // in the order in which a payload is looked for
	Choices     map[string]*Dataset // by class, the dataset that writes in it, of those that tenants can be put in; nil for none
	FirstColumn int                 // what the first column's index is in the dataset of the default class
	Layout      string              // equal for those who read and write points the same way
	Precision   rowkey.Precision
	Identity    bool
	Salts       int
	FirstWins   bool
	Merge       bool
	Immutable   string // with Merge: what the names of fields start with that cannot change
	MaxLate     time.Duration
	MaxFuture   time.Duration
	KeyCheck    func(field, part string) error // nil for none

	Head        Head
	HeadClasses []Class  // the families of heads, by class
	HeadColumns []Column // as columns, in head rows

	Rollups []Rollup
	Marked  int // of the rollups, those that each write marks
}

// Class is a retention class reduced to what a point needs.
type Class struct {
	gc.Class
	Age     time.Duration
	Bounded bool
	Choice  bool // tenants can be put in it
	// RollupAge is how long rollups of tenants in it are kept at most; 0 for their own age.
	RollupAge time.Duration
}

// OldestUnexpired returns the oldest time from which on no point has expired in any class.
func (d *Dataset) OldestUnexpired(now time.Time) int64 {
	h := d.Visibility(now)
	cutoff := int64(0)
	for i := range d.Classes {
		if d.Classes[i].Bounded {
			cutoff = max(cutoff, int64(h.cutoff(i)))
		}
	}
	return cutoff / 1000
}

// MaxMerged bounds the payloads of a merging schema: the filter by which a row is known to be unchanged holds the payload
// twice, and Bigtable takes filters of up to 20,480 bytes.
const MaxMerged = 8 << 10

// maxImmutable bounds the names by which fixed fields are known.
const maxImmutable = 32

// MaxPayload returns how large a payload of the dataset may be, in bytes.
func (d *Dataset) MaxPayload() int {
	if d.Merge {
		return MaxMerged
	}
	return MaxPayload / max(1, d.Head.Points) // the payloads of a head share what one cell may have
}

// checkMerge refuses a schema whose writes cannot merge though they are to.
func (d *Dataset) checkMerge() error {
	switch {
	case !d.Merge && d.Immutable != "":
		return invalid.New(ErrInvalid, "Immutable", invalid.Quote(d.Immutable), "empty without Merge")
	case !d.Merge:
		return nil
	case d.FirstWins:
		return invalid.New(ErrInvalid, "Merge", "true", "false with FirstWins")
	case d.Tags[0] != codec.Records().Tag():
		return invalid.New(ErrInvalid, "Merge", "true with a codec that writes "+invalid.Quote(d.Tags[0]), "codec.Records, whose payloads can be merged")
	case len(d.Immutable) > maxImmutable || !utf8.ValidString(d.Immutable):
		return invalid.New(ErrInvalid, "Immutable", invalid.Quote(d.Immutable), fmt.Sprintf("at most %d bytes of UTF-8", maxImmutable))
	}
	return nil
}

// Complete checks what lies between the dataset's members, and derives what follows from them.
func (d *Dataset) Complete() error {
	if err := d.checkMerge(); err != nil {
		return err
	}
	if n := len(d.Classes) * len(d.Tags); n > maxColumns {
		return invalid.New(ErrInvalid, "retention classes times codec tags", fmt.Sprintf("%d times %d", len(d.Classes), len(d.Tags)),
			fmt.Sprintf("at most %d", maxColumns))
	}
	d.Columns = columns(d.Classes, d.Tags)
	d.Layout = d.Precision.TimeName(d.Identity)
	for i := range d.Classes {
		d.Layout += fmt.Sprintf(" %s %q", d.Classes[i].Name, d.Classes[i].Policy)
	}
	d.Layout += fmt.Sprintf(" %q", d.Tags)
	return d.withHead()
}

// maxColumns is how many places a payload may stand in. Each write clears all but one of them and each read filters by
// the classes, so the mutations of a row and the filter stay far below what Bigtable takes.
const maxColumns = 64

// NewClasses checks retention classes of points, and returns them with their ages. The first is the one that is written.
func NewClasses(classes []gc.Class) ([]Class, error) {
	out := make([]Class, len(classes))
	for i, c := range classes {
		if err := c.Validate(); err != nil {
			return nil, fmt.Errorf("retention class %s: %w", invalid.Quote(c.Name), err)
		}
		for _, other := range classes[:i] {
			if c.Name == other.Name {
				return nil, invalid.New(ErrInvalid, "retention class", invalid.Quote(c.Name), "each class once")
			}
		}
		age, bounded, err := c.Policy.PointAge()
		if err != nil {
			return nil, fmt.Errorf("retention class %s: %w", invalid.Quote(c.Name), err)
		}
		out[i] = Class{Class: c, Age: age, Bounded: bounded}
	}
	return out, nil
}

// Space returns a tenant's space of the dataset.
func (d *Dataset) Space(id tenant.ID) (rowkey.Space, error) {
	s, err := rowkey.NewSpace(id, d.Name, d.Fields, d.Salts)
	return s.WithKinds(d.Kinds).WithIdentity(d.Identity), err
}

// MaxPayload is the size up to which Bigtable wants a cell; it refuses 100 MiB.
const MaxPayload = 10 << 20
