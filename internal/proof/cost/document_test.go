package cost

import (
	_ "embed"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/tidemark-go/tidemark/internal/proof/calls"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

//go:embed testdata/cost.md.tmpl
var text string

// groupsOfCalls are the tables of the document, in their order.
var groupsOfCalls = []group{writes, writers, reads, prefixes, histories, windows, live, deletions, rollups, stores, life, inspections}

// document is the data of the template.
type document struct {
	groups   []table
	rows     []stored
	measured measurements
	loads    []load
}

// table is a group with its figures.
type table struct {
	title string
	calls []counted
}

// TestDocument counts all calls and compares docs/cost.md with the results, so that the document always shows today's
// costs. Under the race detector it only counts.
func TestDocument(t *testing.T) {
	var d document
	var all []counted
	for _, g := range groupsOfCalls {
		out := table{title: g.title}
		for _, c := range g.calls {
			out.calls = append(out.calls, c.measure(t))
		}
		d.groups = append(d.groups, out)
		all = append(all, out.calls...)
	}
	d.rows = storedRows(t)
	d.measured = measureWorked(t, all, d.rows)
	d.loads = d.measured.loads()
	conclusions(t, d)
	got := d.render(t)
	if testkit.Raced {
		return // some sizes were left out
	}
	testkit.Golden(t, "testdata/counted.txt", d.counts(), "calls would cost something else")
	testkit.Golden(t, "../../../docs/cost.md", got, "the document would show outdated costs")
}

// counts returns the figures of all calls at all sizes.
func (d document) counts() string {
	var b strings.Builder
	for _, g := range d.groups {
		b.WriteString(g.title + "\n")
		for _, c := range g.calls {
			c.every = true
			b.WriteString(c.row())
		}
	}
	return b.String()
}

func (d document) render(t *testing.T) string {
	t.Helper()
	round := func(x float64) string { return thousands(int(math.Round(x))) }
	tmpl, err := template.New("cost.md").Funcs(template.FuncMap{
		"n":      round,
		"f":      func(decimals int, x float64) string { return fmt.Sprintf("%.*f", decimals, x) },
		"per":    func(x float64, of float64) float64 { return x / of },
		"times":  func(x float64, y float64) float64 { return x * y },
		"table":  d.table,
		"free":   freeCalls,
		"stored": func() string { return storedTable(d.rows) },
		"worked": func() string { return workedTable(d.loads) },
		"load":   func(i int) load { return d.loads[i] },
		"json":   func() sampled { return d.measured.json },
		"binary": func() sampled { return d.measured.binary },
	}).Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := tmpl.Execute(&b, d.constants()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// constants are the constants of the worked case, by their names in the template.
func (d document) constants() map[string]any {
	points := float64(workedPoints) * 86_400 * workedDays
	return map[string]any{
		"Tenants": float64(workedTenants), "Devices": float64(workedDevices), "Points": float64(workedPoints), "Days": workedDays, "LateDays": lateDays,
		"All": points, "PerDevice": perDevice, "Processes": processes, "Linger": lingers.Milliseconds(),
		"RequestsShort": processes * mostRequests(workedPoints/processes, 1000, 5e6), "RequestsLong": processes * mostRequests(workedPoints/processes, 1000, lingers),
		"Refreshes": refreshes, "Drawn": drawn, "DrawnHours": drawnHours, "RollupDays": rollupDays, "LatestSeconds": latestSeconds, "UpkeepBytes": upkeepBytes,
		"PassSeconds": passSeconds, "MarksSeen": d.measured.marksSeen, "MarkRows": 2.0 * workedDevices / passSeconds,
		"HeadTB": workedPoints * 86_400 * lateDays * d.measured.headCell / 1e12, "HeadCells": perDevice * 86_400 * lateDays,
		"PerTenant": workedDevices / workedTenants, "DayOfDevice": perDevice * 86_400,
		"NodeWrites": nodeWrites, "NodeReads": nodeReads, "NodeScans": nodeScans / 1e6, "Busy": 100 * busyShare, "StoredShare": 100 * storedShare,
		"Saved": 100 * (1 - d.loads[1].Raw/d.loads[0].Raw), "NodeStores": storedShare * float64(nodeStores) / 1e12,
	}
}

// table renders the table of a group.
func (d document) table(title string) (string, error) {
	for _, g := range d.groups {
		if g.title != title {
			continue
		}
		rows, writes := "", false
		for _, c := range g.calls {
			if c.detail {
				continue
			}
			rows += c.brief()
			writes = writes || c.written.grows() || c.written.plus != 0
		}
		if !writes { // then the last column is empty
			return "| Call | n | Requests | Rows seen |\n|---|---|---|---|\n" + strings.ReplaceAll(rows, " |\n", "\n"), nil
		}
		return "| Call | n | Requests | Rows seen | Rows written |\n|---|---|---|---|---|\n" + rows, nil
	}
	return "", fmt.Errorf("unknown group %q", title)
}

// brief renders a call for the document: without the bytes, which counted.txt has, with empty cells for nothing, and
// with short ranges and formulas.
func (c counted) brief() string {
	row := fmt.Sprintf("| %s | %s | %s | %s |\n", c.sizesCell(), c.requestsCell(), c.rowsCell(c.seen, func(f figure) int { return f.seen }),
		c.rowsCell(c.written, func(f figure) int { return f.written }))
	row = regexp.MustCompile(`(\d) to (\d)`).ReplaceAllString(row, "$1–$2")
	return "| " + c.String() + " " + strings.NewReplacer(" – |", " |", " + ", "+", "≤ ", "≤").Replace(row)
}

// row renders a call.
func (c counted) row() string {
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |\n", c, c.sizesCell(), c.requestsCell(),
		c.rowsCell(c.seen, func(f figure) int { return f.seen }), c.rowsCell(c.written, func(f figure) int { return f.written }),
		c.bytesCell(func(f figure) int { return f.sent }), c.bytesCell(func(f figure) int { return f.received }))
}

// list renders the numbers of all sizes: each of them, or the first and the last one.
func (c counted) list(numbers []int) string {
	if first, last := numbers[0], numbers[len(numbers)-1]; !c.every {
		return span(first, last)
	}
	var out []string
	for _, n := range numbers {
		out = append(out, thousands(n))
	}
	return strings.Join(out, " · ")
}

func (c counted) figuresOf(of func(figure) int) []int {
	var out []int
	for _, f := range c.figures {
		out = append(out, of(f))
	}
	return out
}

func (c counted) sizesCell() string {
	if c.of == "" {
		return "–"
	}
	return c.of + ": " + c.list(c.at())
}

func (c counted) requestsCell() string {
	var out []string
	for _, m := range methods {
		s, ok := c.requests[m]
		if !ok {
			continue
		}
		cell := s.String() + " " + m
		if (s.grows() && c.every || s.loose) && !c.varies {
			cell += ": " + c.list(c.figuresOf(func(f figure) int { return f.calls[m] }))
		}
		out = append(out, cell)
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, "<br>")
}

func (c counted) rowsCell(s shape, of func(figure) int) string {
	switch {
	case !s.grows() && s.plus == 0:
		return "–"
	case s.loose && !c.varies:
		return s.String() + ": " + c.list(c.figuresOf(of))
	}
	return s.String()
}

// bytesCell lists the bytes at each size, and by how much they grow with n.
func (c counted) bytesCell(of func(figure) int) string {
	first, last := of(c.figures[0]), of(c.figures[len(c.figures)-1])
	switch {
	case c.varies:
		return "varies"
	case last == 0:
		return "–"
	case first == last:
		return thousands(last)
	}
	per := math.Round(c.perUnit(of))
	each := fmt.Sprintf("; %s each", thousands(int(per)))
	switch {
	case per < 2:
		return c.list(c.figuresOf(of))
	case c.every:
		return c.list(c.figuresOf(of)) + each
	}
	return thousands(first) + each
}

// freeCalls lists the calls that make no request, grouped by reason.
func freeCalls() string {
	by := map[string][]string{}
	for _, c := range calls.List {
		if c.Free != "" {
			by[c.Free] = append(by[c.Free], "`"+c.Name()+"`")
		}
	}
	var lines []string
	for why, names := range by {
		slices.Sort(names)
		lines = append(lines, fmt.Sprintf("- %s: %s\n", strings.Join(names, ", "), why))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
