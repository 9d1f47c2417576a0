package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// BenchmarkMessages stores the messages that wait in a broker's queue, one point each. The baseline put is a subscriber
// that calls Put for each message. The time of a message is that from the start of the subscriber until all are
// acknowledged.
func BenchmarkMessages(b *testing.B) {
	b.Run("put", func(b *testing.B) {
		benchmark(b, func(m *mosquitto, dir string, n int) {
			store, err := embedded.Open(b.Context(), dir)
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			putEach(b, m, store, n)
		})
	})
	for _, journal := range []bool{false, true} {
		b.Run(map[bool]string{false: "stored", true: "journaled"}[journal], func(b *testing.B) {
			benchmark(b, func(m *mosquitto, dir string, n int) {
				store, err := embedded.Open(b.Context(), filepath.Join(dir, "store"))
				if err != nil {
					b.Fatal(err)
				}
				defer store.Close()
				c := Config{ClientID: "bench"}
				if journal {
					c.Journal.Dir = filepath.Join(dir, "journal")
				}
				r := run(b, store, m, routesOf(b, telemetry), c)
				waitStats(b, r, func(s Stats) bool { return s.Stored+s.Journaled == uint64(n) })
				b.StopTimer()
				r.stop()
				<-r.ended
			})
		})
	}
}

// benchmark fills the queue of a session with b.N messages, and lets drain take them.
func benchmark(b *testing.B, drain func(m *mosquitto, dir string, n int)) {
	m := startBroker(b)
	cm := m.client("bench", func(c *autopaho.ClientConfig) { c.SessionExpiryInterval = 3600 })
	if _, err := cm.Subscribe(b.Context(), &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: "v1/+/+/+/telemetry", QoS: 1}}}); err != nil {
		b.Fatal(err)
	}
	if err := cm.Disconnect(b.Context()); err != nil {
		b.Fatal(err)
	}
	device := m.client("device", nil)
	var sending sync.WaitGroup
	const senders = 64
	for s := range senders {
		sending.Go(func() {
			for i := s; i < b.N; i += senders {
				p := &paho.Publish{QoS: 1, Topic: fmt.Sprintf("v1/acme/berlin/t%d/telemetry", i%100), Payload: fmt.Appendf(nil, `{"ts":%d,"temp":21.5,"speed":%d}`, 1767225600000+i, i%90)}
				if _, err := device.Publish(b.Context(), p); err != nil {
					b.Error(err)
				}
			}
		})
	}
	sending.Wait()
	dir := b.TempDir()
	b.ResetTimer()
	drain(m, dir, b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// putEach is the subscriber that a program would write by hand: it stores each message, and then the client
// acknowledges it.
func putEach(b *testing.B, m *mosquitto, store *tsdb.Store, n int) {
	s := tsdb.MustDefine("telemetry", tsdb.Key("site", "device"), codec.Records(), tsdb.SchemaOptions{})
	if err := store.Ensure(b.Context(), s); err != nil {
		b.Fatal(err)
	}
	repo := s.For(store, acme)
	var got atomic.Int64
	done := make(chan struct{})
	cm := m.client("bench", func(c *autopaho.ClientConfig) {
		c.CleanStartOnInitialConnection, c.SessionExpiryInterval = false, 3600
		c.OnPublishReceived = []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			levels := strings.Split(p.Packet.Topic, "/")
			var r struct {
				TS          int64
				Temp, Speed float64
			}
			if err := json.Unmarshal(p.Packet.Payload, &r); err != nil {
				b.Error(err)
			}
			v := codec.NewRecord(codec.Field{Name: "speed", Value: codec.Float(r.Speed)}, codec.Field{Name: "temp", Value: codec.Float(r.Temp)})
			if err := repo.Put(context.Background(), tsdb.NewEntity(levels[2], levels[3]), time.UnixMilli(r.TS), v); err != nil {
				b.Error(err)
			}
			if got.Add(1) == int64(n) {
				close(done)
			}
			return true, nil
		}}
	})
	<-done
	b.StopTimer()
	_ = cm.Disconnect(context.Background())
}
