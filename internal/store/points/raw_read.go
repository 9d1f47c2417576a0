package points

import (
	"context"
	"errors"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

const (
	rawRows  = 1000 // rows of points per request; they are visited as they arrive, and not held
	rawHeads = 100  // head rows per request; each holds up to 100 points
	rawSkip  = 100  // consecutive points outside the interval after which a new request skips the others
)

// Read visits the visible points of a selection in the order of their rows. If visit returns an error, Read stops and
// returns it. A point's payload is valid only during the visit. ctx bounds the whole call; the timeout of scans bounds
// each request, including its visits.
func (r *Raw) Read(ctx context.Context, s Selection, visit func(RawPoint) error) error {
	if err := r.admit(ctx); err != nil {
		return err
	}
	if s.Entity != "" {
		if err := r.points.CheckPath(s.Entity); err != nil {
			return err
		}
	}
	rr := rawRead{Raw: r, selection: s, visit: visit}
	for _, rng := range rr.ranges() {
		for !rng.Empty() {
			if err := ctxerr.Of(ctx); err != nil {
				return err
			}
			var err error
			if rng, err = rr.request(ctx, rng); err != nil {
				return err
			}
		}
	}
	return nil
}

// rawRead is one Read.
type rawRead struct {
	*Raw
	selection Selection
	visit     func(RawPoint) error

	// The state of one request:
	h       dataset.Visibility
	rng     rowkey.Range // the requested range
	rows    int
	last    string       // the last row key
	next    rowkey.Range // the range of the next request, if skip is set
	skip    bool
	err     error // from visit, or for a foreign row
	path    string
	outside int // consecutive points of the entity at path that are outside the interval
}

// ranges returns the key ranges of the selection that are still to be read.
func (r *rawRead) ranges() []rowkey.Range {
	s := r.selection
	space := r.points
	if r.d.Head.Only {
		space = r.heads
	}
	var all []rowkey.Range
	switch {
	case s.Entity == "":
		all = space.Under("")
	case r.d.Head.Only:
		start := string(space.AppendEntity(nil, s.Entity))
		all = []rowkey.Range{{Start: start, Limit: start + "\x00"}}
	default:
		all = []rowkey.Range{space.Entity(s.Entity, s.Oldest, s.Newest)}
	}
	if s.After == nil {
		return all
	}
	from := rowkey.Range{Start: string(space.AppendEvent(nil, s.After.Path, s.After.Units, s.After.ID)) + "\x00"}
	if r.d.Head.Only {
		from.Start = string(space.AppendEntity(nil, s.After.Path)) // the row may hold further points
	}
	rest := all[:0]
	for _, rng := range all {
		rng.Start = max(rng.Start, from.Start)
		if !rng.Empty() {
			rest = append(rest, rng)
		}
	}
	return rest
}

// request reads some rows of a range, and returns the rest of the range.
func (r *rawRead) request(ctx context.Context, rng rowkey.Range) (rowkey.Range, error) {
	r.h = r.d.Visibility(r.table.Clock())
	r.rng, r.rows, r.last, r.skip, r.err, r.path, r.outside = rng, 0, "", false, nil, "", 0
	read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: r.h.Filter(), Limit: rawRows, Long: true}
	row := r.pointRow
	if r.d.Head.Only {
		read.Filter, read.Limit, row = r.h.HeadFilter(r.d.Head.Points), rawHeads, r.headRow
	}
	table := r.table.Rows(r.tenant)
	if r.selection.Bulk {
		table = table.BulkReads()
	}
	err := table.Read(ctx, read, func(found *bt.Row) bool {
		r.rows++
		r.last = found.Key()
		if r.last < r.rng.Start || r.last >= r.rng.Limit {
			r.err = ForeignRow(r.d)
			return false
		}
		return row(found)
	})
	switch {
	case r.err != nil:
		return rng, r.err
	case err != nil && r.rows > 0 && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return rng.After(r.last), nil // the visits used up the request's time: continue in a new request
	case err != nil:
		return rng, r.table.Explain(err)
	case r.skip:
		return r.next, nil
	case int64(r.rows) < read.Limit:
		return rowkey.Range{}, nil
	}
	return rng.After(r.last), nil
}

func (r *rawRead) pointRow(row *bt.Row) bool {
	path, units, id, ok := r.points.SplitEvent(row.Key())
	if !ok {
		return true
	}
	if units < r.selection.Oldest || units > r.selection.Newest {
		return r.pass(path, units)
	}
	r.outside = 0
	item, tag, err := r.h.Payload(row, bigtable.Timestamp(r.d.Precision.CellMicros(units)))
	if item == nil {
		return true
	}
	p := RawPoint{Path: path, Units: units, ID: id, Unread: err}
	if err == nil {
		p.Class, _, _ = strings.Cut(item.Column, ":")
		p.Tag, p.Payload = r.d.Tags[tag], item.Value
	}
	r.err = r.visit(p)
	return r.err == nil
}

// pass skips a point outside the interval. After rawSkip of them it ends the request, and the next one skips the rest.
func (r *rawRead) pass(path string, units int64) bool {
	if path != r.path {
		r.path, r.outside = path, 0
	}
	if r.outside++; r.outside <= rawSkip {
		return true
	}
	r.skip = true
	if units > r.selection.Newest {
		r.next = rowkey.Range{Start: r.points.Entity(path, r.selection.Oldest, r.selection.Newest).Start, Limit: r.rng.Limit}
	} else {
		r.next = r.points.Past(r.rng, path)
	}
	return false
}

func (r *rawRead) headRow(row *bt.Row) bool {
	path, ok := r.heads.SplitEntity(row.Key())
	if !ok {
		return true
	}
	s := r.selection
	for _, v := range r.h.Versions(nil, row, r.d.Head.Points) {
		if v.Units < s.Oldest || v.Units > s.Newest || s.After != nil && path == s.After.Path && v.Units >= s.After.Units {
			continue
		}
		p := RawPoint{Path: path, Units: v.Units, Unread: v.Err}
		if v.Err == nil {
			p.Class, p.Tag, p.Payload = r.d.Classes[v.Rank/len(r.d.Tags)].Name, r.d.Tags[v.Tag], v.Item.Value
		}
		if r.err = r.visit(p); r.err != nil {
			return false
		}
	}
	return true
}
