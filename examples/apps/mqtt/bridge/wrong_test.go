package bridge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestDeadLetters: a message that can never be stored is published with the reason, is acknowledged, and holds back no
// other.
func TestDeadLetters(t *testing.T) {
	m := startBroker(t)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	b := run(t, store, m, routesOf(
		t, telemetry,
		"lines/+tenant/# format=line key=host time=ns",
		"owned/+tenant/+device/data dataset=owned key=device time=arrival tenant=property:owner",
		"v1/+tenant/+device/views dataset=views key=device time=at,s count=1h id=message_id sum=bytes",
		"all/+tenant/+dataset/+host key=host time=arrival",
	), Config{Tenants: []tenant.ID{acme}, Times: inbound.Bounds{MaxFuture: time.Hour}})
	dead := m.read("dead-letters/#")
	device := m.client("device", nil)

	owner := func(names ...string) func(*paho.Publish) {
		return func(p *paho.Publish) {
			p.Properties = &paho.PublishProperties{}
			for _, name := range names {
				p.Properties.User.Add("owner", name)
			}
		}
	}
	const good = "v1/acme/berlin/t1/telemetry"
	tests := []struct {
		topic, payload string
		edit           func(*paho.Publish)
		reason, error  string
	}{
		{"v1/acme/t1/views", ``, nil, inbound.ReasonSyntax, "the payload is empty"},
		{good, `{"ts":1767225600000,"temp":NaN}`, nil, inbound.ReasonSyntax, "not JSON"},
		{good, `{"ts":1767225600000,"temp":1} {}`, nil, inbound.ReasonSyntax, "more than one JSON value"},
		{good, `{"ts":1767225600000,"temp":"` + "\xff" + `"}`, nil, inbound.ReasonSyntax, "not valid UTF-8"},
		{good, `{"ts":1767225600000,"temp":1e400}`, nil, inbound.ReasonSyntax, `"temp" is left out, its number is too large`},
		{good, `{"ts":1767225600000,"temp":[1,2]}`, nil, inbound.ReasonSyntax, `"temp" is left out, it is an array`},
		{good, `{"ts":1767225600000}`, nil, inbound.ReasonSyntax, "no fields"},
		{good, `{"temp":1}`, nil, inbound.ReasonSyntax, `"ts" with the time is missing`},
		{good, `{"ts":true,"temp":1}`, nil, inbound.ReasonTime, "neither a text nor a number"},
		{good, `{"ts":"yesterday","temp":1}`, nil, inbound.ReasonTime, "RFC 3339"},
		{good, `{"ts":9223372036854775808,"temp":1}`, nil, inbound.ReasonTime, "64 bits"},
		{good, `{"ts":1767225600,"temp":1}`, nil, inbound.ReasonTime, "the time 1767225600 read as ms is 1970-01-21T10:53:45.6Z, before 2000-01-01T00:00:00Z, which is -not-before; as s it is 2026-01-01T00:00:00Z"},
		{good, `{"ts":"9999-12-31T23:59:59Z","temp":1}`, nil, inbound.ReasonTime, ""},
		{good, `{"ts":4102444800000,"temp":1}`, nil, inbound.ReasonTime, ""},
		{good, `{"ts":1767225600000,"temp":1,"device":"other"}`, nil, inbound.ReasonSyntax, `device is "other" in the payload`},
		{good, `{"ts":1767225600000,"tag:x":1}`, nil, inbound.ReasonSyntax, `"tag:x" is left out`},
		{good, `{"ts":1767225600000,"text":"` + strings.Repeat("x", 1<<20-100) + `"}`, nil, reasonLarge, "1048"},
		{"v1/acme//t1/telemetry", `{"ts":1767225600000,"temp":1}`, nil, inbound.ReasonSyntax, "site is empty"},
		{"v1/globex/berlin/t1/telemetry", `{"ts":1767225600000,"temp":1}`, nil, inbound.ReasonTenant, "globex may not store"},
		{"v1/a b/berlin/t1/telemetry", `{"ts":1767225600000,"temp":1}`, nil, inbound.ReasonTenant, ""},
		{"lines/acme/a", "cpu,host=a usage=NaN 1", nil, inbound.ReasonSyntax, "line 1"},
		{"lines/acme/a", "cpu,host=a usage=1 1767225600000000000\ncpu usage=1 1767225600000000000", nil, "it lacks the key tag host", "line 2"},
		{"lines/acme/a", "cpu,host=a usage=1", nil, inbound.ReasonTime, "no time"},
		{"lines/acme/a", "# nothing\n", nil, inbound.ReasonSyntax, "no line"},
		{"owned/acme/t1/data", `{"temp":1}`, nil, inbound.ReasonTenant, "lacks the property owner"},
		{"owned/acme/t1/data", `{"temp":1}`, owner("globex"), inbound.ReasonTenant, "names the tenant globex"},
		{"owned/acme/t1/data", `{"temp":1}`, owner("acme", "globex"), inbound.ReasonTenant, "names the tenant globex"},
		{"v1/acme/t1/views", `{"at":1767225600}`, nil, inbound.ReasonSyntax, `"message_id" with the message's identity is missing`},
		{"v1/acme/t1/views", `{"at":1767225600,"bytes":1,"message_id":"` + strings.Repeat("x", 200) + `"}`, nil, inbound.ReasonValue, ""},
		{"v1/acme/t1/views", `{"at":1767225600,"message_id":"a"}`, nil, inbound.ReasonSyntax, `"bytes" is missing, which the route sums`},
		{"all/acme/no such/a", `{"temp":1}`, nil, "the dataset cannot be a dataset", ""},
	}
	for _, test := range tests {
		publish(t, device, test.topic, test.payload, func(p *paho.Publish) {
			if test.edit != nil {
				test.edit(p)
			}
		})
	}
	publish(t, device, good, `{"ts":1767225600000,"temp":1}`)
	publish(t, device, "owned/acme/t1/data", `{"temp":1}`, owner("acme"))
	waitStats(t, b, func(s Stats) bool { return s.DeadLetters == uint64(len(tests)) && s.Stored == 2 && s.Waiting == 0 })

	byError := map[string]*paho.Publish{}
	for _, p := range dead.wait(t, len(tests)) {
		byError[p.Properties.User.Get(propertyTopic)+" "+p.Properties.User.Get(propertyReason)+" "+p.Properties.User.Get(propertyError)] = p
	}
	for _, test := range tests {
		found := false
		for text, p := range byError {
			if !strings.HasPrefix(text, test.topic+" "+test.reason+" ") || !strings.Contains(text, test.error) {
				continue
			}
			want := test.payload[:min(len(test.payload), 64<<10)]
			found = found || string(p.Payload) == want && p.Topic == "dead-letters/"+test.topic
		}
		if !found {
			t.Errorf("%s %.60q: no dead letter with the reason %q and the error %q", test.topic, test.payload, test.reason, test.error)
		}
	}
	if t.Failed() {
		for text := range byError {
			t.Log(text)
		}
	}
	if got := points(t, store, acme, "telemetry", "berlin", "t1"); len(got) != 1 {
		t.Errorf("points %q, want only the good one", got)
	}
	if got := points(t, store, globex, "telemetry", "berlin", "t1"); got != nil {
		t.Errorf("a tenant that is not allowed has %q", got)
	}
}

// TestConnectionOfOneTenant: on a connection that belongs to a tenant, a topic cannot name another.
func TestConnectionOfOneTenant(t *testing.T) {
	m := startBroker(t)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	b := run(t, store, m, routesOf(t, telemetry, "plain/+device dataset=plain key=device time=arrival"), Config{Tenant: acme})
	device := m.client("device", nil)
	publish(t, device, "plain/t1", `{"temp":1}`)
	publish(t, device, "v1/globex/berlin/t1/telemetry", `{"ts":1767225600000,"temp":1}`)
	publish(t, device, "v1/acme/berlin/t1/telemetry", `{"ts":1767225600000,"temp":1}`)
	waitStats(t, b, func(s Stats) bool { return s.Stored == 2 && s.DeadLetters == 1 })
	if got := points(t, store, acme, "plain", "t1"); len(got) != 1 {
		t.Errorf("acme has %q, want one point", got)
	}
	if got := points(t, store, globex, "telemetry", "berlin", "t1"); got != nil {
		t.Errorf("another tenant has %q", got)
	}
}

// TestDeadLettersAreNotStored: a pattern that matches the dead letters, too, makes no loop.
func TestDeadLettersAreNotStored(t *testing.T) {
	m := startBroker(t)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	b := run(t, store, m, routesOf(t, "+/# dataset=all key=kind time=arrival tenant=acme"), Config{})
	device := m.client("device", nil)
	publish(t, device, "a/b", `no JSON`)
	publish(t, device, "a/b", `{"kind":"x","temp":1}`)
	waitStats(t, b, func(s Stats) bool { return s.Ignored == 1 && s.DeadLetters == 1 && s.Stored == 1 && s.Waiting == 0 })
}

// TestRefusedConfig: a mistake is an error at once, and its text names it.
func TestRefusedConfig(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	for _, test := range []struct {
		route  string
		config Config
		want   string
	}{
		{telemetry, Config{Broker: "localhost:1883"}, "mqtt://"},
		{telemetry, Config{Broker: "mqtt://u:secret@h"}, "user"},
		{telemetry, Config{Broker: "http://h"}, "mqtt://"},
		{telemetry, Config{Session: time.Millisecond}, "session"},
		{telemetry, Config{Deadline: time.Millisecond}, "deadline"},
		{telemetry, Config{MaxPayload: 2 << 20}, "payload"},
		{telemetry, Config{Group: "a/b"}, "group"},
		{telemetry, Config{DeadLetters: "dead/#"}, "dead letters"},
		{"plain/+device dataset=plain key=device time=arrival", Config{}, "tenant"},
	} {
		_, err := New(t.Context(), store, routesOf(t, test.route), test.config)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%+v: error %v, want one with %q", test.config, err, test.want)
		}
	}
}
