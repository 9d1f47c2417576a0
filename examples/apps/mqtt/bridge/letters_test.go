package bridge

import (
	"strings"
	"testing"

	"github.com/eclipse/paho.golang/paho"

	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestDeadLettersThatABrokerRefuses: a device cannot stop the bridge with a message that is as large as the broker
// allows, so that its dead letter would be too large: mosquitto closes the connection then, and the message comes
// again.
func TestDeadLettersThatABrokerRefuses(t *testing.T) {
	m := startBroker(t, "max_packet_size 5000")
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	b := run(t, store, m, routesOf(t, telemetry, "deep/+tenant/# format=line key=host time=ns"), Config{})
	dead := m.read("dead-letters/#")
	device := m.client("device", nil)
	deep := "deep/acme" + strings.Repeat("/a", 198) // mosquitto accepts 200 levels
	long := "deep/acme/" + strings.Repeat("x", 4000)
	publish(t, device, deep, "no line")
	publish(t, device, long, "no line")
	publish(t, device, "deep/acme/a", strings.Repeat("x", 4950))
	publish(t, device, "deep/acme/a", "no line", func(p *paho.Publish) {
		p.Properties = &paho.PublishProperties{ContentType: strings.Repeat("c", 2000)}
		p.Properties.User.Add("k", strings.Repeat("v", 2500))
	})
	publish(t, device, "v1/acme/berlin/t1/telemetry", `{"ts":1767225600000,"temp":21.5}`)
	waitStats(t, b, func(s Stats) bool { return s.DeadLetters == 4 && s.Stored == 1 && s.Waiting == 0 })
	if n := b.Stats().Connections; n != 1 {
		t.Errorf("%d connections, want one that lasts", n)
	}
	got, cut := map[string]int{}, 0 // bytes of payload by topic; topics without all of their levels
	for _, p := range dead.wait(t, 4) {
		got[p.Topic] = max(got[p.Topic], len(p.Payload))
		if strings.HasPrefix(p.Topic, "dead-letters/deep/acme/a/a") && len(p.Topic) <= len(deep) {
			cut++
		}
		if p.Properties.User.Get(propertyReason) == "" || p.Properties.User.Get(propertyTopic)[:9] != "deep/acme" {
			t.Errorf("the dead letter %s has the properties %v", p.Topic, p.Properties.User)
		}
	}
	if len(got) != 3 || cut != 1 || got["dead-letters/deep/acme"] == 0 || got["dead-letters/deep/acme/a"] < 4000 {
		t.Errorf("dead letters %v", got)
	}
}

// TestDeadLetterOfALongTopic: a dead letter whose topic is cut to that of all dead letters is not a message, either.
func TestDeadLetterOfALongTopic(t *testing.T) {
	m := startBroker(t)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	b := run(t, store, m, routesOf(t, "+device/# dataset=all key=device time=ts,s"), Config{Tenant: acme})
	publish(t, m.client("device", nil), strings.Repeat("x", 200), "nonsense")
	waitStats(t, b, func(s Stats) bool { return s.Ignored == 1 && s.Waiting == 0 })
	if n := b.Stats().DeadLetters; n != 1 {
		t.Errorf("one bad message makes %d dead letters", n)
	}
}

// TestMemoryOfProperties: user properties count towards the memory of a message.
func TestMemoryOfProperties(t *testing.T) {
	m := startBroker(t)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	b := run(t, store, m, routesOf(t, telemetry), Config{})
	dead := m.read("dead-letters/#")
	device := m.client("device", nil)
	for _, n := range []int{100, 100_000} {
		publish(t, device, "v1/acme/berlin/t1/telemetry", `{"ts":1767225600000,"temp":21.5}`, func(p *paho.Publish) {
			p.Properties = &paho.PublishProperties{}
			for range n {
				p.Properties.User.Add("k", "v")
			}
		})
	}
	waitStats(t, b, func(s Stats) bool { return s.DeadLetters == 1 && s.Stored == 1 && s.Waiting == 0 })
	if p := dead.wait(t, 1)[0]; p.Properties.User.Get(propertyReason) != reasonProperties || p.Properties.User.Get("k") != "" {
		t.Errorf("the dead letter has %d properties, and the reason %q", len(p.Properties.User), p.Properties.User.Get(propertyReason))
	}
}

func TestLetterTopic(t *testing.T) {
	for _, test := range []struct{ topic, want string }{
		{"v1/acme/berlin/t1/telemetry", "dead/v1/acme/berlin/t1/telemetry"},
		{"", "dead/"},
		{"1/2/3/4/5/6/7", "dead/1/2/3/4/5/6/7"},
		{"1/2/3/4/5/6/7/8", "dead/1/2/3/4/5/6/7"},
		{"1/2/3/4/5/6/7/8/9", "dead/1/2/3/4/5/6/7/8"},
		{"a/" + strings.Repeat("x", 200), "dead/a"},
		{strings.Repeat("x", 65_535), "dead"},
		{strings.Repeat("/", 65_535), "dead" + strings.Repeat("/", 65_531)},
	} {
		if got := letterTopic("dead", test.topic); got != test.want {
			t.Errorf("%.40s: %.40s of %d bytes, want %.40s of %d", test.topic, got, len(got), test.want, len(test.want))
		}
	}
}
