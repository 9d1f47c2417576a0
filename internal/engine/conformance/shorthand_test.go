package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The tests write a cell as "family:qualifier@milliseconds=value", and a row as its key and its cells.

func tableName(id string) string { return instanceName + "/tables/" + id }

// create creates a table of plain families and returns it.
func (e *env) create(id string, families ...string) *bigtable.Table {
	e.Helper()
	conf := &bigtable.TableConf{TableID: id, ColumnFamilies: map[string]bigtable.Family{}}
	for _, f := range families {
		conf.ColumnFamilies[f] = bigtable.Family{}
	}
	if err := e.admin.CreateTableFromConf(e.ctx, conf); err != nil {
		e.Fatalf("create table: %v", err)
	}
	return e.client.Open(id)
}

// createMicros creates a table with timestamps in microseconds.
func (e *env) createMicros(id string, families ...string) *bigtable.Table {
	e.Helper()
	m := &adminpb.Table{Granularity: adminpb.Table_MICROS, ColumnFamilies: map[string]*adminpb.ColumnFamily{}}
	for _, f := range families {
		m.ColumnFamilies[f] = &adminpb.ColumnFamily{}
	}
	req := &adminpb.CreateTableRequest{Parent: instanceName, TableId: id, Table: m}
	if _, err := e.tables.CreateTable(e.ctx, req); err != nil {
		e.Fatalf("create table: %v", err)
	}
	return e.client.Open(id)
}

func ms(n int64) bigtable.Timestamp { return bigtable.Timestamp(n * 1000) }

// set returns a mutation that sets cells.
func set(cells ...string) *bigtable.Mutation {
	m := bigtable.NewMutation()
	for _, c := range cells {
		fam, q, ts, val := parse(c)
		m.Set(fam, q, ts, []byte(val))
	}
	return m
}

func parse(c string) (fam, q string, ts bigtable.Timestamp, val string) {
	head, val, _ := strings.Cut(c, "=")
	col, at, _ := strings.Cut(head, "@")
	fam, q, _ = strings.Cut(col, ":")
	n, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		panic(err)
	}
	return fam, q, ms(n), val
}

func (e *env) put(tbl bigtable.TableAPI, row string, cells ...string) {
	e.Helper()
	e.apply(tbl, row, set(cells...))
}

func (e *env) apply(tbl bigtable.TableAPI, row string, m *bigtable.Mutation) {
	e.Helper()
	if err := tbl.Apply(e.ctx, row, m); err != nil {
		e.Fatalf("write to row %q: %v", row, err)
	}
}

// scan reads rows and renders them: "row cell cell; row cell".
func (e *env) scan(tbl bigtable.TableAPI, rows bigtable.RowSet, opts ...bigtable.ReadOption) string {
	e.Helper()
	var out []string
	err := tbl.ReadRows(e.ctx, rows, func(r bigtable.Row) bool {
		out = append(out, showRow(r))
		return true
	}, opts...)
	if err != nil {
		e.Fatalf("read: %v", err)
	}
	return strings.Join(out, "; ")
}

func (e *env) all(tbl bigtable.TableAPI) string {
	e.Helper()
	return e.scan(tbl, bigtable.InfiniteRange(""))
}

// filtered reads the whole table through a filter.
func (e *env) filtered(tbl bigtable.TableAPI, f bigtable.Filter) string {
	e.Helper()
	return e.scan(tbl, bigtable.InfiniteRange(""), bigtable.RowFilter(f))
}

func showRow(r bigtable.Row) string {
	out := []string{r.Key()}
	for _, fam := range slices.Sorted(maps.Keys(r)) {
		for _, c := range r[fam] {
			at := strconv.FormatInt(int64(c.Timestamp)/1000, 10)
			if c.Timestamp%1000 != 0 {
				at = fmt.Sprintf("%dµs", c.Timestamp)
			}
			s := fmt.Sprintf("%s@%s=%s", c.Column, at, c.Value)
			for _, l := range c.Labels {
				s += "/" + l
			}
			out = append(out, s)
		}
	}
	return strings.Join(out, " ")
}

// want compares a result with the expected one. breaks says what is wrong if they differ.
func want(t testing.TB, got, want, breaks string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", breaks, got, want)
	}
}

// wantCode compares a status code.
func wantCode(t testing.TB, err error, want codes.Code, breaks string) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%s: got %v (%v), want %v", breaks, got, err, want)
	}
}
