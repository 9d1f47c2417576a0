package dataset

import (
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// CheckArrival checks the time of a point before it is written, and returns the time in units of the schema's
// precision.
func (d *Dataset) CheckArrival(t, now time.Time) (int64, error) {
	units, err := d.Precision.WrittenUnits(t)
	if err != nil {
		return 0, err
	}
	if err := d.checkExpired(bigtable.Timestamp(d.Precision.CellMicros(units)), t, now); err != nil {
		return 0, err
	}
	return units, d.CheckTime(t, now)
}

// CheckExpired refuses a point, given by its cell's timestamp, that would already be expired in the class that is
// written.
func (d *Dataset) CheckExpired(cell bigtable.Timestamp, now time.Time) error {
	return d.checkExpired(cell, cell.Time(), now)
}

// checkExpired is CheckExpired with the point's time, for the error.
func (d *Dataset) checkExpired(cell bigtable.Timestamp, t, now time.Time) error {
	if c := &d.Classes[0]; cell < c.cutoff(now) {
		return invalid.New(ErrExpired, "time", Stamp(t), fmt.Sprintf("what the retention class %s (%v) keeps", c.Class.Name, c.Class.Policy))
	}
	return nil
}

// CheckTime checks a time against the schema's MaxLate and MaxFuture.
func (d *Dataset) CheckTime(t, now time.Time) error {
	if d.MaxLate > 0 && t.Before(now.Add(-d.MaxLate)) {
		return invalid.New(ErrLate, "time", Stamp(t), fmt.Sprintf("at most %v ago, the schema's MaxLate", d.MaxLate))
	}
	if d.MaxFuture > 0 && t.After(now.Add(d.MaxFuture)) {
		return invalid.New(ErrTooFarAhead, "time", Stamp(t), fmt.Sprintf("at most %v ahead, the schema's MaxFuture", d.MaxFuture))
	}
	return nil
}

func Stamp(t time.Time) string { return instant.Text(t.UTC()) }

// CheckKeys calls the schema's CheckKeys for each part of an entity's path, which has passed CheckPath.
func (d *Dataset) CheckKeys(path string) error {
	if d.KeyCheck == nil {
		return nil
	}
	for i, part := range rowkey.Parts(path) {
		if err := d.KeyCheck(d.Fields[i], part); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return nil
}

// cutoff returns the oldest cell timestamp visible at a time, or 0 if all are.
func (c *Class) cutoff(now time.Time) bigtable.Timestamp {
	if !c.Bounded {
		return 0
	}
	return max(0, bigtable.Timestamp(instant.Cutoff(now, c.Age).UnixMicro()))
}
