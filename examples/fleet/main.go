// Fleet is the tour of Tidemark. Simulated vehicles send; their messages are stored; rollups follow; and a console shows
// it live at an address that the program prints.
//
//	go run ./examples/fleet
//	go run ./examples/fleet -vehicles 10000
//
// Package tour has the program.
package main

import (
	"context"
	"os"

	"github.com/tidemark-go/tidemark/examples/fleet/tour"
	"github.com/tidemark-go/tidemark/examples/internal/app"
)

func main() {
	app.Main("fleet", func(ctx context.Context, args []string, _ func()) error {
		return tour.Run(ctx, args, tour.Streams{Out: os.Stdout, Err: os.Stderr})
	})
}
