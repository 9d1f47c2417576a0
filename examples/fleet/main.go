// Fleet is the tour of Tidemark. Simulated vehicles publish by MQTT; a bridge stores what they send; rollups follow;
// and a console shows it live at an address that the program prints.
//
//	go run ./examples/fleet
//	go run ./examples/fleet -vehicles 10000
//
// Package tour has the program.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/tidemark-go/tidemark/examples/fleet/tour"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := tour.Run(ctx, os.Args[1:], tour.Streams{Out: os.Stdout, Err: os.Stderr, Release: stop})
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintf(os.Stderr, "fleet: %v\n", err)
	if _, ok := errors.AsType[*tour.UsageError](err); ok {
		fmt.Fprintln(os.Stderr, "-help lists the flags")
		os.Exit(2)
	}
	os.Exit(1)
}
