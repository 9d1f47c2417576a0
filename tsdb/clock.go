package tsdb

import (
	"github.com/tidemark-go/tidemark/internal/clock"
)

// ErrClock: the store's clock is ahead of the time that has passed, or of the service's clock, by more than 10 seconds. What
// deletes by age does nothing then: workers of rollups, and erasures that end another mark. They go on once the clock is right, or
// has kept step for 10 minutes where the service's time is not known.
var ErrClock = clock.ErrAhead
