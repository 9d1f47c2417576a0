// Package app holds what the apps share: the command line, the place of the points, the life of a server. Each app adds
// what it is for.
package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
)

// UsageError is a mistake on the command line.
type UsageError struct{ error }

// Usage returns err as a UsageError.
func Usage(err error) error { return UsageError{err} }

func (e UsageError) Unwrap() error { return e.error }

// Main runs an app until it ends, or until Ctrl-C ends its context. After stop, a second Ctrl-C ends the program at
// once; stop is called soon after the first one. The program ends with status 2 after a UsageError, and with 1 after
// another error.
func Main(name string, run func(ctx context.Context, args []string, stop func()) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], stop)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	if _, ok := errors.AsType[UsageError](err); ok {
		fmt.Fprintf(os.Stderr, "%s: %v; -help lists the flags\n", name, err)
		os.Exit(2)
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	os.Exit(1)
}

// Parse parses a command line that has only flags, and returns which were given. With -help it prints the summary and
// the flags, and returns flag.ErrHelp; other errors are UsageErrors.
func Parse(flags *flag.FlagSet, args []string, stdout io.Writer, summary string) (given map[string]bool, err error) {
	flags.SetOutput(io.Discard)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stdout, summary)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return nil, err
	} else if err != nil {
		return nil, UsageError{err}
	}
	if flags.NArg() > 0 {
		return nil, UsageError{fmt.Errorf("unexpected argument %q", flags.Arg(0))}
	}
	given = map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return given, nil
}

// CheckAddr checks the address of a flag. Remote allows addresses that other machines reach.
func CheckAddr(name, addr string, remote bool) error {
	host, _, err := net.SplitHostPort(addr)
	switch {
	case err != nil:
		return fmt.Errorf("-%s is %q; want host:port: %w", name, addr, err)
	case !remote && !edge.Loopback(host):
		return fmt.Errorf("-%s %s can be reached from other machines, and tokens would travel in the clear; "+
			"-allow-remote takes that risk, a proxy with TLS in front does not need it", name, addr)
	}
	return nil
}

// Listen listens on the address of a flag. Apps do so before they open the store, which takes longer: a port in use is
// reported at once.
func Listen(name, addr string) (net.Listener, error) {
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s; choose another address with -%s: %w", addr, name, err)
	}
	return lis, nil
}
