package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/tsdb"
)

// options are the parsed command line and environment.
type options struct {
	app.Place
	app.Door
	app.Bounds

	demo bool

	cursorKeys [][]byte
	ownKey     bool // the cursors' key was made by this process
	cache      tsdb.CacheOptions
}

// parse reads the command line. With -help it prints the help and returns flag.ErrHelp; other errors are UsageErrors.
func parse(args []string, stdout io.Writer) (options, error) {
	o := options{Place: app.Place{Attach: true}, Bounds: app.Bounds{Body: 1 << 20, Requests: 256, Timeout: 10 * time.Second}}
	var keyFile string
	flags := flag.NewFlagSet("latestapi", flag.ContinueOnError)
	flags.BoolVar(&o.demo, "demo", false, "store some made-up points of the tenant "+demoTenant+", and take the token "+demoToken+" for it")

	o.Door.Flags(flags, "127.0.0.1:8088", 20*time.Second)
	flags.StringVar(&keyFile, "cursor-keys", "",
		"a `file` with the keys that seal cursors, one a line, as \"openssl rand -base64 32\" prints them; the first one seals. "+
			"Or the variable "+cursorKeysVariable+", with commas")
	o.Bounds.Flags(flags)
	flags.IntVar(&o.cache.Entries, "cache", 10_000, "how many latest points to cache in memory, for requests with max_stale; 0 disables the cache")
	o.EnsureFlag(flags)
	o.Place.Flags(flags)

	given, err := app.Parse(flags, args, stdout, "Answers HTTP requests for the latest points of devices, and for those before them.")
	if err != nil {
		return o, err
	}
	for _, check := range []func() error{
		func() error { return o.readSecrets(given, keyFile) },
		func() error { return o.Door.Check(given) },
		o.Bounds.Check,
		o.check,
		func() error { return o.Place.Check(given, o.Remote) },
	} {
		if err := check(); err != nil {
			return o, app.Usage(err)
		}
	}
	return o, nil
}

// readSecrets reads the files of secrets, which other users of this machine could see on the command line.
func (o *options) readSecrets(given map[string]bool, keyFile string) (err error) {
	if o.demo {
		if err := o.AddDemo(demoToken, demoTenant); err != nil {
			return err
		}
	}
	if o.cursorKeys, o.ownKey, err = readCursorKeys(given["cursor-keys"], keyFile); err != nil {
		return fmt.Errorf("cursor keys: %w", err)
	}
	return nil
}

func (o *options) check() error {
	switch {
	case o.Tokens.Len() == 0:
		return errors.New("no -token and no -tokens, so every request would be refused; with -token secret=acme, requests with that token read acme's points")
	case o.cache.Entries < 0 || o.cache.Entries > 1_000_000:
		return fmt.Errorf("-cache is %d; want 0 to 1000000", o.cache.Entries)
	}
	return nil
}
