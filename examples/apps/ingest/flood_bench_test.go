package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/app"
)

// BenchmarkBadFlood measures how long a message of one tenant takes until it is stored: alone, and while 8 senders of
// another tenant post bad messages as fast as they can, and for comparison good ones.
func BenchmarkBadFlood(b *testing.B) {
	line := func(bad bool, i int) string {
		if bad {
			return fmt.Sprintf(`{"device":"d%d","time":"never","temp":[1,%d]}`, i, i)
		}
		return fmt.Sprintf(`{"device":"d%d","time":%d,"temp":%d}`, i%100, 1767225600+i, i)
	}
	var bodies [2]string
	for i := range 1000 {
		bodies[0] += line(true, i) + "\n"
		bodies[1] += line(false, i) + "\n"
	}
	for _, flood := range []struct {
		name    string
		senders int
		body    string
	}{{"alone", 0, ""}, {"bad", 8, bodies[0]}, {"good", 8, bodies[1]}} {
		b.Run(flood.name, func(b *testing.B) {
			r := newRig(b, app.Bounds{Body: 1 << 20, Requests: 16, Timeout: 30 * time.Second}, "-key", "*=device")
			url := r.listen(b) + "/json/telemetry"
			stop := make(chan struct{})
			var senders sync.WaitGroup
			sent := make([]int, flood.senders)
			for i := range flood.senders {
				senders.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							sent[i] += post(b, url, "other", flood.body) * 1000
						}
					}
				})
			}
			var took []time.Duration
			began := time.Now()
			for b.Loop() {
				for i := range 300 {
					at := time.Now()
					post(b, url, "secret", fmt.Sprintf(`{"device":"quiet","time":%d,"temp":1}`, 1767225600+i))
					took = append(took, time.Since(at))
					time.Sleep(5 * time.Millisecond)
				}
			}
			close(stop)
			senders.Wait()
			slices.Sort(took)
			total := 0
			for _, n := range sent {
				total += n
			}
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(total)/time.Since(began).Seconds(), "flood-messages/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// post sends a body, and returns 1 if the server has read it.
func post(b *testing.B, url, token, body string) int {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		b.Error(err)
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Error(err)
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if token == "secret" && resp.StatusCode != http.StatusOK {
		b.Errorf("the quiet tenant gets %s", resp.Status)
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		return 0
	}
	return 1
}
