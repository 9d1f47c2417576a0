package soak

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

// erase erases one tenant during the load. It tries again when faults interrupt it, and returns when the erasure is
// done.
func (w *world) erase() {
	if !pause(w.ctx, w.duration/4) {
		return
	}
	w.victim.erased.Store(true)
	for begun := time.Now(); ; {
		report, err := tenants.Erase(w.t.Context(), w.store, w.victim.id, tenants.EraseOptions{By: "soak"})
		if err == nil {
			w.t.Logf("tenant %s is erased after %v: %d rows, %d late", w.victim.id, time.Since(begun).Round(time.Millisecond), report.Rows, report.Late)
			w.erasure.Store(true)
			break
		}
		if w.failures.Load() > 0 {
			return
		}
		if !byFaults(err, codes.InvalidArgument) && !errors.Is(err, tenants.ErrTakenOver) || time.Since(begun) > w.duration/2+time.Minute {
			w.fail("erasing tenant %s: %v", w.victim.id, err)
			return
		}
	}
	for _, d := range w.victim.devices { // through the writer, because producers may have stopped
		slot := w.slotNow(d)
		err := w.repo(d).Via(w.writer.Load()).Enqueue(d.tenant.ctx(w.t.Context()), d.entity, d.time(w.base, slot), d.value(slot, 0))
		if !errors.Is(err, tsdb.ErrErased) && !errors.Is(err, buffer.ErrClosed) {
			w.fail("putting a point of the erased tenant %s: got %v, want %v", w.victim.id, err, tsdb.ErrErased)
		}
	}
	d := w.victim.devices[0]
	if _, err := w.repo(d).Latest(d.tenant.ctx(w.t.Context()), d.entity); !errors.Is(err, tsdb.ErrErased) {
		w.fail("reading the erased tenant %s: got %v, want %v", w.victim.id, err, tsdb.ErrErased)
	}
}

// list lists the tenants until the load ends.
func (w *world) list() {
	for pause(w.ctx, max(time.Second, min(w.duration/20, 10*time.Second))) {
		owed := map[string]bool{}
		for _, c := range w.customers {
			for _, d := range c.devices {
				if c != w.victim && d.plain.floor(byPoints, false) >= 0 {
					owed[c.id.String()] = true
				}
			}
		}
		last, err := "", error(nil)
		for t, failed := range tenants.List(w.ctx, w.store, tenants.ListOptions{}) {
			if err = failed; err != nil {
				break
			}
			id := t.ID.String()
			if w.byTenant[id] == nil || id <= last && last != "" {
				w.fail("list of tenants: got %q after %q: unknown, twice or out of order", id, last)
			}
			last = id
			delete(owed, id)
		}
		switch {
		case err == nil:
			for id := range owed {
				w.fail("list of tenants: %s is missing and has points", id)
			}
		case !byFaults(err):
			w.fail("listing the tenants: %v", err)
		}
	}
}
