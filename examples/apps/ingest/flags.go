package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
)

// options are the parsed command line.
type options struct {
	app.Place
	app.Door
	app.Bounds

	journal   string
	keys      inbound.Keys
	retention gc.Class
	times     inbound.Bounds

	mapping *inbound.Mapping // of line protocol and OTLP
	routes  routes           // of JSON
	// signatures stand for the tokens of JSON.
	signatures signatures
	otlpAddr   string // of gRPC
	inQuery    bool   // a parameter may be the token

	file   string
	tenant tenant.ID
	unit   time.Duration
}

// parse reads the command line. With -help it prints the help and returns flag.ErrHelp; other errors are UsageErrors.
func parse(args []string, stdout io.Writer) (options, error) {
	o := options{keys: inbound.Keys{}, Bounds: app.Bounds{Body: 25 << 20, Requests: 32, Timeout: time.Minute}}
	var keep, tenantName, precision, signaturesFile string
	var routes inbound.RouteFlags
	flags := flag.NewFlagSet("ingest", flag.ContinueOnError)
	flags.StringVar(&o.journal, "journal", "",
		"acknowledge points once they are in a journal in this `folder` on a local disk, and deliver them afterwards")
	flags.Func("key", "the tags that are a measurement's key, as `measurement=tag,tag`; once per measurement. The measurement * means "+
		"all others, a last tag * all other tags. Without any -key, the dataset measurements takes all", o.keys.Set)
	flags.StringVar(&keep, "keep", "never", "when points expire, as a `policy`: never, or maxage=30d")

	o.times.Flags(flags)

	o.Door.Flags(flags, "127.0.0.1:8086", 30*time.Second)
	flags.BoolVar(&o.inQuery, "token-in-query", false, "also accept the token in the parameter p, where some agents of version 1 send it, or for JSON in the parameter token; proxies may log it")
	o.Bounds.Flags(flags)

	flags.StringVar(&o.file, "file", "", "instead of listening, store the lines of this `file`, plain, gzip or zstd; - is standard input")
	flags.StringVar(&tenantName, "tenant", "", "the tenant of the points in the file")
	flags.StringVar(&precision, "precision", "ns", "the `unit` of the times in the file: ns, us, ms, s, m or h")

	routes.Flags(flags, "paths after /json/, or a store or drop line for measurements and metrics")
	flags.StringVar(&signaturesFile, "signatures", "", "accept JSON without a token if its body is signed: a `file` with lines TENANT HEADER SECRET, for routes that name the tenant")
	flags.StringVar(&o.otlpAddr, "otlp-grpc-addr", "", "accept OTLP metrics over gRPC at this `host:port`, too; the usual port is 4317")
	o.Place.Flags(flags)

	given, err := app.Parse(flags, args, stdout, "Stores InfluxDB line protocol that comes over HTTP or from a file, JSON that comes over HTTP, and OTLP metrics over HTTP or gRPC.")
	if err != nil {
		return o, err
	}
	for _, check := range []func() error{
		func() error { return o.checkRoutes(routes) },
		func() error { return o.checkSignatures(given, signaturesFile) },
		func() error { return o.checkStore(given, keep) },
		func() error { return o.checkFile(given, tenantName, precision) },
		func() error { return o.checkServer(given) },
		func() error { return o.Place.Check(given, o.Remote) },
	} {
		if err := check(); err != nil {
			return o, app.Usage(err)
		}
	}
	return o, nil
}

func (o *options) checkSignatures(given map[string]bool, file string) (err error) {
	switch {
	case !given["signatures"]:
		return nil
	case !given["route"] && !given["routes"]:
		return errors.New("-signatures needs -route or -routes: a route that names the tenant, as v1/+tenant/+device does")
	}
	if o.signatures, err = readSignatures(file); err != nil {
		return fmt.Errorf("-signatures: %w", err)
	}
	return nil
}

func (o *options) checkStore(given map[string]bool, keep string) error {
	switch {
	case given["journal"] && o.journal == "":
		return errors.New("-journal is empty; want a folder")
	}
	var err error
	if o.retention, err = inbound.Retention(keep); err != nil {
		return fmt.Errorf("-keep: %w", err)
	}
	return nil
}

func (o *options) checkFile(given map[string]bool, tenantName, precision string) (err error) {
	for _, name := range []string{"tenant", "precision"} {
		if o.file == "" && given[name] {
			return fmt.Errorf("-%s is for -file; requests say it themselves", name)
		}
	}
	for _, name := range []string{"addr", "allow-remote", "token", "tokens", "token-in-query", "signatures", "max-body", "max-requests", "timeout", "drain", "otlp-grpc-addr"} {
		if o.file != "" && given[name] {
			return fmt.Errorf("-file and -%s exclude each other", name)
		}
	}
	if o.file == "" {
		if given["file"] {
			return errors.New("-file is empty; want a file, or - for standard input")
		}
		return nil
	}
	if tenantName == "" {
		return errors.New("-file needs -tenant: whose the points are")
	}
	if o.tenant, err = tenant.Parse(tenantName); err != nil {
		return fmt.Errorf("-tenant: %w", err)
	}
	var ok bool
	if o.unit, ok = units[precision]; !ok {
		return fmt.Errorf("-precision is %q; want ns, us, ms, s, m or h", precision)
	}
	return nil
}

func (o *options) checkServer(given map[string]bool) error {
	if o.file != "" {
		return nil
	}
	if err := o.Door.Check(given); err != nil {
		return err
	}
	if o.Tokens.Len() == 0 && len(o.signatures) == 0 {
		return errors.New("no -token and no -tokens, so every request would be refused; with -token secret=acme, requests with that token write acme's points")
	}
	if given["otlp-grpc-addr"] {
		if err := app.CheckAddr("otlp-grpc-addr", o.otlpAddr, o.Remote); err != nil {
			return err
		}
	}
	return o.Bounds.Check()
}
