package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/examples/apps/mqtt/bridge"
	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
)

// options are the parsed command line.
type options struct {
	app.Place

	routes *inbound.Routes
	bridge bridge.Config
}

// given are flags that need more than one step.
type given struct {
	routes       inbound.RouteFlags
	keep         string
	tenantFrom   string
	tenants      string
	passwordFile string
	cert, key    string
	ca           string
}

// parse reads the command line. With -help it prints the help and returns flag.ErrHelp; other errors are UsageErrors.
func parse(args []string, stdout io.Writer) (options, error) {
	o := options{bridge: bridge.Config{Broker: "mqtt://127.0.0.1:1883"}}
	var g given
	flags := flag.NewFlagSet("mqtt", flag.ContinueOnError)
	o.define(flags, &g)
	set, err := app.Parse(flags, args, stdout, "Stores what devices publish to an MQTT broker.")
	if err != nil {
		return o, err
	}
	for _, check := range []func() error{
		func() error { return o.checkStore(set, g.keep) },
		func() error { return o.readRoutes(g) },
		func() error { return o.readCredentials(g) },
		func() error { return o.readTenants(g) },
		func() error { return o.Check(set, false) },
	} {
		if err := check(); err != nil {
			return o, app.Usage(err)
		}
	}
	return o, nil
}

func (o *options) define(flags *flag.FlagSet, g *given) {
	c := &o.bridge
	g.routes.Flags(flags, "topics")
	flags.StringVar(&c.Broker, "broker", c.Broker, "the `URL` of the broker: mqtt://host:port, or mqtts://host:port for TLS")
	flags.StringVar(&c.ClientID, "client-id", "", "the `name` of the session at the broker: one of its own for each process, and the same again after a restart. The default is tidemark- and the machine's name")
	flags.StringVar(&c.Username, "username", "", "the user `name` at the broker")
	flags.StringVar(&g.passwordFile, "password-file", "", "a `file` with the user's password")
	flags.StringVar(&g.cert, "cert", "", "a `file` with the TLS certificate of this client, PEM; with -key")
	flags.StringVar(&g.key, "key", "", "the `file` with the certificate's key, PEM")
	flags.StringVar(&g.ca, "ca", "", "a `file` with the certificates that verify the broker, PEM. The default are those of the machine")
	flags.StringVar(&c.Group, "group", "", "the `name` of a shared subscription: the processes of a group share the messages")
	flags.DurationVar(&c.Session, "session", 24*time.Hour, "how long the broker keeps messages for this client while it is away")
	flags.BoolVar(&c.Clean, "clean", false, "begin without the messages of the last session, and let the broker keep none")
	flags.Func("receive-maximum", "how `many` messages may be unacknowledged at once (default 512)", func(text string) error {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return errors.New("want 1 to 65535")
		}
		c.ReceiveMaximum = uint16(n)
		return nil
	})
	flags.IntVar(&c.MaxPayload, "max-payload", 64<<10, "the most `bytes` in a payload; longer ones are dead letters")
	flags.DurationVar(&c.Deadline, "deadline", 30*time.Second, "how long a message may wait while others are stored, before it is a dead letter")
	flags.DurationVar(&c.Drain, "drain", 10*time.Second, "how long messages under way may take after Ctrl-C")
	flags.StringVar(&c.DeadLetters, "dead-letters", "dead-letters", "the `topic` of dead letters; that of the message is added")

	flags.StringVar(&g.tenantFrom, "tenant", "", "the tenant to whom the connection belongs: a `name`, or \"username\" or \"certificate\" for that of -username or -cert. Topics that name another are refused")
	flags.StringVar(&g.tenants, "tenants", "", "the tenants that may store, as `name,name`; the default is all")

	flags.StringVar(&c.Journal.Dir, "journal", "", "acknowledge messages once their points are in a journal in this `folder` on a local disk, and deliver them afterwards")
	flags.StringVar(&g.keep, "keep", "never", "when points expire, as a `policy`: never, or maxage=30d")
	c.Times.Flags(flags)
	o.Flags(flags)
}

func (o *options) checkStore(set map[string]bool, keep string) (err error) {
	c := o.bridge
	switch {
	case c.Session <= 0 || c.MaxPayload <= 0 || c.Deadline <= 0 || c.Drain <= 0: // 0 would be the bridge's default
		return errors.New("-session, -max-payload, -deadline and -drain must be above 0")
	case set["journal"] && o.bridge.Journal.Dir == "":
		return errors.New("-journal is empty; want a folder")
	}
	if o.bridge.Schema.Retention, err = inbound.Retention(keep); err != nil {
		return fmt.Errorf("-keep: %w", err)
	}
	return nil
}

func (o *options) readRoutes(g given) (err error) {
	if o.routes, err = g.routes.Parse(); err == nil && o.routes == nil {
		err = errors.New("no -route and no -routes: they say which topics are stored, as in -route 'v1/+tenant/+device dataset=telemetry key=device time=arrival'")
	}
	return err
}

// readCredentials reads what the broker knows this client by, and what it knows the broker by.
func (o *options) readCredentials(g given) error {
	c := &o.bridge
	if g.passwordFile != "" {
		password, err := os.ReadFile(g.passwordFile)
		if err != nil {
			return fmt.Errorf("-password-file: %w", err)
		}
		c.Password = []byte(strings.TrimRight(string(password), "\r\n"))
	}
	if g.cert == "" && g.key == "" && g.ca == "" {
		return nil
	}
	if !strings.HasPrefix(c.Broker, "mqtts:") {
		return errors.New("-cert, -key and -ca need a -broker with mqtts://")
	}
	c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if g.cert != "" || g.key != "" {
		pair, err := tls.LoadX509KeyPair(g.cert, g.key)
		if err != nil {
			return fmt.Errorf("-cert and -key: %w", err)
		}
		c.TLS.Certificates = []tls.Certificate{pair}
	}
	if g.ca != "" {
		pem, err := os.ReadFile(g.ca)
		if err != nil {
			return fmt.Errorf("-ca: %w", err)
		}
		c.TLS.RootCAs = x509.NewCertPool()
		if !c.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("-ca: %s has no certificate", g.ca)
		}
	}
	return nil
}

// readTenants finds the tenant to whom the connection belongs, and those that may store.
func (o *options) readTenants(g given) (err error) {
	c := &o.bridge
	name := g.tenantFrom
	switch name {
	case "username":
		if name = c.Username; name == "" {
			return errors.New("-tenant username needs -username")
		}
	case "certificate":
		if c.TLS == nil || len(c.TLS.Certificates) == 0 {
			return errors.New("-tenant certificate needs -cert")
		}
		names := tenant.CommonName(c.TLS.Certificates[0].Leaf)
		if len(names) != 1 {
			return fmt.Errorf("-tenant certificate: the certificate has %d common names; want one", len(names))
		}
		name = names[0]
	}
	if name != "" {
		if c.Tenant, err = tenant.Parse(name); err != nil {
			return fmt.Errorf("-tenant: %w", err)
		}
	}
	if g.tenants == "" {
		return nil
	}
	for name := range strings.SplitSeq(g.tenants, ",") {
		id, err := tenant.Parse(name)
		if err != nil {
			return fmt.Errorf("-tenants: %w", err)
		}
		c.Tenants = append(c.Tenants, id)
	}
	return nil
}
