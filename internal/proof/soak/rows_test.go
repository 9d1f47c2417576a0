package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/inside"
)

// checkRows reads every row of the table without the SDK. It checks that the row's key belongs to an existing tenant,
// dataset and entity, and that its contents fit the key.
func (w *world) checkRows(ctx context.Context) (kinds map[string]int) {
	kinds = map[string]int{}
	known := map[string]map[string]bool{} // tenant#path, by dataset
	for _, name := range []string{"plain", "short", "events"} {
		known[name] = map[string]bool{}
	}
	for _, d := range w.devices {
		known["plain"][d.tenant.id.String()+"#"+inside.Of(d.entity).Path()] = true
		known["short"][d.tenant.id.String()+"#"+inside.Of(d.entity).Path()] = true
	}
	for _, th := range w.added.things {
		known["events"][th.tenant.id.String()+"#"+inside.Of(th.entity).Path()] = true
	}
	err := w.table.ReadRows(ctx, bigtable.InfiniteRange(""), func(row bigtable.Row) bool {
		key := row.Key()
		if strings.HasPrefix(key, "!") {
			kinds["store"]++
			return true
		}
		parts := strings.SplitN(key, "#", 3)
		if len(parts) < 3 {
			w.fail("row %q belongs to no dataset", key)
			return true
		}
		dataset, kind, _ := strings.Cut(parts[1], "!")
		kinds[parts[1]]++
		path := parts[2][:max(0, strings.LastIndexByte(parts[2], '#'))]
		switch c := w.byTenant[parts[0]]; {
		case c == nil:
			w.fail("row %q belongs to an unknown tenant", key)
		case c == w.victim && w.erasure.Load():
			w.fail("row %q belongs to the erased tenant", key)
		case kind == "fields" && parts[2] == "" && dataset != "events":
			w.checkFieldList(row)
		case !known[dataset][parts[0]+"#"+path]:
			w.fail("row %q belongs to an unknown entity", key)
		case kind == "" || kind == "head":
			w.checkCells(row, parts[0], dataset, kind)
		}
		return w.failures.Load() < 20
	})
	if err != nil {
		w.fail("reading the table: %v", err)
	}
	return kinds
}

// listedFields are the columns of a dataset's list of fields, without the day in each.
var listedFields = map[string]bool{
	"str:t": true, "str:c": true, "int:d": true, "int:s": true, "int:v": true, "int:x": true, "float:x": true,
}

// checkFieldList checks that a list of fields has no other fields than the readings.
func (w *world) checkFieldList(row bigtable.Row) {
	for family, items := range row {
		for _, item := range items {
			column := strings.TrimPrefix(item.Column, family+":")
			if _, field, _ := strings.Cut(strings.TrimPrefix(column, "l:"), ":"); !listedFields[field] {
				w.fail("row %q lists %q, which no reading has", row.Key(), column)
			}
		}
	}
}

// checkCells compares the payloads of a row with its key.
func (w *world) checkCells(row bigtable.Row, tenant, dataset, kind string) {
	for _, items := range row {
		for _, item := range items {
			var v reading
			if err := json.Unmarshal(item.Value, &v); err != nil || v.Device < 0 || v.Device >= len(w.devices) {
				w.fail("row %q, column %s holds %q: %v", row.Key(), item.Column, item.Value, err)
				continue
			}
			d := w.devices[v.Device]
			at := d.time(w.base, v.Slot)
			want := fmt.Sprintf("%s#%s#%s#%019d", d.tenant.id, dataset, inside.Of(d.entity).Path(), math.MaxInt64-at.UnixMilli())
			if kind == "head" {
				want = fmt.Sprintf("%s#%s!head#%s#", d.tenant.id, dataset, inside.Of(d.entity).Path())
			}
			if v.Tenant != tenant || row.Key() != want || v != d.value(v.Slot, v.Version) || item.Timestamp.Time().UnixMilli() != at.UnixMilli() {
				w.fail("crossing: row %q at %v holds %+v, which belongs in %q", row.Key(), item.Timestamp.Time().UTC(), v, want)
			}
		}
	}
}

// collect runs garbage collection until the load ends.
func (w *world) collect() {
	for pause(w.ctx, max(w.duration/20, w.shortAge)) {
		if err := w.conn.Collect(w.ctx); err != nil && w.ctx.Err() == nil {
			w.fail("nothing is collected: %v", err)
		}
		w.stats.collections.Add(1)
	}
}

// checkCollected lets all points expire that can, and checks that they are collected.
func (w *world) checkCollected(ctx context.Context) {
	w.clock.forward(w.shortAge + scanTimeout)
	if err := w.conn.Collect(ctx); err != nil {
		w.fail("nothing is collected: %v", err)
	}
	kinds := w.checkRows(ctx)
	if n := kinds["short"]; n > 0 {
		w.fail("got %d rows of expired points after a collection, want 0", n)
	}
	w.t.Logf("rows in the table after a collection, by kind: %v", kinds)
}
