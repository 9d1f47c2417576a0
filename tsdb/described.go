package tsdb

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// entry returns what the catalogue is to know of the dataset.
func (d *dataset) entry() catalog.Dataset {
	classes := make([]catalog.Class, len(d.classes))
	for i, c := range d.classes {
		classes[i] = catalog.Class{Name: c.Name, Policy: c.Policy.String(), Choice: c.choice}
	}
	return catalog.Dataset{
		Name:      d.name,
		Key:       d.fields,
		Kinds:     d.entryKinds(),
		Precision: d.precision.TimeName(d.identity),
		Salts:     d.salts,
		FirstWins: d.firstWins,
		Merge:     d.merge,
		Fixed:     d.fixed,
		Tags:      d.tags,
		Classes:   classes,
		Head:      d.entryHead(),
		Rollups:   d.entryRollups(),

		RollupAges: d.entryRollupAges(),
	}
}

// described returns the dataset that an entry describes, for those who write its points without its Go type. It checks the
// entry, which comes from a file or a table.
func described(e catalog.Dataset) (*dataset, error) {
	d, err := describe(e)
	if err != nil {
		return nil, fmt.Errorf("dataset %s: %w", invalid.Quote(e.Name), err)
	}
	return d, nil
}

func describe(e catalog.Dataset) (*dataset, error) {
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
		if err := codec.CheckTag(tag); err != nil {
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
	classes, err := reduce(given)
	if err != nil {
		return nil, err
	}
	for i := range classes[1:] {
		classes[1+i].choice = e.Classes[1+i].Choice
	}
	d := &dataset{
		name:      e.Name,
		fields:    e.Key,
		kinds:     kinds,
		tags:      e.Tags,
		classes:   classes,
		precision: precision,
		identity:  identity,
		salts:     e.Salts,
		firstWins: e.FirstWins,
		merge:     e.Merge,
		fixed:     e.Fixed,
	}
	if e.Head != nil {
		d.head = heads{Points: e.Head.Points, Only: e.Head.Only}
	}
	if err := d.complete(); err != nil {
		return nil, err
	}
	if err := d.withRollups(e.Rollups); err != nil {
		return nil, err
	}
	ages := make(map[string]time.Duration, len(e.RollupAges))
	for class := range e.RollupAges {
		ages[class] = e.RollupAge(class)
	}
	if err := d.withRollupAges(ages); err != nil {
		return nil, err
	}
	d.withChoices()
	return d, nil
}
