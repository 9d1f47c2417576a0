package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
)

// TestLargestDeadLetter: the dead letter of a message that is as large as Pub/Sub allows can be published, too.
// Attributes that only Pub/Sub's clients set are left out.
func TestLargestDeadLetter(t *testing.T) {
	s := &subscriber{o: options{deadLetters: poison, subscription: "projects/" + strings.Repeat("p", 30) + "/subscriptions/" + strings.Repeat("s", 255)}}
	m := &pubsub.Message{ID: "1", Attributes: map[string]string{"googclient_schemaencoding": "JSON"}}
	for i := range 90 {
		m.Attributes[fmt.Sprintf("%0256d", i)] = strings.Repeat("v", 1024)
	}
	size := func(m *pubsub.Message) int {
		return proto.Size(&pb.PublishRequest{Topic: poison, Messages: []*pb.PubsubMessage{{Data: m.Data, Attributes: m.Attributes}}})
	}
	m.Data = make([]byte, pubsub.MaxPublishRequestBytes-size(m)-10)
	letter := s.letter(m, &inbound.Error{Reason: inbound.ReasonSyntax, Err: errors.New(strings.Repeat("e", 2000))})
	if n := size(letter); n > pubsub.MaxPublishRequestBytes || len(letter.Attributes) > 100 {
		t.Errorf("the dead letter has %d bytes and %d attributes", n, len(letter.Attributes))
	}
	if letter.Attributes["googclient_schemaencoding"] != "" || letter.Attributes[fmt.Sprintf("%0256d", 3)] == "" {
		t.Error("the dead letter has an attribute of the client, or lacks one of the message")
	}
	if m.Data = make([]byte, pubsub.MaxPublishRequestBytes); len(s.letter(m, &inbound.Error{Err: errors.New("large")}).Data) != mostData {
		t.Error("the data is not cut")
	} else if text := s.letter(m, &inbound.Error{Err: errors.New("large")}).Attributes[attributeError]; !strings.Contains(text, "only the first 9800000 of 10000000 bytes: large") {
		t.Errorf("the error is %q", text)
	}
}
