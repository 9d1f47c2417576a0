package conformance

import (
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
)

// Each rule keeps exactly the cells that it should. The test runs garbage collection if the backend can run it on
// demand.
func TestGarbageCollection(t *testing.T) {
	age, versions := bigtable.MaxAgePolicy, bigtable.MaxVersionsPolicy
	union, intersection := bigtable.UnionPolicy, bigtable.IntersectionPolicy
	// Cells that are 1 to 6 hours old, newest first.
	for _, tt := range []struct {
		name   string
		policy bigtable.GCPolicy
		want   string
	}{
		{"none", bigtable.NoGcPolicy(), "123456"},
		{"versions", versions(2), "12"},
		{"age", age(4*time.Hour + time.Minute), "1234"},
		{"the age is not reached", age(6*time.Hour + time.Minute), "123456"},
		{"all too old", age(time.Minute), ""},
		{"union: one rule applies", union(versions(5), age(4*time.Hour+time.Minute)), "1234"},
		{"union: the other rule applies", union(versions(2), age(4*time.Hour+time.Minute)), "12"},
		{"intersection: one rule keeps more", intersection(versions(2), age(4*time.Hour+time.Minute)), "1234"},
		{"intersection: the other rule keeps more", intersection(versions(5), age(4*time.Hour+time.Minute)), "12345"},
		{"nested: an intersection in a union", union(versions(5), intersection(versions(1), age(2*time.Hour+time.Minute))), "12"},
		{"nested: a union in an intersection", intersection(age(3*time.Hour+time.Minute), union(versions(4), age(time.Hour+time.Minute))), "123"},
		{"nested twice", intersection(versions(1), union(age(5*time.Hour+time.Minute), intersection(versions(2), age(time.Hour+time.Minute)))), "12"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, e *env) {
				e.needs(faultGC)
				conf := &bigtable.TableConf{TableID: "t", ColumnFamilies: map[string]bigtable.Family{
					"f": {GCPolicy: tt.policy}, "keep": {},
				}}
				if err := e.admin.CreateTableFromConf(e.ctx, conf); err != nil {
					t.Fatal(err)
				}
				tbl := e.client.Open("t")
				m := bigtable.NewMutation()
				for h := range 6 {
					at := e.clock.timestamp() - bigtable.Timestamp(time.Duration(h+1)*time.Hour/time.Microsecond)
					m.Set("f", "q", at, []byte{byte('1' + h)})
					m.Set("keep", "q", at, []byte{byte('1' + h)})
				}
				e.apply(tbl, "r", m)
				e.apply(tbl, "s", m)
				if err := e.collect(); err != nil {
					t.Fatal(err)
				}
				for _, row := range []string{"r", "s"} {
					r, err := tbl.ReadRow(e.ctx, row)
					if err != nil {
						t.Fatal(err)
					}
					want(t, values(r["f"]), tt.want, "collection keeps or removes the wrong cells")
					want(t, values(r["keep"]), "123456", "collection removes cells of a family without a rule")
				}
			})
		})
	}
}

func values(items []bigtable.ReadItem) string {
	out := ""
	for _, c := range items {
		out += string(c.Value)
	}
	return out
}

// A rule also applies to stored cells, when it changes and as time passes, to each column separately.
func TestGarbageCollectionLater(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultGC)
		tbl := e.create("t", "f")
		m := bigtable.NewMutation()
		for _, q := range []string{"p", "q"} {
			m.Set("f", q, e.clock.timestamp(), []byte("1"))
			m.Set("f", q, e.clock.timestamp()-ms(1), []byte("2"))
		}
		e.apply(tbl, "r", m)
		if err := e.collect(); err != nil {
			t.Fatal(err)
		}
		r, _ := tbl.ReadRow(e.ctx, "r")
		want(t, values(r["f"]), "1212", "versions are missing although there is no rule")
		if err := e.admin.SetGCPolicy(e.ctx, "t", "f", bigtable.MaxVersionsPolicy(1)); err != nil {
			t.Fatal(err)
		}
		if err := e.collect(); err != nil {
			t.Fatal(err)
		}
		r, _ = tbl.ReadRow(e.ctx, "r")
		want(t, values(r["f"]), "11", "a new rule is not applied to the stored cells of each column")
		if err := e.admin.SetGCPolicy(e.ctx, "t", "f", bigtable.MaxAgePolicy(time.Hour)); err != nil {
			t.Fatal(err)
		}
		e.clock.advance(59 * time.Minute)
		if err := e.collect(); err != nil {
			t.Fatal(err)
		}
		r, _ = tbl.ReadRow(e.ctx, "r")
		want(t, values(r["f"]), "11", "a cell was removed before its time")
		e.clock.advance(2 * time.Minute)
		if err := e.collect(); err != nil {
			t.Fatal(err)
		}
		want(t, e.all(tbl), "", "a cell is still there after its time")
		keys, err := tbl.SampleRowKeys(e.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			if k == "r" {
				t.Error("a row whose cells were all collected is still in the samples")
			}
		}
	})
}

// Sums expire like other cells. A sum starts anew after it expired.
func TestGarbageCollectionOfSums(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultGC)
		if err := e.admin.CreateTableFromConf(e.ctx, &bigtable.TableConf{TableID: "t", ColumnFamilies: map[string]bigtable.Family{
			"sum": {
				GCPolicy:  bigtable.MaxAgePolicy(time.Hour),
				ValueType: bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: bigtable.SumAggregator{}},
			},
		}}); err != nil {
			t.Fatal(err)
		}
		tbl := e.client.Open("t")
		at := e.clock.timestamp()
		m := bigtable.NewMutation()
		m.AddIntToCell("sum", "n", at, 5)
		m.AddIntToCell("sum", "n", at+ms(int64(time.Hour/time.Millisecond)), 7)
		e.apply(tbl, "r", m)
		e.clock.advance(61 * time.Minute)
		if err := e.collect(); err != nil {
			t.Fatal(err)
		}
		r, _ := tbl.ReadRow(e.ctx, "r")
		if len(r["sum"]) != 1 || decode(r["sum"][0].Value) != 7 {
			t.Errorf("got row %v, want only the sum that has not expired", r)
		}
		m = bigtable.NewMutation()
		m.AddIntToCell("sum", "n", at, 2)
		e.apply(tbl, "r", m)
		r, _ = tbl.ReadRow(e.ctx, "r")
		if len(r["sum"]) != 2 || decode(r["sum"][1].Value) != 2 {
			t.Errorf("got row %v, want the collected sum to start anew", r)
		}
	})
}
