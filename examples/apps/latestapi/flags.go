package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tsdb"
)

// options are the parsed command line and environment.
type options struct {
	app.Place

	ensure bool
	demo   bool

	addr       string
	tokens     *bearer
	cursorKeys [][]byte
	ownKey     bool // the cursors' key was made by this process
	limits     limits
	cache      tsdb.CacheOptions
	drain      time.Duration
}

// parse reads the command line. With -help it prints the help and returns flag.ErrHelp; other errors are UsageErrors.
func parse(args []string, stdout io.Writer) (options, error) {
	o := options{tokens: new(bearer)}
	var remote bool
	var tokenFile, keyFile string
	flags := flag.NewFlagSet("latestapi", flag.ContinueOnError)
	flags.BoolVar(&o.ensure, "ensure", false, "with -cloud: create missing tables, families and catalogue entries, which needs admin rights; in a folder this is always done")
	flags.BoolVar(&o.demo, "demo", false, "store some made-up points of the tenant "+demoTenant+", and take the token "+demoToken+" for it")

	flags.StringVar(&o.addr, "addr", "127.0.0.1:8088", "listen on this `host:port`; port 0 chooses a free one")
	flags.BoolVar(&remote, "allow-remote", false, "listen on addresses that other machines reach, without encryption")
	flags.Func("token", "the tenant of a token, as `token=tenant`; may be repeated", o.tokens.Add)
	flags.StringVar(&tokenFile, "tokens", "",
		"a `file` with sha256:DIGEST=tenant on each line, the digest as \"printf %s TOKEN | sha256sum\" prints it; better than -token, which other users of this machine see")
	flags.StringVar(&keyFile, "cursor-keys", "",
		"a `file` with the keys that seal cursors, one a line, as \"openssl rand -base64 32\" prints them; the first one seals. "+
			"Or the variable "+cursorKeysVariable+", with commas")
	flags.Int64Var(&o.limits.body, "max-body", 1<<20, "the most `bytes` in the body of a request")
	flags.IntVar(&o.limits.requests, "max-requests", 256, "how many requests may read at once; others get 503 with Retry-After")
	flags.DurationVar(&o.limits.timeout, "timeout", 10*time.Second, "how long a request may read")
	flags.IntVar(&o.cache.Entries, "cache", 10_000, "how many latest points to cache in memory, for requests with max_stale; 0 disables the cache")
	flags.DurationVar(&o.drain, "drain", 20*time.Second, "how long requests in progress may take after Ctrl-C")
	o.Flags(flags)

	given, err := app.Parse(flags, args, stdout, "Answers HTTP requests for the latest points of devices, and for those before them.")
	if err != nil {
		return o, err
	}
	for _, check := range []func() error{
		func() error { return o.checkStore(given) },
		func() error { return o.readSecrets(given, tokenFile, keyFile) },
		func() error { return o.checkServer(remote) },
		func() error { return o.Check(given, remote) },
	} {
		if err := check(); err != nil {
			return o, app.Usage(err)
		}
	}
	return o, nil
}

func (o *options) checkStore(given map[string]bool) error {
	switch {
	case given["ensure"] && !o.Cloud:
		return errors.New("-ensure is for -cloud; a folder is always prepared")
	}
	o.ensure = o.ensure || !o.Cloud
	return nil
}

// readSecrets reads the files of secrets, which other users of this machine could see on the command line.
func (o *options) readSecrets(given map[string]bool, tokenFile, keyFile string) (err error) {
	if o.demo {
		if err := o.tokens.Add(demoToken + "=" + demoTenant); err != nil {
			return fmt.Errorf("-demo: its token %s: %w", demoToken, err)
		}
	}
	if given["tokens"] {
		if err := o.tokens.ReadFile(tokenFile); err != nil {
			return fmt.Errorf("-tokens: %w", err)
		}
	}
	if o.cursorKeys, o.ownKey, err = readCursorKeys(given["cursor-keys"], keyFile); err != nil {
		return fmt.Errorf("cursor keys: %w", err)
	}
	return nil
}

func (o *options) checkServer(remote bool) error {
	if err := app.CheckAddr("addr", o.addr, remote); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(o.addr)
	switch {
	case o.tokens.Len() == 0:
		return errors.New("no -token and no -tokens, so every request would be refused; with -token secret=acme, requests with that token read acme's points")
	case o.demo && !edge.Loopback(host):
		return fmt.Errorf("-demo lets everybody in who knows the token %q, and -addr %s can be reached from other machines", demoToken, o.addr)
	case o.limits.body < 1:
		return fmt.Errorf("-max-body is %d; want above 0", o.limits.body)
	case o.limits.requests < 1 || o.limits.requests > 10_000:
		return fmt.Errorf("-max-requests is %d; want 1 to 10000", o.limits.requests)
	case o.limits.timeout <= 0:
		return fmt.Errorf("-timeout is %v; want above 0", o.limits.timeout)
	case o.cache.Entries < 0 || o.cache.Entries > 1_000_000:
		return fmt.Errorf("-cache is %d; want 0 to 1000000", o.cache.Entries)
	case o.drain <= 0:
		return fmt.Errorf("-drain is %v; want above 0", o.drain)
	}
	return nil
}
