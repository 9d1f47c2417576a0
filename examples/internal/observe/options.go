// Package observe exports the telemetry of an example: metrics to Prometheus, traces and metrics by OTLP, faults to its
// log. Except for the log, everything is off by default.
package observe

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
)

// Options are the parsed flags. The zero value exports nothing.
type Options struct {
	metrics string // host:port
	otlp    string // the URL of a collector
	fromEnv bool   // the URL is from the environment
	tenants int
	details bool
	heatmap bool
	remedy  string // names the flag that allows addresses which other machines reach
}

// endpointVariable is the standard variable; -otlp-endpoint has precedence.
const endpointVariable = "OTEL_EXPORTER_OTLP_ENDPOINT"

// mostTenants is the limit of tsdb.Telemetry.
const mostTenants = 1000

// Flags adds the flags, as the last ones.
func (o *Options) Flags(flags *flag.FlagSet) {
	if flags.Lookup("allow-remote") != nil {
		o.remedy = "; -allow-remote takes that risk"
	}
	flags.StringVar(&o.metrics, "metrics-addr", "",
		"serve metrics to Prometheus at /metrics on this separate `host:port`; port 0 chooses a free one")
	flags.StringVar(&o.otlp, "otlp-endpoint", "",
		"send traces and metrics by OTLP over HTTP to the collector at this `URL`, such as http://127.0.0.1:4318. Or the variable "+
			endpointVariable+"; other OTEL_ variables hold too")
	flags.IntVar(&o.tenants, "tenants-in-metrics", 0,
		"how `many` tenants are named in metrics and traces, the first that come; the others are one, _OTHER. 0 names none")
	flags.BoolVar(&o.heatmap, "heatmap", false, "record which row keys are used in the last hour, and serve the picture at /heatmap of -metrics-addr; it shows the keys of all tenants")
	flags.BoolVar(&o.details, "log-details", false, "put tenants and the texts of errors into the store's log lines, and the texts into traces; these may contain keys")
}

// Check rejects invalid options. Remote allows ports that other machines reach.
func (o *Options) Check(remote bool) error {
	if o.metrics != "" {
		if err := o.checkMetrics(remote); err != nil {
			return err
		}
	}
	if o.heatmap && o.metrics == "" {
		return errors.New("-heatmap is set without -metrics-addr, where the picture is served")
	}
	if o.otlp == "" {
		o.otlp, o.fromEnv = os.Getenv(endpointVariable), true
	}
	if o.otlp != "" {
		name := "-otlp-endpoint"
		if o.fromEnv {
			name = endpointVariable
		}
		if err := checkEndpoint(o.otlp); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if o.tenants < 0 || o.tenants > mostTenants {
		return fmt.Errorf("-tenants-in-metrics is %d; want 0 to %d", o.tenants, mostTenants)
	}
	return nil
}

func (o *Options) checkMetrics(remote bool) error {
	host, port, err := net.SplitHostPort(o.metrics)
	if err != nil {
		return fmt.Errorf("-metrics-addr is %q; want host:port: %w", o.metrics, err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("-metrics-addr is %q; want a port from 0 to 65535", o.metrics)
	}
	if !remote && !edge.Loopback(host) {
		return fmt.Errorf("-metrics-addr %s can be reached from other machines, and anybody there could read it%s", o.metrics, o.remedy)
	}
	return nil
}

func checkEndpoint(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("it is not a URL; want one such as http://127.0.0.1:4318") // err would repeat a password in it
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return fmt.Errorf("it is %q; want a URL such as http://127.0.0.1:4318", u.Redacted())
	case u.User != nil:
		return errors.New("it contains a user, which OTLP does not support; put a token into OTEL_EXPORTER_OTLP_HEADERS")
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("it is %q, and must have neither a query nor a fragment", u.Redacted())
	}
	return nil
}
