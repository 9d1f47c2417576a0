// Emulator serves a folder as a Bigtable over TCP, so that cbt and Bigtable clients in any language can read and write
// it. It is for development and for looking into a store of package embedded while its program is not running.
//
//	go run ./examples/apps/emulator -dir ./tidemark-data
//
// It prints the line that points clients to it; in another shell:
//
//	export BIGTABLE_EMULATOR_HOST=127.0.0.1:8087
//	cbt -project local -instance local ls
//	cbt -project local -instance local read tidemark count=3
//
// Stores of package embedded have their table, "tidemark", in the project and instance "local". -project and -instance
// offer it under other names, for programs that are configured with those, such as the quickstart with -cloud. The
// names are printed at the start. Any other names work too; each instance has its own tables. Ctrl-C waits for the
// calls in progress and closes the folder. Answered writes are on disk in any case. One process at a time may have a
// folder open.
//
// -heatmap FILE records which row keys clients use, in any language; "tidectl heatmap find FILE" says what a table
// cannot spread.
//
// There is no authentication: every program that reaches the port can read and delete everything. So it listens only on
// this machine, unless -allow-remote is set.
//
// This file runs the server, flags.go is the command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
)

func main() {
	app.Main("emulator", func(ctx context.Context, args []string, _ func()) error {
		o, err := parse(args, os.Stdout)
		if err != nil {
			return err
		}
		return run(ctx, o, os.Stdout)
	})
}

// run serves until ctx ends.
func run(ctx context.Context, o options, stdout io.Writer) error {
	lis, err := net.Listen("tcp", o.addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("another program listens on %s; choose another address with -addr: %w", o.addr, err)
	}
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", o.addr, err)
	}
	var recorder *heatmap.Recorder // records nothing while it is nil
	if o.heatmap != "" {
		if recorder, err = record(o.heatmap); err != nil {
			return errors.Join(err, lis.Close())
		}
	}
	server, err := embedded.NewServer(embedded.Options{Dir: o.dir, Project: o.project, Instance: o.instance, ServerOptions: recorder.ServerOptions()})
	if err != nil {
		return errors.Join(explain(o.dir, err), lis.Close())
	}
	fmt.Fprintf(stdout, "serving the tables of the folder %s as project %s, instance %s; Ctrl-C stops\n"+
		"export BIGTABLE_EMULATOR_HOST=%s\nexport TIDEMARK_PROJECT=%[2]s TIDEMARK_INSTANCE=%[3]s TIDEMARK_TABLE=tidemark\n",
		o.dir, o.project, o.instance, lis.Addr())
	err = server.Serve(ctx, lis)
	if recorder != nil { // also if Serve failed
		if bad := recorder.Recording().Save(o.heatmap); bad != nil {
			return errors.Join(err, fmt.Errorf("write the heatmap: %w", bad))
		}
		fmt.Fprintf(stdout, "wrote %s; tidectl heatmap shows it\n", o.heatmap)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "stopped")
	return nil
}

// record begins a recording. It writes an empty one, so that a file that cannot be written is an error at the start.
func record(file string) (*heatmap.Recorder, error) {
	recorder, err := heatmap.NewRecorder(heatmap.Options{})
	if err == nil {
		err = recorder.Recording().Save(file)
	}
	if err != nil {
		return nil, fmt.Errorf("-heatmap: %w", err)
	}
	return recorder, nil
}

// explain adds to the error what to do about a folder that does not open.
func explain(dir string, err error) error {
	switch {
	case errors.Is(err, tsdb.ErrLocked):
		return fmt.Errorf("another process has %s open; stop it first, or serve another folder with -dir: %w", dir, err)
	case errors.Is(err, tsdb.ErrDamaged):
		return fmt.Errorf("the files in %s are damaged, and nothing of them is served: %w", dir, err)
	}
	return fmt.Errorf("cannot open the folder %s: %w", dir, err)
}
