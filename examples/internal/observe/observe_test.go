package observe

import (
	"errors"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func parse(t *testing.T, remote bool, args ...string) (Options, error) {
	t.Helper()
	var o Options
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Bool("allow-remote", false, "as ingest has it")
	o.Flags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o, o.Check(remote)
}

// TestOff: without a flag nothing is opened, and the program uses OpenTelemetry's global providers.
func TestOff(t *testing.T) {
	t.Setenv(endpointVariable, "")
	o, err := parse(t, false)
	if err != nil {
		t.Fatal(err)
	}
	var log, printed strings.Builder
	out := open(t, o, slog.New(slog.NewTextHandler(&log, nil)))
	out.Print(&printed)
	work(t, out.Telemetry)
	out.Close()
	if out.lis != nil || out.spans != nil || out.meters != nil || printed.Len()+log.Len() > 0 {
		t.Errorf("output %q and log %q, want nothing", &printed, &log)
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct{ args, env, want string }{
		{"-metrics-addr=9464", "", "-metrics-addr"},
		{"-metrics-addr=127.0.0.1:x", "", "-metrics-addr"},
		{"-metrics-addr=:9464", "", "-allow-remote"},
		{"-metrics-addr=10.0.0.1:9464", "", "-allow-remote"},
		{"-otlp-endpoint=localhost:4318", "", "-otlp-endpoint"},
		{"-otlp-endpoint=http://", "", "-otlp-endpoint"},
		{"-otlp-endpoint=http://u:secret@h", "", "-otlp-endpoint"},
		{"-otlp-endpoint=http://h/?token=secret", "", "query"},
		{"-tenants-in-metrics=1001", "", "-tenants-in-metrics"},
		{"-heatmap", "", "-metrics-addr"},
		{"", "grpc", endpointVariable},
		{"", "http://u:secret@h\n", endpointVariable},
	} {
		t.Setenv(endpointVariable, test.env)
		_, err := parse(t, false, strings.Fields(test.args)...)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%q with %q: %v, want %q in it", test.args, test.env, err, test.want)
		}
	}
	t.Setenv(endpointVariable, "")
	if _, err := parse(t, true, "-metrics-addr=:9464"); err != nil {
		t.Errorf("with -allow-remote: %v", err)
	}
}

// TestMetricsServer: metrics have their own port, which shows nothing else, and is free again at the end.
func TestMetricsServer(t *testing.T) {
	out := open(t, Options{metrics: "127.0.0.1:0"}, slog.New(slog.DiscardHandler))
	addr := out.lis.Addr().String()
	work(t, out.Telemetry)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for method, want := range map[string]int{"GET /metrics": 200, "GET /": 404, "GET /debug/pprof/": 404, "POST /metrics": 405} {
		verb, at, _ := strings.Cut(method, " ")
		req, err := http.NewRequestWithContext(t.Context(), verb, "http://"+addr+at, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != want {
			t.Errorf("%s: %d (%v), want %d", method, res.StatusCode, err, want)
		}
		if got := string(text); want == 200 && (!strings.Contains(got, `db_operation_name="Latest"`) || strings.Contains(got, "acme") || strings.Contains(got, "roof-7")) {
			t.Errorf("the metrics lack the operation, or contain a tenant or a key:\n%s", got)
		}
	}
	_, err := Open(t.Context(), "second", Options{metrics: addr}, slog.New(slog.DiscardHandler))
	if _, ok := errors.AsType[*net.OpError](err); !ok || !strings.Contains(err.Error(), "-metrics-addr") {
		t.Errorf("a second program on the port: %v", err)
	}
	out.Close()
	again, err := Open(t.Context(), "third", Options{metrics: addr}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("the port is still in use at the end: %v", err)
	}
	again.Close()
}

// TestHeatmap: the picture is served next to the metrics, only if it is asked for.
func TestHeatmap(t *testing.T) {
	for _, on := range []bool{false, true} {
		out := open(t, Options{metrics: "127.0.0.1:0", heatmap: on}, slog.New(slog.DiscardHandler))
		if len(out.DialOptions) > 0 != on {
			t.Errorf("with -heatmap %v there are %d dial options", on, len(out.DialOptions))
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Get("http://" + out.lis.Addr().String() + "/heatmap")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if served := res.StatusCode == http.StatusOK && strings.Contains(string(text), "Heatmap of row keys"); err != nil || served != on {
			t.Errorf("with -heatmap %v: %d (%v)", on, res.StatusCode, err)
		}
		out.Close()
	}
}

// TestFaults: an unreachable collector is logged once a minute, however often it is tried.
func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		f := watchFaults(slog.New(slog.NewTextHandler(&log, nil)))
		for range 2 {
			for range 1000 {
				f.Handle(errors.New("away"))
			}
			time.Sleep(quiet)
		}
		f.close()
		if got := log.String(); strings.Count(got, "\n") != 3 || !strings.Contains(got, "more_before=999") || !strings.Contains(got, "times=999") {
			t.Errorf("the log is\n%s\nwant one line a minute", got)
		}
	})
}
