package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// options are the parsed command line.
type options struct {
	cloud         bool
	dir           string
	length, every time.Duration
}

// where describes where the points are stored.
func (o options) where() string {
	emulator := os.Getenv("BIGTABLE_EMULATOR_HOST")
	switch {
	case !o.cloud:
		return fmt.Sprintf("the folder %s, embedded in this process", o.dir)
	case emulator != "":
		return "the Bigtable emulator at " + emulator
	}
	return "Cloud Bigtable"
}

// usageError is a mistake on the command line.
type usageError struct{ error }

// parse reads the command line. With -help it prints the help and returns flag.ErrHelp; other errors are usageErrors.
func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&o.cloud, "cloud", false,
		"store the points on Cloud Bigtable, in the table that TIDEMARK_PROJECT, TIDEMARK_INSTANCE and TIDEMARK_TABLE name")
	flags.StringVar(&o.dir, "dir", "./tidemark-data", "store the points in this `folder`, created if missing")
	flags.DurationVar(&o.length, "for", 5*time.Second, "how long to sample")
	flags.DurationVar(&o.every, "every", 250*time.Millisecond, "how often to sample, 10ms or more")

	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stdout, "Samples this machine as devices of two tenants, then reads the points back.")
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return o, err
	} else if err != nil {
		return o, usageError{err}
	}

	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	switch {
	case flags.NArg() > 0:
		return o, usageError{fmt.Errorf("unexpected argument %q", flags.Arg(0))}
	case o.cloud && given["dir"]:
		return o, usageError{errors.New("-cloud and -dir exclude each other")}
	case o.dir == "":
		return o, usageError{errors.New("-dir is empty; want a folder")}
	case o.length <= 0:
		return o, usageError{fmt.Errorf("-for is %v; want above 0", o.length)}
	case o.every < 10*time.Millisecond:
		return o, usageError{fmt.Errorf("-every is %v; want 10ms or more", o.every)}
	}
	return o, nil
}
