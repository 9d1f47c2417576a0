package forecast

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
)

func count(x float64) string { return fmt.Sprintf("%.0f", x) }

// size formats bytes with a suitable unit.
func size(x float64) string {
	const units = "KMGTPE"
	if !(math.Abs(x) >= 1000) { // or not a number, in a forecast that was read from JSON
		return fmt.Sprintf("%.0f B", x)
	}
	i := -1
	for math.Abs(x) >= 999.5 && i+1 < len(units) {
		x, i = x/1000, i+1
	}
	return fmt.Sprintf("%.3g %cB", x, units[i])
}

// String returns the forecast as text of several lines. It leaves out the weeks between; the fields and JSON
// have them.
func (f *Forecast) String() string {
	if f == nil {
		f = new(Forecast)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Forecast of table %s at %s\n", f.Table, f.At.Format(time.RFC3339))
	fmt.Fprintf(&b, "Read: %d rows, %s, in %d requests: %d of %d parts of the table, %d of them to the end\n",
		f.Cost.Rows, size(float64(f.Cost.Bytes)), f.Cost.Requests, f.Cost.Read, f.Cost.Parts, f.Cost.Finished)
	switch f.Basis {
	case Counted:
		b.WriteString("All rows were counted: what is stored is exact.\n")
	case Sampled:
		b.WriteString("Figures are estimates by a sample.\n")
	case Assumed:
		b.WriteString("Figures are estimates by a sample, and rest on the service's sizes of parts that were not read to the end.\n")
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	ahead := []int{}
	for _, week := range []int{1, 4, f.weeks()} {
		if 0 < week && week <= f.weeks() && (len(ahead) == 0 || week > ahead[len(ahead)-1]) {
			ahead = append(ahead, week)
		}
	}
	fmt.Fprint(w, "CLASS\tPOLICY\tHOLDS\tEXPIRED\tA DAY")
	for _, week := range ahead {
		fmt.Fprintf(w, "\tWEEK %d", week)
	}
	fmt.Fprintln(w, "\tSTEADY")
	line := func(name, policy string, g *Figures) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s", name, policy, size(g.Bytes), size(g.ExpiredBytes), size(g.DayBytes))
		for _, week := range ahead {
			fmt.Fprintf(w, "\t%s", size(g.Weeks[week-1]))
		}
		steady := "grows"
		if g.Steady != nil {
			steady = size(*g.Steady)
		}
		fmt.Fprintf(w, "\t%s\n", steady)
	}
	for i := range f.Classes {
		policy := f.Classes[i].Policy
		if policy == "" {
			policy = "-"
		}
		line(f.Classes[i].Class, policy, &f.Classes[i].Figures)
	}
	line("all", "", &f.Whole)
	_ = w.Flush()
	b.WriteString("\n")
	w = tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "TENANT\tDATASET\tROWS OF\tCLASS\tHOLDS\tCELLS\tEXPIRED\tA DAY")
	for i := range f.Holdings {
		h := &f.Holdings[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", nameOf(h.Tenant), dash(h.Dataset), rowsOf(h.Dataset, h.Kind), h.Class, size(h.Bytes), count(h.Cells), size(h.ExpiredBytes), size(h.DayBytes))
	}
	_ = w.Flush()
	if len(f.Kept) > 0 {
		b.WriteString("\nHow long tenants' points and rollups are kept:\n  " + strings.Join(f.Kept, "\n  ") + "\n")
	}
	return trimmed(b.String())
}

// weeks returns how many weeks the forecast covers. A forecast read from JSON may have fewer.
func (f *Forecast) weeks() int {
	n := len(f.Whole.Weeks)
	for i := range f.Classes {
		n = min(n, len(f.Classes[i].Weeks))
	}
	return n
}

// String returns the drop as text of several lines.
func (d Drop) String() string {
	var b strings.Builder
	if d.Cells == 0 {
		of := "that it keeps now"
		if d.Basis != Counted {
			of = "that the sample met"
		}
		return fmt.Sprintf("Class %s with %s would drop nothing %s.\n", d.Class, d.Policy, of)
	}
	fmt.Fprintf(&b, "Class %s with %s would drop %s, %s cells:\n", d.Class, d.Policy, size(d.Bytes), count(d.Cells))
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, h := range d.From {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s cells\n", nameOf(h.Tenant), dash(h.Dataset), rowsOf(h.Dataset, h.Kind), size(h.Bytes), count(h.Cells))
	}
	_ = w.Flush()
	return trimmed(b.String())
}

func nameOf(id tenant.ID) string { return dash(id.String()) }

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func rowsOf(dataset, kind string) string {
	switch {
	case kind != "":
		return kind
	case dataset == "":
		return "another program"
	}
	return "points"
}

// trimmed removes the trailing blanks of lines, which come from padded columns.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
