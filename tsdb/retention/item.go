package retention

import (
	"cmp"
	"strings"
)

// The kinds of items, as Item.Kind explains.
const (
	kindCreate         = "create"
	kindChange         = "change"
	kindDrift          = "drift"
	kindChangeAndDrift = "change+drift"
	kindRecord         = "record"
	kindUnlisted       = "unlisted"
	kindForeign        = "foreign"
	kindImpossible     = "impossible"
)

// steps reports whether Apply acts on the item.
func (i Item) steps() bool { return i.acts() || i.Kind == kindRecord }

// acts reports whether Apply acts on the item's family.
func (i Item) acts() bool {
	return i.Kind == kindCreate || i.Kind == kindChange || i.Kind == kindDrift || i.Kind == kindChangeAndDrift
}

// Item is one line of a plan: a step that Apply makes, or something that it leaves alone. Policies are in the syntax of
// gc.Parse, except for policies of a table that package gc cannot express, such as "maxage=500ms". Empty is none.
type Item struct {
	// Kind is the kind of the item. A plan lists the kinds in this order:
	//
	//   - create: the table lacks the family, and Apply creates it.
	//   - change: the schemas declare another policy than the catalogue and the table have, and Apply changes the table's.
	//   - drift: the table's policy was changed elsewhere, and Apply restores the declared and recorded one.
	//   - change+drift: the table's policy was changed elsewhere, and Apply changes it to a third one that the schemas
	//     declare.
	//   - record: Apply writes a dataset's entry in the catalogue.
	//   - unlisted: a family of datasets that are in the catalogue but not in the plan is missing, or has another policy
	//     than recorded. Apply leaves it alone. To change it, plan with those datasets, or with NewPlanFor.
	//   - foreign: no dataset declares the family. Apply leaves it alone.
	//   - impossible: the declared change cannot be made. Apply refuses a plan with such an item.
	Kind string `json:"kind"`
	// Family is the column family, or empty if the item concerns a dataset.
	Family string `json:"family,omitempty"`
	// Class is the retention class that the family belongs to; empty for the store's own families and for foreign ones.
	Class string `json:"class,omitempty"`
	// Dataset is the dataset of a Record, or of an Impossible that concerns a dataset.
	Dataset string `json:"dataset,omitempty"`
	// Declared is the policy that the schemas declare. Recorded is the catalogue's policy, or all policies if they
	// differ. Actual is the table's policy.
	Declared string `json:"declared,omitempty"`
	Recorded string `json:"recorded,omitempty"`
	Actual   string `json:"actual,omitempty"`
	// Holds lists the contents of the family: "points of readings".
	Holds []string `json:"holds,omitempty"`
	// Destructive says that the new policy deletes data that the table's policy would keep.
	Destructive bool `json:"destructive,omitempty"`
	// Notes explain the item in whole sentences.
	Notes []string `json:"notes,omitempty"`
}

// text returns the item in one line: "change d90: maxage=90d -> maxage=30d (destructive)".
func (i Item) text() string {
	var b strings.Builder
	b.WriteString(i.Kind + " " + i.subject())
	if p := i.policies(); p != "" {
		b.WriteString(": " + p)
	}
	if i.Destructive {
		b.WriteString(" (destructive)")
	}
	return b.String()
}

// is returns the same value for items about the same family or dataset.
func (i Item) is() [2]string { return [2]string{i.Family, i.Dataset} }

// allowedBy returns the name that allows a destructive item.
func (i Item) allowedBy() string { return cmp.Or(i.Class, i.Family, i.Dataset) }

// subject returns what the item is about.
func (i Item) subject() string {
	switch {
	case i.Family != "":
		return i.Family
	case i.Dataset != "":
		return "dataset " + i.Dataset
	}
	return "table"
}

// policies returns the change of the policy as text.
func (i Item) policies() string {
	switch {
	case i.Kind == kindCreate:
		return i.Declared
	case i.acts():
		return i.Actual + " -> " + i.Declared
	case i.Kind == kindUnlisted && i.Actual == "":
		return i.Recorded + ", missing"
	case i.Kind == kindUnlisted:
		return i.Recorded + ", the table has " + i.Actual
	case i.Kind == kindForeign:
		return i.Actual
	}
	return ""
}
