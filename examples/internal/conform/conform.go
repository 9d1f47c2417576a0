package conform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Options says what is tested. Project and Instance are required.
type Options struct {
	Project, Instance string
	// Table names the scratch table. It must not exist. Empty is a new name.
	Table string
	// AppProfile is that of ordinary requests, ConditionalAppProfile that of conditional writes and additions; as in
	// tsdb.Config.
	AppProfile, ConditionalAppProfile string
	// Quick leaves out the cases with large requests, and has shorter timeouts.
	Quick bool
	// RemoveLeftovers deletes the tables that earlier runs have left, before the run.
	RemoveLeftovers bool
	// ClientOptions are for the connection to Cloud Bigtable, such as credentials.
	ClientOptions []option.ClientOption
	// DialOptions are added to each connection, below all that the run itself does.
	DialOptions []grpc.DialOption
	// Dial opens the connection, if it is not nil. The default dials Cloud Bigtable, or an emulator if
	// BIGTABLE_EMULATOR_HOST is set.
	Dial func(...grpc.DialOption) (*grpc.ClientConn, error)
	// Progress is called after each case, if it is not nil.
	Progress func(done, total int, last Result)
}

// test is one claim, and the code that looks at it.
type test struct {
	name, claim, source, want string
	// large means that the case sends megabytes.
	large bool
	// aggregates means that the case needs families that aggregate.
	aggregates bool
	// see returns what the service does. An error means that it cannot be known.
	see func(*env) (string, error)
}

// Results of a case.
const (
	AsExpected = "ok"
	Different  = "differs"
	Skipped    = "skipped" // Seen says why
	Failed     = "failed"  // it could not be known; Seen says why
)

// ErrLate is the error of a run that did not end in time.
var ErrLate = errors.New("the time of the run is over")

// The bounds of a run and of its parts. In a quick run they are those of quick.
const (
	runTimeout    = 15 * time.Minute
	caseTimeout   = time.Minute
	quickTimeout  = time.Minute
	quickCase     = 15 * time.Second
	caseAttempts  = 3
	RemoveTimeout = 15 * time.Second // in addition, for each table that is removed
)

// Run makes the scratch table, runs all cases and removes the table. A quick run ends within a minute, another one
// within a quarter of an hour, and RemoveTimeout: then the error matches ErrLate. The report has the cases that ended
// before an error, and names the others. It is nil only if nothing was run. An error of a single case is part of the
// report.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	if o.Project == "" || o.Instance == "" {
		return nil, errors.New("conform: a project and an instance are needed")
	}
	limit := runTimeout
	if o.Quick {
		limit = quickTimeout
	}
	late := fmt.Errorf("conform: %w: it is %v", ErrLate, limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	defer func() {
		if err != nil && !errors.Is(err, ErrLate) && context.Cause(ctx) == late {
			err = errors.Join(err, late)
		}
	}()
	e, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	defer e.close()
	report := newReport(o)
	defer func() { report.end(e.meter) }()
	if report.Leftovers, err = e.leftovers(ctx); err != nil {
		return nil, err
	}
	if o.RemoveLeftovers {
		for _, name := range report.Leftovers {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err := e.remove(ctx, name); err != nil {
				return nil, err
			}
		}
	}
	if report.Table, err = e.create(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.remove(ctx, report.Table)) }()
	all := slices.Concat(rowTests, writeTests, conditionalTests, aggregateTests, tokenTests, adminTests, viewTests, storeTests)
	for n, c := range all {
		r, ended := e.run(ctx, n, c)
		if !ended {
			for _, c := range all[n:] {
				report.NotRun = append(report.NotRun, c.name)
			}
			return report, fmt.Errorf("%w: %d of %d cases were not run", context.Cause(ctx), len(report.NotRun), len(all))
		}
		report.Results = append(report.Results, r)
		if o.Progress != nil {
			o.Progress(n+1, len(all), r)
		}
	}
	return report, nil
}

// run runs one case. If the service is not available, it tries again, with other rows. It reports false if ctx ended
// before the case did.
func (e *env) run(ctx context.Context, n int, c test) (r Result, ended bool) {
	r = Result{Name: c.name, Claim: c.claim, Source: c.source, Expected: c.want}
	switch {
	case ctx.Err() != nil:
		return r, false
	case c.large && e.o.Quick:
		r.Status, r.Seen = Skipped, "left out of a quick run"
		return r, true
	case c.aggregates && e.aggregates != nil:
		r.Status, r.Seen = Failed, "the instance refused families that aggregate: "+status.Convert(e.aggregates).Message()
		return r, true
	}
	for attempt := range caseAttempts {
		var err error
		func() {
			var cancel context.CancelFunc
			e.ctx, cancel = context.WithTimeout(ctx, e.caseTimeout())
			defer cancel()
			e.prefix = fmt.Sprintf("conform#%02d.%d#", n, attempt)
			r.Seen, err = c.see(e)
		}()
		var skip skipped
		switch {
		case errors.As(err, &skip):
			r.Status, r.Seen = Skipped, string(skip)
			return r, true
		case err == nil && r.Seen == c.want:
			r.Status = AsExpected
			return r, true
		case ctx.Err() != nil: // what was seen may follow from that
			return r, false
		case err == nil:
			r.Status = Different
		default:
			r.Status, r.Seen = Failed, oneLine(err.Error())
		}
		if !strings.Contains(r.Seen, codes.Unavailable.String()) {
			break
		}
	}
	return r, true
}

func (e *env) caseTimeout() time.Duration {
	if e.o.Quick {
		return quickCase
	}
	return caseTimeout
}

// skipped is the error of a case that does not apply, with the reason.
type skipped string

func (s skipped) Error() string { return string(s) }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
