package tenants_test

import (
	"fmt"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestUsageOfManyKinds: the estimate has bytes for each kind of row, also if one page has more kinds than one request
// reads rows.
func TestUsageOfManyKinds(t *testing.T) {
	const most = 300
	_, store, _, table := open(t, tsdbtest.Options{})
	var keys []string
	var cells []*bigtable.Mutation
	for i := range most {
		keys, cells = append(keys, fmt.Sprintf("acme#d%03d#x", i)), append(cells, newCell())
	}
	if errs, err := table.ApplyBulk(t.Context(), keys, cells); err != nil || errs != nil {
		t.Fatal(errs, err)
	}
	rep, err := tenants.Usage(t.Context(), store, acme, tenants.UsageOptions{})
	if err != nil || len(rep.Kinds) != most {
		t.Fatalf("%d kinds, error %v", len(rep.Kinds), err)
	}
	want := int64(len(keys[0]) + len("p:str") + len("late"))
	for _, k := range rep.Kinds {
		if k.Rows != 1 || k.Bytes != want {
			t.Fatalf("%+v, want a row of %d bytes", k, want)
		}
	}
}

// TestUsageOfManyDatasets: the rows of each dataset of the catalogue count as its own, however many datasets a tenant
// has.
func TestUsageOfManyDatasets(t *testing.T) {
	const most = 1100
	_, store, _, table := open(t, tsdbtest.Options{})
	var keys []string
	var cells []*bigtable.Mutation
	for i := range most {
		name := fmt.Sprintf("d%04d", i)
		m := newOwn("json", `{"name":"`+name+`","key":["site"],"precision":"ns","tags":["str"],"classes":[{"name":"keep","policy":"never"}]}`)
		m.Set("_sys", "gen", 0, []byte("1"))
		keys, cells = append(keys, "!dataset#"+name, "acme#"+name+"#x"), append(cells, m, newCell())
	}
	if errs, err := table.ApplyBulk(t.Context(), keys, cells); err != nil || errs != nil {
		t.Fatal(errs, err)
	}
	rep, err := tenants.Usage(t.Context(), store, acme, tenants.UsageOptions{})
	if err != nil || len(rep.Kinds) != most {
		t.Fatalf("%d kinds, error %v", len(rep.Kinds), err)
	}
	for i, k := range rep.Kinds {
		if k.Dataset != fmt.Sprintf("d%04d", i) || !k.Known || k.Rows != 1 {
			t.Fatalf("kind %d: %+v", i, k)
		}
	}
}
