package tour

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/app"
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
	broker   *url.URL // nil for none
}

const (
	maxVehicles = 100_000
	maxHistory  = 7 * 24 * time.Hour
	// rate is how many messages all vehicles together send in a second if -every is not given: a quarter of a core.
	rate = 1000
	// shortest is the shortest time between two messages of a vehicle.
	shortest = 2 * time.Second
)

// parse reads the command line. With -help it prints the help and returns flag.ErrHelp; other errors are app.UsageErrors.
func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.StringVar(&o.dir, "dir", "./tidemark-fleet", "store everything in this `folder`, created if missing; a second start continues with it")
	flags.StringVar(&o.addr, "addr", "127.0.0.1:8091", "show the console at this `host:port`; port 0 chooses a free one")
	flags.IntVar(&o.vehicles, "vehicles", 200, "how `many` vehicles there are")
	flags.DurationVar(&o.every, "every", 0, "the `time` between two messages of a vehicle; 0 is 2s, or longer where all together would send more than 1000 a second")
	flags.DurationVar(&o.history, "history", 6*time.Hour, "fill up to so much `time` before the start, with fewer points; 0 fills nothing")
	flags.Uint64Var(&o.seed, "seed", 1, "another `number` gives other vehicles")
	flags.Func("broker", "publish to the MQTT broker at this `URL`, such as mqtt://127.0.0.1:1883; without it, messages are stored in this process", func(text string) (err error) {
		if o.broker, err = url.Parse(text); err != nil || o.broker.Scheme != "mqtt" || o.broker.Host == "" {
			return errors.New("want mqtt://host:port")
		}
		return nil
	})
	if _, err := app.Parse(flags, args, stdout, "Simulated vehicles send, their messages are stored, and a console shows it live: the tour of Tidemark."); err != nil {
		return o, err
	}
	if err := o.check(); err != nil {
		return o, app.Usage(err)
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
	}
	return nil
}
