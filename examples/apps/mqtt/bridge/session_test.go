package bridge

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"

	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

const status = "v1/+tenant/+device/status dataset=status key=device time=arrival"

// TestRetainedMessages: what was retained before is not stored again at each subscription, and clearing it is no fault.
func TestRetainedMessages(t *testing.T) {
	m := startBroker(t)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	device := m.client("device", nil)
	retain := func(p *paho.Publish) { p.Retain = true }
	publish(t, device, "v1/acme/t1/status", `{"n":1}`, retain)
	b := run(t, store, m, routesOf(t, status), Config{})
	publish(t, device, "v1/acme/t1/status", `{"n":2}`, retain)
	publish(t, device, "v1/acme/t1/status", ``, retain)
	publish(t, device, "v1/acme/t1/status", `{"n":3}`)
	waitStats(t, b, func(s Stats) bool { return s.Stored == 2 && s.Ignored == 1 && s.DeadLetters == 0 })
	if got := points(t, store, acme, "status", "t1"); len(got) != 2 || !strings.Contains(got[0], "n=2") {
		t.Errorf("points %q, want those that were published while the bridge ran", got)
	}
}

// TestWillMessages: the broker publishes a device's will when the device is gone; it is stored as any message.
func TestWillMessages(t *testing.T) {
	m := startBroker(t)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	b := run(t, store, m, routesOf(t, status), Config{})
	device := m.client("device", func(c *autopaho.ClientConfig) {
		c.WillMessage = &paho.WillMessage{Topic: "v1/acme/t1/status", Payload: []byte(`{"online":false}`), QoS: 1}
		c.OnConnectionDown = func() bool { return false } // do not connect again
	})
	device.TerminateConnectionForTest()
	waitStats(t, b, func(s Stats) bool { return s.Stored == 1 })
	if got := points(t, store, acme, "status", "t1"); len(got) != 1 || !strings.Contains(got[0], "online=false") {
		t.Errorf("points %q, want the will", got)
	}
}

// TestDevicesOfMQTT3: a device that speaks 3.1.1 needs nothing: the broker translates.
func TestDevicesOfMQTT3(t *testing.T) {
	m := startBroker(t)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	b := run(t, store, m, routesOf(t, telemetry), Config{})
	c, err := net.Dial("tcp", m.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text := func(s string) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(s))), s...) }
	packet := func(first byte, body ...[]byte) []byte {
		joined := slices.Concat(body...)
		return slices.Concat([]byte{first, byte(len(joined))}, joined) // shorter than 128 bytes
	}
	connect := packet(0x10, text("MQTT"), []byte{4, 2, 0, 60}, text("old"))
	topic, payload := "v1/acme/berlin/old/telemetry", `{"ts":1767225600000,"temp":1.5}`
	publishOnce := packet(0x32, text(topic), []byte{0, 7}, []byte(payload))
	publishAgain := packet(0x3a, text(topic), []byte{0, 7}, []byte(payload)) // with DUP
	for _, step := range []struct{ send, want []byte }{
		{connect, []byte{0x20, 2, 0, 0}}, {publishOnce, []byte{0x40, 2, 0, 7}}, {publishAgain, []byte{0x40, 2, 0, 7}},
	} {
		got := make([]byte, 4)
		if _, err := c.Write(step.send); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, got); err != nil || !slices.Equal(got, step.want) {
			t.Fatalf("the broker answers % x, %v, want % x", got, err, step.want)
		}
	}
	waitStats(t, b, func(s Stats) bool { return s.Stored == 2 })
	if got := points(t, store, acme, "telemetry", "berlin", "old"); !slices.Equal(got, []string{"1767225600000 {temp=1.5}"}) {
		t.Errorf("points %q, want one, although it was published twice", got)
	}
}

// TestSessions: with a session, what is published while the bridge is away is stored later; without one, it is not.
func TestSessions(t *testing.T) {
	for _, clean := range []bool{false, true} {
		t.Run(fmt.Sprint("clean=", clean), func(t *testing.T) {
			m := startBroker(t)
			store, _ := tsdbtest.Open(t, tsdbtest.Options{})
			device := m.client("device", nil)
			config := Config{Clean: clean}
			first := run(t, store, m, routesOf(t, telemetry), config)
			first.stop()
			<-first.ended
			publish(t, device, "v1/acme/berlin/t1/telemetry", `{"ts":1767225600000,"temp":1}`)
			second := run(t, store, m, routesOf(t, telemetry), config)
			publish(t, device, "v1/acme/berlin/t1/telemetry", `{"ts":1767225601000,"temp":2}`)
			want := uint64(2)
			if clean {
				want = 1
			}
			waitStats(t, second, func(s Stats) bool { return s.Stored == want })
			if got := points(t, store, acme, "telemetry", "berlin", "t1"); len(got) != int(want) {
				t.Errorf("points %q, want %d", got, want)
			}
		})
	}
}

// TestGroup: the bridges of a group share the messages, and each is stored by one of them.
func TestGroup(t *testing.T) {
	m := startBroker(t)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	one := run(t, store, m, routesOf(t, telemetry), Config{Group: "g", ClientID: "one"})
	two := run(t, store, m, routesOf(t, telemetry), Config{Group: "g", ClientID: "two"})
	device := m.client("device", nil)
	const n = 50
	for i := range n {
		publish(t, device, "v1/acme/berlin/t1/telemetry", fmt.Sprintf(`{"ts":%d,"temp":1}`, 1767225600000+i))
	}
	eventually(t, func() bool { return one.Stats().Stored+two.Stats().Stored >= n }, func() string { return fmt.Sprint(one.Stats(), two.Stats()) })
	if a, b := one.Stats().Received, two.Stats().Received; a == 0 || b == 0 || a+b != n {
		t.Errorf("the bridges received %d and %d, want %d together, and each some", a, b, n)
	}
	if got := points(t, store, acme, "telemetry", "berlin", "t1"); len(got) != n {
		t.Errorf("%d points, want %d", len(got), n)
	}
}

// TestTakenOver: two clients with one ID end each other's connection. This broker does not say why; the log of the
// bridge does.
func TestTakenOver(t *testing.T) {
	m := startBroker(t)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	lines := make(logLines, 100)
	b := run(t, store, m, routesOf(t, telemetry), Config{ClientID: "same", Log: slog.New(slog.NewTextHandler(lines, nil))})
	m.client("same", nil)
	for line := range lines {
		if strings.Contains(line, "another client has the same client ID") {
			break
		}
	}
	if n := b.Stats().Connections; n > 20 {
		t.Errorf("%d connections, want few: each waits longer than the one before", n)
	}
}

// logLines are the lines of a log. Lines that do not fit are dropped.
type logLines chan string

func (l logLines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}

// TestRefusedByBroker: a wrong password ends the bridge with an error that says so.
func TestRefusedByBroker(t *testing.T) {
	m := startBroker(t, "allow_anonymous false")
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	b := run(t, store, m, routesOf(t, telemetry), Config{Username: "u", Password: []byte("wrong")})
	<-b.ended
	if b.err == nil || !strings.Contains(b.err.Error(), "refuses this client") {
		t.Errorf("Run: %v, want that the broker refuses the client", b.err)
	}
}

// TestReconnects: after a loss of the connection, messages that were not acknowledged come again.
func TestReconnects(t *testing.T) {
	m := startBroker(t)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{})
	b := run(t, store, m, routesOf(t, telemetry), Config{})
	device := m.client("device", nil)
	end := conn.Outage()
	const n = 20
	for i := range n {
		publish(t, device, "v1/acme/berlin/t1/telemetry", fmt.Sprintf(`{"ts":%d,"temp":1}`, 1767225600000+i))
	}
	waitStats(t, b, func(s Stats) bool { return s.Received == n })
	b.manager.Load().TerminateConnectionForTest()
	waitStats(t, b, func(s Stats) bool { return s.Connections == 2 && s.Repeated >= n })
	end()
	waitStats(t, b, func(s Stats) bool { return s.Waiting == 0 })
	if got := points(t, store, acme, "telemetry", "berlin", "t1"); len(got) != n {
		t.Errorf("%d points, want %d", len(got), n)
	}
	b.stop()
	<-b.ended
	again := run(t, store, m, routesOf(t, telemetry), Config{})
	publish(t, device, "v1/acme/berlin/t1/telemetry", `{"ts":1767225700000,"temp":1}`)
	waitStats(t, again, func(s Stats) bool { return s.Stored >= 1 })
	if s := again.Stats(); s.Received != 1 {
		t.Errorf("%d messages came again after all were acknowledged", s.Received-1)
	}
}

// TestPatternsThatOverlap: a message that matches two patterns, one of which covers the other, is stored once.
func TestPatternsThatOverlap(t *testing.T) {
	for _, group := range []string{"", "group"} {
		m := startBroker(t)
		store, _ := tsdbtest.Open(t, tsdbtest.Options{})
		b := run(t, store, m, routesOf(t, "a/+tenant/x/+device dataset=plain key=device time=arrival", "a/+tenant/# dataset=rest key=kind time=arrival"), Config{Group: group})
		device := m.client("device", nil)
		publish(t, device, "a/acme/x/t1", `{"temp":1}`)
		publish(t, device, "a/acme/y", `{"temp":1,"kind":"last"}`)
		waitStats(t, b, func(s Stats) bool { return s.Stored >= 2 && s.Waiting == 0 })
		if s := b.Stats(); s.Received != 2 {
			t.Errorf("group %q: %+v, want two messages", group, s)
		}
		if got := points(t, store, acme, "plain", "t1"); len(got) != 1 {
			t.Errorf("group %q: points %q, want one", group, got)
		}
	}
}
