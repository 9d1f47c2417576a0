package heatview

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/heat"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Tablet is a range of row keys that one server has, such as one that Bigtable reports as hot. The zero Tablet is the
// whole table at no time.
type Tablet struct {
	// First and Last are the keys at its ends; both are its own. Empty ones are the ends of the table.
	First, Last string
	// From and To are when it was observed.
	From, To time.Time
	// CPU is the share of its server that it used, from 0 to 1.
	CPU float64
}

// Tenant returns the tenant whose rows alone the tablet has, or "" if there are others' rows.
func (t Tablet) Tenant() string {
	id, _ := t.owner()
	return id
}

// Dataset returns the dataset whose rows alone the tablet has, all of one tenant, or "" if there are others. Its heads
// and rollups count as the dataset's rows.
func (t Tablet) Dataset() string {
	_, name := t.owner()
	return name
}

// owner returns what the keys at both ends have in common. They may be cut off in the middle of a key.
func (t Tablet) owner() (id, name string) {
	first, ok := rowkey.TenantOf(t.First)
	if last, same := rowkey.TenantOf(t.Last); !ok || !same || first != last {
		return "", ""
	}
	name, _, _ = rowkey.KindOf(t.First)
	if last, _, _ := rowkey.KindOf(t.Last); name != last {
		name = ""
	}
	return first.String(), name
}

// Overlaps reports whether keys that begin with prefix may be in the tablet. All keys begin with "".
func (t Tablet) Overlaps(prefix string) bool {
	return (t.Last == "" || prefix <= t.Last) && (t.First <= prefix || strings.HasPrefix(t.First, prefix))
}

// String returns the range of keys, and the CPU.
func (t Tablet) String() string {
	name := func(key, end string) string {
		if key == "" {
			return end
		}
		return readable(key)
	}
	return fmt.Sprintf("%s to %s, %.0f%% of its server", name(t.First, "the first row"), name(t.Last, "the last row"), t.CPU*100)
}

// outline is a tablet in a picture: ranges of lines and of columns.
type outline struct{ firstLine, lastLine, firstColumn, lastColumn int } // without the last ones

// outlineOf returns where a tablet is in a grid, or false if it has none of its lines or columns.
func outlineOf(r *heat.Recording, g *grid, by view, t Tablet) (o outline, ok bool) {
	o = outline{firstLine: len(g.lines)}
	for i, l := range g.lines {
		last := by.of(l.last)
		if l.last.tenant == "" {
			last = l.last.entity
		} else if by == byTenant {
			last += delim
		}
		if (t.Last == "" || l.first.entity <= t.Last) && (t.First <= last || strings.HasPrefix(t.First, last)) {
			o.firstLine, o.lastLine = min(o.firstLine, i), i+1
		}
	}
	first := r.Columns.List[0].ID
	o.firstColumn = -1
	for id := first; id < first+r.Columns.Span(); id++ {
		if r.Columns.Start(id).Before(t.To) && r.Columns.Start(id+1).After(t.From) {
			if o.firstColumn < 0 {
				o.firstColumn = int(id - first)
			}
			o.lastColumn = int(id-first) + 1
		}
	}
	return o, o.lastLine > 0 && o.lastColumn > 0
}
