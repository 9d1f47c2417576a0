package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage/remote"
)

// storeByIngest sends a request of OpenTelemetry to the program ingest, which stores it in a folder.
func storeByIngest(t *testing.T, dir string, body []byte) {
	t.Helper()
	program, mapping := filepath.Join(t.TempDir(), "ingest"), filepath.Join(t.TempDir(), "routes.txt")
	build := exec.CommandContext(t.Context(), installed(t, "go"), "build", "-o", program, ".")
	build.Dir, build.Env = filepath.Join("..", "ingest"), append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build ingest: %v\n%s", err, out)
	}
	if err := os.WriteFile(mapping, []byte("store * in web by route\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-dir", dir, "-token", "secret=acme", "-addr", "127.0.0.1:0", "-routes", mapping)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var logged log
	cmd.Stderr = &logged
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addr := ""
	lines := bufio.NewScanner(out)
	for addr == "" && lines.Scan() {
		if m := listens.FindStringSubmatch(lines.Text()); m != nil {
			addr = m[1]
		}
	}
	if addr == "" {
		t.Fatalf("ingest ends before it listens: %v\n%s", cmd.Wait(), logged.String())
	}
	if answer := post(t, "http://"+addr+"/v1/metrics", body); strings.Contains(answer, "rejected") || strings.Contains(answer, "message") {
		t.Errorf("ingest answers %s", answer)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("ingest: %v\n%s", err, logged.String())
	}
}

var oneUse = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func post(t *testing.T, to string, body []byte) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer secret")
	res, err := oneUse.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", to, res.Status, err, text)
	}
	return string(text)
}

// answered is the values of a query by their labels. Versions of Prometheus write le differently.
func answered(t *testing.T, base, query string, at float64) map[string]float64 {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/api/v1/query?"+url.Values{"query": {query}, "time": {fmt.Sprintf("%.3f", at)}}.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := oneUse.Do(r)
	if err != nil {
		return nil // it does not listen yet
	}
	defer res.Body.Close()
	var got struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	text, err := io.ReadAll(res.Body)
	if json.Unmarshal(text, &got); err != nil || res.StatusCode != http.StatusOK {
		return nil
	}
	values := map[string]float64{}
	for _, one := range got.Data.Result {
		x, err := strconv.ParseFloat(one.Value[1].(string), 64)
		if err != nil {
			t.Fatal(err)
		}
		values[withoutForm(labels.FromMap(one.Metric))] = x
	}
	return values
}

func withoutForm(ls labels.Labels) string {
	b := labels.NewBuilder(ls)
	if le := ls.Get(model.BucketLabel); le != "" {
		x, err := strconv.ParseFloat(le, 64)
		if err != nil {
			return "le=" + le
		}
		b.Set(model.BucketLabel, fmt.Sprint(x))
	}
	return b.Labels().String()
}

// TestHistogramsAsInPrometheus: a Prometheus scrapes two histograms. The same numbers come by OpenTelemetry through the
// program ingest, and queries have the same answers here and there.
func TestHistogramsAsInPrometheus(t *testing.T) {
	prometheus := installed(t, "prometheus")
	all := moments()
	dir := t.TempDir()
	storeByIngest(t, filepath.Join(dir, "store"), otlp(t, all))
	addr, stop := startProgram(t, "-dir", filepath.Join(dir, "store"), "-token", "secret=acme", "-addr", "127.0.0.1:0")
	defer stop()
	theirs := scraped(t, prometheus, dir, all)
	here, there := "http://acme:secret@"+addr, "http://"+theirs
	// Versions of PromQL differ: since version 3 quantiles within a native bucket are exponential, and rates where
	// a counter begins are others. So both compute: the installed Prometheus where all versions agree, and the engine
	// of this program on what that Prometheus has stored, everywhere.
	engine := newEngine(t, there)
	n := 0
	for _, tt := range []struct {
		query  string // of their metrics; ours begin with the dataset
		agreed int    // from this moment on all versions agree
	}{
		{"histogram_quantile(%v, sum by (le, route) (rate(lat_bucket[2m])))", again - 1},
		{"histogram_quantile(%v, sum by (le) (increase(lat_bucket[4m])))", again - 1},
		{"histogram_quantile(%v, sum by (le, route) (lat_bucket))", again - 1},
		{"sum by (le) (lat_bucket)", again - 1},
		{"sum by (le, route) (rate(lat_bucket[1m]))", again - 1},
		{`sum by (route) (rate(lat_bucket{le="0.1"}[1m])) / sum by (route) (rate(lat_count[1m]))`, again - 1},
		{"sum by (route) (rate(lat_sum[2m])) / sum by (route) (rate(lat_count[2m]))", again - 1},
		{"count(lat_bucket)", again - 1},
		{"histogram_quantile(%v, sum by (route) (size))", never},
		{"histogram_quantile(%v, sum by (route) (rate(size[2m])))", never},
		{"histogram_quantile(%v, sum(increase(size[4m])))", never},
		{"histogram_count(sum by (route) (size))", last},
		{"histogram_count(sum by (route) (rate(size[1m])))", last},
		{"histogram_sum(sum by (route) (rate(size[2m])))", last},
		{"histogram_fraction(-0.01, 0.5, sum by (route) (size))", never},
	} {
		queries := []string{tt.query}
		if strings.Contains(tt.query, "%v") {
			queries = nil
			for _, q := range []float64{0.01, 0.5, 0.9, 0.99} {
				queries = append(queries, fmt.Sprintf(tt.query, q))
			}
		}
		for _, query := range queries {
			ours := strings.NewReplacer("lat_", "web_lat_", "(size", "(web_size").Replace(query)
			for _, k := range []int{5, again - 1, again, again + 3, last} {
				at := float64(all[k].ms)/1000 + 1.5 // no sample is at the end of a range, which versions take differently
				got := answered(t, here, ours, at)
				wants := []map[string]float64{engine(query, at)}
				if k >= tt.agreed {
					wants = append(wants, answered(t, there, query, at))
				}
				for i, want := range wants {
					if len(want) == 0 || !maps.EqualFunc(got, want, near) {
						t.Errorf("%s at moment %d has %v, and by engine %d of Prometheus %v", ours, k, got, i, want)
					}
					n += len(want)
				}
			}
		}
	}
	t.Logf("%d values compared", n)
}

// native returns the flag or the setting with which a Prometheus scrapes native histograms.
func native(t *testing.T, prometheus string) (flag, setting string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), prometheus, "--version").CombinedOutput()
	major, minor := 0, 0
	if _, scan := fmt.Sscanf(string(out), "prometheus, version %d.%d", &major, &minor); err != nil || scan != nil {
		t.Fatalf("%v, %v: %s", err, scan, out)
	}
	switch {
	case major == 2 && minor < 40:
		t.Skipf("skipped: the installed Prometheus %d.%d has no native histograms; 2.40 has them", major, minor)
	case major < 3 || major == 3 && minor < 9:
		return "--enable-feature=native-histograms", ""
	}
	return "--log.level=warn", "scrape_native_histograms: true, "
}

// scraped starts a Prometheus that scrapes all moments, and returns its address.
func scraped(t *testing.T, prometheus, dir string, all []moment) string {
	t.Helper()
	flag, setting := native(t, prometheus)
	var now atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited")
		_, _ = w.Write(all[now.Load()].exposed(t))
	}))
	t.Cleanup(target.Close)
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	own := free.Addr().String()
	_ = free.Close()
	config := fmt.Sprintf(`
global: {%sscrape_interval: 50ms, scrape_timeout: 50ms}
scrape_configs:
  - job_name: web
    static_configs: [{targets: ["%s"]}]
`, setting, target.Listener.Addr())
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, prometheus, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+own, flag)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var logged log
	cmd.Stdout, cmd.Stderr = &logged, &logged
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	// The next moment is exposed when this one has been scraped.
	deadline := time.Now().Add(2 * time.Minute)
	for k := range all {
		now.Store(int64(k))
		for {
			samples := 0.0
			for _, metric := range []string{"lat_count", "size"} {
				for _, x := range answered(t, "http://"+own, "count_over_time("+metric+"[1h])", float64(all[last].ms)/1000+1) {
					samples += x
				}
			}
			if samples == float64(4*(k+1)) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%v samples are scraped when moment %d is exposed: %s", samples, k, logged.String())
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return own
}

// newEngine returns a function that evaluates queries on what a Prometheus has stored.
func newEngine(t *testing.T, base string) func(query string, at float64) map[string]float64 {
	t.Helper()
	where, err := url.Parse(base + "/api/v1/read")
	if err != nil {
		t.Fatal(err)
	}
	client, err := remote.NewReadClient("test", &remote.ClientConfig{
		URL: &commonconfig.URL{URL: where}, Timeout: model.Duration(time.Minute), ChunkedReadLimit: 50 << 20,
		HTTPClientConfig: commonconfig.HTTPClientConfig{FollowRedirects: true},
	}, commonconfig.WithKeepAlivesDisabled())
	if err != nil {
		t.Fatal(err)
	}
	stored := remote.NewSampleAndChunkQueryableClient(client, labels.EmptyLabels(), nil, true, func() (int64, error) { return 0, nil })
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parserOptions)})
	return func(query string, at float64) map[string]float64 {
		t.Helper()
		q, err := engine.NewInstantQuery(t.Context(), stored, nil, query, time.UnixMilli(int64(math.Round(at*1000))))
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		result := q.Exec(t.Context())
		if result.Err != nil {
			t.Fatalf("%s: %v", query, result.Err)
		}
		vector, err := result.Vector()
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for _, s := range vector {
			values[withoutForm(s.Metric)] = s.F
		}
		return values
	}
}
