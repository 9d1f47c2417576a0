package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tsdb"
)

// options are the parsed command line.
type options struct {
	app.Place

	project      string // of the subscription
	subscription string
	deadLetters  string // a topic
	routes       *inbound.Routes
	attributes   []string // that are tags
	schema       tsdb.SchemaOptions
	times        inbound.Bounds
	journal      string

	outstanding int // messages
	memory      int // bytes of messages
	payload     int // bytes of a message
	hold        time.Duration
	attempt     time.Duration
	drain       time.Duration
}

// parse reads the command line. With -help it prints the help and returns flag.ErrHelp; other errors are UsageErrors.
func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	var route, attributes, keep string
	flags := flag.NewFlagSet("pubsub", flag.ContinueOnError)
	flags.StringVar(&o.subscription, "subscription", "", "store the messages of this subscription: `projects/P/subscriptions/S`")
	flags.StringVar(&o.deadLetters, "dead-letters", "", "publish messages that can never be stored to this topic, with the reason: `projects/P/topics/T`")
	flags.StringVar(&route, "route", "", "where and how messages are stored, as `words`: tenant=… dataset=… key=… time=…")
	flags.StringVar(&attributes, "attributes", "", "the attributes of messages that are tags, as `name,name`; key= may name them")
	flags.StringVar(&keep, "keep", "never", "when points expire, as a `policy`: never, or maxage=30d")
	o.times.Flags(flags)
	flags.StringVar(&o.journal, "journal", "", "acknowledge messages once their points are in a journal in this `folder` on a local disk, and deliver them afterwards")

	flags.IntVar(&o.outstanding, "max-messages", 1000, "how `many` messages may be unacknowledged at once; Pub/Sub sends no more meanwhile")
	flags.IntVar(&o.memory, "max-bytes", 64<<20, "how many `bytes` of messages may be unacknowledged at once")
	flags.IntVar(&o.payload, "max-payload", 1<<20, "the most `bytes` in a message; longer ones are dead letters")
	flags.DurationVar(&o.hold, "hold", 10*time.Minute, "how long a message is tried while the store fails, before it is given back to Pub/Sub")
	flags.DurationVar(&o.attempt, "timeout", 30*time.Second, "how long one try may take")
	flags.DurationVar(&o.drain, "drain", 20*time.Second, "how long messages under way may take after Ctrl-C")
	o.Flags(flags)
	given, err := app.Parse(flags, args, stdout, "Stores the messages of a Google Cloud Pub/Sub subscription.")
	if err != nil {
		return o, err
	}
	if err := o.check(given, route, attributes, keep); err != nil {
		return o, app.Usage(err)
	}
	return o, nil
}

func (o *options) check(given map[string]bool, route, attributes, keep string) (err error) {
	switch {
	case !isName(o.subscription, "subscriptions"):
		return fmt.Errorf("-subscription is %q; want projects/P/subscriptions/S", o.subscription)
	case !isName(o.deadLetters, "topics"):
		return fmt.Errorf("-dead-letters is %q; want projects/P/topics/T, to which messages go that can never be stored", o.deadLetters)
	case route == "":
		return errors.New("no -route: it says where messages are stored, as in -route 'tenant=acme dataset=telemetry key=device time=ts,ms'")
	case o.outstanding < 1 || o.outstanding > 100_000:
		return fmt.Errorf("-max-messages is %d; want 1 to 100000", o.outstanding)
	case o.payload < 1 || o.payload > 10<<20:
		return fmt.Errorf("-max-payload is %d; want 1 to 10 MiB, which is the most of Pub/Sub", o.payload)
	case o.memory < o.payload:
		return fmt.Errorf("-max-bytes is %d; want at least -max-payload", o.memory)
	case o.attempt <= 0 || o.hold < 0 || o.drain <= 0:
		return errors.New("-timeout and -drain must be above 0, -hold at least 0")
	case given["journal"] && o.journal == "":
		return errors.New("-journal is empty; want a folder")
	}
	o.project = strings.Split(o.subscription, "/")[1]
	if o.schema.Retention, err = inbound.Retention(keep); err != nil {
		return fmt.Errorf("-keep: %w", err)
	}
	if attributes != "" {
		o.attributes = strings.Split(attributes, ",")
	}
	if i := slices.Index(o.attributes, ""); i >= 0 {
		return errors.New("-attributes has an empty name")
	}
	// Pub/Sub has no topics with levels: one route takes all messages.
	if o.routes, err = inbound.ParseRoutes(strings.NewReader("+/# " + route)); err != nil {
		return fmt.Errorf("-route: %w", errors.Unwrap(err))
	}
	if !o.routes.SaysTenant() {
		return errors.New("-route does not say the tenant of messages; want tenant=NAME, or tenant=property:ATTRIBUTE")
	}
	return o.Check(given, false)
}

// isName reports whether a text is projects/P/KIND/NAME.
func isName(text, kind string) bool {
	parts := strings.Split(text, "/")
	return len(parts) == 4 && parts[0] == "projects" && parts[1] != "" && parts[2] == kind && parts[3] != ""
}
