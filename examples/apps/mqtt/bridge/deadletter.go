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
	propertyPrefix  = "tidemark-"
	propertyReason  = propertyPrefix + "reason"  // one of a few, for counts
	propertyError   = propertyPrefix + "error"   // in detail
	propertyTopic   = propertyPrefix + "topic"   // of the message
	propertyArrived = propertyPrefix + "arrived" // when the message arrived at the bridge, as RFC 3339
)

// The detail of an error is cut at maxError bytes.
const maxError = 1024

// Brokers limit the levels and the bytes of a topic, and some close the connection of a client that publishes to a
// longer one. This many are below the limits of known brokers.
const (
	plainLevels = 8
	plainTopic  = 128
)

// letterTopic returns the topic of the dead letter of a message: that of the message, under the configured one. If it
// is long, its last levels are cut until it has no more levels and bytes than the message's topic, which the broker has
// accepted. The property tidemark-topic has all of it.
func letterTopic(under, topic string) string {
	cut := under + "/" + topic
	for len(cut) > max(plainTopic, len(topic)) || strings.Count(cut, "/") > max(plainLevels-1, strings.Count(topic, "/")) {
		i := strings.LastIndexByte(cut, '/')
		if i <= len(under) {
			return under
		}
		cut = cut[:i]
	}
	return cut
}

// publishDeadLetter publishes a poison message with the reason, and acknowledges it when the broker has accepted that.
// If the broker refuses it, the message keeps waiting, and those behind it, too: nothing is acknowledged that is
// neither stored nor published.
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
	reason := ""
	if refused, ok := errors.AsType[*inbound.Error](m.err); ok {
		reason = refused.Reason
	}
	p := &paho.PublishProperties{ContentType: m.packet.Properties.ContentType}
	for _, u := range m.packet.Properties.User {
		if !strings.HasPrefix(u.Key, propertyPrefix) { // of an earlier dead letter
			p.User.Add(u.Key, u.Value)
		}
	}
	p.User.Add(propertyReason, reason)
	p.User.Add(propertyError, propertyText(m.err.Error()))
	p.User.Add(propertyTopic, m.packet.Topic)
	p.User.Add(propertyArrived, m.arrived.UTC().Format(time.RFC3339Nano))
	letter := &paho.Publish{QoS: 1, Topic: letterTopic(b.config.DeadLetters, m.packet.Topic), Payload: m.packet.Payload, Properties: p}
	shorten(letter, int(b.packetBytes.Load()))
	return letter
}

// shorten makes a dead letter fit the packets that the broker accepts: it closes the connection after a larger one. The
// dead letter is larger than its message, by the reason.
func shorten(letter *paho.Publish, most int) {
	if size(letter) <= most {
		return
	}
	own := letter.Properties.User[:0]
	for _, u := range letter.Properties.User {
		if strings.HasPrefix(u.Key, propertyPrefix) {
			own.Add(u.Key, propertyText(u.Value))
		}
	}
	letter.Properties.User, letter.Properties.ContentType = own, ""
	letter.Payload = letter.Payload[:max(0, min(len(letter.Payload), most-size(letter)+len(letter.Payload)))]
}

// size returns how many bytes a packet has at most.
func size(p *paho.Publish) int {
	n := 64 + len(p.Topic) + len(p.Payload) + len(p.Properties.ContentType) // the numbers around them have less than 64 bytes
	for _, u := range p.Properties.User {
		n += 5 + len(u.Key) + len(u.Value)
	}
	return n
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
