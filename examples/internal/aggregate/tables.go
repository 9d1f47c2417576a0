package aggregate

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Column is a measure in a table of windows, and the aggregates that it shows.
type Column struct {
	Measure string
	Shown   []Aggregate
}

// Columns are the measures of a table of windows, in the order of the windows' values.
type Columns []Column

// With returns the columns with one more measure. It shows those of the aggregates that the measure keeps.
func (c Columns) With(measure string, kept window.Aggregates, shown []Aggregate) Columns {
	column := Column{Measure: measure}
	for _, a := range shown {
		if kept&a.Kept == a.Kept {
			column.Shown = append(column.Shown, a)
		}
	}
	return append(c, column)
}

// Bucket is a window in JSON. Values are by measure, then by aggregate; null where there is nothing.
type Bucket struct {
	Start    instant.Time              `json:"start"`
	End      instant.Time              `json:"end"`
	Points   int64                     `json:"points"`
	Bad      int64                     `json:"bad,omitempty"`
	Entities int64                     `json:"entities,omitempty"` // of a group
	Partial  bool                      `json:"partial,omitempty"`
	Open     bool                      `json:"open,omitempty"` // of a rollup
	Values   map[string]map[string]any `json:"values"`
	Filled   []string                  `json:"filled,omitempty"`
}

// Bucket returns a window as it is shown in JSON.
func (c Columns) Bucket(b *window.Bucket) Bucket {
	out := Bucket{
		Start: instant.Time{Time: b.Start}, End: instant.Time{Time: b.End}, Points: b.Points, Bad: b.Bad, Entities: b.Entities, Partial: b.Partial, Open: b.Open,
		Values: map[string]map[string]any{},
	}
	for i, column := range c {
		s := &b.Values[i]
		values := map[string]any{}
		for _, a := range column.Shown {
			values[a.Name] = a.value(s)
		}
		out.Values[column.Measure] = values
		if s.Filled {
			out.Filled = append(out.Filled, column.Measure)
		}
	}
	return out
}

// Header returns the names of a table's columns. They do not depend on what is stored.
func (c Columns) Header() []string {
	out := []string{"start", "end", "points", "bad", "partial"}
	for _, column := range c {
		for _, a := range column.Shown {
			out = append(out, column.Measure+"."+a.Name)
		}
	}
	return append(out, "filled")
}

// Row returns a window as a row of a table, with one text for each name of the header. States are JSON.
func (c Columns) Row(b *window.Bucket) []string {
	out := []string{
		instant.Text(b.Start), instant.Text(b.End), strconv.FormatInt(b.Points, 10), strconv.FormatInt(b.Bad, 10), strconv.FormatBool(b.Partial),
	}
	var filled []string
	for i, column := range c {
		s := &b.Values[i]
		for _, a := range column.Shown {
			out = append(out, text(a.value(s)))
		}
		if s.Filled {
			filled = append(filled, column.Measure)
		}
	}
	return append(out, strings.Join(filled, " "))
}

// text returns a value in a table; "" for nil.
func text(value any) string {
	switch v := value.(type) {
	case float64:
		return Number(v)
	case json.Number:
		return v.String()
	case string:
		return v
	case *window.States:
		out, _ := json.Marshal(v) // has no errors
		return string(out)
	}
	return ""
}

// Number returns a number in a table.
func Number(x float64) string {
	text, _ := codec.Float(x).Text()
	return text
}

// Instant returns a time in a table; "" for none.
func Instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return instant.Text(t.UTC())
}

// OutageHeader and UptimeHeader are the names of the columns of outages and of uptimes. Their times are in seconds.
var (
	OutageHeader = []string{"from", "to"}
	UptimeHeader = []string{"start", "end", "partial", "up_s", "down_s", "outages"}
)

// OutageRow returns an outage as a row of a table.
func OutageRow(o window.Outage) []string { return []string{Instant(o.From), Instant(o.To)} }

// UptimeRow returns an uptime as a row of a table.
func UptimeRow(u window.Uptime) []string {
	return []string{
		instant.Text(u.Start), instant.Text(u.End), strconv.FormatBool(u.Partial),
		Number(u.Up.Seconds()), Number(u.Down.Seconds()), strconv.FormatInt(u.Outages, 10),
	}
}

// AlignedRow returns aligned values as a row of a table: the time, and each value.
func AlignedRow[V float64 | codec.Value](r *window.Row[V]) []string {
	out := []string{instant.Text(r.Time)}
	for _, s := range r.Values {
		value := ""
		if s.OK {
			value, _ = codec.ValueOf(s.Value).Text()
		}
		out = append(out, value)
	}
	return out
}
