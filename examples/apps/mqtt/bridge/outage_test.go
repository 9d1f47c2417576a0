package bridge

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var outage = flag.Duration("outage", 0, "how long the store is down in TestOutage; 2m is the long run")

// TestOutage: while the store is down, the bridge holds at most ReceiveMaximum messages and the broker keeps the rest.
// Afterwards all are stored, and none is a dead letter, although they have waited for longer than the deadline.
func TestOutage(t *testing.T) {
	m := startBroker(t)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{})
	const window, n = 50, 2000
	b := run(t, store, m, routesOf(t, telemetry), Config{ReceiveMaximum: window, Deadline: time.Second})
	device := m.client("device", nil)
	publish(t, device, "v1/acme/berlin/t1/telemetry", `{"ts":1767225600000,"temp":1}`)
	waitStats(t, b, func(s Stats) bool { return s.Stored == 1 })

	end := conn.Outage()
	began := time.Now()
	before := heap()
	for i := range n {
		publish(t, device, "v1/acme/berlin/t1/telemetry", fmt.Sprintf(`{"ts":%d,"temp":1,"text":%q}`, 1767225601000+i, strings.Repeat("x", 1000)))
	}
	waitStats(t, b, func(s Stats) bool { return s.Waiting == window })
	// Each message has failed for longer than the deadline.
	for end := time.Now().Add(max(*outage, 1200*time.Millisecond) - time.Since(began)); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if s := b.Stats(); s.Waiting > window || s.Received > window+1 || s.DeadLetters > 0 {
			t.Fatalf("%+v while the store is down; want at most %d messages that wait", s, window)
		}
	}
	grown := heap() - before
	t.Logf("after %v without the store, the heap has grown by %d KB, with %d messages of 1 KB at the broker", time.Since(began).Round(time.Second), grown/1024, n)
	if grown > 8<<20 {
		t.Errorf("the heap has grown by %d bytes, want less than 8 MiB", grown)
	}
	end()
	waitStats(t, b, func(s Stats) bool { return s.Stored == n+1 && s.Waiting == 0 })
	if s := b.Stats(); s.DeadLetters > 0 || s.Repeated > 0 {
		t.Errorf("%+v; want no dead letters, and one connection", s)
	}
	if got := points(t, store, acme, "telemetry", "berlin", "t1"); len(got) != n+1 {
		t.Errorf("%d points, want %d", len(got), n+1)
	}
}

func heap() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// TestStuck: one point that cannot be stored holds back the acknowledgements of all later ones, until the deadline
// makes it a dead letter. Until then the others are stored and not acknowledged.
func TestStuck(t *testing.T) {
	m := startBroker(t)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{})
	const window = 20
	b := run(t, store, m, routesOf(t, telemetry), Config{ReceiveMaximum: window, Deadline: time.Second})
	conn.Inject(tsdbtest.FailEntries(codes.Unavailable, func(key string) bool { return strings.Contains(key, "stuck") }))
	dead := m.read("dead-letters/#")
	device := m.client("device", nil)
	publish(t, device, "v1/acme/berlin/stuck/telemetry", `{"ts":1767225600000,"temp":1}`)
	const n = 100
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range n {
			publish(t, device, "v1/acme/berlin/t1/telemetry", fmt.Sprintf(`{"ts":%d,"temp":1}`, 1767225600000+i))
		}
	}()
	got := dead.wait(t, 1)
	<-done
	waitStats(t, b, func(s Stats) bool { return s.Stored == n && s.DeadLetters == 1 && s.Waiting == 0 })
	if p := got[0]; p.Topic != "dead-letters/v1/acme/berlin/stuck/telemetry" || p.Properties.User.Get(propertyReason) != reasonStuck {
		t.Errorf("dead letter %v with %v", p.Topic, p.Properties.User)
	}
	conn.Clear()
	// Published again as it is, it is stored.
	publish(t, device, got[0].Properties.User.Get(propertyTopic), string(got[0].Payload))
	waitStats(t, b, func(s Stats) bool { return s.Stored == n+1 })
	if got := points(t, store, acme, "telemetry", "berlin", "stuck"); !slices.Equal(got, []string{"1767225600000 {temp=1i}"}) {
		t.Errorf("points %q, want the one of the dead letter", got)
	}
}
