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

	journal   string
	keys      inbound.Keys
	retention gc.Class
	times     inbound.Bounds

	addr     string
	otlpAddr string   // of gRPC
	mapping  *mapping // of OTLP
	auth     auth
	limits   limits
	drain    time.Duration

	file   string
	tenant tenant.ID
	unit   time.Duration
}

// parse reads the command line. With -help it prints the help and returns flag.ErrHelp; other errors are UsageErrors.
func parse(args []string, stdout io.Writer) (options, error) {
	o := options{keys: inbound.Keys{}}
	var remote bool
	var tokenFile, keep, tenantName, precision, mappingFile string
	flags := flag.NewFlagSet("ingest", flag.ContinueOnError)
	flags.StringVar(&o.journal, "journal", "",
		"acknowledge points once they are in a journal in this `folder` on a local disk, and deliver them afterwards")
	flags.Func("key", "the tags that are a measurement's key, as `measurement=tag,tag`; once per measurement. The measurement * means "+
		"all others, a last tag * all other tags", o.keys.Set)
	flags.StringVar(&keep, "keep", "never", "when points expire, as a `policy`: never, or maxage=30d")

	o.times.Flags(flags)

	flags.StringVar(&o.addr, "addr", "127.0.0.1:8086", "listen on this `host:port`; port 0 chooses a free one")
	flags.BoolVar(&remote, "allow-remote", false, "listen on addresses that other machines reach, without encryption")
	flags.Func("token", "the tenant of a token, as `token=tenant`; may be repeated", o.auth.tokens.Add)
	flags.StringVar(&tokenFile, "tokens", "",
		"a `file` with sha256:DIGEST=tenant on each line, the digest as \"printf %s TOKEN | sha256sum\" prints it; safer than -token, which other users of this machine can see")
	flags.BoolVar(&o.auth.inQuery, "token-in-query", false, "also accept the token in the parameter p, where some agents of version 1 send it; proxies may log it")
	flags.Int64Var(&o.limits.body, "max-body", 25<<20, "the most `bytes` in the body of a request, compressed and decompressed")
	flags.IntVar(&o.limits.requests, "max-requests", 32, "how many requests may write at once; others get 503 with Retry-After")
	flags.DurationVar(&o.limits.timeout, "timeout", time.Minute, "how long a request may take")
	flags.DurationVar(&o.drain, "drain", 30*time.Second, "how long requests in progress may take after Ctrl-C")

	flags.StringVar(&o.file, "file", "", "instead of listening, store the lines of this `file`, gzip or plain; - is standard input")
	flags.StringVar(&tenantName, "tenant", "", "the tenant of the points in the file")
	flags.StringVar(&precision, "precision", "ns", "the `unit` of the times in the file: ns, us, ms, s, m or h")

	flags.StringVar(&mappingFile, "otlp", "", "also accept OTLP metrics, which this `file` maps to datasets and keys, at /v1/metrics of -addr")
	flags.StringVar(&o.otlpAddr, "otlp-grpc-addr", "", "accept OTLP metrics over gRPC at this `host:port`, too; the usual port is 4317")
	o.Flags(flags)

	given, err := app.Parse(flags, args, stdout, "Stores InfluxDB line protocol that comes over HTTP or from a file, and OTLP metrics that come over HTTP or gRPC.")
	if err != nil {
		return o, err
	}
	for _, check := range []func() error{
		func() error { return o.checkMapping(given, mappingFile, remote) },
		func() error { return o.checkStore(given, keep) },
		func() error { return o.checkFile(given, tenantName, precision) },
		func() error { return o.checkServer(given, tokenFile, remote) },
		func() error { return o.Check(given, remote) },
	} {
		if err := check(); err != nil {
			return o, app.Usage(err)
		}
	}
	return o, nil
}

func (o *options) checkMapping(given map[string]bool, file string, remote bool) (err error) {
	switch {
	case !given["otlp"] && given["otlp-grpc-addr"]:
		return errors.New("-otlp-grpc-addr needs -otlp: the file that maps metrics to datasets")
	case !given["otlp"]:
		return nil
	case file == "":
		return errors.New("-otlp is empty; want a file")
	}
	if given["otlp-grpc-addr"] {
		if err := app.CheckAddr("otlp-grpc-addr", o.otlpAddr, remote); err != nil {
			return err
		}
	}
	if o.mapping, err = readMapping(file, o.keys); err != nil {
		return fmt.Errorf("-otlp: %w", err)
	}
	return nil
}

func (o *options) checkStore(given map[string]bool, keep string) error {
	switch {
	case given["journal"] && o.journal == "":
		return errors.New("-journal is empty; want a folder")
	case len(o.keys) == 0:
		return errors.New(`no -key: it says which measurements there are, as in -key readings=fleet,name; -key '*=*' takes any`)
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
	for _, name := range []string{"addr", "allow-remote", "token", "tokens", "token-in-query", "max-body", "max-requests", "timeout", "drain", "otlp", "otlp-grpc-addr"} {
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

func (o *options) checkServer(given map[string]bool, tokenFile string, remote bool) error {
	if o.file != "" {
		return nil
	}
	if given["tokens"] {
		if err := o.auth.tokens.ReadFile(tokenFile); err != nil {
			return fmt.Errorf("-tokens: %w", err)
		}
	}
	switch {
	case o.auth.tokens.Len() == 0:
		return errors.New("no -token and no -tokens, so every request would be refused; with -token secret=acme, requests with that token write acme's points")
	case o.limits.body < 1:
		return fmt.Errorf("-max-body is %d; want above 0", o.limits.body)
	case o.limits.requests < 1 || o.limits.requests > 10_000:
		return fmt.Errorf("-max-requests is %d; want 1 to 10000", o.limits.requests)
	case o.limits.timeout <= 0:
		return fmt.Errorf("-timeout is %v; want above 0", o.limits.timeout)
	case o.drain <= 0:
		return fmt.Errorf("-drain is %v; want above 0", o.drain)
	}
	return app.CheckAddr("addr", o.addr, remote)
}
