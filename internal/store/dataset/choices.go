package dataset

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// In returns the dataset that writes in the class of that name, or in the default class where it is none of the choices.
func (d *Dataset) In(class string) *Dataset {
	if c := d.Choices[class]; c != nil {
		return c
	}
	return d.Choices[""]
}

// CheckExpired refuses the cell of a point that would be invisible at once in the class that is written.
func (d *Dataset) CheckExpired(cell bigtable.Timestamp, now time.Time) error {
	if c := &d.Classes[0]; cell < c.cutoff(now) {
		return invalid.New(ErrExpired, "time", Stamp(cell.Time()), fmt.Sprintf("what the retention class %s keeps", c.Class))
	}
	return nil
}

// WithChoices completes a dataset that has all else: it adds those that write in the classes to choose from, which are the same
// with another class in the first place.
func (d *Dataset) WithChoices() {
	for i := range d.Classes {
		if !d.Classes[i].Choice {
			continue
		}
		if d.Choices == nil {
			d.Choices = map[string]*Dataset{"": d}
		}
		d.Choices[d.Classes[i].Name] = nil
	}
	for i := range d.Classes {
		if d.Classes[i].Choice {
			d.Choices[d.Classes[i].Name] = d.writtenIn(i)
		}
	}
}

// writtenIn returns the dataset that writes in the class at an index. Its points are read alike, so it has the same layout.
func (d *Dataset) writtenIn(class int) *Dataset {
	to := *d
	to.Classes = toFront(d.Classes, class)
	to.Columns = columns(to.Classes, d.Tags)
	if d.Head.Points > 0 {
		to.HeadClasses = toFront(d.HeadClasses, class)
		to.HeadColumns = columns(to.HeadClasses, d.Tags)
	}
	to.FirstColumn = class * len(d.Tags)
	return &to
}

func toFront(classes []Class, i int) []Class {
	return slices.Concat(classes[i:i+1], classes[:i], classes[i+1:])
}

// mostFamilies is how many column families Bigtable lets a table have.
const mostFamilies = 100

// CheckFamilies refuses a dataset that no table has room for.
func (d *Dataset) CheckFamilies() error {
	if n := len(FamiliesOf([]*Dataset{d})); n > mostFamilies {
		return invalid.New(ErrInvalid, "column families of classes, heads and rollups", strconv.Itoa(n), fmt.Sprintf("at most %d, as Bigtable takes", mostFamilies))
	}
	return nil
}
