package bt

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The waits between attempts: 25 ms, half as long again each time up to 2 s, each spread by half to either side.
const (
	firstWait  = 25 * time.Millisecond
	longestGap = 2 * time.Second
)

// retryable reports whether a call that ended with err may succeed when it is repeated. The caller must know that
// repeating it is harmless.
func retryable(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.Aborted, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Internal:
		return true
	}
	_, told := retryInfo(err)
	return told
}

// retryInfo returns the wait that the service asked for, where it did.
func retryInfo(err error) (time.Duration, bool) {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok && info.GetRetryDelay() != nil {
			return max(0, info.GetRetryDelay().AsDuration()), true
		}
	}
	return 0, false
}

// pauser waits between attempts. The zero pauser is ready.
type pauser struct{ b *backoff.ExponentialBackOff }

// wait waits before the next attempt after one that ended with err. It reports false, and does not wait, where ctx would
// end first.
func (p *pauser) wait(ctx context.Context, err error) bool {
	if p.b == nil {
		p.b = backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(firstWait),
			backoff.WithMaxInterval(longestGap),
			backoff.WithMaxElapsedTime(0), // the deadline of ctx is the bound
		)
	}
	d := p.b.NextBackOff()
	if told, ok := retryInfo(err); ok {
		d = max(d, told)
	}
	if at, ok := ctx.Deadline(); ok && time.Until(at) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
