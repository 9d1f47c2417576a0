// Package dataset describes one dataset: its key fields, retention classes, codec tags, heads and rollups, the column
// families and columns that store them, which points are visible at a time, and its entry in the catalogue. It does no
// I/O.
package dataset

import (
	"fmt"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/fields"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// Dataset is a schema without its Go type.
type Dataset struct {
	Name        string
	Fields      []string
	Kinds       []rowkey.FieldKind  // of the fields
	Tags        []string            // the first one is written
	Classes     []Class             // the first one is written
	Columns     []Column            // in the order in which a payload is searched
	Choices     map[string]*Dataset // by class that tenants can choose, the dataset that writes in it; nil if there are none
	FirstColumn int                 // the first column's index in the dataset of the default class
	Layout      string              // equal for all that read and write points the same way
	Precision   rowkey.Precision
	Identity    bool
	Salts       int
	FirstWins   bool
	Merge       bool
	Immutable   string // with Merge: the prefix of the names of immutable fields
	MaxLate     time.Duration
	MaxFuture   time.Duration
	KeyCheck    func(field, part string) error // nil for none
	ReadOnly    bool                           // refuses deletions; the codec refuses writes
	Shape       *fields.Shape                  // the fields of all payloads; nil if only a payload says its fields
	Format      string                         // of written payloads, in package fields; of another if they are one field
	Unpack      func([]byte) ([]byte, error)   // returns such a payload before it was compressed; nil if it was not

	Head        Head
	HeadClasses []Class  // the families of heads, by class
	HeadColumns []Column // as columns, in head rows

	// With Head.Fields, see head_fields.go.
	NullClears bool     // null is the value of a field
	fields     []Class  // the families of fields in heads, by class
	leafPaths  []string // of the shape, sorted
	former     *atomic.Pointer[[]string]

	Rollups []Rollup
	Marked  int // how many of the rollups each write marks
}

// Class is a retention class with only what a point needs.
type Class struct {
	gc.Class
	Age     time.Duration
	Bounded bool
	Choice  bool // tenants can choose it
	// RollupAge is how long rollups of its tenants are kept at most; 0 means as long as their own age.
	RollupAge time.Duration
}

// MaxMerged bounds the payloads of a merging schema, in bytes. The filter that checks that a row is unchanged contains
// the payload twice, and Bigtable accepts filters of up to 20,480 bytes.
const MaxMerged = 8 << 10

// maxImmutable bounds the prefix of the names of immutable fields, in bytes.
const maxImmutable = 32

// MaxPayload returns the largest payload of the dataset, in bytes.
func (d *Dataset) MaxPayload() int {
	if d.Merge {
		return MaxMerged
	}
	most := MaxPayload / max(1, d.Head.Points) // the payloads of a head share the size of one cell
	if leaves := len(d.leafPaths); leaves > 0 {
		most = min(most, maxFieldRow/leaves)
	}
	return most
}

// checkMerge refuses a schema with Merge whose writes cannot be merged.
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

// Complete adds rollups and how long those of tenants in a class are kept, checks that everything fits together, and
// sets the derived fields.
func (d *Dataset) Complete(rollups []catalog.Rollup, ages map[string]time.Duration) error {
	if err := d.complete(); err != nil {
		return err
	}
	if err := d.withRollups(rollups); err != nil {
		return err
	}
	if err := d.withRollupAges(ages); err != nil {
		return err
	}
	d.withChoices()
	return nil
}

func (d *Dataset) complete() error {
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

// maxColumns bounds the columns that may hold a payload. Each write clears all but one of them, and each read filters
// by the classes. So a row's mutations and the filter stay far below Bigtable's limits.
const maxColumns = 64

// NewClasses checks retention classes of points, and returns them with their ages. The first one is written.
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

// MaxPayload is Bigtable's recommended limit for a cell, in bytes; it refuses 100 MiB.
const MaxPayload = 10 << 20
