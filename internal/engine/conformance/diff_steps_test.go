package conformance

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"
)

// step returns a random step.
func (g *generator) step() step {
	kinds := 100
	if g.view {
		kinds = 98
	}
	switch n := g.r.IntN(kinds); {
	case g.view && g.r.IntN(5) == 0:
		return g.noiseStep()
	case n < 30:
		return g.applyStep()
	case n < 40:
		return g.bulkStep()
	case n < 50:
		return g.conditionalStep()
	case n < 57:
		return g.modifyStep()
	case n < 98:
		return g.readStep()
	case n < 99:
		prefix := pick(g, []string{"a", "a#", "a#2", "b\xff", "\xff", "zz"})
		return step{fmt.Sprintf("drop rows %q", prefix), func(e *env, tbl bigtable.TableAPI) string {
			err := e.admin.DropRowRange(e.ctx, "t", prefix)
			return outcome(err) + read(e, tbl, bigtable.InfiniteRange(""))
		}}
	}
	return step{"delete and create family b", func(e *env, tbl bigtable.TableAPI) string {
		out := outcome(e.admin.DeleteColumnFamily(e.ctx, "t", "b"))
		return out + outcome(e.admin.CreateColumnFamily(e.ctx, "t", "b")) + read(e, tbl, bigtable.InfiniteRange(""))
	}}
}

func (g *generator) applyStep() step {
	row := g.row()
	m, what := g.mutation()
	return step{fmt.Sprintf("row %q:%s", row, what), func(e *env, tbl bigtable.TableAPI) string {
		return outcome(tbl.Apply(e.ctx, row, m)) + read(e, tbl, bigtable.SingleRow(row))
	}}
}

func (g *generator) bulkStep() step {
	var rows, whats []string
	var muts []*bigtable.Mutation
	for range 1 + g.r.IntN(12) {
		row := g.row()
		m, what := g.mutation()
		rows, muts, whats = append(rows, row), append(muts, m), append(whats, fmt.Sprintf("row %q:%s", row, what))
	}
	return step{"bulk\n " + strings.Join(whats, "\n "), func(e *env, tbl bigtable.TableAPI) string {
		errs, err := tbl.ApplyBulk(e.ctx, rows, muts)
		return fmt.Sprint(errs, outcome(err)) + read(e, tbl, bigtable.RowList(rows))
	}}
}

func (g *generator) conditionalStep() step {
	row := g.row()
	f := g.filter(2, true)
	then, whatThen := g.mutation()
	other, whatOther := g.mutation()
	m := bigtable.NewCondMutation(f, then, other)
	return step{fmt.Sprintf("row %q: if %v\n then%s\n else%s", row, f, whatThen, whatOther), func(e *env, tbl bigtable.TableAPI) string {
		var matched bool
		err := tbl.Apply(e.ctx, row, m, bigtable.GetCondMutationResult(&matched))
		return fmt.Sprint(outcome(err), matched) + read(e, tbl, bigtable.SingleRow(row))
	}}
}

// modifyStep appends to and increments cells with future timestamps, because the clocks of the two stores differ.
func (g *generator) modifyStep() step {
	const future = 253402300799999000
	row := g.row()
	m := bigtable.NewReadModifyWrite()
	what := ""
	for range 1 + g.r.IntN(3) {
		if g.r.IntN(2) == 0 {
			n := g.r.Int64N(100) - 50
			m.Increment("r", "n", n)
			what += fmt.Sprintf(" n+%d", n)
		} else {
			v := pick(g, diffValues)
			m.AppendValue("r", "t", []byte(v))
			what += fmt.Sprintf(" t+%q", v)
		}
	}
	return step{fmt.Sprintf("row %q: modify%s", row, what), func(e *env, tbl bigtable.TableAPI) string {
		fresh := bigtable.NewCondMutation(bigtable.FamilyFilter("r"), nil, first(future))
		out := outcome(tbl.Apply(e.ctx, row, fresh))
		r, err := tbl.ApplyReadModifyWrite(e.ctx, row, m)
		return out + outcome(err) + render(r) + read(e, tbl, bigtable.SingleRow(row))
	}}
}

func first(ts bigtable.Timestamp) *bigtable.Mutation {
	m := bigtable.NewMutation()
	m.Set("r", "n", ts, binary.BigEndian.AppendUint64(nil, 0))
	m.Set("r", "t", ts, nil)
	return m
}

func (g *generator) readStep() step {
	rows, what := g.rows()
	var opts []bigtable.ReadOption
	if g.r.IntN(4) > 0 {
		f := g.filter(3, true)
		opts, what = append(opts, bigtable.RowFilter(f)), what+fmt.Sprintf(" filter %v", f)
	}
	if g.r.IntN(3) == 0 {
		n := 1 + g.r.Int64N(6)
		opts, what = append(opts, bigtable.LimitRows(n)), what+fmt.Sprintf(" limit %d", n)
	}
	if g.r.IntN(3) == 0 {
		opts, what = append(opts, bigtable.ReverseScan()), what+" reversed"
	}
	return step{"read " + what, func(e *env, tbl bigtable.TableAPI) string { return read(e, tbl, rows, opts...) }}
}

// rows returns a random set of rows.
func (g *generator) rows() (bigtable.RowSet, string) {
	one := func() bigtable.RowRange {
		start, end := g.row(), g.row()
		if start > end {
			start, end = end, start
		}
		switch g.r.IntN(8) {
		case 0:
			return bigtable.PrefixRange(start)
		case 1:
			return bigtable.InfiniteRange(start)
		case 2:
			return bigtable.InfiniteReverseRange(end)
		case 3:
			return bigtable.NewOpenRange(start, end+"\x00\x00")
		case 4:
			return bigtable.NewOpenClosedRange(start, end)
		case 5:
			return bigtable.NewClosedRange(start, end)
		}
		return bigtable.NewClosedOpenRange(start, end)
	}
	switch g.r.IntN(4) {
	case 0:
		return bigtable.InfiniteRange(""), "all"
	case 1:
		var out bigtable.RowList
		for range 1 + g.r.IntN(6) {
			out = append(out, g.row())
		}
		return out, fmt.Sprintf("keys %q", []string(out))
	case 2:
		r := one()
		return r, r.String()
	}
	var out bigtable.RowRangeList
	what := "ranges"
	for range 2 + g.r.IntN(4) {
		r := one()
		out, what = append(out, r), what+" "+r.String()
	}
	return out, what
}

func read(e *env, tbl bigtable.TableAPI, rows bigtable.RowSet, opts ...bigtable.ReadOption) string {
	var out []string
	err := tbl.ReadRows(e.ctx, rows, func(r bigtable.Row) bool {
		out = append(out, render(r))
		return true
	}, opts...)
	return fmt.Sprint(outcome(err), out)
}

// render shows a row. It sorts the copies of a cell, because their order is unspecified.
func render(r bigtable.Row) string {
	out := fmt.Sprintf("%q{", r.Key())
	for _, fam := range slices.Sorted(maps.Keys(r)) {
		items := r[fam]
		for i := 0; i < len(items); {
			j := i
			var copies []string
			for ; j < len(items) && items[j].Column == items[i].Column && items[j].Timestamp == items[i].Timestamp; j++ {
				copies = append(copies, fmt.Sprintf("%q%v", items[j].Value, items[j].Labels))
			}
			slices.Sort(copies)
			out += fmt.Sprintf(" %q@%d=%v", items[i].Column, items[i].Timestamp, copies)
			i = j
		}
	}
	return out + " }"
}
