package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/examples/internal/infile"
	"github.com/tidemark-go/tidemark/tenant"
)

// importFile stores the lines of a file, calls its closer, and prints the result.
func importFile(ctx context.Context, o options, in *ingester, lines io.Reader, closer func(), out io.Writer) error {
	begin := time.Now()
	// Ctrl-C ends the reading; what has been read by then is still stored.
	rep, err := in.ingest(tenant.NewContext(context.WithoutCancel(ctx), o.tenant), o.tenant, interruptible{ctx, lines}, inbound.Clock{Unit: o.unit, Now: begin.Truncate(o.unit)}, 0)
	took := time.Since(begin)
	closer()

	fmt.Fprintf(out, "Read      %s for %s in %v\n", o.file, o.tenant, took.Round(time.Millisecond))
	rep.print(out)
	switch {
	case errors.Is(err, errInterrupted):
		return fmt.Errorf("%w; what was not read is not stored", errInterrupted)
	case err != nil:
		return err
	case rep.refused > 0:
		return fmt.Errorf("%d of %d lines are not stored: %s", rep.refused, rep.lines, rep.why())
	}
	return nil
}

// openFile returns the unpacked bytes of a file, or of standard input if its name is "-", with a progress bar on a
// terminal. The closer may be called twice.
func openFile(name string, std streams) (io.Reader, func(), error) {
	f, err := infile.Open(name, std.in)
	if err != nil {
		return nil, nil, err
	}
	if f.Size < 0 || !isTerminal(std.err) {
		return f, func() { _ = f.Close() }, nil
	}
	bar := progressbar.NewOptions64(f.Size,
		progressbar.OptionSetWriter(std.err),
		progressbar.OptionSetDescription("Reading"),
		progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetWidth(40),
		progressbar.OptionClearOnFinish(),
	)
	return watched{f, bar}, func() {
		_ = bar.Exit()
		_ = f.Close()
	}, nil
}

// watched shows how much of a file is read.
type watched struct {
	f   *infile.File
	bar *progressbar.ProgressBar
}

func (s watched) Read(p []byte) (int, error) {
	n, err := s.f.Read(p)
	_ = s.bar.Set64(s.f.At())
	return n, err
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

var errInterrupted = errors.New("interrupted")

// interruptible fails when ctx has ended.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i interruptible) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		return 0, errInterrupted
	}
	return i.r.Read(p)
}
