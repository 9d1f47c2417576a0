package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/mem"

	"github.com/tidemark-go/tidemark/tsdb"
)

// sample reads and stores all devices, now and every o.every, until o.length has passed or ctx ends.
func sample(ctx context.Context, stdout io.Writer, customers []customer, o options) error {
	timeout, cancel := context.WithTimeout(ctx, o.length)
	defer cancel()
	ticker := time.NewTicker(o.every)
	defer ticker.Stop()

	// Ctrl-C does not interrupt the writes of a tick. The store's timeouts bound each call.
	ctx = context.WithoutCancel(ctx)
	var stored int
	var failures []string
	for tick := 0; timeout.Err() == nil; tick++ {
		if tick%60 == 0 {
			fmt.Fprint(stdout, "\n          ")
		}
		now := time.Now()
		for _, c := range customers {
			points, err := c.read(ctx, now)
			if err != nil && !slices.Contains(failures, err.Error()) {
				failures = append(failures, err.Error())
			}
			// One request for all points, and one outcome for each. A point that cannot be stored does not affect the others.
			outcomes, err := c.repo.PutMany(ctx, points)
			for _, outcome := range outcomes {
				if outcome.State == tsdb.Stored {
					stored++
				}
			}
			if err != nil {
				fmt.Fprintln(stdout)
				return fmt.Errorf("store the readings of %s: %w", c.id, err)
			}
		}
		fmt.Fprint(stdout, ".")

		select {
		case <-ticker.C:
		case <-timeout.Done():
		}
	}
	fmt.Fprintf(stdout, "\n          %d points stored\n", stored)
	for _, failure := range failures {
		fmt.Fprintf(stdout, "          %s\n", failure)
	}
	return nil
}

// read reads the customer's devices. Some systems do not report all of them: a device that cannot be read is left out, and
// the error names it.
func (c customer) read(ctx context.Context, now time.Time) ([]tsdb.Point[Reading], error) {
	var points []tsdb.Point[Reading]
	var errs []error
	for _, d := range c.devices {
		value, err := d.read(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("without the %s of %s: %w", d.name, c.id, err))
			continue
		}
		points = append(points, tsdb.Point[Reading]{Entity: d.entity, Time: now, Value: value})
	}
	return points, errors.Join(errs...)
}

const gib = 1 << 30

// readCPU reads how many processors were busy since the last call.
func readCPU(ctx context.Context) (Reading, error) {
	percent, err := cpu.PercentWithContext(ctx, 0, false)
	if err != nil {
		return Reading{}, err
	}
	if len(percent) == 0 {
		return Reading{}, errors.New("no processor times")
	}
	cores := float64(runtime.NumCPU())
	return Reading{Used: percent[0] / 100 * cores, Total: cores, Unit: "cores"}, nil
}

func readMemory(ctx context.Context) (Reading, error) {
	m, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return Reading{}, err
	}
	return Reading{Used: float64(m.Used) / gib, Total: float64(m.Total) / gib, Unit: "GiB"}, nil
}

// readLoad reads how many tasks wanted a processor in the last minute. They may be more than there are processors.
func readLoad(ctx context.Context) (Reading, error) {
	l, err := load.AvgWithContext(ctx)
	if err != nil {
		return Reading{}, err
	}
	return Reading{Used: l.Load1, Total: float64(runtime.NumCPU()), Unit: "cores"}, nil
}

// readDisk reads the disk that holds the current folder.
func readDisk(ctx context.Context) (Reading, error) {
	d, err := disk.UsageWithContext(ctx, ".")
	if err != nil {
		return Reading{}, err
	}
	return Reading{Used: float64(d.Used) / gib, Total: float64(d.Total) / gib, Unit: "GiB"}, nil
}
