package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

const clockTime = "15:04:05.000"

// printEarlier prints how many points earlier runs stored.
func printEarlier(ctx context.Context, stdout io.Writer, customers []customer) error {
	var count int
	var first, last time.Time
	for _, c := range customers {
		for _, d := range c.devices {
			// Range streams: a month of points takes no more memory than one point.
			for p, err := range c.repo.Range(ctx, d.entity, tsdb.AllTime()) {
				if err != nil {
					return fmt.Errorf("count the points of earlier runs: %w", err)
				}
				count++
				if first.IsZero() || p.Time.Before(first) {
					first = p.Time
				}
				if p.Time.After(last) {
					last = p.Time
				}
			}
		}
	}
	if count == 0 {
		fmt.Fprintln(stdout, "Found     no points of earlier runs")
		return nil
	}
	fmt.Fprintf(stdout, "Found     %d points of earlier runs, the first of %s, the last %v ago\n",
		count, first.Local().Format(time.DateTime), time.Since(last).Round(time.Second))
	return nil
}

// printLatest prints the newest point of each device.
func printLatest(ctx context.Context, stdout io.Writer, customers []customer, _ time.Time) error {
	fmt.Fprintln(stdout, "\nLatest: the newest point of each device")
	for _, c := range customers {
		for _, d := range c.devices {
			p, err := c.repo.Latest(ctx, d.entity)
			switch {
			case errors.Is(err, tsdb.ErrNotFound):
				fmt.Fprintf(stdout, "  %-6s %-7s nothing\n", c.id, d.name)
			case err != nil:
				return fmt.Errorf("latest of %s: %w", d.name, err)
			default:
				fmt.Fprintf(stdout, "  %-6s %-7s %s  %v\n", c.id, d.name, p.Time.Local().Format(clockTime), p.Value)
			}
		}
	}
	return nil
}

// printLastTen prints the last ten points of one device.
func printLastTen(ctx context.Context, stdout io.Writer, customers []customer, _ time.Time) error {
	c := customers[0]
	d := c.devices[0]
	points, err := c.repo.LatestN(ctx, d.entity, 10)
	if err != nil {
		return fmt.Errorf("last ten of %s: %w", d.name, err)
	}
	fmt.Fprintf(stdout, "\nLatestN: the last %d of %s's %s, newest first\n", len(points), c.id, d.name)
	for _, p := range points {
		fmt.Fprintf(stdout, "  %s  %v  %s\n", p.Time.Local().Format(clockTime), p.Value, p.Value.bar())
	}
	return nil
}

// printRange sums up the points of this run, device by device.
func printRange(ctx context.Context, stdout io.Writer, customers []customer, start time.Time) error {
	fmt.Fprintf(stdout, "\nRange: every point since %s\n", start.Format(clockTime))
	for _, c := range customers {
		for _, d := range c.devices {
			var count int
			var low, sum, high float64
			for p, err := range c.repo.Range(ctx, d.entity, tsdb.Since(start), tsdb.OldestFirst) {
				if err != nil {
					return fmt.Errorf("range of %s: %w", d.name, err)
				}
				if count == 0 {
					low, high = p.Value.Used, p.Value.Used
				}
				low, high = min(low, p.Value.Used), max(high, p.Value.Used)
				sum += p.Value.Used
				count++
			}
			if count == 0 {
				fmt.Fprintf(stdout, "  %-6s %-7s nothing\n", c.id, d.name)
				continue
			}
			fmt.Fprintf(stdout, "  %-6s %-7s %5d points   min %7.2f   mean %7.2f   max %7.2f\n",
				c.id, d.name, count, low, sum/float64(count), high)
		}
	}
	return nil
}

// printWall reads each tenant's devices as the other tenant, with the same entities.
func printWall(ctx context.Context, stdout io.Writer, customers []customer, _ time.Time) error {
	fmt.Fprintln(stdout, "\nErrNotFound: what each tenant sees of the other's devices")
	for _, c := range customers {
		for _, other := range customers {
			if other.id == c.id {
				continue
			}
			for _, d := range other.devices {
				_, err := c.repo.Latest(ctx, d.entity)
				if err == nil {
					return fmt.Errorf("%s sees the %s of %s", c.id, d.name, other.id)
				}
				if !errors.Is(err, tsdb.ErrNotFound) {
					return fmt.Errorf("%s asks for the %s of %s: %w", c.id, d.name, other.id, err)
				}
				fmt.Fprintf(stdout, "  %-6s asks for %-7s %v\n", c.id, d.name, err)
			}
		}
	}
	return nil
}

// String returns the reading as text: use, total, unit and share.
func (r Reading) String() string {
	return fmt.Sprintf("%7.2f of %7.2f %-5s %4.0f %%", r.Used, r.Total, r.Unit, 100*r.share())
}

// bar draws the reading's share, twenty characters wide.
func (r Reading) bar() string {
	const width = 20
	full := int(min(r.share(), 1)*width + 0.5)
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

// share is how much of the total is in use. It may be over 1.
func (r Reading) share() float64 {
	if r.Total <= 0 {
		return 0
	}
	return max(r.Used/r.Total, 0)
}
