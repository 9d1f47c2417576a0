package journal

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
)

// pushed pushes n writes of a tenant, of some bytes each.
func pushed(q *queue, tenant string, n, bytes int, seq *uint64) {
	for range n {
		*seq++
		q.push(&Entry{Item: buffer.Item{Tenant: tenant}, record: make([]byte, bytes), seq: *seq})
	}
}

// runs names the tenants of a group in their order, with the numbers of writes, as "noisy 3, quiet 1", and checks that
// the writes of each tenant are in their order.
func runs(t *testing.T, group []*Entry) string {
	t.Helper()
	var out []string
	last := map[string]uint64{}
	for len(group) > 0 {
		tenant, n := group[0].Item.Tenant, 0
		for n < len(group) && group[n].Item.Tenant == tenant {
			if group[n].seq <= last[tenant] {
				t.Errorf("write %d of %s comes after %d", group[n].seq, tenant, last[tenant])
			}
			last[tenant] = group[n].seq
			n++
		}
		out, group = append(out, fmt.Sprintf("%s %d", tenant, n)), group[n:]
	}
	return strings.Join(out, ", ")
}

// TestQuietTenantIsInTheNextGroup: a write does not wait for all those that another tenant enqueued before.
func TestQuietTenantIsInTheNextGroup(t *testing.T) {
	var q queue
	var seq uint64
	pushed(&q, "noisy", 1000, 1<<10, &seq)
	pushed(&q, "quiet", 1, 100, &seq)
	pushed(&q, "other", 70, 1<<10, &seq)
	if got := runs(t, q.take(256<<10)); got != "noisy 64, quiet 1, other 64, noisy 64, other 6, noisy 57" {
		t.Errorf("the first group is %s", got)
	}
	if first := q.oldest(); first != 186 || q.first().seq != first {
		t.Errorf("the oldest write is %d, and the next %d", first, q.first().seq)
	}
	if got := runs(t, q.take(1<<30)); got != "noisy 815" || q.first() != nil || q.oldest() != 0 {
		t.Errorf("the second group is %s, and then %v", got, q.first())
	}
	if q.bytes != 1070<<10+100 {
		t.Errorf("%d bytes are held before their callers are called", q.bytes)
	}
}

// TestOldest: a write that was pushed first is the oldest one, also while another tenant has the next turn. Flush waits
// for it.
func TestOldest(t *testing.T) {
	var q queue
	var seq uint64
	pushed(&q, "a", 100, 1<<10, &seq)
	pushed(&q, "b", 1, 1<<10, &seq)
	q.take(64 << 10)
	if q.first().seq != 101 || q.oldest() != 65 {
		t.Errorf("the next write is %d, the oldest %d; want 101 and 65", q.first().seq, q.oldest())
	}
}

// TestQueueRoom: a tenant alone fills 7/8 of the room, and a write of another tenant finds room beside it.
func TestQueueRoom(t *testing.T) {
	var q queue
	var seq uint64
	if !q.hasRoom("noisy", 32<<20) {
		t.Error("an empty queue has no room for the largest record")
	}
	for q.hasRoom("noisy", 1<<10) {
		pushed(&q, "noisy", 1, 1<<10, &seq)
	}
	if part := float64(q.bytes) / maxQueued; part < 0.87 || part > 0.88 {
		t.Errorf("one tenant fills %v of the room, want 7/8", part)
	}
	if !q.hasRoom("quiet", 1<<20) || q.hasRoom("quiet", 3<<20) {
		t.Error("another tenant finds no room for 1 MiB, or room for more than is left")
	}
	q.take(1 << 30)
	q.free("noisy", q.bytes)
	if len(q.tenants) != 0 || q.bytes != 0 || !q.hasRoom("noisy", maxQueued) {
		t.Errorf("after the callers were called, %d tenants hold %d bytes", len(q.tenants), q.bytes)
	}
}

// TestPutBack: a group that found no room on the disk is the next one again, also after a write was withdrawn and
// others came.
func TestPutBack(t *testing.T) {
	var q queue
	var seq uint64
	pushed(&q, "a", 3, 60<<10, &seq)
	pushed(&q, "b", 2, 10, &seq)
	group := q.take(150 << 10)
	if got := runs(t, group); got != "a 2, b 2" {
		t.Fatalf("the group is %s", got)
	}
	pushed(&q, "b", 1, 10, &seq)
	pushed(&q, "c", 1, 10, &seq)
	q.putBack(group)
	if q.first() != group[0] || q.oldest() != 1 {
		t.Errorf("the next write is %d", q.first().seq)
	}
	if removed := q.remove(func(e *Entry) bool { return e.seq == 1 || e.seq == 7 }); len(removed) != 2 {
		t.Errorf("%d writes are removed", len(removed))
	}
	if got := runs(t, slices.Concat(q.take(1), q.take(1<<30))); got != "a 2, b 3" {
		t.Errorf("the next groups are %s", got)
	}
}

// TestNextOfAPutBackQueue: a tenant has one turn, also after its writes were put back, and none without writes.
func TestNextOfAPutBackQueue(t *testing.T) {
	var q queue
	var seq uint64
	pushed(&q, "a", 3, 10, &seq)
	pushed(&q, "b", 2, 10, &seq)
	if q.putBack(q.take(20)); len(q.turns) != 2 {
		t.Errorf("two tenants have %d turns", len(q.turns))
	}
	if removed := q.remove(func(e *Entry) bool { return e.Item.Tenant == "a" && e.seq > 1 }); len(removed) != 2 {
		t.Errorf("%d writes are removed, want 2", len(removed))
	}
	q.remove(func(e *Entry) bool { return e.seq == 1 })
	for want := uint64(4); want <= 5; want++ {
		if first := q.first(); first.seq != want || q.oldest() != want || q.take(1)[0] != first {
			t.Errorf("the next write is %d, want %d", first.seq, want)
		}
	}
	if q.first() != nil || len(q.turns) != 0 {
		t.Errorf("an empty queue has %d turns", len(q.turns))
	}
}
