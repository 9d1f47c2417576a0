package main

import (
	"bufio"
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// telegraf sends requests and treats responses as the output plugins of Telegraf do, with the settings of a file.
type telegraf struct {
	settings map[string]string // of the output
	isV2     bool
}

// readTelegraf reads the settings of a file's output.
func readTelegraf(t *testing.T, name string) telegraf {
	t.Helper()
	f, err := os.Open(filepath.Join("telegraf", name+".conf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a := telegraf{map[string]string{}, name == "influxdb_v2"}
	table := ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		text := strings.TrimSpace(lines.Text())
		switch {
		case text == "" || text[0] == '#':
		case text[0] == '[':
			table = strings.Trim(text, "[]")
		case strings.HasPrefix(table, "outputs."+name):
			k, v, ok := strings.Cut(text, " = ")
			if !ok {
				t.Fatalf("the line %q is no setting", text)
			}
			a.settings[k] = strings.ReplaceAll(strings.Trim(v, `"`), "${TIDEMARK_TOKEN}", "secret")
		}
	}
	return a
}

// send posts a batch. Both plugins use POST, gzip, text/plain and Telegraf's own user agent. The v2 plugin adds its
// path, the organization and the bucket to the URL; it makes no other calls, not even to see whether the bucket exists.
func (a telegraf) send(t *testing.T, r *rig, lines []string) *httptest.ResponseRecorder {
	t.Helper()
	address, authorization := a.settings["url"], a.settings["Authorization"]
	if a.isV2 {
		address = strings.Trim(a.settings["urls"], `[]"`) + "/api/v2/write?" + url.Values{"org": {a.settings["organization"]}, "bucket": {a.settings["bucket"]}}.Encode()
		authorization = "Token " + a.settings["token"]
	}
	u, err := url.Parse(address)
	if err != nil || u.Host != "127.0.0.1:8086" || a.settings["content_encoding"] != "gzip" {
		t.Fatalf("the settings are %v, %v", a.settings, err)
	}
	return r.post(u.RequestURI(), packed(strings.Join(lines, "\n")+"\n"), isGzip, func(req *http.Request) {
		req.Header.Set("Authorization", authorization)
		req.Header.Set("Content-Type", "text/plain; charset=utf-8")
		req.Header.Set("User-Agent", "Telegraf/1.36.2 Go/1.25.1")
	})
}

// flushInterval is that of the files.
const flushInterval = 10 * time.Second

// write sends a batch at a flush, and returns what Telegraf keeps for the next one and what it drops.
func (a telegraf) write(t *testing.T, r *rig, lines []string) (kept, dropped []string) {
	t.Helper()
	time.Sleep(flushInterval)
	return a.writeNow(t, r, lines)
}

func (a telegraf) writeNow(t *testing.T, r *rig, lines []string) (kept, dropped []string) {
	t.Helper()
	got := a.send(t, r, lines)
	switch {
	case got.Code < 300:
		return nil, nil
	case !a.isV2:
		if strings.Contains(a.settings["non_retryable_statuscodes"], strconv.Itoa(got.Code)) {
			return nil, lines
		}
		return lines, nil
	case got.Code == http.StatusRequestEntityTooLarge && len(lines) > 1: // the v2 plugin splits
		for _, half := range [][]string{lines[:len(lines)/2], lines[len(lines)/2:]} {
			k, d := a.writeNow(t, r, half)
			kept, dropped = append(kept, k...), append(dropped, d...)
		}
		return kept, dropped
	case got.Code == http.StatusTooManyRequests || got.Code == http.StatusServiceUnavailable:
		// It waits for Retry-After, which it reads as a number of seconds, and for the next flush.
		if s, err := strconv.ParseFloat(got.Header().Get("Retry-After"), 64); err != nil || s < 1 || s > 600 {
			t.Errorf("status %d with Retry-After %q, %v", got.Code, got.Header().Get("Retry-After"), err)
		}
		return lines, nil
	case got.Code == http.StatusUnauthorized || got.Code == http.StatusForbidden || got.Code >= 500:
		return lines, nil
	}
	return nil, lines
}

// cpuLines are lines as Telegraf's serializer writes them: tags and fields in order, unsigned integers with u,
// nanoseconds.
func cpuLines(n int, host string) []string {
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf("cpu,cpu=cpu%d,host=%s up=7u,usage_idle=97.5,usage_user=2i %d", i, host, start.UnixNano()))
	}
	return lines
}

// TestTelegraf: with the shipped settings nothing is lost that the service could store, whatever it responds.
func TestTelegraf(t *testing.T) {
	for _, name := range []string{"influxdb_v2", "http"} {
		a := readTelegraf(t, name)
		limits := write(t, `{"overrides": {"acme": {"points_per_second": 100, "points_burst": 30}}}`)
		synctest.Test(t, func(t *testing.T) {
			small := ample
			small.Body = 8192
			r := newRig(t, small, "-key", "cpu=host,cpu", "-key", "flat=host", "-max-future", "0", "-limits", limits) // the test's clock begins in 2000
			stored := func(what string, n int, host string) {
				t.Helper()
				for i := range n {
					r.stored(t, "cpu", acme, start, "{up=7u usage_idle=97.5 usage_user=2i}", host, fmt.Sprint("cpu", i))
				}
				if t.Failed() {
					t.Fatalf("after: %s", what)
				}
			}
			check := func(what string, kept, dropped []string, wantKept, wantDropped int) {
				t.Helper()
				if len(kept) != wantKept || len(dropped) != wantDropped {
					t.Errorf("%s: %d lines are kept and %d dropped, want %d and %d", what, len(kept), len(dropped), wantKept, wantDropped)
				}
			}
			// flush writes what is kept again, until nothing is.
			flush := func(what string, lines []string) {
				t.Helper()
				for begin := time.Now(); len(lines) > 0; {
					var dropped []string
					if lines, dropped = a.write(t, r, lines); len(dropped) > 0 || time.Since(begin) > 10*time.Minute {
						t.Fatalf("%s: %d lines are dropped, and %d kept", what, len(dropped), len(lines))
					}
				}
			}

			flush("a good batch", cpuLines(10, "good"))
			stored("a good batch", 10, "good")

			bad := append(cpuLines(3, "part"), fmt.Sprintf("flat,host=part,x=1 f=1 %d", start.UnixNano()), fmt.Sprintf("flat,host=part,x=2 f=1 %d", start.UnixNano()))
			kept, dropped := a.write(t, r, bad)
			check("a batch with a bad line", kept, dropped, 0, len(bad))
			stored("the good lines of it", 3, "part")

			r.conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.CheckAndMutateRow).Times(1))
			kept, dropped = a.write(t, r, cpuLines(5, "down"))
			check("a store that fails", kept, dropped, 5, 0)
			flush("a store that failed", kept)
			stored("a store that failed", 5, "down")

			// Bursts of 30 points: the second of two batches comes too soon.
			kept, dropped = a.write(t, r, cpuLines(20, "fast0"))
			check("within the rate", kept, dropped, 0, 0)
			kept, dropped = a.writeNow(t, r, cpuLines(20, "fast1"))
			check("over the rate", kept, dropped, 20, 0)
			flush("over the rate", kept)
			stored("over the rate", 20, "fast1")

			// 40 points are more than the burst: 413. One plugin sends halves; the other must be configured for smaller
			// batches.
			kept, dropped = a.write(t, r, cpuLines(40, "large"))
			if a.isV2 {
				check("a batch larger than the burst", nil, dropped, 0, 0)
				flush("a batch larger than the burst", kept)
				stored("a batch larger than the burst", 40, "large")
			} else {
				check("a batch larger than the burst", kept, dropped, 0, 40)
			}

			// Bytes: the batch is too large when it is unpacked.
			wide := cpuLines(10, "wide")
			for i := range wide {
				wide[i] = strings.Replace(wide[i], " up=7u", fmt.Sprintf(",pad=%s up=7u", strings.Repeat("x", 900)), 1)
			}
			kept, dropped = a.write(t, r, wide)
			if a.isV2 {
				check("a body that is too large", nil, dropped, 0, 0)
				flush("a body that is too large", kept)
			} else {
				check("a body that is too large", kept, dropped, 0, 10)
			}

			wrong := telegraf{map[string]string{}, a.isV2}
			for k, v := range a.settings {
				wrong.settings[k] = strings.ReplaceAll(v, "secret", "wrong")
			}
			kept, dropped = wrong.write(t, r, cpuLines(2, "token"))
			check("a wrong token", kept, dropped, 2, 0)
		})
	}
}

// TestTelegrafFiles: the settings that decide what is lost are in the files, and both plugins have an agent and inputs,
// as Telegraf requires.
func TestTelegrafFiles(t *testing.T) {
	for _, name := range []string{"influxdb_v2", "http"} {
		text, err := os.ReadFile(filepath.Join("telegraf", name+".conf"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"[agent]", "[[inputs.", "[[outputs." + name + "]]", "metric_buffer_limit", "influx_uint_support = true"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s.conf lacks %s", name, want)
			}
		}
		a := readTelegraf(t, name)
		if d, err := time.ParseDuration(a.settings["timeout"]); err != nil || d < time.Minute {
			t.Errorf("%s.conf: timeout is %v, %v; the service may take a minute", name, d, err)
		}
	}
	codes := strings.Split(strings.Trim(readTelegraf(t, "http").settings["non_retryable_statuscodes"], "[]"), ", ")
	if slices.Sort(codes); !slices.Equal(codes, []string{"400", "413"}) {
		t.Errorf("the statuses that are not retried are %v", cmp.Or(strings.Join(codes, " "), "none"))
	}
}
