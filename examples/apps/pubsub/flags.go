package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/examples/internal/observe"
	"github.com/tidemark-go/tidemark/tsdb"
)

// options are the parsed command line.
type options struct {
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

	cloud    bool
	dir      string
	table    string // the file of tenants' limits
	profiles bool   // take limits from profiles, too
	seen     observe.Options
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
	var o options
	var route, attributes, keep string
	flags := flag.NewFlagSet("pubsub", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
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

	flags.BoolVar(&o.cloud, "cloud", false, "store the points on Cloud Bigtable, in the table that TIDEMARK_PROJECT, TIDEMARK_INSTANCE and TIDEMARK_TABLE name")
	flags.StringVar(&o.dir, "dir", "./tidemark-data", "store the points in this `folder`, created if missing")
	flags.StringVar(&o.table, "limits", "", "apply the tenants' limits in this `file`, JSON as package tenant/limit describes it; changes are applied while running")
	flags.BoolVar(&o.profiles, "profile-limits", false, "also apply the limits in the tenants' profiles")
	o.seen.Flags(flags)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stdout, "Stores the messages of a Google Cloud Pub/Sub subscription.")
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
	if err := o.check(given, route, attributes, keep); err != nil {
		return o, usageError{err}
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
	case o.cloud && given["dir"]:
		return errors.New("-cloud and -dir exclude each other")
	case o.dir == "": // would be a store in memory
		return errors.New("-dir is empty; want a folder")
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
	return o.seen.Check(false)
}

// isName reports whether a text is projects/P/KIND/NAME.
func isName(text, kind string) bool {
	parts := strings.Split(text, "/")
	return len(parts) == 4 && parts[0] == "projects" && parts[1] != "" && parts[2] == kind && parts[3] != ""
}
