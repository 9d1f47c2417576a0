package points

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// feeding is a feed with a dataset of a tenant, whose clock counts its readings.
type feeding struct {
	*testing.T
	feed  Feed
	space rowkey.Space
	d     *dataset.Dataset
	reads int
}

func newFeeding(t *testing.T, id string) *feeding {
	t.Helper()
	space, err := rowkey.NewSpace(tenant.MustParse(id), "readings", []string{"device"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &feeding{T: t, space: space, d: &dataset.Dataset{Tags: []string{"i64"}}}
}

func (f *feeding) clock() time.Time {
	f.reads++
	return time.Unix(1000, 0)
}

// subscribe follows a device. A point is late if it is older than 500.
func (f *feeding) subscribe(device string) *Subscription {
	f.Helper()
	s, err := f.feed.Subscribe(f.space, func(path string) bool { return path == device }, f.clock, func(now time.Time) int64 { return now.Unix() - 500 })
	if err != nil {
		f.Fatal(err)
	}
	return s
}

func (f *feeding) store(device string, units int64, payload []byte) {
	f.feed.stored(&Write{D: f.d, Entity: f.space.ID(device), Units: units, Payload: payload})
}

// units returns the times of what is queued.
func units(queue []Arrival) (out []int64) {
	for _, a := range queue {
		out = append(out, a.Units)
	}
	return out
}

// TestQueueKeepsOrder: a follower gets the points that it takes, in order, as they were when they were stored, and each
// once.
func TestQueueKeepsOrder(t *testing.T) {
	f := newFeeding(t, "acme")
	f.store("a", 1, nil) // nobody follows
	a, b := f.subscribe("a"), f.subscribe("b")
	payload := []byte("one")
	f.store("a", 7, payload)
	payload[0] = 'X' // the buffer is used again
	f.store("b", 8, []byte("two"))
	f.store("a", 3, []byte("three"))
	f.feed.stored(&Write{D: f.d, Entity: f.space.ID("a"), Units: 4, Payload: []byte("x"), merged: []byte("merged")})
	select {
	case <-a.Ready:
	default:
		t.Error("a follower with points is not woken")
	}
	queue, full, lost, open := a.Take()
	if fmt.Sprint(units(queue)) != "[7 3 4]" || full || lost.Points != 0 || !open {
		t.Errorf("got %v, full %v, lost %+v, open %v", units(queue), full, lost, open)
	}
	if string(queue[0].Payload) != "one" || string(queue[2].Payload) != "merged" || queue[0].Tag != "i64" {
		t.Errorf("got %+v", queue)
	}
	if queue, _, _, _ = a.Take(); len(queue) > 0 {
		t.Errorf("%v are delivered twice", units(queue))
	}
	if queue, _, _, _ = b.Take(); fmt.Sprint(units(queue)) != "[8]" {
		t.Errorf("the other follower gets %v", units(queue))
	}
	if f.reads > 0 {
		t.Errorf("%d readings of the clock where nothing was dropped", f.reads)
	}
}

// TestFullQueue: a queue is bounded by points and by bytes. What is dropped is reported, with the times of the late
// ones, and the clock is read once for each write, however many followers are stuck.
func TestFullQueue(t *testing.T) {
	f := newFeeding(t, "acme")
	stuck := make([]*Subscription, 20)
	for i := range stuck {
		stuck[i] = f.subscribe("a")
	}
	for i := range int64(queuePoints) {
		f.store("a", 400+i, nil) // the first hundred are late
	}
	if queue, full, _, _ := stuck[0].Take(); len(queue) != queuePoints || full {
		t.Fatalf("%d points are queued, full %v; want %d", len(queue), full, queuePoints)
	}
	f.store("a", 450, nil)
	if f.reads != 1 {
		t.Errorf("%d readings of the clock for a write that 19 queues drop, want 1", f.reads)
	}
	f.store("a", 1, nil)
	f.store("a", 500, nil)
	if f.reads != 3 {
		t.Errorf("%d readings of the clock for 3 writes, want 3", f.reads)
	}
	for _, s := range stuck[1:] {
		queue, full, lost, open := s.Take()
		if len(queue) > 0 || !full || !open || lost != (Lost{Points: 102, Oldest: 1, Newest: 499}) {
			t.Fatalf("%d points, full %v, lost %+v; want the 102 late ones from 1 to 499", len(queue), full, lost)
		}
	}
	f.store("a", 600, nil)
	if queue, full, lost, _ := stuck[1].Take(); fmt.Sprint(units(queue)) != "[600]" || full || lost.Points > 0 {
		t.Errorf("after it was emptied the queue has %v, full %v, lost %+v", units(queue), full, lost)
	}

	large := f.subscribe("b")
	half := bytes.Repeat([]byte{1}, queueBytes/2)
	f.store("b", 600, half)
	f.store("b", 601, half)
	if queue, full, _, _ := large.Take(); len(queue) != 2 || full {
		t.Errorf("%d points of half of the bytes are queued, full %v", len(queue), full)
	}
	for range 3 { // what was taken no longer counts
		f.store("b", 601, half)
		f.store("b", 602, half)
		if queue, full, _, _ := large.Take(); len(queue) != 2 || full {
			t.Errorf("%d points are queued, full %v", len(queue), full)
		}
	}
	f.store("b", 602, append(half, half...))
	f.store("b", 603, []byte{1})
	if queue, full, lost, _ := large.Take(); len(queue) > 0 || !full || lost.Points > 0 {
		t.Errorf("%d points are queued after too many bytes, full %v, lost %+v", len(queue), full, lost)
	}
	f.store("b", 604, append(half, append(half, 1)...)) // one point that is larger than the bound
	if queue, full, _, _ := large.Take(); len(queue) != 1 || full {
		t.Errorf("%d points are queued after a large one, full %v", len(queue), full)
	}
}

// TestClosedQueue gets nothing, and makes room for another.
func TestClosedQueue(t *testing.T) {
	f := newFeeding(t, "acme")
	all := make([]*Subscription, MaxTenantFollowers)
	for i := range all {
		all[i] = f.subscribe("a")
	}
	over, ok := errors.AsType[*limit.Error](second(f.feed.Subscribe(f.space, nil, nil, nil)))
	if !ok || over.ID != limit.Followers || over.Tenant.String() != "acme" || over.Limit != MaxTenantFollowers || over.Used != MaxTenantFollowers+1 || over.RetryAfter <= 0 {
		t.Errorf("one more follower of a tenant: %+v", over)
	}
	f.store("a", 1, nil)
	all[0].Close()
	all[0].Close()
	f.store("a", 2, nil)
	all[0].add(Arrival{Units: 3}, new(instant)) // of a write that began before
	if queue, _, _, open := all[0].Take(); len(queue) > 0 || open {
		t.Errorf("a closed follower gets %v, open %v", units(queue), open)
	}
	if queue, _, _, _ := all[1].Take(); fmt.Sprint(units(queue)) != "[1 2]" {
		t.Errorf("another one gets %v", units(queue))
	}
	f.subscribe("a")
	for i := range MaxFollowers/MaxTenantFollowers - 1 {
		f.space = newFeeding(t, fmt.Sprint("tenant-", i)).space
		for range MaxTenantFollowers {
			f.subscribe("a")
		}
	}
	f.space = newFeeding(t, "last").space
	if err := second(f.feed.Subscribe(f.space, nil, nil, nil)); !errors.Is(err, ErrTooManyFollowers) || errors.Is(err, limit.ErrExceeded) {
		t.Errorf("one more follower of the store: %v", err)
	}
	f.feed.Close()
	for range all[1].Ready { //nolint:revive // it is closed after what was in it
	}
	if queue, _, _, open := all[1].Take(); open || len(queue) > 0 {
		t.Errorf("after the end of the store: %v, open %v", units(queue), open)
	}
	if err := second(f.feed.Subscribe(f.space, nil, nil, nil)); !errors.Is(err, bt.ErrClosed) {
		t.Errorf("Subscribe after the end of the store: %v", err)
	}
}

func second(_ *Subscription, err error) error { return err }
