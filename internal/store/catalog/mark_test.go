package catalog

import (
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
)

// FuzzParseMark: whatever bytes are in a mark row, only its tenant is affected and nothing panics. A mark that does not
// name single entities covers the whole tenant.
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
		m := parseMark(row)
		if len(m.Entities) > 0 && (m.Name == "" || 16*len(m.Entities) != len(hashes)) {
			t.Errorf("%+v", m)
		}
		if until == "" && m.Over(time.Now().AddDate(1000, 0, 0)) {
			t.Errorf("%+v ends", m)
		}
	})
}

// TestMarkRoundTrip: stores read the mark that was set, and a mark never ends early.
func TestMarkRoundTrip(t *testing.T) {
	if HashEntity("a", "b") == HashEntity("a", "c") || HashEntity("a", "b") == HashEntity("b", "b") {
		t.Error("entities share a hash")
	}
	until := time.Unix(1700000000, 1)
	row := bigtable.Row{Family: []bigtable.ReadItem{{Row: "!erased#acme", Column: Family + ":" + columnMark, Value: []byte("1700000001")}}}
	m := parseMark(row)
	if m.Tenant != "acme" || m.Until.Before(until) || m.Over(until) || !m.Over(until.Add(time.Second)) {
		t.Errorf("%+v", m)
	}
}
