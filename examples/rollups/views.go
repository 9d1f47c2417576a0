package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// View is a view of an advertisement. It is counted and not stored.
type View struct{ Cents float64 }

var (
	daily = rollup.MustDefine("day", window.Days(1), []rollup.Measure[View]{
		{Name: "cents", Of: func(v View) (float64, bool) { return v.Cents, true }, Decimals: 2, Max: 1000, Aggregates: window.Sum},
	}, rollup.Options{Mode: rollup.ByStream})

	views = tsdb.MustDefine("views", tsdb.Key("address"), codec.JSON[View](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{daily}})
)

const (
	addresses  = 50
	lastViews  = 1000 // of the process that is killed
	firstViews = 400  // of this one
)

// some returns n views, of each address in turn.
func some(n int) []tsdb.Point[View] {
	out := make([]tsdb.Point[View], n)
	for i := range out {
		out[i] = tsdb.Point[View]{Entity: address(i % addresses), Time: to.AddDate(0, 0, -1), Value: View{Cents: 1.25}}
	}
	return out
}

func address(i int) tsdb.Entity { return tsdb.NewEntity(fmt.Sprintf("192.0.2.%d", i)) }

// addAndDie adds views and kills its process once they are in the journal, at any stage of their delivery.
func addAndDie(ctx context.Context, store *tsdb.Store, id tenant.ID, o options) error {
	w, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: o.journal}})
	if err != nil {
		return err
	}
	if _, err := rollup.NewAdder(daily, views.For(store, id), w).AddMany(ctx, some(lastViews)); err != nil {
		return err
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Kill(); err != nil {
		return err
	}
	select {}
}

// countViews lets another process add views and be killed, adds some more through the same journal, and counts.
func countViews(ctx context.Context, stdout io.Writer, o options) error {
	before := int64(0)
	if err := withStore(ctx, o, func(store *tsdb.Store, id tenant.ID) error {
		// A run that was interrupted may have left some in the journal: a writer that is opened and closed delivers them.
		w, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: o.journal}})
		if err != nil {
			return err
		}
		if err := w.Close(ctx); err != nil {
			return err
		}
		before, err = total(ctx, store, id)
		return err
	}); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, self, "-doomed", "-dir", o.dir)
	child.Stderr = os.Stderr
	if err := child.Run(); ctx.Err() != nil {
		return context.Cause(ctx)
	} else if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Exited() && runtime.GOOS != "windows" {
		return fmt.Errorf("the process that was to be killed ended by itself: %v", err)
	}
	fmt.Fprintf(stdout, "\nViews     %d before; a process has added %d, and was killed\n", before, lastViews)
	return withStore(ctx, o, func(store *tsdb.Store, id tenant.ID) error {
		w, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: o.journal}})
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "          %d of them are still in its journal, and some may be counted already\n", w.Stats().Journal.Points)
		_, err = rollup.NewAdder(daily, views.For(store, id), w).AddMany(ctx, some(firstViews))
		if err := errors.Join(err, w.Close(ctx)); err != nil { // Close: all is delivered
			return err
		}
		after, err := total(ctx, store, id)
		if err == nil && after != before+lastViews+firstViews {
			return fmt.Errorf("%d views count, and %d were added to %d", after, lastViews+firstViews, before)
		}
		fmt.Fprintf(stdout, "          %d added by this process; %d count, each once\n", firstViews, after)
		return err
	})
}

// total returns the number of views of all addresses.
func total(ctx context.Context, store *tsdb.Store, id tenant.ID) (n int64, err error) {
	all := make([]tsdb.Entity, addresses)
	for i := range all {
		all[i] = address(i)
	}
	in := tsdb.Between(to.Add(-48*time.Hour), to)
	answers, err := rollup.For(daily, views.For(store, id)).Many(ctx, all, in, tsdb.OldestFirst)
	for _, a := range answers {
		for _, b := range a.Buckets {
			n += b.Points
		}
	}
	return n, err
}
