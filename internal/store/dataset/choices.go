package dataset

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// In returns the dataset that writes in the class of that name, or in the default class if tenants cannot choose that
// class.
func (d *Dataset) In(class string) *Dataset {
	if c := d.Choices[class]; c != nil {
		return c
	}
	return d.Choices[""]
}

// withChoices completes a dataset whose other fields are set: it adds one dataset for each class that tenants can
// choose. These are equal, but another class comes first.
func (d *Dataset) withChoices() {
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

// writtenIn returns the dataset that writes in the class at an index. Its points are read the same way, so it has the
// same layout.
func (d *Dataset) writtenIn(class int) *Dataset {
	to := *d
	to.Classes = toFront(d.Classes, class)
	to.Columns = columns(to.Classes, d.Tags)
	if d.Head.Points > 0 {
		to.HeadClasses = toFront(d.HeadClasses, class)
		to.HeadColumns = columns(to.HeadClasses, d.Tags)
	}
	if d.Head.Fields {
		to.fields = toFront(d.fields, class)
	}
	to.FirstColumn = class * len(d.Tags)
	return &to
}

func toFront(classes []Class, i int) []Class {
	return slices.Concat(classes[i:i+1], classes[:i], classes[i+1:])
}

// mostFamilies is Bigtable's limit of column families of a table.
const mostFamilies = 100

// CheckFamilies refuses a dataset that needs more families than a table can have.
func (d *Dataset) CheckFamilies() error {
	if n := len(FamiliesOf([]*Dataset{d})); n > mostFamilies {
		return invalid.New(ErrInvalid, "column families of classes, heads and rollups", strconv.Itoa(n), fmt.Sprintf("at most %d, as Bigtable takes", mostFamilies))
	}
	return nil
}
