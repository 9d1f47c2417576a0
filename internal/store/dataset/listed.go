package dataset

import "github.com/tidemark-go/tidemark/internal/fields"

// Lists reports whether the fields of new points are listed in the tenant's row of fields: whether payloads have
// several, and the catalogue does not say which.
func (d *Dataset) Lists() bool {
	if d.Shape != nil {
		return !d.Head.Fields && !d.Shape.Whole()
	}
	return fields.Named(d.Format)
}

// ListFamilies returns the families of the list of fields: one for each class, the written one first. The list of a
// class expires as its points do.
func (d *Dataset) ListFamilies() []string {
	classes := d.Classes
	if d.Head.Only {
		classes = d.HeadClasses
	}
	out := make([]string, len(classes))
	for i := range classes {
		out[i] = classes[i].Name
	}
	return out
}

// ListFamily returns the family in which fields of new points are listed.
func (d *Dataset) ListFamily() string {
	if d.Head.Only {
		return d.HeadClasses[0].Name
	}
	return d.Classes[0].Name
}
