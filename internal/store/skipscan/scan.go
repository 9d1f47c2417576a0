// Package skipscan finds the newest points of each entity below a prefix, and skips over their histories.
package skipscan

import (
	"context"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// pageBytes ends a page early: points may be large, and pages are held in memory.
const pageBytes = 4 << 20

// scan finds the newest visible points of each entity in a range of entities, in order, page by page. The next page
// starts behind the last entity of the one before, however long its history is.
//
// Pages include expired rows. If the first row of an entity has expired in all classes, so has the entity, and the scan
// skips to the next one. A filter that hides expired rows would make the service read all of them to find a row to
// return.
type scan struct {
	table   *points.Table
	rows    *bt.Table
	space   rowkey.Space
	d       *dataset.Dataset
	horizon dataset.Visibility
	oldest  int64
	values  bool // with payloads
	heads   bool // the rows are heads
	few     int  // the wanted number of entities; 0 is all
	each    int  // the wanted number of points per entity
	parts   int  // the number of leading parts of which one entity is wanted for each value; 0 is all parts
	options points.Options

	rest     rowkey.Range // the range that is not read yet
	pager    pager
	requests int

	outline  *points.Outline // nil if the scan neither uses nor makes one
	begun    string          // the first key of the scan
	met      []rowkey.Known  // entities with long histories between begun and rest
	metBytes int             // of their prefixes
	many     int             // entities of the next request for known ones
	misses   int             // known entities whose newest point was gone
	alone    bool            // the next request is not for known entities
}

// page is the result of one request of a skip scan.
type page struct {
	rows     int
	needed   int // rows up to the first one of the last entity
	entities int
	bytes    int
	last     string // the last row key
	cut      bool   // the page ended before all rows had arrived
	hits     []dataset.Hit

	path   string // the last entity
	prefix string // the prefix of the last entity's row keys
	found  int    // the number of the last entity's points in hits
	run    int    // the number of the last entity's rows
	old    bool   // the last row is too old for all classes
	group  string // the prefix of the row keys of all entities with the same wanted parts, once one of them is found

	met      []rowkey.Known // the entities
	expected string         // the prefix of the row keys of the known entity of the current range
	missed   bool           // the newest point of that entity is not where it was
	at       int            // index of that entity
}

// next reads a page. The scan is over when rest is empty.
func (s *scan) next(ctx context.Context) ([]dataset.Hit, error) {
	if s.heads {
		return s.nextHeads(ctx)
	}
	if known, more := s.known(); len(known) > 0 {
		return s.nextKnown(ctx, known, more)
	}
	limit := s.pager.next()
	pg, err := request(ctx, s, func(ctx context.Context) (page, error) { return s.read(ctx, limit) })
	if err != nil {
		return nil, err
	}
	s.pager.note(pg.rows, pg.needed, pg.entities)
	if pg.rows < limit && !pg.cut {
		s.rest.Start = s.rest.Limit
		return pg.hits, nil
	}
	hits, err := s.end(ctx, &pg)
	if pg.entities == 1 || rowsPerEntity*pg.entities <= pg.rows {
		s.meet(pg.met...)
	}
	return hits, err
}

// end ends a page within the history of its last entity, and returns the points of the page.
func (s *scan) end(ctx context.Context, pg *page) ([]dataset.Hit, error) {
	s.rest = s.rest.After(pg.last)
	switch {
	case pg.path == "":
		return pg.hits, nil
	case pg.group != "":
		s.rest = s.rest.Behind(pg.group)
		return pg.hits, nil
	}
	s.rest = s.space.Past(s.rest, pg.path)
	if pg.found == s.each {
		return pg.hits, nil
	}
	more, err := s.behind(ctx, pg.path, pg.last, s.each-pg.found)
	if len(more) > 0 && pg.found == 0 && s.outline != nil {
		pg.met[len(pg.met)-1].Newest = more[0].Units
	}
	if len(more) > 0 && s.parts > 0 {
		s.rest = s.rest.Behind(s.groupOf(pg.path, pg.prefix))
	}
	return append(pg.hits, more...), err
}

// groupOf returns the prefix of the row keys of all entities that share the wanted parts with the entity at path.
func (s *scan) groupOf(path, prefix string) string {
	return prefix[:len(prefix)-len(path)+len(rowkey.FirstParts(path, s.parts))]
}

// request makes one request of a scan, hedged if the options say so.
func request[R any](ctx context.Context, s *scan, read func(context.Context) (R, error)) (R, error) {
	s.requests++
	s.table.Hedges.Earn(s.options.Hedge, 1)
	return points.Once(ctx, s.table, s.options.Hedge, read)
}

// read reads the first rows of the rest.
func (s *scan) read(ctx context.Context, limit int) (page, error) {
	var pg page
	read := bt.Scan{Filter: s.strip(s.horizon.EveryPayload()), Limit: int64(limit)}
	err := s.inRange(ctx, s.rest, read, func(row *bt.Row) bool { return s.row(&pg, row) })
	return pg, err
}

// inRange reads the rows of a range. It refuses a row outside the range before it visits it.
func (s *scan) inRange(ctx context.Context, rng rowkey.Range, read bt.Scan, visit func(*bt.Row) bool) error {
	read.Rows = bigtable.NewRange(rng.Start, rng.Limit)
	foreign := false
	err := s.rows.Read(ctx, read, func(row *bt.Row) bool {
		foreign = row.Key() < rng.Start || row.Key() >= rng.Limit
		return !foreign && visit(row)
	})
	if foreign {
		return points.ForeignRow(s.d)
	}
	return s.table.Explain(err)
}

// row reads a row of a page, and reports whether the page continues.
func (s *scan) row(pg *page, row *bt.Row) bool {
	key := row.Key()
	pg.last = key
	pg.rows++
	for i := range row.Cells() {
		pg.bytes += len(row.Cells()[i].Value)
	}
	pg.cut = pg.bytes >= pageBytes
	if pg.group != "" && strings.HasPrefix(key, pg.group) {
		return !pg.cut // no other entity of the group is wanted
	}
	units, id, ok := s.space.PointTime(key, pg.prefix)
	if !ok {
		pg.entities++ // a row of another program counts as an entity, so that such rows do not make pages small
		pg.needed = pg.rows
		var path string
		if path, units, id, ok = s.space.SplitEvent(key); !ok {
			return !pg.cut
		}
		s.enter(pg, s.space.EntityPrefix(key, path), path, units)
	}
	pg.old = units < s.oldest
	pg.run++
	if pg.found < s.each {
		if h, ok := s.hit(pg.path, units, id, row); ok {
			if pg.found == 0 && s.outline != nil {
				pg.met[len(pg.met)-1].Newest = units
			}
			pg.hits = append(pg.hits, h)
			pg.found++
			if s.parts > 0 {
				pg.group = s.groupOf(pg.path, pg.prefix)
			}
		}
	}
	return !pg.cut
}

// enter records the first row of an entity. Hits outlive the rows, so the entity gets a path of its own.
func (s *scan) enter(pg *page, prefix, path string, units int64) {
	if prefix == pg.expected {
		prefix = pg.expected
	} else {
		prefix = strings.Clone(prefix)
	}
	end := len(prefix) - 1
	pg.path, pg.prefix, pg.found, pg.run, pg.group = prefix[end-len(path):end], prefix, 0, 0, ""
	if s.outline != nil {
		pg.met = append(pg.met, rowkey.Known{Prefix: prefix, Newest: units})
	}
}

// hit returns the visible point in a row. As in reads of one entity, a row older than the retention has none, even if
// its cells have later timestamps.
func (s *scan) hit(path string, units int64, id string, row *bt.Row) (dataset.Hit, bool) {
	if units < s.oldest {
		return dataset.Hit{}, false
	}
	return s.horizon.Hit(row, path, units, id)
}

// behind finds the n newest visible points of an entity after a row, if the page did not have enough of them. Either
// the page ended within the entity, or its points have expired in their class and older ones in another class may be
// visible. If the rows were too old for all classes, there are none.
func (s *scan) behind(ctx context.Context, path, last string, n int) ([]dataset.Hit, error) {
	var all []dataset.Hit
	rng := s.space.Entity(path, s.oldest, s.d.Precision.Max()).After(last)
	for limit := int64(n); !rng.Empty(); limit = max(limit, points.MakeUp) {
		type answer struct {
			hits []dataset.Hit
			rows int64
			last string
		}
		got, err := request(ctx, s, func(ctx context.Context) (got answer, err error) {
			read := bt.Scan{Filter: s.strip(s.horizon.Filter()), Limit: limit}
			err = s.inRange(ctx, rng, read, func(row *bt.Row) bool {
				got.last = row.Key()
				got.rows++
				if found, units, id, ok := s.space.SplitEvent(got.last); ok && found == path {
					if h, ok := s.hit(path, units, id, row); ok {
						got.hits = append(got.hits, h)
					}
				}
				return len(all)+len(got.hits) < n
			})
			return got, err
		})
		all = append(all, got.hits...)
		if err != nil || len(all) == n || got.rows < limit {
			return all, err
		}
		rng = rng.After(got.last)
	}
	return all, nil
}

// strip removes the values from what a filter passes, unless the scan needs them.
func (s *scan) strip(f bigtable.Filter) bigtable.Filter {
	if s.values {
		return f
	}
	return bigtable.ChainFilters(f, bigtable.StripValueFilter())
}
