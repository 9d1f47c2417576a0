package cost

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// stored is the size of a row, as package tenants counts it: the key once, and for each cell the names of its family
// and column, 8 bytes of timestamp, and the value.
type stored struct {
	what, key            string
	cells, names, values int
}

func (s stored) bytes() int { return len(s.key) + s.names + 8*s.cells + s.values }

// rowsOf returns the sizes of a table's rows.
func rowsOf(t *testing.T, table *bigtable.Table) (rows []stored) {
	t.Helper()
	err := table.ReadRows(t.Context(), bigtable.InfiniteRange(""), func(row bigtable.Row) bool {
		if rowkey.IsFieldsRow(row.Key()) { // written in the background
			return true
		}
		s := stored{key: row.Key()}
		for _, items := range row {
			for _, item := range items {
				s.cells++
				s.names += len(item.Column) - 1 // the client puts a colon between the two names
				s.values += len(item.Value)
			}
		}
		rows = append(rows, s)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

const (
	rowOf1    = "a row of a rollup by the hour with 1 bucket"
	rowOf24   = "the same with 24 buckets"
	rowOfDays = "a row of a rollup by the day with 2 buckets"
)

// storedRows returns the size of one row of each kind.
func storedRows(t *testing.T) (out []stored) {
	t.Helper()
	pick := func(what, part string, rows []stored) {
		t.Helper()
		for _, r := range rows {
			if strings.Contains(r.key, part) {
				r.what = what
				out = append(out, r)
				return
			}
		}
		t.Fatalf("no row has %q in its key: %v", part, rows)
	}
	plain := func(c codec.Codec[reading], opts tsdb.SchemaOptions, each int) []stored {
		opts.Retention = d90
		s := tsdb.MustDefine("readings", tsdb.Key("site", "device"), c, opts)
		w := &world{now: noon}
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: w.clock}}, s)
		w.T, w.ctx, w.store, w.repo, w.schema = t, t.Context(), store, s.For(store, acme), s
		w.history(1, each)
		if len(opts.Rollups) > 0 {
			w.wait(26 * time.Hour)
			for range 2 {
				worker, err := rollup.NewWorker(store, rollup.WorkerOptions{}, s)
				w.ok(err)
				w.pass(worker)
				w.wait(26 * time.Hour)
			}
			w.now = noon
			w.ok(w.repo.Put(w.ctx, device(0), noon, value)) // leaves a dirty mark
		}
		w.onboard(acme, tenants.Profile{Name: "Acme Ltd."}, tenants.OnboardOptions{})
		return rowsOf(t, table)
	}
	json := plain(codec.JSON[reading](), tsdb.SchemaOptions{}, 1)
	pick("a point, JSON", "acme#", json)
	pick("a point, protobuf", "acme#", plain(binaryReading(), tsdb.SchemaOptions{}, 1))
	pick("a head of 3 points, JSON", "!head#", plain(codec.JSON[reading](), headed, 3))
	few, many := plain(codec.JSON[reading](), rolled, 60), plain(codec.JSON[reading](), rolled, 24*60)
	pick(rowOf1, "!rollup.hour#", few)
	pick(rowOf24, "!rollup.hour#", many)
	pick(rowOfDays, "!rollup.day#", many)
	pick("a row of marks, for one hour", "!mark.hour#", few)
	pick("the catalogue: the format", "!format", json)
	pick("the catalogue: a dataset", "!dataset#", json)
	pick("the catalogue: a dataset with two rollups", "!dataset#", few)
	pick("the catalogue: a tenant's profile", "!tenant#", json)
	return out
}

// storedTable formats the rows as a table.
func storedTable(rows []stored) string {
	var b strings.Builder
	b.WriteString("| Row | Key | Cells | Names | Values | Bytes |\n|---|---:|---:|---:|---:|---:|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %s | %s |\n", r.what, len(r.key), r.cells, thousands(r.names), thousands(r.values), thousands(r.bytes()))
	}
	return b.String()
}
