package main

import (
	"fmt"
	"sync"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/pubsub/v2"

	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// BenchmarkMessages stores messages of one point each, 500 at once as a subscription delivers them: by hand with the
// official client of Bigtable, one write for each message, and with this service. Pub/Sub itself takes no part: pstest
// delivers 100 a second.
func BenchmarkMessages(b *testing.B) {
	const atOnce = 500
	run := func(b *testing.B, handle func(*pubsub.Message)) {
		n := 0
		b.ReportAllocs()
		for b.Loop() {
			var all sync.WaitGroup
			for range atOnce {
				n++
				m := &pubsub.Message{
					ID: fmt.Sprint(n), Attributes: map[string]string{"owner": "acme", "site": "berlin"},
					Data: fmt.Appendf(nil, `{"device":"d%d","ts":%d,"temp":21.5}`, n%100, start.Unix()+int64(n)),
				}
				all.Go(func() { handle(m) })
			}
			all.Wait()
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "messages/s")
	}
	b.Run("raw", func(b *testing.B) {
		_, conn := tsdbtest.Open(b, tsdbtest.Options{})
		client, admin := tsdbtest.Clients(b, conn)
		if err := admin.CreateTableFromConf(b.Context(), &bigtable.TableConf{TableID: "raw", Families: map[string]bigtable.GCPolicy{"f": bigtable.MaxVersionsPolicy(1)}}); err != nil {
			b.Fatal(err)
		}
		table := client.Open("raw")
		run(b, func(m *pubsub.Message) {
			row := bigtable.NewMutation()
			row.Set("f", "message", bigtable.Now(), m.Data)
			if err := table.Apply(b.Context(), "acme#"+m.Attributes["site"]+"#"+m.ID, row); err != nil {
				b.Error(err)
			}
		})
	})
	route := []string{"-route", pointsRoute, "-attributes", "site"}
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"sdk", route},
		{"journal", append([]string{"-journal", b.TempDir()}, route...)},
		{"counts", []string{"-route", "tenant=acme dataset=views key=device time=ts,s count=1h id=property:" + idProperty}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			s := newService(b, nil)
			r := begin(b, s, tt.args...)
			s.publish(`{"device":"d","ts":1767225600,"temp":21.5}`, "owner", "acme", "site", "berlin")
			eventually(b, "it does not begin", func() bool { return r.received.Load() > 0 })
			run(b, r.handle)
			if n := r.deadLetters.Load() + r.returned.Load(); n > 0 {
				b.Errorf("%d messages are not stored", n)
			}
		})
	}
}
