package bridge

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
)

// The user properties of a dead letter.
const (
	propertyReason  = "tidemark-reason"  // one of a few, for counts
	propertyError   = "tidemark-error"   // in detail
	propertyTopic   = "tidemark-topic"   // of the message
	propertyArrived = "tidemark-arrived" // when the message arrived at the bridge, as RFC 3339
)

// A topic has at most 65,535 bytes. The detail of an error is cut at maxError bytes.
const (
	maxTopic = 65_535
	maxError = 1024
)

// publishDeadLetter publishes a poison message with the reason, and acknowledges it when the broker has accepted that. If the broker refuses it,
// the message keeps waiting, and those behind it, too: nothing is acknowledged that is neither stored nor published.
func (b *Bridge) publishDeadLetter(m *message) {
	letter := b.deadLetter(m)
	for tries := 1; ; tries++ {
		ctx, cancel := context.WithTimeout(m.conn.gone, writeTimeout)
		response, err := b.manager.Load().Publish(ctx, letter)
		cancel()
		if err == nil {
			if response.ReasonCode == codeNoReader {
				b.unread.warn("nobody subscribes to the dead letters: they are lost", "topic", letter.Topic)
			}
			b.poison.warn("a message cannot be stored; it is a dead letter", "topic", letter.Topic, "error", m.err)
			b.counters.deadLetters.Add(1)
			b.acknowledge(m)
			return
		}
		b.faults.warn("the broker does not accept a dead letter; trying again", "topic", letter.Topic, "error", err)
		if !b.wait(m, b.retryWait(tries)) {
			b.release(m)
			return
		}
	}
}

func (b *Bridge) deadLetter(m *message) *paho.Publish {
	topic := b.config.DeadLetters + "/" + m.packet.Topic
	if len(topic) > maxTopic {
		topic = b.config.DeadLetters
	}
	reason := ""
	if refused, ok := errors.AsType[*inbound.Error](m.err); ok {
		reason = refused.Reason
	}
	p := &paho.PublishProperties{ContentType: m.packet.Properties.ContentType}
	for _, u := range m.packet.Properties.User {
		if !strings.HasPrefix(u.Key, "tidemark-") { // of an earlier dead letter
			p.User.Add(u.Key, u.Value)
		}
	}
	p.User.Add(propertyReason, reason)
	p.User.Add(propertyError, propertyText(m.err.Error()))
	p.User.Add(propertyTopic, m.packet.Topic)
	p.User.Add(propertyArrived, m.arrived.UTC().Format(time.RFC3339Nano))
	return &paho.Publish{QoS: 1, Topic: topic, Payload: m.packet.Payload, Properties: p}
}

// propertyText makes a text that MQTT accepts: UTF-8 without control characters, and short.
func propertyText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), maxError)], "")
}
