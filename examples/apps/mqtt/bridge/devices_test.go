package bridge

import (
	"bytes"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/devices"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestDevices publishes the messages of devices by MQTT 5 and by 3.1.1. With the routes that devices.md shows to users,
// all are stored.
func TestDevices(t *testing.T) {
	for name, sender := range map[string]func(*mosquitto) func(devices.Case){
		"5": func(m *mosquitto) func(devices.Case) {
			device := m.client("device", nil)
			return func(c devices.Case) { publish(m.t, device, c.Topic, string(c.Payload)) }
		},
		"3.1.1": func(m *mosquitto) func(devices.Case) { return m.publishOld },
	} {
		t.Run(name, func(t *testing.T) {
			cases := devices.Cases(t)
			m := startBroker(t)
			store, _ := tsdbtest.Open(t, tsdbtest.Options{})
			letters := m.read("dead-letters/#")
			b := run(t, store, m, routesOf(t, devices.Lines(cases)), Config{Tenant: acme})
			send, since := sender(m), time.Now()
			for _, c := range cases {
				send(c)
			}
			waitStats(t, b, func(s Stats) bool { return s.Stored+s.Ignored+s.DeadLetters == uint64(len(cases)) })
			for _, p := range letters.wait(t, int(b.Stats().DeadLetters)) {
				t.Errorf("the dead letter %s: %v", p.Topic, p.Properties.User)
			}
			for _, c := range cases {
				c.CheckStored(t, store, acme, since)
			}
		})
	}
}

// publishOld publishes by MQTT 3.1.1 with QoS 1.
func (m *mosquitto) publishOld(c devices.Case) {
	m.t.Helper()
	program, err := exec.LookPath("mosquitto_pub")
	if err != nil {
		m.t.Skip("SKIPPED: mosquitto_pub is not installed; apt-get install mosquitto-clients")
	}
	cmd := exec.CommandContext(m.t.Context(), program, "-V", "311", "-q", "1", "-h", "127.0.0.1", "-p", strconv.Itoa(m.port), "-t", c.Topic)
	if len(c.Payload) == 0 {
		cmd.Args = append(cmd.Args, "-n")
	} else {
		cmd.Args, cmd.Stdin = append(cmd.Args, "-s"), bytes.NewReader(c.Payload)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("mosquitto_pub: %v %s", err, out)
	}
}
