package adopt

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// CheckOptions configure a check. The zero value reads up to 100,000 rows.
type CheckOptions struct {
	// Rows is how many rows to read at most, spread over the table by the service's samples of its keys. Zero is
	// 100,000, and negative is all.
	Rows int
}

// Report says what a table has of a mapping's points, and what does not fit. It marshals to JSON.
type Report struct {
	// Rows is how many rows were read. Whole says that these were all.
	Rows  int64 `json:"rows"`
	Whole bool  `json:"whole"`
	// Points is how many points fit. Tenants and Entities are how many different ones they have, up to 100,000 each.
	Points   int64 `json:"points"`
	Tenants  int   `json:"tenants"`
	Entities int   `json:"entities"`
	// Oldest and Newest are the times of the first and the last point; zero if there is none.
	Oldest time.Time `json:"oldest,omitzero"`
	Newest time.Time `json:"newest,omitzero"`
	// Bytes are those of the payloads as they would be stored, and Largest is the largest.
	Bytes   int64 `json:"bytes"`
	Largest int   `json:"largest"`
	// Unfit is what is no point, by reason, in a fixed order.
	Unfit []UnfitCount `json:"unfit"`
}

// UnfitCount counts what is unfit for a reason.
type UnfitCount struct {
	Reason string `json:"reason"`
	// Count is how often it was found: rows, columns of rows, or points.
	Count int64 `json:"count"`
	// Skip says that the mapping allows leaving it out.
	Skip bool `json:"skip"`
	// Examples are the first ones, up to 5.
	Examples []*Unfit `json:"examples"`
}

// Refused reports whether a copy would end with ErrUnfit: something is unfit that the mapping does not skip.
func (r *Report) Refused() bool {
	if r != nil {
		for _, u := range r.Unfit {
			if !u.Skip {
				return true
			}
		}
	}
	return false
}

// The bounds of a report.
const (
	maxCounted  = 100_000
	maxExamples = 5
)

// Check reads rows of the foreign table and reports what is in them, and what does not fit and why. It writes nothing.
// With a store it compares the mapping with the dataset of the catalogue, if there is one, and checks each point as a
// copy does: sizes, retention and erased tenants; conditional writes are not tried. A nil store checks the mapping
// alone.
//
// A sample does not prove that the whole table fits; a copy checks again. Check costs a request for every 1,000 rows.
// If it fails, it returns the report of what it has read.
func (s *Source) Check(ctx context.Context, store *tsdb.Store, opts CheckOptions) (_ *Report, err error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if opts.Rows == 0 {
		opts.Rows = 100_000
	}
	c := &checking{Source: s, precision: s.m.precision, report: &Report{Whole: true}, tenants: map[tenant.ID]bool{}, entities: map[string]bool{}, unfit: map[string]*UnfitCount{}}
	if store != nil {
		if c.to, err = s.open(ctx, store); err != nil {
			return nil, err
		}
		c.precision = c.to.precision
	}
	err = c.run(ctx, opts.Rows)
	c.end()
	return c.report, err
}

type checking struct {
	*Source
	to        *target // nil without a store
	precision rowkey.Precision
	report    *Report
	tenants   map[tenant.ID]bool
	entities  map[string]bool
	unfit     map[string]*UnfitCount
}

func (c *checking) run(ctx context.Context, most int) error {
	keys, err := c.splits(ctx)
	if err != nil {
		return err
	}
	ranges := rangesOf(keys)
	for i, r := range ranges {
		left := int64(-1)
		if most > 0 { // what is left, in equal parts
			left = max(1, (int64(most)-c.report.Rows)/int64(len(ranges)-i))
			if c.report.Rows >= int64(most) {
				c.report.Whole = false
				return nil
			}
		}
		if err := c.checkRange(ctx, string(r.Start), string(r.End), left); err != nil {
			c.report.Whole = false
			return err
		}
	}
	return nil
}

// checkRange reads up to left rows of a range; all if it is negative.
func (c *checking) checkRange(ctx context.Context, start, limit string, left int64) error {
	for {
		if err := ctxerr.Of(ctx); err != nil {
			return err
		}
		most := chunkRows
		if left >= 0 {
			most = int(min(chunkRows, left+1)) // one more than it counts, to know whether there are more
		}
		rows, more, err := c.chunk(ctx, start, limit, nil, most)
		if err != nil {
			return err
		}
		if left >= 0 && int64(len(rows)) > left {
			c.report.Whole = false
			rows, more = rows[:left], false
		}
		for _, row := range rows {
			if err := c.row(ctx, row); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
		if left >= 0 {
			left -= int64(len(rows))
		}
		start = rows[len(rows)-1].Key() + "\x00"
	}
}

func (c *checking) row(ctx context.Context, row *bt.Row) error {
	c.report.Rows++
	var list []point
	flush := func() error {
		bad := map[int]bool{}
		if c.to != nil {
			err := c.to.write(ctx, list, true, func(i int, u *Unfit) error {
				bad[i] = true
				return c.wrong(u)
			})
			if err != nil {
				return err
			}
		}
		for i, p := range list {
			if !bad[i] {
				c.count(p)
			}
		}
		list = list[:0]
		return nil
	}
	err := c.m.points(row, c.precision, func(p point) error {
		if list = append(list, p); len(list) < chunkRows {
			return nil
		}
		return flush()
	}, c.wrong)
	if err != nil {
		return err
	}
	return flush()
}

func (c *checking) count(p point) {
	r := c.report
	r.Points++
	if len(c.tenants) < maxCounted {
		c.tenants[p.tenant] = true
	}
	if len(c.entities) < maxCounted {
		c.entities[p.tenant.String()+"#"+p.path] = true
	}
	t := c.precision.Time(p.units)
	if r.Oldest.IsZero() || t.Before(r.Oldest) {
		r.Oldest = t
	}
	if t.After(r.Newest) {
		r.Newest = t
	}
	r.Bytes += int64(len(p.payload))
	r.Largest = max(r.Largest, len(p.payload))
}

func (c *checking) wrong(u *Unfit) error {
	n := c.unfit[u.Reason]
	if n == nil {
		n = &UnfitCount{Reason: u.Reason, Skip: c.m.skips(u.Reason)}
		c.unfit[u.Reason] = n
	}
	if n.Count++; len(n.Examples) < maxExamples {
		n.Examples = append(n.Examples, u)
	}
	return nil
}

func (c *checking) end() {
	c.report.Tenants, c.report.Entities = len(c.tenants), len(c.entities)
	for _, reason := range reasons {
		if n := c.unfit[reason]; n != nil {
			c.report.Unfit = append(c.report.Unfit, *n)
		}
	}
}

// required returns an error for a missing store.
func required(store *tsdb.Store) error {
	if store == nil {
		return invalid.New(ErrInvalid, "store", "nil", "an open store")
	}
	return nil
}
