package tenancy

import (
	"context"
	"crypto/rand"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// clockDue is the age at which the comparison with the service's clock is repeated.
const clockDue = clock.Probation / 2

// ServiceClock compares the store's clock with the service's.
type ServiceClock struct {
	table  *Tenancy
	known  bool          // the watch knows the service's clock by itself
	asking chan struct{} // holds one value while a comparison runs
	asked  time.Time     // time of the last comparison, by the monotonic clock; zero means never
}

// Use makes the store use another watch over the same clock that knows more: the embedded engine's.
func (c *ServiceClock) Use(w *clock.Watch) {
	c.table.Time, c.known = w, true
	w.Report(c.table.Watch.Clock)
}

// Confirmed returns the time for deletions. Its error matches clock.ErrAhead if the clock is not trusted. If the
// service has its own clock, Confirmed compares the two, at most every 5 minutes while they agree: three small
// requests.
func (c *ServiceClock) Confirmed(ctx context.Context) (time.Time, error) {
	if !c.known {
		if err := c.compare(ctx); err != nil {
			return time.Time{}, err
		}
	}
	return c.table.Time.Now()
}

func (c *ServiceClock) compare(ctx context.Context) error {
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
	_, err := c.table.Time.Now()
	if err == nil && !c.asked.IsZero() && time.Since(c.asked) < clockDue {
		return nil
	}
	begin := time.Now()
	now, known, err := c.serviceTime(ctx)
	if err != nil {
		return err
	}
	c.asked = begin
	if known {
		c.table.Time.Trust(now)
	}
	return nil
}

// serviceTime returns the service's time, from the timestamp that the service gives a cell. It returns false if this
// program may not write the store's own rows, or if the cell is not visible yet: another cluster may show it late.
func (c *ServiceClock) serviceTime(ctx context.Context) (now time.Time, known bool, err error) {
	ctx, cancel := c.table.Whole.Bound(ctx, false)
	defer cancel()
	key := rowkey.ProbeRows + rand.Text()
	set, gone := bigtable.NewMutation(), bigtable.NewMutation()
	set.Set(catalog.Family, "t", bigtable.ServerTime, nil)
	gone.DeleteRow()
	_, out := c.table.Whole.Conditional(ctx, key, bigtable.StripValueFilter(), nil, set)
	if status.Code(out.Err) == codes.PermissionDenied {
		return time.Time{}, false, nil
	}
	if out.State != bt.Stored {
		return time.Time{}, false, c.table.Explain(out.Err)
	}
	row, err := c.table.Whole.RowAsJudged(ctx, key, bigtable.StripValueFilter())
	_ = c.table.Whole.Apply(ctx, key, gone) // nobody reads what remains of it
	if err != nil {
		return time.Time{}, false, c.table.Explain(err)
	}
	for _, cell := range row.Family(catalog.Family) {
		return cell.Timestamp.Time(), true, nil
	}
	return time.Time{}, false, nil
}
