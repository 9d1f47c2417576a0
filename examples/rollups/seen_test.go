package main

import (
	"bytes"
	"context"
	"strings"

	"github.com/tidemark-go/tidemark/examples/internal/dashtest"
)

// watched is the output of the program. It reads the program's metrics after each pass of the worker.
type watched struct {
	bytes.Buffer
	ctx  context.Context
	url  string
	seen *dashtest.Scrapes
}

func (w *watched) Write(text []byte) (int, error) {
	n, _ := w.Buffer.Write(text)
	for line := range strings.Lines(string(text)) {
		if url, ok := strings.CutPrefix(line, "Metrics "); ok {
			w.url = strings.TrimSpace(url)
		}
		if strings.HasPrefix(line, "Worker ") {
			if err := w.seen.Scrape(w.ctx, w.url); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}
