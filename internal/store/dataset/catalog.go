package dataset

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// ToCatalog returns the dataset's description for the catalogue.
func (d *Dataset) ToCatalog() catalog.Dataset {
	classes := make([]catalog.Class, len(d.Classes))
	for i, c := range d.Classes {
		classes[i] = catalog.Class{Name: c.Name, Policy: c.Policy.String(), Choice: c.Choice}
	}
	return catalog.Dataset{
		Name:      d.Name,
		Key:       d.Fields,
		Kinds:     d.EntryKinds(),
		Precision: d.timeName(),
		Salts:     d.Salts,
		FirstWins: d.FirstWins,
		Merge:     d.Merge,
		Fixed:     d.Immutable,
		Tags:      d.Tags,
		Classes:   classes,
		Head:      d.entryHead(),
		Rollups:   d.entryRollups(),

		RollupAges: d.entryRollupAges(),
	}
}

// timeName returns the catalogue's name for the dataset's precision.
func (d *Dataset) timeName() string {
	if name := d.Precision.TimeName(d.Identity); d.Head.Fields {
		return rowkey.WithFields(name)
	} else {
		return name
	}
}

// FromCatalog returns the dataset that an entry describes, for programs that write its points without its Go type. It
// validates the entry, because the entry comes from a file or a table.
func FromCatalog(e catalog.Dataset) (*Dataset, error) {
	d, err := fromCatalog(e)
	if err != nil {
		return nil, fmt.Errorf("dataset %s: %w", invalid.Quote(e.Name), err)
	}
	return d, nil
}

func fromCatalog(e catalog.Dataset) (*Dataset, error) {
	if err := errors.Join(rowkey.CheckDataset(e.Name), rowkey.CheckFields(e.Key, e.Salts)); err != nil {
		return nil, err
	}
	kinds, err := e.FieldKinds()
	if err != nil {
		return nil, err
	}
	precision, identity, err := rowkey.ParseTimeName(e.Precision)
	if err != nil {
		return nil, err
	}
	if len(e.Tags) == 0 || len(e.Classes) == 0 {
		return nil, invalid.New(ErrInvalid, "tags and classes", fmt.Sprintf("%d and %d", len(e.Tags), len(e.Classes)), "at least one each")
	}
	for _, tag := range e.Tags {
		if err := codecerr.CheckTag(tag); err != nil {
			return nil, err
		}
	}
	given := make([]gc.Class, len(e.Classes))
	for i, c := range e.Classes {
		policy, err := gc.Parse(c.Policy)
		if err != nil {
			return nil, fmt.Errorf("retention class %s: %w", invalid.Quote(c.Name), err)
		}
		given[i] = gc.Class{Name: c.Name, Policy: policy}
	}
	classes, err := NewClasses(given)
	if err != nil {
		return nil, err
	}
	for i := range classes {
		classes[i].Choice = i > 0 && e.Classes[i].Choice
	}
	d := &Dataset{
		Name:      e.Name,
		Fields:    e.Key,
		Kinds:     kinds,
		Tags:      e.Tags,
		Format:    e.Tags[0],
		Classes:   classes,
		Precision: precision,
		Identity:  identity,
		Salts:     e.Salts,
		FirstWins: e.FirstWins,
		Merge:     e.Merge,
		Immutable: e.Fixed,
	}
	if e.Head != nil {
		d.Head = Head{Points: e.Head.Points, Only: e.Head.Only, Fields: e.Head.Fields}
		d.Shape, d.NullClears = e.Head.Shape, e.Head.NullClears
	}
	if rowkey.HasFields(e.Precision) != d.Head.Fields {
		return nil, invalid.New(ErrInvalid, "precision", invalid.Quote(e.Precision), "one that ends in +fields if heads have fields, and only then")
	}
	ages := make(map[string]time.Duration, len(e.RollupAges))
	for class := range e.RollupAges {
		ages[class] = e.RollupAge(class)
	}
	err = d.Complete(slices.Clone(e.Rollups), ages)
	if err == nil {
		d.AlsoClear(e.FieldPaths())
	}
	return d, err
}
