package main

import (
	"time"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/tsdb"
)

// timeFlag returns a flag for a time: RFC 3339, or a date or a time without an offset, which are in the zone of --zone,
// or in UTC.
func timeFlag(name, usage string) *cli.StringFlag {
	return &cli.StringFlag{
		Name: name, Usage: usage + ", as 2026-11-01T12:00:00Z, or 2026-11-01 in UTC or --zone",
		Validator: func(text string) error {
			_, err := aggregate.ParseTime(text, time.UTC)
			return err
		},
	}
}

func requiredTime(name, usage string) *cli.StringFlag {
	f := timeFlag(name, usage)
	f.Required = true
	return f
}

const zoneName = "zone"

func zoneFlag() cli.Flag {
	return &cli.StringFlag{
		Name: zoneName, Usage: "the time `zone` of the days and of times without an offset, as Europe/Berlin", Value: "UTC",
		Validator: func(text string) error {
			_, err := time.LoadLocation(text)
			return err
		},
	}
}

// zoneOf returns the zone of --zone, or UTC for a command without it.
func zoneOf(c *cli.Command) *time.Location {
	zone, err := time.LoadLocation(c.String(zoneName)) // the flag has checked it, and the empty name is UTC
	if err != nil {
		return time.UTC
	}
	return zone
}

// timeOf returns the time of a flag, which has been checked; the zero time without it.
func timeOf(c *cli.Command, name string) time.Time {
	t, _ := aggregate.ParseTime(c.String(name), zoneOf(c))
	return t
}

// interval returns the interval from --from to --to.
func interval(c *cli.Command) tsdb.Interval {
	from, to := timeOf(c, "from"), timeOf(c, "to")
	switch {
	case c.IsSet("from") && c.IsSet("to"):
		return tsdb.Between(from, to)
	case c.IsSet("from"):
		return tsdb.Since(from)
	case c.IsSet("to"):
		return tsdb.Until(to)
	}
	return tsdb.AllTime()
}
