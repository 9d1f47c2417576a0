package retention

import (
	"fmt"
	"strings"
)

// signs are what the lines of a printed plan start with.
var signs = map[string]string{
	kindCreate: "+", kindChange: "~", kindDrift: "!", kindChangeAndDrift: "!", kindRecord: "=", kindUnlisted: "?", kindForeign: ".", kindImpossible: "x",
}

// mostShown is how many of a family's contents are printed. JSON has all of them.
const mostShown = 8

// String returns the plan as text of several lines: each item with its contents and effects, a summary, and the
// service's automated backups, if the table has any.
func (p *Plan) String() string {
	if p == nil {
		p = new(Plan)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Retention plan for %s\n\n", p.doc.Table)
	for _, i := range p.doc.Items {
		i.write(&b)
	}
	if len(p.doc.Items) > 0 {
		b.WriteByte('\n')
	}
	if p.Empty() && impossible(p.doc.Items) == nil {
		b.WriteString("Nothing to do: the table and its catalogue are as declared.\n")
		p.doc.writeEnd(&b)
		return b.String()
	}
	n := map[string]int{}
	for _, i := range p.doc.Items {
		n[i.Kind]++
	}
	fmt.Fprintf(&b, "%d to create, %d to change, %d drifted, %d to record", n[kindCreate], n[kindChange], n[kindDrift]+n[kindChangeAndDrift], n[kindRecord])
	if n[kindImpossible] > 0 {
		fmt.Fprintf(&b, ". %d impossible: nothing of this can be applied", n[kindImpossible])
	}
	b.WriteString(".\n")
	if names := p.Destructive(); len(names) > 0 {
		fmt.Fprintf(&b, "Data is deleted. To apply the plan, allow: %s\n", strings.Join(names, ", "))
	}
	p.doc.writeEnd(&b)
	return b.String()
}

// writeEnd writes what no change of the plan affects.
func (d *document) writeEnd(b *strings.Builder) {
	writeAges(b, d.Declared)
	if d.Backups != "" {
		fmt.Fprintf(b, "Automated backups of the table: %s. What is deleted is in them so much longer.\n", d.Backups)
	}
}

// write writes an item with its contents and notes.
func (i Item) write(b *strings.Builder) {
	line := fmt.Sprintf("  %s %-12s %-12s %s", signs[i.Kind], i.Kind, i.subject(), i.policies())
	b.WriteString(strings.TrimRight(line, " "))
	if i.Destructive {
		b.WriteString("   DESTRUCTIVE")
	}
	b.WriteByte('\n')
	if shown := i.Holds[:min(len(i.Holds), mostShown)]; len(shown) > 0 {
		b.WriteString("      holds " + strings.Join(shown, ", "))
		if more := len(i.Holds) - len(shown); more > 0 {
			fmt.Fprintf(b, " and %d more", more)
		}
		b.WriteByte('\n')
	}
	for _, note := range i.Notes {
		b.WriteString("      " + note + "\n")
	}
}
