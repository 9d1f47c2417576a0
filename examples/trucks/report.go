package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

func (s summary) print(out io.Writer, name string, took time.Duration) {
	fmt.Fprintf(out, "Stored    %d points of %d lines of %s in %v\n", s.points, s.lines, name, took.Round(time.Millisecond))
	if s.nameless > 0 {
		fmt.Fprintf(out, "          %d lines do not say which truck they are of\n", s.nameless)
	}
	switch s.unread {
	case 0:
	case 1:
		fmt.Fprintln(out, "          Left out 1 value that is no number")
	default:
		fmt.Fprintf(out, "          Left out %d values that are no numbers\n", s.unread)
	}
	fmt.Fprintf(out, "Now       %s, the newest time in the data\n", s.now.Format(time.DateTime))
}

const row = "  %-6s %-10s %s  "

// rowOf prints the first columns of every table.
func rowOf(out io.Writer, e tsdb.Entity, t time.Time) {
	parts := e.Parts()
	fmt.Fprintf(out, row, parts[0], parts[1], t.Format(time.TimeOnly))
}

func printTruck(ctx context.Context, out io.Writer, d *data, o options, _ time.Time) error {
	fmt.Fprintf(out, "\nWhere is %s?\n", o.truck)
	truck, ok := d.truck(o.truck)
	if !ok {
		fmt.Fprintln(out, "  there is no such truck")
		return nil
	}
	p, err := d.whereIs(ctx, truck)
	switch {
	case errors.Is(err, tsdb.ErrNotFound):
		fmt.Fprintln(out, "  it has sent no location")
		return nil
	case err != nil:
		return fmt.Errorf("the location of %s: %w", o.truck, err)
	}
	rowOf(out, p.Entity, p.Time)
	fmt.Fprintf(out, "%9.5f %10.5f\n", p.Value.Lat, p.Value.Long)
	return nil
}

func printFleet(ctx context.Context, out io.Writer, d *data, o options, _ time.Time) error {
	fmt.Fprintf(out, "\nWhere are the trucks of fleet %s?\n", o.fleet)
	found, err := d.whereAre(ctx, o.fleet)
	if err != nil {
		return fmt.Errorf("the locations of %s: %w", o.fleet, err)
	}
	for _, p := range found {
		rowOf(out, p.Entity, p.Time)
		fmt.Fprintf(out, "%9.5f %10.5f\n", p.Value.Lat, p.Value.Long)
	}
	none(out, len(found))
	return nil
}

func printFuel(ctx context.Context, out io.Writer, d *data, o options, _ time.Time) error {
	fmt.Fprintf(out, "\nWhich trucks have less than %g %% of their fuel?\n", 100*o.fuel)
	found, err := d.lowOnFuel(ctx, o.fuel)
	if err != nil {
		return fmt.Errorf("fuel: %w", err)
	}
	for _, p := range found {
		rowOf(out, p.Entity, p.Time)
		fmt.Fprintf(out, "%5.1f %%\n", 100*p.Value)
	}
	none(out, len(found))
	return nil
}

func printStanding(ctx context.Context, out io.Writer, d *data, o options, now time.Time) error {
	fmt.Fprintf(out, "\nWhich trucks have stood still for %v?\n", o.span)
	found, err := d.stoodStill(ctx, now, o.span, o.speed)
	if err != nil {
		return fmt.Errorf("velocities: %w", err)
	}
	for _, m := range found {
		parts := m.truck.Parts()
		fmt.Fprintf(out, "  %-6s %-10s mean velocity %.2f of %d readings\n", parts[0], parts[1], m.value, m.of)
	}
	none(out, len(found))
	return nil
}

func printLoads(ctx context.Context, out io.Writer, d *data, _ options, _ time.Time) error {
	fmt.Fprintln(out, "\nHow loaded are the trucks of each fleet, on average?")
	fleets, err := d.averageLoads(ctx, tsdb.AllTime())
	if err != nil {
		return fmt.Errorf("loads: %w", err)
	}
	for _, f := range fleets {
		fmt.Fprintf(out, "  %-6s %3d trucks %8d readings  %5.1f %%\n", f.fleet, f.trucks, f.of, 100*f.value)
	}
	none(out, len(fleets))
	return nil
}

func none(out io.Writer, found int) {
	if found == 0 {
		fmt.Fprintln(out, "  none")
	}
}
