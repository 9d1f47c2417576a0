package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
)

// importFile stores the lines of a file, or of standard input if its name is "-", and prints the result.
func importFile(ctx context.Context, o options, in *ingester, std streams) error {
	r, closer, err := openFile(o.file, std)
	if err != nil {
		return err
	}
	defer closer()
	lines, err := unpack(r)
	if err != nil {
		return fmt.Errorf("read %s: %w", o.file, err)
	}
	begin := time.Now()
	// Ctrl-C ends the reading; what has been read by then is still stored.
	rep, err := in.ingest(tenant.NewContext(context.WithoutCancel(ctx), o.tenant), o.tenant, interruptible{ctx, lines}, inbound.Clock{Unit: o.unit, Now: begin.Truncate(o.unit)}, 0)
	took := time.Since(begin)
	closer()

	fmt.Fprintf(std.out, "Read      %s for %s in %v\n", o.file, o.tenant, took.Round(time.Millisecond))
	rep.print(std.out)
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

// openFile returns the bytes of a file, with a progress bar on a terminal. The closer may be called twice.
func openFile(name string, std streams) (io.Reader, func(), error) {
	if name == "-" {
		return std.in, func() {}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	if info.IsDir() {
		return nil, nil, errors.Join(fmt.Errorf("%s is a folder; want a file", name), f.Close())
	}
	closer := func() { _ = f.Close() }
	if !isTerminal(std.err) {
		return f, closer, nil
	}
	bar := progressbar.NewOptions64(info.Size(),
		progressbar.OptionSetWriter(std.err),
		progressbar.OptionSetDescription("Reading"),
		progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetWidth(40),
		progressbar.OptionClearOnFinish(),
	)
	reader := progressbar.NewReader(f, bar)
	return &reader, func() {
		_ = bar.Exit()
		_ = f.Close()
	}, nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// unpack decompresses gzip, and passes on anything else.
func unpack(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	magic, err := b.Peek(2)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if len(magic) < 2 || magic[0] != 0x1f || magic[1] != 0x8b {
		return b, nil
	}
	return gzip.NewReader(b)
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
