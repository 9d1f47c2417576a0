package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/examples/internal/observe"
	"github.com/tidemark-go/tidemark/tsdb"
)

// options are the parsed command line and environment.
type options struct {
	cloud  bool
	dir    string
	ensure bool
	demo   bool

	addr       string
	tokens     *bearer
	table      string // the file of tenants' limits
	profiles   bool   // take limits from profiles, too
	cursorKeys [][]byte
	ownKey     bool // the cursors' key was made by this process
	limits     limits
	cache      tsdb.CacheOptions
	drain      time.Duration
	seen       observe.Options
}

// where describes where the points are stored.
func (o options) where() string {
	emulator := os.Getenv("BIGTABLE_EMULATOR_HOST")
	switch {
	case !o.cloud:
		return fmt.Sprintf("the folder %s, embedded in this process", o.dir)
	case emulator != "":
		return "the Bigtable emulator at " + emulator
	}
	return "Cloud Bigtable"
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// parse reads the command line. With -help it prints the help and returns flag.ErrHelp; other errors are usageErrors.
func parse(args []string, stdout io.Writer) (options, error) {
	o := options{tokens: new(bearer)}
	var remote bool
	var tokenFile, keyFile string
	flags := flag.NewFlagSet("latestapi", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&o.cloud, "cloud", false,
		"the points are on Cloud Bigtable: in the table that TIDEMARK_PROJECT, TIDEMARK_INSTANCE and TIDEMARK_TABLE name")
	flags.StringVar(&o.dir, "dir", "./tidemark-data", "read the points in this `folder`, created if missing")
	flags.BoolVar(&o.ensure, "ensure", false, "with -cloud: create missing tables, families and catalogue entries, which needs admin rights; in a folder this is always done")
	flags.BoolVar(&o.demo, "demo", false, "store some made-up points of the tenant "+demoTenant+", and take the token "+demoToken+" for it")

	flags.StringVar(&o.addr, "addr", "127.0.0.1:8088", "listen on this `host:port`; port 0 chooses a free one")
	flags.BoolVar(&remote, "allow-remote", false, "listen on addresses that other machines reach, without encryption")
	flags.Func("token", "the tenant of a token, as `token=tenant`; may be repeated", o.tokens.Add)
	flags.StringVar(&tokenFile, "tokens", "",
		"a `file` with sha256:DIGEST=tenant on each line, the digest as \"printf %s TOKEN | sha256sum\" prints it; better than -token, which other users of this machine see")
	flags.StringVar(&o.table, "limits", "", "apply the tenants' limits in this `file`, JSON as package tenant/limit describes it; changes are applied while running")
	flags.BoolVar(&o.profiles, "profile-limits", false, "also apply the limits in the tenants' profiles, which \"tidectl tenants onboard\" stores; -limits gives the defaults, and its overrides come first")
	flags.StringVar(&keyFile, "cursor-keys", "",
		"a `file` with the keys that seal cursors, one a line, as \"openssl rand -base64 32\" prints them; the first one seals. "+
			"Or the variable "+cursorKeysVariable+", with commas")
	flags.Int64Var(&o.limits.body, "max-body", 1<<20, "the most `bytes` in the body of a request")
	flags.IntVar(&o.limits.requests, "max-requests", 256, "how many requests may read at once; others get 503 with Retry-After")
	flags.DurationVar(&o.limits.timeout, "timeout", 10*time.Second, "how long a request may read")
	flags.IntVar(&o.cache.Entries, "cache", 10_000, "how many latest points to cache in memory, for requests with max_stale; 0 disables the cache")
	flags.DurationVar(&o.drain, "drain", 20*time.Second, "how long requests in progress may take after Ctrl-C")

	o.seen.Flags(flags)

	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stdout, "Answers HTTP requests for the latest points of devices, and for those before them.")
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return o, err
	} else if err != nil {
		return o, usageError{err}
	}
	if flags.NArg() > 0 {
		return o, usageError{fmt.Errorf("unexpected argument %q", flags.Arg(0))}
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, check := range []func() error{
		func() error { return o.checkStore(given) },
		func() error { return o.readSecrets(given, tokenFile, keyFile) },
		func() error { return o.checkServer(remote) },
		func() error { return o.seen.Check(remote) },
	} {
		if err := check(); err != nil {
			return o, usageError{err}
		}
	}
	return o, nil
}

func (o *options) checkStore(given map[string]bool) error {
	switch {
	case o.cloud && given["dir"]:
		return errors.New("-cloud and -dir exclude each other")
	case o.dir == "":
		return errors.New("-dir is empty; want a folder")
	case given["ensure"] && !o.cloud:
		return errors.New("-ensure is for -cloud; a folder is always prepared")
	}
	o.ensure = o.ensure || !o.cloud
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
	host, _, err := net.SplitHostPort(o.addr)
	switch {
	case o.tokens.Len() == 0:
		return errors.New("no -token and no -tokens, so every request would be refused; with -token secret=acme, requests with that token read acme's points")
	case err != nil:
		return fmt.Errorf("-addr is %q; want host:port: %w", o.addr, err)
	case !remote && !edge.Loopback(host):
		return fmt.Errorf("-addr %s can be reached from other machines, and tokens would travel in the clear; "+
			"-allow-remote takes that risk, a proxy with TLS in front does not need it", o.addr)
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
