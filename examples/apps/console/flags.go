package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/edge"
)

// options are the parsed command line and environment.
type options struct {
	app.Place

	demo bool

	addr      string
	proxy     bool // with TLS, in front of this program
	cert, key string
	pair      *tls.Certificate // of cert and key; nil without
	tokens    edge.Tokens
	operator  edge.Tokens // of no tenant
	sessions  string      // the file that keeps them
	requests  int
	timeout   time.Duration
}

// parse reads the command line. With -help it prints the help and returns flag.ErrHelp; other errors are UsageErrors.
func parse(args []string, stdout io.Writer) (options, error) {
	o := options{Place: app.Place{Attach: true}}
	var remote bool
	var tokenFile string
	flags := flag.NewFlagSet("console", flag.ContinueOnError)
	flags.BoolVar(&o.demo, "demo", false, "store made-up points of the tenant "+demoTenant+" while the program runs, and take the token "+demoToken+" for it")
	flags.StringVar(&o.addr, "addr", "127.0.0.1:8090", "listen on this `host:port`; port 0 chooses a free one")
	flags.BoolVar(&remote, "allow-remote", false, "listen on addresses that other machines reach, without encryption")
	flags.BoolVar(&o.proxy, "behind-proxy", false, "browsers reach this program by HTTPS through a proxy, so cookies are only sent by HTTPS")
	flags.StringVar(&o.cert, "tls-cert", "", "serve HTTPS with the certificate in this `file`; other machines may then reach it")
	flags.StringVar(&o.key, "tls-key", "", "the `file` with the key of -tls-cert")
	flags.Func("token", "the tenant of a token, as `token=tenant`; may be repeated", o.tokens.Add)
	flags.StringVar(&tokenFile, "tokens", "",
		"a `file` with sha256:DIGEST=tenant on each line, the digest as \"printf %s TOKEN | sha256sum\" prints it; better than -token, which other users of this machine see")
	flags.Func("operator-token", "the operator's `token`, or sha256:DIGEST of it: it sees all tenants, and the pages health and keys of the whole table; may be repeated", func(text string) error {
		switch {
		case text == "":
			return errors.New("want a token")
		case strings.HasPrefix(text, "sha256:"):
			return o.operator.AddHashed(text + "=operator")
		}
		return o.operator.Add(text + "=operator")
	})
	flags.StringVar(&o.sessions, "sessions", "", "keep sessions over a restart in this `file`; without it, in the folder of -dir, and with -cloud nowhere. A change of any token ends all")
	flags.IntVar(&o.requests, "max-requests", 64, "how many requests may read at once; others wait a second and try again")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long a request may read; a download may take ten times as long")
	o.Flags(flags)
	given, err := app.Parse(flags, args, stdout, "Shows a store in a browser.")
	if err != nil {
		return o, err
	}
	if err := o.check(given, remote, tokenFile); err != nil {
		return o, app.Usage(err)
	}
	return o, nil
}

func (o *options) check(given map[string]bool, remote bool, tokenFile string) error {
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
	if id, ok := o.tokens.Common(&o.operator); ok { // which of the two it opens would be a guess
		return fmt.Errorf("-operator-token: this token is also %s's; want one of its own", id)
	}
	host, _, err := net.SplitHostPort(o.addr)
	switch {
	case o.Cloud && o.demo:
		return errors.New("-demo writes, and so is not for -cloud")
	case o.tokens.Len() == 0 && o.operator.Len() == 0:
		return errors.New("no -token, -tokens or -operator-token, so nobody could log in; with -token secret=acme, users with that token see acme's points; -demo has a token and data of its own")
	case err != nil:
		return fmt.Errorf("-addr is %q; want host:port: %w", o.addr, err)
	case (o.cert == "") != (o.key == ""):
		return errors.New("-tls-cert and -tls-key are only used together")
	case !remote && o.cert == "" && !edge.Loopback(host):
		return fmt.Errorf("-addr %s can be reached from other machines, and tokens would travel in the clear; "+
			"-allow-remote takes that risk, -tls-cert and a proxy with TLS in front do not need it", o.addr)
	case o.demo && !edge.Loopback(host):
		return fmt.Errorf("-demo lets everybody in who knows the token %q, and -addr %s can be reached from other machines", demoToken, o.addr)
	case o.requests < 1 || o.requests > 10_000:
		return fmt.Errorf("-max-requests is %d; want 1 to 10000", o.requests)
	case o.timeout <= 0:
		return fmt.Errorf("-timeout is %v; want above 0", o.timeout)
	}
	if o.sessions == "" && !o.Cloud {
		o.sessions = filepath.Join(o.Dir, "console-sessions.json")
	}
	if o.cert != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return fmt.Errorf("-tls-cert and -tls-key: %w", err)
		}
		o.pair = &pair
	}
	return o.Check(given, remote)
}
