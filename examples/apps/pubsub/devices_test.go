package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/devices"
)

// TestDevices publishes the messages of devices, with the levels of their topics as attributes. All are stored.
func TestDevices(t *testing.T) {
	for _, c := range devices.Cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			s := newService(t, nil)
			names := c.Captured()
			r := begin(t, s, "-route", "tenant=acme "+c.Words, "-attributes", strings.Join(slices.Sorted(maps.Keys(names)), ","))
			var attributes []string
			for name, value := range names {
				attributes = append(attributes, name, value)
			}
			since := time.Now()
			id := s.publish(string(c.Payload), attributes...)
			eventually(t, "the message is not acknowledged", func() bool { return s.Message(id).Acks > 0 })
			if err := r.sink.Writer.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.CheckStored(t, r.sink.Store, acme, since)
			if len(c.Points) > 0 && !t.Failed() {
				return // to ask for dead letters takes long
			}
			for _, l := range s.letters(t) {
				t.Errorf("a dead letter: %v", l.GetAttributes())
			}
		})
	}
}
