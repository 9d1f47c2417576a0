package bt

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
)

// The waits between attempts: 25 ms at first, growing by half each time up to 2 s, each randomised by half in both
// directions.
const (
	firstWait  = 25 * time.Millisecond
	longestGap = 2 * time.Second
)

// retryable reports whether a call that ended with err may succeed when it is repeated. The caller must know that a
// repetition is harmless.
func retryable(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.Aborted, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Internal:
		return true
	}
	_, asked := retryInfo(err)
	return asked
}

// retryInfo returns the wait that the service asked for, if it did.
func retryInfo(err error) (time.Duration, bool) {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok && info.GetRetryDelay() != nil {
			return max(0, info.GetRetryDelay().AsDuration()), true
		}
	}
	return 0, false
}

// Retryable reports whether a call that ended with err may succeed when it is repeated, if a repetition is harmless.
func Retryable(err error) bool {
	return retryable(err) || errors.Is(err, errRowGone) || errors.Is(err, errNoAnswer)
}

// Delay returns the wait that the service asked for in err, or 0.
func Delay(err error) time.Duration {
	d, _ := retryInfo(err)
	return d
}

// longer returns the error for which the service asked for the longer wait.
func longer(a, b error) error {
	wantA, _ := retryInfo(a)
	wantB, _ := retryInfo(b)
	if a == nil || wantB > wantA {
		return b
	}
	return a
}

// Retry calls try until it is done or fails with an error that is not retryable, with waits in between, within the
// timeout of scans. It may call try several times, so try must be safe to repeat.
func (t *Table) Retry(ctx context.Context, try func(context.Context) (done bool, err error)) error {
	ctx, cancel := within(ctx, t.timeouts.Scan)
	defer cancel()
	var pause pauser
	for {
		done, err := try(ctx)
		if done && err == nil || err != nil && !retryable(err) {
			return ended(ctx, err)
		}
		if !pause.wait(ctx, err) {
			if err == nil {
				err = errors.New("tsdb: others were faster each time")
			}
			return ended(ctx, err)
		}
	}
}

// pauser waits between attempts. The zero pauser is ready to use.
type pauser struct{ b *backoff.ExponentialBackOff }

// wait waits before the attempt that follows one that ended with err. If ctx would end first, it returns false at once.
func (p *pauser) wait(ctx context.Context, err error) bool {
	if p.b == nil {
		p.b = backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(firstWait),
			backoff.WithMaxInterval(longestGap),
			backoff.WithMaxElapsedTime(0), // the deadline of ctx is the bound
		)
	}
	d := p.b.NextBackOff()
	if asked, ok := retryInfo(err); ok {
		d = max(d, asked)
	}
	if at, ok := ctx.Deadline(); ok && time.Until(at) <= d {
		return false
	}
	return ctxerr.Wait(ctx, d) == nil
}
