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

// clockDue is how old the last comparison with the service's clock is when it is made again.
const clockDue = clock.Probation / 2

// ServiceClock compares the store's clock with the service's.
type ServiceClock struct {
	table  *Tenancy
	known  bool          // the watch knows what the service does
	asking chan struct{} // holds one while somebody asks
	asked  time.Time     // by the monotonic clock; zero for never
}

// NewServiceClock returns the comparison of a store's clock with the service's.
func NewServiceClock(table *Tenancy) *ServiceClock {
	return &ServiceClock{table: table, asking: make(chan struct{}, 1)}
}

// Use makes the store use another watch over the same clock, which knows more: the embedded engine's.
func (c *ServiceClock) Use(w *clock.Watch) {
	c.table.Time, c.known = w, true
	w.Report(c.table.Watch.Clock)
}

// Confirmed returns the time to delete by. Its error matches ErrClock where the clock is not believed. Where the service's clock
// is another one it is asked, at most every 5 minutes unless they disagree: three small requests.
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

// serviceTime returns the service's time, by the timestamp that it gives a cell. It reports false where this program may not
// write to rows of the store itself, or where the cell was not seen yet: through another cluster it comes late.
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
	_ = c.table.Whole.Apply(ctx, key, gone) // what is left of it nobody reads
	if err != nil {
		return time.Time{}, false, c.table.Explain(err)
	}
	for _, cell := range row[catalog.Family] {
		return cell.Timestamp.Time(), true, nil
	}
	return time.Time{}, false, nil
}
