package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// options are the parsed command line.
type options struct {
	dir, addr, project, instance, heatmap string
}

// parse reads the command line. With -help it prints the help and returns flag.ErrHelp; other errors are UsageErrors.
func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	var remote bool
	flags := flag.NewFlagSet("emulator", flag.ContinueOnError)
	flags.StringVar(&o.dir, "dir", "./tidemark-data", "serve this `folder`, created if missing")
	flags.StringVar(&o.addr, "addr", "127.0.0.1:8087", "listen on this `host:port`; port 0 chooses a free one")
	flags.StringVar(&o.project, "project", embedded.Project, "offer the folder's tables under this `project`")
	flags.StringVar(&o.instance, "instance", embedded.Instance, "offer the folder's tables under this `instance`")
	flags.StringVar(&o.heatmap, "heatmap", "", "record which row keys clients use, and write the recording of the last hour to this `file` at the end, for tidectl heatmap")
	flags.BoolVar(&remote, "allow-remote", false, "listen on addresses that other machines reach, without any authentication")

	if _, err := app.Parse(flags, args, stdout, "Serves a folder as a Bigtable to cbt and to Bigtable clients in any language."); err != nil {
		return o, err
	}
	host, _, err := net.SplitHostPort(o.addr)
	switch {
	case o.project == "" || o.instance == "" || strings.Contains(o.project+o.instance, "/"):
		return o, app.Usage(fmt.Errorf("-project is %q and -instance is %q; want names without a slash", o.project, o.instance))
	case o.dir == "":
		return o, app.Usage(errors.New("-dir is empty; want a folder"))
	case err != nil:
		return o, app.Usage(fmt.Errorf("-addr is %q; want host:port: %w", o.addr, err))
	case !remote && !edge.Loopback(host):
		return o, app.Usage(fmt.Errorf("-addr %s can be reached from other machines, and there is no authentication; "+
			"-allow-remote takes that risk", o.addr))
	}
	return o, nil
}
