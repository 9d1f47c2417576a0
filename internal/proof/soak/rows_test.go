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

// checkRows looks at every row of the table, past all of the SDK: its key is that of a tenant, dataset and entity that there
// are, and what it holds says the same.
func (w *world) checkRows(ctx context.Context) (kinds map[string]int) {
	kinds = map[string]int{}
	known := map[string]map[string]bool{} // by dataset, tenant#path
	for _, name := range []string{"plain", "short", "events"} {
		known[name] = map[string]bool{}
	}
	for _, d := range w.devices {
		known["plain"][d.tenant.id.String()+"#"+inside.PathOf(d.entity)] = true
		known["short"][d.tenant.id.String()+"#"+inside.PathOf(d.entity)] = true
	}
	for _, th := range w.added.things {
		known["events"][th.tenant.id.String()+"#"+inside.PathOf(th.entity)] = true
	}
	err := w.table.ReadRows(ctx, bigtable.InfiniteRange(""), func(row bigtable.Row) bool {
		key := row.Key()
		if strings.HasPrefix(key, "!") {
			kinds["store"]++
			return true
		}
		parts := strings.SplitN(key, "#", 3)
		if len(parts) < 3 {
			w.fail("row %q is nobody's", key)
			return true
		}
		dataset, kind, _ := strings.Cut(parts[1], "!")
		kinds[parts[1]]++
		path := parts[2][:max(0, strings.LastIndexByte(parts[2], '#'))]
		switch c := w.byTenant[parts[0]]; {
		case c == nil:
			w.fail("row %q is of a tenant whom nobody knows", key)
		case c == w.victim && w.erasure.Load():
			w.fail("row %q is of the tenant who was erased", key)
		case !known[dataset][parts[0]+"#"+path]:
			w.fail("row %q is of an entity that nobody knows", key)
		case kind == "" || kind == "head":
			w.checkCells(row, parts[0], dataset, kind)
		}
		return w.failures.Load() < 20
	})
	if err != nil {
		w.fail("the table cannot be read: %v", err)
	}
	return kinds
}

// checkCells holds the payloads of a row against its key.
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
			want := fmt.Sprintf("%s#%s#%s#%019d", d.tenant.id, dataset, inside.PathOf(d.entity), math.MaxInt64-at.UnixMilli())
			if kind == "head" {
				want = fmt.Sprintf("%s#%s!head#%s#", d.tenant.id, dataset, inside.PathOf(d.entity))
			}
			if v.Tenant != tenant || row.Key() != want || v != d.value(v.Slot, v.Version) || item.Timestamp.Time().UnixMilli() != at.UnixMilli() {
				w.fail("crossing: row %q of %v holds %+v, which belongs into %q", row.Key(), item.Timestamp.Time().UTC(), v, want)
			}
		}
	}
}

// collect lets the engine remove what has expired, until the load ends.
func (w *world) collect() {
	for pause(w.ctx, max(w.duration/20, w.shortAge)) {
		if err := w.conn.Collect(w.ctx); err != nil && w.ctx.Err() == nil {
			w.fail("nothing is collected: %v", err)
		}
		w.stats.collections.Add(1)
	}
}

// checkCollected lets all that can expire expire, and looks whether it is gone.
func (w *world) checkCollected(ctx context.Context) {
	w.clock.forward(w.shortAge + scanTimeout)
	if err := w.conn.Collect(ctx); err != nil {
		w.fail("nothing is collected: %v", err)
	}
	kinds := w.checkRows(ctx)
	if n := kinds["short"]; n > 0 {
		w.fail("%d rows of what has expired are left after a collection", n)
	}
	w.t.Logf("rows in the table, by kind, after a collection: %v", kinds)
}
