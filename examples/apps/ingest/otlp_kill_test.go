package main

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

var crashRounds = flag.Int("crash.rounds", 1, "how often TestOTLPKill kills the process, with and without a journal")

// TestOTLPKill kills the process while clients send data points, again and again. Each data point of a request that was
// answered with 200 is stored.
func TestOTLPKill(t *testing.T) {
	notOnWindows(t)
	for _, tt := range []struct {
		name, metric, dataset string
		key                   []string
	}{{"stored", "m.g", "host", nil}, {"journal", "m.g", "host", nil}, {"hash", "hash.g", "hashed", []string{inbound.OtherHash}}} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			args := []string{"-routes", write(t, hashMap), "-dir", filepath.Join(dir, "data")}
			if tt.name == "journal" {
				args = append(args, "-journal", filepath.Join(dir, "journal"))
			}
			var mu sync.Mutex
			acknowledged := map[int64]bool{} // by time
			var next atomic.Int64
			for range *crashRounds {
				s := serving(t, args...)
				var answers atomic.Int64
				var clients sync.WaitGroup
				for range 4 {
					clients.Go(func() {
						for {
							n := next.Add(1)
							p := number(1)
							p.TimeUnixNano = at + uint64(n)
							body, _ := proto.Marshal(request(gauge(tt.metric, p)))
							req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/metrics", bytes.NewReader(body))
							req.Header.Set("Content-Type", protobufType)
							req.Header.Set("Authorization", "Bearer secret")
							res, err := http.DefaultClient.Do(req)
							if err != nil { // it was killed
								return
							}
							res.Body.Close()
							if res.StatusCode != http.StatusOK {
								t.Errorf("status %d", res.StatusCode)
								return
							}
							mu.Lock()
							acknowledged[n] = true
							mu.Unlock()
							answers.Add(1)
						}
					})
				}
				for some := 1 + rand.Int64N(50); answers.Load() < some && !t.Failed(); {
					time.Sleep(time.Millisecond)
				}
				_ = s.cmd.Process.Kill()
				_ = s.cmd.Wait()
				clients.Wait()
			}
			last := serving(t, args...) // delivers the journal
			last.interrupt(t)
			if out, err := last.rest(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			store, err := embedded.Open(t.Context(), filepath.Join(dir, "data"))
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			ds, err := inbound.NewDatasets(t.Context(), store, inbound.Keys{tt.dataset: append([]string{"resource.host.name"}, tt.key...)}, inbound.Options{})
			if err != nil {
				t.Fatal(err)
			}
			d, err := ds.Find(t.Context(), acme, tt.dataset)
			if err != nil {
				t.Fatal(err)
			}
			for p, err := range d.Schema().For(store, acme).Under(tsdb.AllEntities()).Range(t.Context(), tsdb.AllTime()) {
				if err != nil {
					t.Fatal(err)
				}
				delete(acknowledged, p.Time.UnixNano()-int64(at))
			}
			if len(acknowledged) > 0 || next.Load() == 0 {
				t.Errorf("of %d data points, %d were acknowledged and are not stored", next.Load(), len(acknowledged))
			}
		})
	}
}
