package tour

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
)

// options are the parsed command line.
type options struct {
	dir      string
	addr     string
	vehicles int
	every    time.Duration // 0 chooses
	history  time.Duration
	seed     uint64
	broker   string
}

// The values of -broker.
const (
	brokerAuto      = "auto"
	brokerNone      = "none"
	brokerMosquitto = "mosquitto"
)

const (
	maxVehicles = 100_000
	maxHistory  = 7 * 24 * time.Hour
	// rate is how many messages all vehicles together send in a second if -every is not given: a quarter of a core.
	rate = 1000
	// shortest is the shortest time between two messages of a vehicle.
	shortest = 2 * time.Second
)

// UsageError is a mistake on the command line.
type UsageError struct{ err error }

// Error implements error.
func (e *UsageError) Error() string { return e.err.Error() }

// Unwrap returns the mistake.
func (e *UsageError) Unwrap() error { return e.err }

// parse reads the command line. With -help it prints the help and returns flag.ErrHelp; other errors are *UsageErrors.
func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.dir, "dir", "./tidemark-fleet", "store everything in this `folder`, created if missing; a second start continues with it")
	flags.StringVar(&o.addr, "addr", "127.0.0.1:8091", "show the console at this `host:port`; port 0 chooses a free one")
	flags.IntVar(&o.vehicles, "vehicles", 200, "how `many` vehicles there are")
	flags.DurationVar(&o.every, "every", 0, "the `time` between two messages of a vehicle; 0 is 2s, or longer where all together would send more than 1000 a second")
	flags.DurationVar(&o.history, "history", 6*time.Hour, "fill up to so much `time` before the start, with fewer points; 0 fills nothing")
	flags.Uint64Var(&o.seed, "seed", 1, "another `number` gives other vehicles")
	flags.StringVar(&o.broker, "broker", brokerAuto, "the MQTT `broker`: mosquitto starts that program, none stores the messages in this process without one, auto takes mosquitto if it is installed")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stdout, "Simulated vehicles publish by MQTT, a bridge stores that, and a console shows it live: the tour of Tidemark.")
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return o, err
	} else if err != nil {
		return o, &UsageError{err}
	}
	if flags.NArg() > 0 {
		return o, &UsageError{fmt.Errorf("unexpected argument %q", flags.Arg(0))}
	}
	if err := o.check(); err != nil {
		return o, &UsageError{err}
	}
	if o.every == 0 {
		o.every = max(shortest, time.Duration(o.vehicles)*time.Second/rate)
	}
	return o, nil
}

func (o *options) check() error {
	host, _, err := net.SplitHostPort(o.addr)
	switch {
	case o.dir == "":
		return errors.New("-dir is empty; want a folder")
	case err != nil:
		return fmt.Errorf("-addr is %q; want host:port: %w", o.addr, err)
	case !edge.Loopback(host):
		return fmt.Errorf("-addr is %q; want an address of this machine only, such as 127.0.0.1:8091: the tour is not a service for others", o.addr)
	case o.vehicles < 1 || o.vehicles > maxVehicles:
		return fmt.Errorf("-vehicles is %d; want 1 to %d", o.vehicles, maxVehicles)
	case o.every < 0 || o.every > 0 && o.every < 100*time.Millisecond || o.every > time.Hour:
		return fmt.Errorf("-every is %v; want 100ms to 1h, or 0", o.every)
	case o.history < 0 || o.history > maxHistory:
		return fmt.Errorf("-history is %v; want 0 to %v", o.history, maxHistory)
	case o.broker != brokerAuto && o.broker != brokerNone && o.broker != brokerMosquitto:
		return fmt.Errorf("-broker is %q; want %s, %s or %s", o.broker, brokerAuto, brokerNone, brokerMosquitto)
	}
	return nil
}
