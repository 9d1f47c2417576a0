package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
)

// The attributes of a dead letter, next to those of the message.
const (
	attributePrefix    = "tidemark-"
	attributeReason    = attributePrefix + "reason" // one of a few, for counts
	attributeError     = attributePrefix + "error"  // in detail
	attributeID        = attributePrefix + "message-id"
	attributePublished = attributePrefix + "publish-time" // RFC 3339
	attributeFrom      = attributePrefix + "subscription"
)

// Pub/Sub's limits of the attributes of a message. Five are the dead letter's own.
const (
	mostAttributes     = 100 - 5
	mostAttributeBytes = 1024
)

// mostData leaves space for all attributes in a request of at most 10,000,000 bytes (pubsub.MaxPublishRequestBytes). A
// message as large as that is delivered, and its dead letter, which has more attributes, would be refused each time.
const mostData = 9_800_000

// clientPrefix begins the attributes that Pub/Sub and its clients set themselves, such as that of a schema.
const clientPrefix = "goog"

// publishDeadLetter publishes a message that can never be stored, with the reason. It returns once Pub/Sub has it.
func (s *subscriber) publishDeadLetter(ctx context.Context, m *pubsub.Message, why *inbound.Error) error {
	if _, err := s.letters.Publish(ctx, s.letter(m, why)).Get(ctx); err != nil {
		return fmt.Errorf("publish a dead letter to %s: %w", s.o.deadLetters, err)
	}
	s.warn("a message can never be stored; it is a dead letter", "error", why, "id", m.ID)
	return nil
}

func (s *subscriber) letter(m *pubsub.Message, why *inbound.Error) *pubsub.Message {
	data, cut := m.Data, ""
	if len(data) > mostData {
		data, cut = data[:mostData], fmt.Sprintf("the dead letter has only the first %d of %d bytes: ", mostData, len(data))
	}
	letter := &pubsub.Message{Data: data, Attributes: map[string]string{
		attributeReason: why.Reason, attributeError: attributeText(cut + why.Error()), attributeID: m.ID,
		attributePublished: m.PublishTime.UTC().Format(time.RFC3339Nano), attributeFrom: s.o.subscription,
	}}
	for i, name := range slices.Sorted(maps.Keys(m.Attributes)) {
		earlier := strings.HasPrefix(name, attributePrefix) // of an earlier dead letter
		if i < mostAttributes && !earlier && !strings.HasPrefix(name, clientPrefix) {
			letter.Attributes[name] = m.Attributes[name]
		}
	}
	return letter
}

// attributeText shortens a text to what an attribute may hold.
func attributeText(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), mostAttributeBytes)], "")
}
