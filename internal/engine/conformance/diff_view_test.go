package conformance

import (
	"fmt"

	"cloud.google.com/go/bigtable"
)

// The view covers the rows below "a" and "b\xff", all of the families a, r and s, and of b the columns "q" and "p…".
var (
	viewRows   = []string{"a", "a\x00", "a\x00\x00", "a\x00\xff", "a\x01", "a#1", "a#2", "a#2#x", "ab", "b\xff", "b\xff\xff"}
	viewQuals  = []string{"p", "p\x00", "pq", "q"}
	hiddenRows = []string{"\x00", "b", "b\xfe", "c", "A", "\xff", "\xff\xff", "é"}
	hiddenCols = []string{"", "o", "q\x00", "\xff"}
)

func (g *generator) createView(e *env) {
	e.Helper()
	v := &bigtable.SubsetViewConf{RowPrefixes: [][]byte{[]byte("b\xff"), []byte("a"), []byte("a#")}}
	for _, fam := range []string{"a", "r", "s"} {
		v.AddFamilySubsetQualifierPrefix(fam, []byte{})
	}
	v.AddFamilySubsetQualifierPrefix("b", []byte("p"))
	v.AddFamilySubsetQualifier("b", []byte("q"))
	err := e.admin.CreateAuthorizedView(e.ctx, &bigtable.AuthorizedViewConf{TableID: "t", AuthorizedViewID: "v", AuthorizedView: v})
	if err != nil {
		e.Fatal(err)
	}
}

// open returns the engine's table, or the view of it.
func (g *generator) open(e *env) bigtable.TableAPI {
	if g.view {
		return e.client.OpenAuthorizedView("t", "v")
	}
	return e.client.Open("t")
}

// noiseStep writes rows and columns that the view hides to the engine only.
func (g *generator) noiseStep() step {
	row, fam, q := pick(g, hiddenRows), pick(g, []string{"a", "b", "r"}), pick(g, diffQuals)
	if g.r.IntN(2) == 0 {
		row, fam, q = g.row(), "b", pick(g, hiddenCols)
	}
	ts, v := g.time(), pick(g, diffValues)
	return step{fmt.Sprintf("hidden: row %q: set %s:%q@%d=%q", row, fam, q, ts, v), func(e *env, tbl bigtable.TableAPI) string {
		if e.backend.name == "engine" {
			m := bigtable.NewMutation()
			m.Set(fam, q, ts, []byte(v))
			if err := e.client.Open("t").Apply(e.ctx, row, m); err != nil {
				return err.Error()
			}
			if err := tbl.Apply(e.ctx, row, m); err == nil {
				return "a write outside of the view passes"
			}
		}
		return read(e, tbl, bigtable.SingleRow(row))
	}}
}
