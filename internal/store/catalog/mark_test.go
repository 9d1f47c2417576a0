package catalog

import (
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/readrows"
)

// FuzzParseMark checks that no bytes in a mark row cause a panic or affect another tenant. A mark that names no single
// entities covers the whole tenant.
func FuzzParseMark(f *testing.F) {
	f.Add("acme", "", "")
	f.Add("acme", "1700000000", "")
	f.Add("acme#0011", "", "0123456789abcdef")
	f.Add("acme#0011", "soon", "0123456789abcdef")
	f.Add("acme#0011", "", "short")
	f.Add("acme", "-9223372036854775808", "0123456789abcdef")
	f.Fuzz(func(t *testing.T, name, until, hashes string) {
		row := bigtable.Row{Family: []bigtable.ReadItem{
			{Row: "!erased#" + name, Column: Family + ":" + columnMark, Value: []byte(until)},
			{Row: "!erased#" + name, Column: Family + ":" + columnEntities, Value: []byte(hashes)},
		}}
		m := parseMark(readrows.FromClient(row))
		if len(m.Entities) > 0 && (m.Name == "" || 16*len(m.Entities) != len(hashes)) {
			t.Errorf("got mark %+v", m)
		}
		if until == "" && m.Over(time.Now().AddDate(1000, 0, 0)) {
			t.Errorf("got a mark with an end: %+v", m)
		}
	})
}

// TestMarkRoundTrip checks that stores read back the mark that was set, and that a mark never ends early.
func TestMarkRoundTrip(t *testing.T) {
	if HashEntity("a", "b") == HashEntity("a", "c") || HashEntity("a", "b") == HashEntity("b", "b") {
		t.Error("got the same hash for two entities")
	}
	until := time.Unix(1700000000, 1)
	row := bigtable.Row{Family: []bigtable.ReadItem{{Row: "!erased#acme", Column: Family + ":" + columnMark, Value: []byte("1700000001")}}}
	m := parseMark(readrows.FromClient(row))
	if m.Tenant != "acme" || m.Until.Before(until) || m.Over(until) || !m.Over(until.Add(time.Second)) {
		t.Errorf("got mark %+v", m)
	}
}
