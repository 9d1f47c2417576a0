package conformance

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
)

func decode(b []byte) int64 {
	if len(b) != 8 {
		return math.MinInt64
	}
	return int64(binary.BigEndian.Uint64(b))
}

func encode(n int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }

// aggregates creates a table with the aggregate families sum, min and max, and the plain family plain.
func (e *env) aggregates(id string) *bigtable.Table {
	e.Helper()
	of := func(a bigtable.Aggregator) bigtable.Family {
		return bigtable.Family{ValueType: bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: a}}
	}
	if err := e.admin.CreateTableFromConf(e.ctx, &bigtable.TableConf{TableID: id, ColumnFamilies: map[string]bigtable.Family{
		"sum": of(bigtable.SumAggregator{}), "min": of(bigtable.MinAggregator{}), "max": of(bigtable.MaxAggregator{}), "plain": {},
	}}); err != nil {
		e.Fatal(err)
	}
	return e.client.Open(id)
}

// numbers renders a row's cells as numbers.
func numbers(r bigtable.Row, fam string) string {
	out := ""
	for _, c := range r[fam] {
		out += fmt.Sprintf("%s@%d=%d ", c.Column, c.Timestamp/1000, decode(c.Value))
	}
	return out
}

func TestSum(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.aggregates("t")
		for _, n := range []int64{5, -7, 0, 40} {
			m := bigtable.NewMutation()
			m.AddIntToCell("sum", "n", ms(60), n)
			m.AddIntToCell("sum", "n", ms(120), 1)
			e.apply(tbl, "r", m)
		}
		m := bigtable.NewMutation()
		m.MergeBytesToCell("sum", "n", ms(60), []byte(encode(4)))
		m.AddIntToCell("sum", "n", ms(60), 8)
		m.AddIntToCell("sum", "other", ms(60), -1)
		e.apply(tbl, "r", m)
		r, err := tbl.ReadRow(e.ctx, "r")
		if err != nil {
			t.Fatal(err)
		}
		want(t, numbers(r, "sum"), "sum:n@120=4 sum:n@60=50 sum:other@60=-1 ", "sums are wrong")
	})
}

func TestMinAndMax(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultMinMax)
		tbl := e.aggregates("t")
		for _, n := range []int64{5, -7, 0, 40, 2} {
			m := bigtable.NewMutation()
			for _, fam := range []string{"min", "max"} {
				m.AddIntToCell(fam, "n", ms(60), n)
				m.AddIntToCell(fam, "n", ms(120), n/2)
			}
			e.apply(tbl, "r", m)
		}
		m := bigtable.NewMutation()
		m.MergeBytesToCell("min", "n", ms(60), []byte(encode(-6)))
		m.MergeBytesToCell("max", "n", ms(120), []byte(encode(math.MaxInt64)))
		m.AddIntToCell("min", "edge", ms(60), math.MinInt64)
		e.apply(tbl, "r", m)
		r, err := tbl.ReadRow(e.ctx, "r")
		if err != nil {
			t.Fatal(err)
		}
		want(t, numbers(r, "min"), "min:edge@60=-9223372036854775808 min:n@120=-3 min:n@60=-7 ", "minima are wrong")
		want(t, numbers(r, "max"), "max:n@120=9223372036854775807 max:n@60=40 ", "maxima are wrong")
	})
}

// Sums work together with other mutations: several in one request, after a deletion, in bulk and with a condition.
func TestAggregatesAmongOtherMutations(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.aggregates("t")
		add := func(n int64, before func(*bigtable.Mutation)) *bigtable.Mutation {
			m := bigtable.NewMutation()
			if before != nil {
				before(m)
			}
			m.AddIntToCell("sum", "n", ms(60), n)
			m.Set("plain", "q", ms(1), []byte("x"))
			return m
		}
		e.apply(tbl, "r", add(5, nil))
		e.apply(tbl, "r", add(6, func(m *bigtable.Mutation) { m.DeleteCellsInColumn("sum", "n") }))
		errs, err := tbl.ApplyBulk(e.ctx, []string{"r", "r", "s", "r"}, []*bigtable.Mutation{add(10, nil), add(20, nil), add(1, nil), add(30, nil)})
		if errs != nil || err != nil {
			t.Fatal(errs, err)
		}
		r, err := tbl.ReadRow(e.ctx, "r")
		if err != nil {
			t.Fatal(err)
		}
		want(t, numbers(r, "sum"), "sum:n@60=66 ", "a sum over a deletion or in bulk is wrong")

		if err := tbl.Apply(e.ctx, "r", bigtable.NewCondMutation(bigtable.FamilyFilter("sum"), add(4, nil), nil)); err != nil {
			t.Fatal(err)
		}
		e.apply(tbl, "r", add(1, func(m *bigtable.Mutation) { m.AddIntToCell("sum", "n", ms(60), 100) }))
		if r, err = tbl.ReadRow(e.ctx, "r"); err != nil {
			t.Fatal(err)
		}
		want(t, numbers(r, "sum"), "sum:n@60=171 ", "a conditional sum, or two sums in one mutation, are wrong")

		m := bigtable.NewMutation()
		m.DeleteRow()
		e.apply(tbl, "r", m)
		e.apply(tbl, "r", add(3, nil))
		if r, err = tbl.ReadRow(e.ctx, "r"); err != nil {
			t.Fatal(err)
		}
		want(t, numbers(r, "sum"), "sum:n@60=3 ", "a deleted sum comes back")
	})
}

func TestConcurrentAddsAllCount(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.aggregates("t")
		const writers, adds = 8, 40
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for range adds {
					m := bigtable.NewMutation()
					m.AddIntToCell("sum", "n", ms(0), 3)
					if err := tbl.Apply(e.ctx, "r", m); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		r, err := tbl.ReadRow(e.ctx, "r")
		if err != nil {
			t.Fatal(err)
		}
		want(t, numbers(r, "sum"), fmt.Sprintf("sum:n@0=%d ", 3*writers*adds), "an addition was lost or counted twice")
	})
}

func TestAggregatesRefuse(t *testing.T) {
	input := func(v *bigtablepb.Value) *bigtablepb.Mutation {
		m := addToCell("sum", "n", 60000, 0)
		m.GetAddToCell().Input = v
		return m
	}
	for _, tt := range []struct {
		name string
		m    *bigtablepb.Mutation
		want codes.Code
	}{
		{"bytes in a sum", setCell("sum", "n", 1000, encode(1)), codes.InvalidArgument},
		{"a sum in bytes", addToCell("plain", "n", 1000, 1), codes.InvalidArgument},
		{"a merge in bytes", mergeToCell("plain", "n", 1000, encode(1)), codes.InvalidArgument},
		{"a merge of 7 bytes", mergeToCell("sum", "n", 1000, "1234567"), codes.InvalidArgument},
		{"a text", input(rawValue("x")), codes.InvalidArgument},
		{"a fraction", input(&bigtablepb.Value{Kind: &bigtablepb.Value_FloatValue{FloatValue: 1}}), codes.InvalidArgument},
		{"nothing", input(nil), codes.InvalidArgument},
		{"an unknown family", addToCell("none", "n", 1000, 1), codes.NotFound},
		{"server time", addToCell("sum", "n", -1, 1), codes.InvalidArgument},
		{"a timestamp finer than milliseconds", addToCell("sum", "n", 1, 1), codes.InvalidArgument},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, e *env) {
				e.needs(faultAggregates, faultCodes)
				tbl := e.aggregates("t")
				req := &bigtablepb.MutateRowRequest{
					TableName: tableName("t"), RowKey: []byte("r"),
					Mutations: []*bigtablepb.Mutation{addToCell("sum", "good", 1000, 1), tt.m},
				}
				_, err := e.data.MutateRow(e.ctx, req)
				wantCode(t, err, tt.want, "an invalid aggregate mutation is accepted")
				want(t, e.all(tbl), "", "a refused mutation was stored in part")
			})
		})
	}
}

func TestIncrementOfAggregateIsRefused(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultAggregates)
		tbl := e.aggregates("t")
		m := bigtable.NewReadModifyWrite()
		m.Increment("sum", "n", 1)
		_, err := tbl.ApplyReadModifyWrite(e.ctx, "r", m)
		wantCode(t, err, codes.InvalidArgument, "an aggregate cell was incremented as bytes")
	})
}
