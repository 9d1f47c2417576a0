// Tidectl is an operator's command line for a Tidemark store: listing, onboarding and erasing tenants, usage, exports,
// imports, and retention. It reads the store's catalogue, so it works on datasets that it was not compiled with.
//
//	go run ./examples/apps/tidectl --dir ./tidemark-data tenants list
//	go run ./examples/apps/tidectl --project p --instance i --table iot tenants export acme --file acme.ndjson
//	go run ./examples/apps/tidectl --dir ./tidemark-data retention plan --set d90=maxage=30d
//
// README.md lists the commands and exit codes. In this folder main.go runs the command line, app.go opens the store,
// and each command has its own file.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/tidemark-go/tidemark/examples/internal/adopt"
	"github.com/tidemark-go/tidemark/examples/internal/infile"
	"github.com/tidemark-go/tidemark/internal/heat"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
)

// streams are the process's own.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// The exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitRefused     = 3 // not confirmed, or not allowed: nothing was done
	exitDamaged     = 4 // a file that is not a complete export or recording, or that cannot be unpacked
	exitChanges     = 5 // with --detailed-exitcode: a plan with changes, drift, or a finding; a lab that is not as expected; a foreign table that does not fit or differs
	exitInterrupted = 130
)

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

var (
	errRefused     = errors.New("not confirmed, nothing was done")
	errInterrupted = errors.New("interrupted")
	errChanges     = errors.New("the table differs from what is wanted")
)

// exitCode returns the exit code for an error.
func exitCode(err error) int {
	_, usage := errors.AsType[usageError](err)
	switch {
	case err == nil:
		return 0
	case usage:
		return exitUsage
	case errors.Is(err, errRefused), errors.Is(err, retention.ErrNotAllowed), errors.Is(err, tenants.ErrImpossible):
		return exitRefused
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, errChanges), errors.Is(err, errFound), errors.Is(err, errUnexpected),
		errors.Is(err, errUnfitRows), errors.Is(err, errDifferent), errors.Is(err, adopt.ErrUnfit):
		return exitChanges
	case errors.Is(err, transfer.ErrDamaged), errors.Is(err, transfer.ErrVersion), errors.Is(err, heat.ErrDamaged), errors.Is(err, heat.ErrVersion),
		errors.Is(err, infile.ErrDamaged):
		return exitDamaged
	}
	return exitFailed
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the next Ctrl-C ends the program at once
	err := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s %s\n", inkOf(os.Stderr).red("tidectl:"), clean(err.Error()))
	}
	os.Exit(exitCode(err))
}
