package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage/remote"
	promtsdb "github.com/prometheus/prometheus/tsdb"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// receiver is a server on a folder and a port, which can be stopped and started again.
type receiver struct {
	*stand
	srv      *httptest.Server
	store    *tsdb.Store
	answered chan struct{} // has an element after an answer

	mu       sync.Mutex
	statuses map[int]int
}

func (r *receiver) start(t *testing.T, dir, addr string) {
	t.Helper()
	var err error
	if r.store, err = embedded.New(t.Context(), embedded.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	schema, err := defineProm(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.store.Ensure(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	r.stand = over(t, r.store, schema, tsdb.WriterOptions{}, someLimits)
	r.srv = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		seen := &statusWriter{ResponseWriter: w}
		r.handler.ServeHTTP(seen, req)
		r.mu.Lock()
		r.statuses[seen.status]++
		r.mu.Unlock()
		select {
		case r.answered <- struct{}{}:
		default:
		}
	}))
	_ = r.srv.Listener.Close()
	r.srv.Listener = lis
	r.srv.Start()
}

func (r *receiver) stop() {
	r.srv.CloseClientConnections()
	r.srv.Close()
	_ = r.writer.Close(context.Background())
	_ = r.store.Close()
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// until waits for an answer after which the condition holds.
func (r *receiver) until(what string, holds func() bool) {
	r.Helper()
	deadline := time.After(time.Minute)
	for !holds() {
		select {
		case <-r.answered:
		case <-deadline:
			r.Fatalf("%s: not within a minute; the answers are %v", what, r.count(0))
		}
	}
}

// count returns how often a status was answered; for 0 all of them, as text.
func (r *receiver) count(status int) any {
	r.mu.Lock()
	defer r.mu.Unlock()
	if status == 0 {
		return fmt.Sprint(r.statuses)
	}
	return r.statuses[status]
}

// TestPrometheusSender sends with Prometheus' own write-ahead log, queues and client, in both versions: while the
// tenant has too many requests, while there is no memory, and through a restart. Nothing is lost, and each sample is
// what it was.
func TestPrometheusSender(t *testing.T) {
	for name, message := range map[string]string{"version 1": writeV1, "version 2": writeV2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			addr, dir := free.Addr().String(), t.TempDir()
			_ = free.Close()
			r := &receiver{statuses: map[int]int{}, answered: make(chan struct{}, 1)}
			r.start(t, filepath.Join(dir, "store"), addr)
			defer func() { r.stop() }()
			from := newSender(t, filepath.Join(dir, "sender"), "http://"+addr+"/api/v1/write", message)

			stored := func() bool {
				_, got := r.get("query", "query", "sum(count_over_time(sent_total[1h]))", "time", fmt.Sprint(from.last/1000+1))
				return strings.Contains(got, fmt.Sprintf(`,"%d"]`, from.samples))
			}
			from.send(50)
			r.until("samples", stored)

			places := 0
			for r.gate.enter(acme) {
				places++
			}
			from.send(20)
			r.until("429", func() bool { return r.count(http.StatusTooManyRequests) != 0 })
			for range places {
				r.gate.leave(acme)
			}
			r.until("samples after 429", stored)

			const some = 1 << 10
			taken := int64(0)
			for r.memory.Take(acme, some) {
				taken += some
			}
			from.send(20)
			r.until("503", func() bool { return r.count(http.StatusServiceUnavailable) != 0 })
			r.memory.Return(acme, taken)
			r.until("samples after 503", stored)

			r.stop()
			from.send(50)
			r.start(t, filepath.Join(dir, "store"), addr)
			r.until("samples after a restart", stored)

			end := fmt.Sprint(from.last/1000 + 1)
			for query, want := range map[string]string{
				"sum(sum_over_time(sent_total[1h]))":                 fmt.Sprintf(`,"%d"]`, from.sum),
				"count(sent_total)":                                  `,"5"]`,
				"histogram_count(sum(last_over_time(lat[1h])))":      `,"3"]`,
				`sent_total{i="1",from="sender"} and on() vector(1)`: `"from":"sender"`,
			} {
				if _, got := r.get("query", "query", query, "time", end); !strings.Contains(got, want) {
					t.Errorf("%s: %s, want %s", query, got, want)
				}
			}
			if _, got := r.get("query_exemplars", "query", "sent_total"); !strings.Contains(got, `"trace_id":"t1"`) {
				t.Errorf("exemplars %s", got)
			}
			if _, got := r.get("metadata"); (message == writeV2) != strings.Contains(got, `"sent_total":[{"type":"counter"`) {
				t.Errorf("metadata %s", got)
			}
			if bad := r.count(http.StatusBadRequest); bad != 0 {
				t.Errorf("%d requests were answered with 400", bad)
			}
		})
	}
}

// sender is a Prometheus without its scrapes.
type sender struct {
	*testing.T
	db           *promtsdb.DB
	last         int64 // time of the newest sample
	samples, sum int
}

func newSender(t *testing.T, dir, to, message string) *sender {
	t.Helper()
	opts := promtsdb.DefaultOptions()
	opts.EnableExemplarStorage, opts.MaxExemplars, opts.EnableMetadataWALRecords = true, 1000, true
	db, err := promtsdb.Open(dir, nil, nil, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	out := remote.NewStorage(nil, nil, func() (int64, error) { return 0, nil }, dir, time.Second, nil, false)
	t.Cleanup(func() { _ = out.Close() })
	db.SetWriteNotified(out)
	where, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	c := config.DefaultRemoteWriteConfig
	c.URL, c.ProtobufMessage, c.SendExemplars, c.SendNativeHistograms = &commonconfig.URL{URL: where}, remoteapi.WriteMessageType(message), true, true
	c.HTTPClientConfig.BasicAuth = &commonconfig.BasicAuth{Username: "acme", Password: "a"}
	c.MetadataConfig.Send = false
	c.QueueConfig.BatchSendDeadline, c.QueueConfig.RetryOnRateLimit = model.Duration(10*time.Millisecond), true
	c.QueueConfig.MinBackoff, c.QueueConfig.MaxBackoff = model.Duration(10*time.Millisecond), model.Duration(100*time.Millisecond)
	if err := out.ApplyConfig(&config.Config{
		GlobalConfig:       config.GlobalConfig{ExternalLabels: labels.FromStrings("from", "sender")},
		RemoteWriteConfigs: []*config.RemoteWriteConfig{&c},
	}); err != nil {
		t.Fatal(err)
	}
	return &sender{T: t, db: db, last: time.Now().Add(10 * time.Second).UnixMilli()} // what is older than the queue is not sent
}

// send stores n samples of five series in the sender's log, and at first a histogram, an exemplar and metadata.
func (s *sender) send(n int) {
	s.Helper()
	app := s.db.Appender(s.Context())
	check := func(err error) {
		s.Helper()
		if err != nil {
			s.Fatal(err)
		}
	}
	first := s.samples == 0
	for range n {
		s.last += 100
		v := rand.IntN(1000)
		ls := labels.FromStrings(model.MetricNameLabel, "sent_total", "i", fmt.Sprint(s.samples%5))
		ref, err := app.Append(0, ls, s.last, float64(v))
		check(err)
		s.samples++
		s.sum += v
		if first {
			_, err = app.UpdateMetadata(ref, ls, metadata.Metadata{Type: model.MetricTypeCounter, Help: "help"})
			check(err)
		}
		if first && s.samples == 1 {
			_, err = app.AppendExemplar(ref, ls, exemplar.Exemplar{Labels: labels.FromStrings("trace_id", "t1"), Value: 1, Ts: s.last, HasTs: true})
			check(err)
			h := &histogram.Histogram{Count: 3, Sum: 4.5, PositiveSpans: []histogram.Span{{Length: 2}}, PositiveBuckets: []int64{1, 1}}
			_, err = app.AppendHistogram(0, labels.FromStrings(model.MetricNameLabel, "lat"), s.last, h, nil)
			check(err)
		}
	}
	check(app.Commit())
}
