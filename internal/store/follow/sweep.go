package follow

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/skipscan"
)

// The bounds of a follower and of one of its polls.
const (
	MaxEntities  = 10_000 // below a prefix
	pollRequests = 16
	pollPoints   = 1000    // new ones
	pollBytes    = 4 << 20 // of their payloads
	mostRanges   = 251     // of a request: 125 entities and the gaps around them
	maxRowSet    = 500_000 // bytes of the keys of its ranges
)

// sweep is one pass over the followed points from a time on. It reads each known entity from that time on, and the gaps
// between the entities: a row in a gap is a new entity. It goes backwards through the keys, so that each entity's
// oldest points come first.
type sweep struct {
	f     *Follower
	floor int64 // the oldest time that is read
	next  int64 // the floor of the sweep after it
	began int64 // the time when it began
	// delivered is a time: older points count as delivered. It is 0 unless the clock was set back.
	delivered int64
	rest      []part
	place     string // the row of the last point that was delivered; "" for none
}

// part is a range of keys that is still to be read.
type part struct {
	rng  rowkey.Range
	path string // of the entity; "" for a gap, or for heads
}

// newSweep returns a sweep. The known entities are in the order of their keys.
func newSweep(f *Follower, floor, next int64) *sweep {
	began, _ := f.Rows.D.Precision.AtOrBefore(f.Rows.Clock())
	s := &sweep{f: f, floor: floor, next: max(floor, next), began: began}
	rows := f.Rows
	switch {
	case rows.D.Head.Only && f.Prefix:
		for _, rng := range rows.Heads.Under(f.Path) {
			s.rest = append(s.rest, part{rng: rng})
		}
	case rows.D.Head.Only:
		key := string(rows.Heads.AppendEntity(nil, f.Path))
		s.rest = []part{{rng: rowkey.Range{Start: key, Limit: key + "\x00"}}}
	case !f.Prefix:
		s.rest = []part{s.entity(f.Path)}
	default:
		known := f.known
		for _, rng := range rows.Space.Under(f.Path) {
			for len(known) > 0 && known[0].all.Start < rng.Limit {
				e := known[0]
				known = known[1:]
				s.rest = append(s.rest, part{rng: rowkey.Range{Start: rng.Start, Limit: e.all.Start}}, s.entity(e.path))
				rng.Start = e.all.Limit
			}
			s.rest = append(s.rest, part{rng: rng})
		}
	}
	slices.Reverse(s.rest)
	s.rest = slices.DeleteFunc(s.rest, func(p part) bool { return p.rng.Empty() })
	return s
}

// entity returns the part of an entity.
func (s *sweep) entity(path string) part {
	oldest := max(s.floor, s.f.Rows.Visibility().Oldest())
	return part{rng: s.f.Rows.Space.Entity(path, oldest, s.f.Rows.D.Precision.Max()), path: path}
}

// over reports whether nothing is left to be read.
func (s *sweep) over() bool { return len(s.rest) == 0 }

// skip leaves out the keys from a row on, which were delivered.
func (s *sweep) skip(row string) {
	s.place = row
	for i := range s.rest {
		if s.rest[i].rng.Limit > row {
			s.rest[i].rng = s.rest[i].rng.Before(row)
		}
	}
	s.rest = slices.DeleteFunc(s.rest, func(p part) bool { return p.rng.Empty() })
}

// entity is a known entity, with the range of all of its rows.
type entity struct {
	path string
	all  rowkey.Range
}

// learn adds an entity, in the order of keys.
func (f *Follower) learn(path string) (entity, error) {
	if len(f.known) == MaxEntities {
		return entity{}, invalid.New(dataset.ErrInvalid, "entities below the prefix", "more than "+strconv.Itoa(MaxEntities), "up to "+strconv.Itoa(MaxEntities)+"; a longer prefix")
	}
	e := entity{path: strings.Clone(path), all: f.Rows.Space.Whole(path)}
	at, found := slices.BinarySearchFunc(f.known, e, func(a, b entity) int { return strings.Compare(a.all.Start, b.all.Start) })
	if !found {
		f.known = slices.Insert(f.known, at, e)
	}
	return e, nil
}

// discover finds the entities below the prefix.
func (f *Follower) discover(ctx context.Context) error {
	if !f.Prefix || f.Rows.D.Head.Only {
		return nil
	}
	o := points.Options{Width: 4}
	done, err := f.Rows.BeginWideRead(&o)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := f.Rows.View.Bound(ctx, true)
	defer cancel()
	var wrong error
	err = skipscan.Scan(ctx, f.Rows, skipscan.Query{Prefix: f.Path, Options: o}, func(h dataset.Hit) bool {
		_, wrong = f.learn(h.Path)
		return wrong == nil
	})
	if wrong != nil {
		return wrong
	}
	return err
}

// poll makes some requests of a sweep. With baseline the points that it finds count as delivered.
func (f *Follower) poll(ctx context.Context, s *sweep, baseline bool) (p polled, err error) {
	ctx, end := f.Poll(ctx)
	defer func() { end(p.rows, err) }()
	if err := f.Allow(ctx); err != nil {
		return p, err
	}
	if err := f.Rows.AdmitSpan(f.Rows.D.Precision.Time(s.floor), time.Time{}, false); err != nil {
		return p, err
	}
	done, err := f.Rows.BeginRead()
	if err != nil {
		return p, err
	}
	defer done()
	f.mu.Lock()
	since := f.seen.arrivals
	f.mu.Unlock()
	for n := 0; n < pollRequests && !s.over() && !p.more; n++ {
		r := request{sweep: s, since: since, baseline: baseline, into: &p, visible: f.Rows.Visibility()}
		if err := r.run(ctx); err != nil {
			return p, err
		}
	}
	return p, nil
}

// request is one request of a sweep.
type request struct {
	*sweep
	since    uint64
	baseline bool
	into     *polled
	visible  dataset.Visibility

	parts   []part
	at      int    // the part of the last row
	found   string // the path of a new entity, whose oldest row was the last row
	last    string // the key of the last row, if the request was cut there
	foreign bool
}

func (r *request) run(ctx context.Context) error {
	rows := r.f.Rows
	n, size := 0, 0
	for n < len(r.rest) && n < mostRanges && size < maxRowSet {
		size += len(r.rest[n].rng.Start) + len(r.rest[n].rng.Limit) + 16
		n++
	}
	r.parts = r.rest[:n]
	set := make(bigtable.RowRangeList, n)
	for i, p := range r.parts {
		set[n-1-i] = bigtable.NewRange(p.rng.Start, p.rng.Limit)
	}
	scan := bt.Scan{Rows: set, Filter: r.visible.Filter(), Reverse: true, Long: true}
	if rows.D.Head.Only {
		scan.Filter = r.visible.Between(r.floor, rows.D.Precision.Max()).HeadFilter(rows.D.Head.Points)
	}
	err := rows.View.Read(ctx, scan, r.row)
	var fresh []part
	switch {
	case r.foreign:
		return points.ForeignRow(rows.D)
	case err != nil:
		return rows.Explain(err)
	case r.found != "":
		e, err := r.f.learn(r.found)
		if err != nil {
			return err
		}
		fresh = []part{r.entity(e.path), {rng: r.parts[r.at].rng.Before(e.all.Start)}}
	case r.last != "":
		fresh = []part{{rng: r.parts[r.at].rng.Before(r.last), path: r.parts[r.at].path}}
	default:
		r.rest = r.rest[n:]
		return nil
	}
	fresh = slices.DeleteFunc(fresh, func(p part) bool { return p.rng.Empty() })
	r.rest = append(fresh, r.rest[r.at+1:]...)
	return nil
}

// row takes in a row, and reports whether the request goes on.
func (r *request) row(row *bt.Row) bool {
	key := row.Key()
	r.into.rows++
	for r.at < len(r.parts) && key < r.parts[r.at].rng.Start {
		r.at++
	}
	if r.foreign = r.at == len(r.parts) || key >= r.parts[r.at].rng.Limit; r.foreign {
		return false
	}
	rows, p := r.f.Rows, r.parts[r.at]
	if rows.D.Head.Only {
		return r.head(row, key)
	}
	path, units, id, ok := rows.Space.SplitEvent(key)
	switch {
	case !ok: // of another program
		return true
	case p.path == "":
		r.found = path
		return false
	case path != p.path || units < r.floor:
		return true
	}
	if hit, visible := r.visible.Hit(row, p.path, units, id); visible && !r.point(hit, key) {
		r.last = key
		return false
	}
	return true
}

// head takes in a row of a dataset that keeps heads only.
func (r *request) head(row *bt.Row, key string) bool {
	path, ok := r.f.Rows.Heads.SplitEntity(key)
	if !ok {
		return true
	}
	more := true
	for _, v := range slices.Backward(r.visible.Versions(nil, row, r.f.Rows.D.Head.Points)) {
		if v.Units >= r.floor { // all of a row, as a request cannot begin within it; a cursor reads the row again
			more = r.point(v.Hit(path), key+"\x00") && more
		}
	}
	if !more {
		r.last = key
	}
	return more
}

// point takes in a point, and reports whether more may come.
func (r *request) point(h dataset.Hit, key string) bool {
	k := keysOf(r.f.Rows.D, h)
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	if r.f.seen.has(k, h.Units) {
		return true
	}
	if r.baseline || h.Units < r.delivered {
		r.f.seen.record(k, h.Units, 0)
		r.f.narrow()
		return true
	}
	r.into.items = append(r.into.items, item{Hit: h, keys: k, row: key, since: r.since})
	r.into.bytes += len(h.Payload)
	r.into.more = len(r.into.items) >= pollPoints || r.into.bytes >= pollBytes
	return !r.into.more
}
