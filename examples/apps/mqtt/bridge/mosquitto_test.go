package bridge

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"
)

// mosquitto is a real broker, which a test may kill and start again.
type mosquitto struct {
	t      testing.TB
	scheme string // of its address
	port   int
	config string
	dir    string
	cmd    *exec.Cmd
	log    bytes.Buffer
}

// mosquittoPath returns the broker's program, which Debian installs outside of many users' path.
func mosquittoPath(t testing.TB) string {
	for _, name := range []string{"mosquitto", "/usr/sbin/mosquitto", "/usr/local/sbin/mosquitto"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("SKIPPED: mosquitto is not installed; apt-get install mosquitto")
	return ""
}

// startBroker starts a broker with more lines of configuration. It keeps its sessions on disk.
func startBroker(t testing.TB, lines ...string) *mosquitto {
	t.Helper()
	mosquittoPath(t)
	m := &mosquitto{t: t, scheme: "mqtt", port: freePort(t), dir: t.TempDir()}
	config := append([]string{
		fmt.Sprintf("listener %d 127.0.0.1", m.port),
		"persistence true", "persistence_location " + m.dir + "/", "autosave_interval 3600",
		"max_inflight_messages 0", "max_queued_messages 0", "user root", "connection_messages true",
	}, lines...)
	if !strings.Contains(strings.Join(lines, "\n"), "allow_anonymous") {
		config = append(config, "allow_anonymous true")
	}
	m.config = filepath.Join(m.dir, "mosquitto.conf")
	if err := os.WriteFile(m.config, []byte(strings.Join(config, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.start()
	t.Cleanup(func() {
		m.kill()
		if t.Failed() {
			t.Logf("mosquitto:\n%.4000s", m.log.String())
		}
	})
	return m
}

func freePort(t testing.TB) int {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	return lis.Addr().(*net.TCPAddr).Port
}

func (m *mosquitto) start() {
	m.t.Helper()
	m.cmd = exec.Command(mosquittoPath(m.t), "-c", m.config)
	endWithTest(m.cmd)
	m.cmd.Stdout, m.cmd.Stderr = &m.log, &m.log
	if err := m.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", m.addr())
		if err == nil {
			c.Close()
			return
		}
		if time.Since(begin) > 30*time.Second {
			m.t.Fatalf("mosquitto does not listen: %v\n%s", err, m.log.String())
		}
	}
}

// kill ends the broker as kill -9 does.
func (m *mosquitto) kill() {
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
}

func (m *mosquitto) addr() string { return fmt.Sprintf("127.0.0.1:%d", m.port) }

func (m *mosquitto) url() string { return m.scheme + "://" + m.addr() }

// client connects a client of MQTT 5 to the broker, and waits until it is connected.
func (m *mosquitto) client(id string, edit func(*autopaho.ClientConfig)) *autopaho.ConnectionManager {
	m.t.Helper()
	u, err := brokerURL(m.url())
	if err != nil {
		m.t.Fatal(err)
	}
	cfg := autopaho.ClientConfig{
		ServerUrls: append(autopaho.ClientConfig{}.ServerUrls, u), KeepAlive: 20, ReconnectBackoff: func(int) time.Duration { return 20 * time.Millisecond },
		CleanStartOnInitialConnection: true, ClientConfig: paho.ClientConfig{ClientID: id},
	}
	if edit != nil {
		edit(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cm, err := autopaho.NewConnection(ctx, cfg)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { cancel(); <-cm.Done() })
	waiting, stop := context.WithTimeout(m.t.Context(), time.Minute)
	defer stop()
	if err := cm.AwaitConnection(waiting); err != nil {
		m.t.Fatal(err)
	}
	return cm
}

// publish publishes with QoS 1, and waits until the broker has accepted that.
func publish(t testing.TB, cm *autopaho.ConnectionManager, topic, payload string, edit ...func(*paho.Publish)) {
	t.Helper()
	p := &paho.Publish{QoS: 1, Topic: topic, Payload: []byte(payload)}
	for _, e := range edit {
		e(p)
	}
	if _, err := cm.Publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// inbox keeps the messages of a subscription.
type inbox struct {
	mu  sync.Mutex
	got []*paho.Publish
}

// read subscribes to a filter.
func (m *mosquitto) read(filter string) *inbox {
	m.t.Helper()
	in := &inbox{}
	cm := m.client("reader", func(c *autopaho.ClientConfig) {
		c.OnPublishReceived = []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			in.mu.Lock()
			defer in.mu.Unlock()
			in.got = append(in.got, p.Packet)
			return true, nil
		}}
	})
	if _, err := cm.Subscribe(m.t.Context(), &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: filter, QoS: 1}}}); err != nil {
		m.t.Fatal(err)
	}
	return in
}

// wait returns the messages when there are n.
func (in *inbox) wait(t testing.TB, n int) []*paho.Publish {
	t.Helper()
	var got []*paho.Publish
	eventually(t, func() bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		got = append(got[:0], in.got...)
		return len(got) >= n
	}, func() string { return fmt.Sprintf("%d messages, want %d", len(got), n) })
	return got
}

// eventually waits until a condition holds. It fails after a minute, which a loaded machine does not need.
func eventually(t testing.TB, holds func() bool, state func() string) {
	t.Helper()
	for begin := time.Now(); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("not within a minute: %s", state())
		}
	}
}
