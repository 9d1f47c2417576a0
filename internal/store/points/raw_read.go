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
	// rawRows is how many rows of points one request asks for. They are visited as they come, not gathered.
	rawRows = 1000
	// rawHeads is the same for rows of heads, which hold up to 100 points.
	rawHeads = 100
	// rawSkip is how many points in a row may lie outside of the interval before they are skipped by a new request.
	rawSkip = 100
)

// Read visits the visible points of a selection in the order of their rows, until visit returns an error, which Read returns. A
// point's payload is valid only during the visit. ctx bounds the whole call, and the timeout of scans each of its requests,
// including the visits during it.
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

	// Of one request:
	h       dataset.Visibility
	rng     rowkey.Range // that was asked for
	rows    int
	last    string       // row key
	next    rowkey.Range // where to go on, if skip is set
	skip    bool
	err     error // the visitor's, or of a foreign row
	path    string
	outside int // consecutive points of the entity at path that lie outside of the interval
}

// ranges returns what is to be read, without what was.
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
		from.Start = string(space.AppendEntity(nil, s.After.Path)) // its row may hold more
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

// request reads some rows of a range, and returns what is left of it.
func (r *rawRead) request(ctx context.Context, rng rowkey.Range) (rowkey.Range, error) {
	r.h = r.d.Visibility(r.table.Clock())
	r.rng, r.rows, r.last, r.skip, r.err, r.path, r.outside = rng, 0, "", false, nil, "", 0
	read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: r.h.Filter(), Limit: rawRows, Long: true}
	row := r.pointRow
	if r.d.Head.Only {
		read.Filter, read.Limit, row = r.h.HeadFilter(r.d.Head.Points), rawHeads, r.headRow
	}
	err := r.table.Rows(r.tenant).Read(ctx, read, func(found *bt.Row) bool {
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
		return rng.After(r.last), nil // the visits took their time
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

// pass passes over a point outside of the interval, and over many at once by ending the request.
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
		r.next = r.points.PastEntity(r.rng, path)
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
