package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/app"
)

// options are the parsed command line and environment.
type options struct {
	app.Place
	app.Door

	demo    bool
	keep    time.Duration
	journal string

	messages *messages

	behindProxy bool
	limits      limits
}

// parse reads the command line. With -help it prints the help and returns flag.ErrHelp; other errors are UsageErrors.
func parse(args []string, stdout io.Writer) (options, error) {
	o := options{Place: app.Place{Attach: true}, messages: new(messages)}
	var descriptors string
	flags := flag.NewFlagSet("promapi", flag.ContinueOnError)
	flags.BoolVar(&o.demo, "demo", false, "store two hours of made-up trucks of the tenant "+demoTenant+", and take the token "+demoToken+" for it")
	flags.DurationVar(&o.keep, "keep", 15*24*time.Hour, "how long samples of remote write are kept; 0 is for ever. Once the dataset exists, \"tidectl retention\" changes it")
	flags.StringVar(&o.journal, "journal", "", "acknowledge remote writes when they are in a journal in this `folder`, so that they outlast an outage of the store; queries find them a little later")

	flags.StringVar(&descriptors, "descriptors", "", "read datasets of protobuf payloads with the descriptors in this `file`, as \"protoc --include_imports --descriptor_set_out\" writes it")
	flags.Func("message", "the message that the protobuf payloads of a dataset are, as `dataset=package.Message`; may be repeated", o.messages.add)

	o.Door.Flags(flags, "127.0.0.1:9099", 20*time.Second)
	flags.BoolVar(&o.behindProxy, "behind-proxy", false,
		"take the tenant from the header "+orgHeader+". A client that reaches this program can then act as any tenant: only for a proxy that authenticates callers and sets the header itself")

	flags.IntVar(&o.limits.samples, "max-samples", 20_000_000, "how many samples a query may read, and hold at once; a sample takes 16 bytes, and a histogram counts as several")
	flags.IntVar(&o.limits.series, "max-series", 100_000, "how many series a request may select")
	flags.Int64Var(&o.limits.body, "max-body", 16<<20, "the most `bytes` in a remote write or remote read request, compressed or not")
	flags.DurationVar(&o.limits.timeout, "timeout", 2*time.Minute, "how long a request may take")
	flags.IntVar(&o.limits.requests, "max-requests", 64, "how many requests may be under way; others get 429 with Retry-After")
	flags.IntVar(&o.limits.perTenant, "max-requests-per-tenant", 20, "how many of them may be of one tenant")
	flags.DurationVar(&o.limits.lookback, "lookback", 5*time.Minute, "how old the newest sample of a series may be to count as its value; more than the interval of the slowest device. A request can choose another one with lookback_delta")
	flags.DurationVar(&o.limits.slow, "slow", 10*time.Second, "log queries that take longer, without the values of labels; 0 logs none")
	o.EnsureFlag(flags)
	o.Place.Flags(flags)
	given, err := app.Parse(flags, args, stdout, "Serves a store to Grafana and to Prometheus: PromQL, remote write and remote read.")
	if err != nil {
		return o, err
	}
	if o.demo {
		if err := o.AddDemo(demoToken, demoTenant); err != nil {
			return o, app.Usage(err)
		}
	}
	for _, err := range []error{o.Door.Check(given), o.check(), o.limits.check(), o.messages.read(descriptors), o.Place.Check(given, o.Remote)} {
		if err != nil {
			return o, app.Usage(err)
		}
	}
	return o, nil
}

func (o *options) check() error {
	switch {
	case o.keep < 0 || o.keep%time.Second != 0:
		return fmt.Errorf("-keep is %v; want whole seconds, or 0 for ever", o.keep)
	case o.Tokens.Len() == 0 && !o.behindProxy:
		return errors.New("no -token and no -tokens, so every request would be refused; with -token secret=acme, requests with that token are acme's")
	}
	return nil
}

func (l limits) check() error {
	for name, n := range map[string]int64{
		"-max-samples": int64(l.samples), "-max-series": int64(l.series), "-max-body": l.body,
		"-max-requests": int64(l.requests), "-max-requests-per-tenant": int64(l.perTenant),
	} {
		if n < 1 || n > 1<<40 {
			return fmt.Errorf("%s is %d; want above 0", name, n)
		}
	}
	for name, d := range map[string]time.Duration{"-timeout": l.timeout, "-lookback": l.lookback} {
		if d <= 0 {
			return fmt.Errorf("%s is %v; want above 0", name, d)
		}
	}
	if l.slow < 0 {
		return fmt.Errorf("-slow is %v; want 0 for none, or more", l.slow)
	}
	return nil
}
