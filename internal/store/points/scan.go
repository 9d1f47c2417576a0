package points

import (
	"context"
	"slices"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/readrows"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Span selects points of one entity: those between two times in units, both included.
type Span struct {
	Path           string // of the entity
	Oldest, Newest int64
	ID             string // only the point with this ID, if Oldest equals Newest; empty for all
	After          string // only points after this row key, in the order of the span; empty for all
	Limit          int    // of points; 0 for none
	Reverse        bool   // oldest first
	Long           bool   // the timeout of scans applies instead of that of reads
	class          *int   // read only payloads of this class, by its index; nil for all
}

// Found is a visible point that a scan has found. It is valid only during the visit.
type Found struct {
	dataset.Hit
	item   *readrows.Cell // the payload
	row    *bt.Row        // the point's row; nil for a point of a head
	column int            // the index of the payload's column; only for a point of a head
}

// Scan calls visit for each visible point, in order, until visit returns false. The key range ends where points expire
// in all classes, so expired points cost nothing. The filter hides points that have expired only in their own class.
// Rows of other programs are skipped. If they use up the limit of a request, Scan sends another request.
func (r *Rows) Scan(ctx context.Context, s Span, visit func(*Found) bool) error {
	if r.D.Head.Only {
		return r.scanHead(ctx, s, visit)
	}
	h := r.Visibility()
	oldest := max(s.Oldest, h.Oldest())
	if oldest > s.Newest {
		return ctxerr.Of(ctx)
	}
	rng := r.Space.Entity(s.Path, oldest, s.Newest)
	prefix := rng.Start[:len(rng.Start)-rowkey.ReverseLen]
	switch {
	case s.ID != "":
		rng.Start = r.Key(s.Path, s.Newest, s.ID)
		rng.Limit = rng.Start + "\x00"
	case s.After != "" && s.Reverse:
		rng = rng.Before(min(s.After, rng.Limit))
	case s.After != "":
		rng = rng.After(max(s.After, rng.Start))
	}
	ctx, cancel := r.View.Bound(ctx, s.Long)
	defer cancel()
	sc := scanner{rows: r, rng: rng, horizon: h, path: s.Path, prefix: prefix, limit: s.Limit, visit: visit}
	shown := h
	if oldest < s.Newest { // for one time, the keys suffice
		shown = h.Between(oldest, s.Newest)
	}
	filter := shown.Filter()
	if s.class != nil {
		filter = shown.ClassFilter(*s.class)
	}
	read := bt.Scan{Filter: filter, Limit: int64(s.Limit), Reverse: s.Reverse, Long: s.Long}
	for !rng.Empty() {
		read.Rows = bigtable.NewRange(rng.Start, rng.Limit)
		sc.seen = 0
		err := r.View.Read(ctx, read, sc.row)
		if sc.foreign != nil {
			return sc.foreign
		}
		if err != nil || sc.stopped || s.Limit == 0 || sc.seen < read.Limit || sc.points == s.Limit {
			return r.Explain(err)
		}
		read.Limit, sc.makeUp = max(read.Limit, MakeUp), true
		if s.Reverse {
			rng = rng.Before(sc.last)
		} else {
			rng = rng.After(sc.last)
		}
		sc.rng = rng
	}
	return nil
}

// MakeUp is the minimum limit of a request after rows of other programs have used up the limit of the one before.
const MakeUp = 100

// scanner turns the rows of one entity into points.
type scanner struct {
	rows    *Rows
	horizon dataset.Visibility
	path    string       // of the entity
	rng     rowkey.Range // the requested range
	prefix  string       // the prefix of the row keys of the entity's points
	limit   int          // of points; 0 for none
	makeUp  bool         // the request may return more rows than points are wanted
	visit   func(*Found) bool
	found   Found

	seen    int64 // rows of one request
	points  int
	last    string // row key
	stopped bool   // by visit
	foreign error
}

// row visits the point in a row. A row outside the range ends the scan and is not decoded.
func (sc *scanner) row(row *bt.Row) bool {
	sc.last = row.Key()
	sc.seen++
	if sc.last < sc.rng.Start || sc.last >= sc.rng.Limit {
		sc.foreign = ForeignRow(sc.rows.D)
		return false
	}
	units, id, ok := sc.rows.Space.PointTime(sc.last, sc.prefix)
	if !ok {
		return true
	}
	precision := sc.rows.D.Precision
	item, tag, err := sc.horizon.Payload(row, bigtable.Timestamp(precision.CellMicros(units)))
	if item == nil {
		return true
	}
	sc.points++
	sc.found = Found{Hit: dataset.Hit{Path: sc.path, Units: units, ID: id, Payload: item.Value, Tag: tag, Err: err}, item: item, row: row}
	sc.stopped = !sc.visit(&sc.found)
	return !sc.stopped && !(sc.makeUp && sc.points == sc.limit)
}

// scanHead is Scan for a dataset that keeps heads only. Other datasets read one entity from its points: the cost is the
// same, and a head can be out of date.
func (r *Rows) scanHead(ctx context.Context, s Span, visit func(*Found) bool) error {
	h := r.Visibility()
	k := r.D.Head.Points
	if s.Limit > 0 && s.Newest == r.D.Precision.Max() && !s.Reverse {
		k = min(k, s.Limit)
	}
	row, err := r.View.Row(ctx, r.headKey(s.Path), h.Between(s.Oldest, s.Newest).HeadFilter(k))
	if err != nil {
		return r.Explain(err)
	}
	versions := h.Versions(nil, row, k)
	if s.Reverse {
		slices.Reverse(versions)
	}
	visited := 0
	for i := range versions {
		v := &versions[i]
		if v.Units < s.Oldest || v.Units > s.Newest {
			continue
		}
		if s.Limit > 0 && visited == s.Limit {
			return nil
		}
		if err := ctxerr.Of(ctx); err != nil {
			return err
		}
		visited++
		if !visit(&Found{Hit: v.Hit(s.Path), item: v.Item, column: v.Rank}) {
			return nil
		}
	}
	return nil
}
