package rollup

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/nest"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// sample is a time at which no zone changes its clock.
var sample = time.Date(2024, 1, 3, 12, 0, 0, 0, time.UTC)

// width is how long a bucket usually is.
func (r *Rollup[T]) width() time.Duration { return widthOf(r.grid) }

func widthOf(g window.Grid) time.Duration { return g.Next(sample).Sub(g.Start(sample)) }

// tooWide is a width from 292 years on, at which the times of a bucket's numbers overflow: they count nanoseconds from
// its start.
const tooWide = time.Duration(math.MaxInt64)

// resolve replaces zero options by defaults and checks the options.
func (r *Rollup[T]) resolve() error {
	o := &r.opts
	if r.width() == tooWide {
		return invalid.New(tsdb.ErrInvalid, "width", r.grid.String(), "less than 292 years")
	}
	if r.width() < time.Second || r.width()%time.Millisecond != 0 {
		return invalid.New(tsdb.ErrInvalid, "width", r.width().String(), "at least 1s, in whole milliseconds")
	}
	if zone := r.grid.Start(sample).Location(); zone != time.UTC {
		named, err := time.LoadLocation(zone.String())
		if err != nil || zone == time.Local || zone.String() == "" {
			return invalid.New(tsdb.ErrInvalid, "zone", invalid.Quote(zone.String()), "a zone name that time.LoadLocation knows, so that other programs find it")
		}
		if at, ok := sameClock(zone, named); !ok {
			return invalid.New(tsdb.ErrInvalid, "zone", invalid.Quote(zone.String())+" at "+instant.Text(at.In(zone)), "the zone that time.LoadLocation returns for this name, "+instant.Text(at.In(named)))
		}
	}
	if int(o.Mode) >= len(modeNames) {
		return invalid.New(tsdb.ErrInvalid, "Mode", o.Mode.text(), "Derived, ByStream, ByMessage or Once")
	}
	if o.From != "" && (o.Mode != Derived || !catalog.ShortName(o.From) || o.From == r.name) {
		return invalid.New(tsdb.ErrInvalid, "From", invalid.Quote(o.From), "the name of another rollup, and Mode Derived")
	}
	if o.Lateness < 0 || o.Lateness%time.Millisecond != 0 {
		return invalid.New(tsdb.ErrInvalid, "Lateness", o.Lateness.String(), "0 for the default, or more, in whole milliseconds")
	}
	o.Lateness = cmp.Or(o.Lateness, defaultLateness)
	if o.Retention.Name == "" && o.Retention.Policy.Equal(gc.Never()) {
		o.Retention = gc.Class{Name: "keep", Policy: gc.Never()}
	}
	if err := o.Retention.Validate(); err != nil {
		return fmt.Errorf("retention class %s: %w", invalid.Quote(o.Retention.Name), err)
	}
	if _, _, err := o.Retention.Policy.PointAge(); err != nil {
		return fmt.Errorf("retention class %s: %w", invalid.Quote(o.Retention.Name), err)
	}
	if err := r.resolveMessages(); err != nil {
		return err
	}
	return r.resolveSpan()
}

// sameClock reports whether two zones show the same time on sampled days. If not, it returns a time at which they
// differ.
func sameClock(a, b *time.Location) (at time.Time, ok bool) {
	ok = true
	nest.Samples(window.Days(1), func(day time.Time) bool {
		_, offsetA := day.In(a).Zone()
		_, offsetB := day.In(b).Zone()
		at, ok = day, offsetA == offsetB
		return ok
	})
	return at, ok
}

func (r *Rollup[T]) resolveSpan() error {
	const day = 24 * time.Hour
	width := r.width()
	if r.opts.Span == 0 {
		switch {
		case width < 2*time.Second:
			r.opts.Span = time.Hour / 2
		case width < 45*time.Second:
			r.opts.Span = time.Hour
		case width < time.Hour:
			r.opts.Span = day
		case width < 23*time.Hour:
			r.opts.Span = 30 * day
		default:
			r.opts.Span = max(400*day, width)
		}
		if r.opts.Mode == ByStream { // a row knows at most 1,000 journals
			r.opts.Span = min(r.opts.Span, max(day, width))
		}
		r.opts.Span = (r.opts.Span + r.step() - 1).Truncate(r.step())
	}
	step := r.step()
	if given := r.opts.Span; given%step != 0 || given < width || given/width > maxBuckets {
		return invalid.New(tsdb.ErrInvalid, "Span", given.String(), fmt.Sprintf("a multiple of %v, 1 to %d times the width of a bucket (%v)", step, maxBuckets, width))
	}
	if r.opts.Mode == Derived && r.opts.Span/step > dataset.MaxSlots {
		return invalid.New(tsdb.ErrInvalid, "Span", r.opts.Span.String(), fmt.Sprintf("at most %v in a derived rollup, and no wider buckets", dataset.MaxSlots*step))
	}
	return nil
}

// step returns the time that one mark covers: a bucket if all are equally long, else a time that no bucket is shorter
// than.
func (r *Rollup[T]) step() time.Duration {
	width := r.width()
	at := r.grid.Start(sample)
	if at.Location() == time.UTC && at.UnixMilli()%width.Milliseconds() == 0 && width <= 24*time.Hour {
		return width
	}
	return min(zoneStep, width)
}
