package history

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// dataset is a dataset whose points clients write and read.
type dataset interface {
	tsdb.Dataset
	// step makes a random call.
	step(ctx context.Context, c *client)
	// put writes a point.
	put(ctx context.Context, s *tsdb.Store, id tenant.ID, e tsdb.Entity, slot int) error
	// readAll reads each point of each entity.
	readAll(ctx context.Context, c *client) error
	sawAll(c *client, call *call, in *tsdb.Store)
}

// points is a dataset of one type.
type points[T any] struct {
	*tsdb.Schema[T]
	of   func(cell) T
	cell func(T) cell

	write  action // of Put
	absent bool   // its clients use PutIfAbsent too
	wide   bool   // points have two fields
	head   bool   // heads have points
	fields bool   // heads have fields
	// split is the first slot of an entity that another client owns than the slots before; 0 if one owns all. Only the
	// owner of a point in a dataset with heads writes it, because writers that differ may leave heads behind points.
	split   int
	meeting map[tsdb.Entity]chan struct{} // of the two owners of an entity
}

const (
	sites       = 2
	devices     = 3 // at each site
	numEntities = sites * devices
)

var siteNames, deviceNames = [sites]string{"s", "s#1"}, [devices]string{"d", "d1", "d#1"}

func entityAt(i int) tsdb.Entity {
	return tsdb.NewEntity(siteNames[i/devices%sites], deviceNames[i%devices])
}

func entitiesOf(site int) (all []tsdb.Entity) {
	for i := range numEntities {
		if i/devices == site {
			all = append(all, entityAt(i))
		}
	}
	return all
}

// start is the time of slot 0.
var start = time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)

func timeOf(slot int) time.Time { return start.Add(time.Duration(slot) * time.Second) }
func slotOf(at time.Time) int   { return int(at.Sub(start) / time.Second) }

// one is the cell of a point with a single number.
func one(n int64) cell { return cell{int32(n)} }

var numbers = points[int64]{of: func(c cell) int64 { return int64(c[0]) }, cell: one}

// newDatasets returns the datasets of a history. If cells are collected, none has points in heads, as these lack points
// until a deletion has repaired them.
func newDatasets(collects bool) []dataset {
	plain, first, headed := numbers, numbers, numbers
	plain.Schema = tsdb.MustDefine("plain", tsdb.Key("site", "device"), codec.Int64(), tsdb.SchemaOptions{})
	plain.write, plain.absent = set, true
	first.Schema = tsdb.MustDefine("first", tsdb.Key("site", "device"), codec.Int64(), tsdb.SchemaOptions{FirstWins: true, Salts: 3})
	first.write, first.absent = insert, true
	headed.Schema = tsdb.MustDefine("headed", tsdb.Key("site", "device"), codec.Int64(), tsdb.SchemaOptions{
		Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2},
	})
	headed.write, headed.head = set, true
	merged := points[codec.Record]{write: merge, wide: true, of: recordOf, cell: cellOf}
	merged.Schema = tsdb.MustDefine("merged", tsdb.Key("site", "device"), codec.Records(), tsdb.SchemaOptions{Merge: true})
	all := append(newFielded(collects), &plain, &first, &merged)
	if !collects {
		all = append(all, &headed)
	}
	return all
}

// client makes one call after the other, each through one of the stores.
type client struct {
	*world
	id     int
	rnd    *rand.Rand
	tenant tenant.ID
	node   *node // the store of the current call
}

// value returns a cell that no other write has.
func (d *points[T]) value(c *client) (v cell) {
	if !d.wide {
		return cell{c.number()}
	}
	for v.absent() {
		for i := range v {
			if c.rnd.IntN(2) == 0 {
				v[i] = c.number()
			}
		}
	}
	return v
}

func (d *points[T]) repo(c *client) *tsdb.Repository[T] { return d.For(c.node.store, c.tenant) }

// part returns the part of an entity's points.
func (d *points[T]) part(c *client, e tsdb.Entity) part {
	return part{dataset: c.tenant.String() + "/" + d.Name(), entity: e.String(), row: allPoints}
}

// heads returns the part that reads of many entities see.
func (d *points[T]) heads(c *client, e tsdb.Entity) part {
	p := d.part(c, e)
	if d.head {
		return headOf(p)
	}
	return p
}

// rows returns the parts that a write changes.
func (d *points[T]) rows(c *client, e tsdb.Entity) []part {
	points := d.part(c, e)
	if !d.owned() {
		return []part{points}
	}
	return []part{points, headOf(points)}
}

func (d *points[T]) step(ctx context.Context, c *client) {
	c.node = c.nodes[c.rnd.IntN(len(c.nodes))]
	e, slot := entityAt(c.rnd.IntN(numEntities)), c.rnd.IntN(slots)
	if c.rnd.IntN(100) < 45 {
		if d.owned() {
			d.writeOwn(ctx, c, slot)
			return
		}
		d.writeOne(ctx, c, e, slot, c.rnd.IntN(100))
		return
	}
	if d.fields && c.rnd.IntN(3) > 0 {
		d.readFields(ctx, c, e, slot)
		return
	}
	d.read(ctx, c, e, slot)
}

// writeOne makes a call that changes a point, and reports whether its outcome is known.
func (d *points[T]) writeOne(ctx context.Context, c *client, e tsdb.Entity, slot, kind int) (known bool) {
	v := d.value(c)
	p := tsdb.Point[T]{Entity: e, Time: timeOf(slot), Value: d.of(v)}
	o := op{action: d.write, slot: slot, value: v}
	var err error
	last := slot
	switch {
	case kind < 40:
		ctx, call := c.begin(ctx, "Put")
		err = d.repo(c).Put(ctx, e, p.Time, p.Value)
		d.wrote(c, call, e, o, err)
	case kind < 50:
		d.writeMany(ctx, c, p, o, "Enqueue", d.repo(c).Via(c.node.writer).EnqueueMany)
	case kind < 70 && d.absent:
		ctx, call := c.begin(ctx, "PutIfAbsent")
		var stored bool
		stored, err = d.repo(c).PutIfAbsent(ctx, e, p.Time, p.Value)
		o.action = insert
		if err == nil && !stored {
			call.refused(d.rows(c, e), o)
		} else {
			call.wrote(d.rows(c, e), o, err)
		}
		if errors.Is(err, tsdb.ErrUnknown) {
			return false // another write may have replaced its own
		}
	case kind < 70:
		d.writeMany(ctx, c, p, o, "PutMany", d.repo(c).PutMany)
	case kind < 85:
		ctx, call := c.begin(ctx, "Delete")
		err = d.repo(c).Delete(ctx, e, p.Time)
		call.wrote(d.rows(c, e), op{action: remove, slot: slot}, err)
	default:
		_, last = d.ownSlots(slot)
		last = min(slot+1+c.rnd.IntN(2), last)
		ctx, call := c.begin(ctx, "DeleteRange")
		_, err = d.repo(c).DeleteRange(ctx, e, tsdb.Between(timeOf(slot), timeOf(last)).ClosedEnd())
		for i := slot; i <= last; i++ {
			call.wrote(d.rows(c, e), op{action: remove, slot: i}, err)
		}
		if err != nil {
			c.explain(err)
			return false // some points, or the head, may be as before
		}
	}
	for row := d.part(c, e); err == nil && slot <= last; slot++ {
		row.row = slot
		c.node.acked.Store(row, c.tick())
	}
	c.explain(err, tsdb.ErrExists)
	return err == nil || errors.Is(err, tsdb.ErrRejected)
}

// wrote records the result of a Put. In a dataset in which the first write wins it may say that there is another value.
func (d *points[T]) wrote(c *client, call *call, e tsdb.Entity, o op, err error) {
	if errors.Is(err, tsdb.ErrExists) {
		call.refused(d.rows(c, e), o)
		return
	}
	call.wrote(d.rows(c, e), o, err)
}

// read makes a call that reads.
func (d *points[T]) read(ctx context.Context, c *client, e tsdb.Entity, slot int) {
	repo, at := d.repo(c), timeOf(slot)
	single := func(what string, from int, f func(context.Context) (tsdb.Point[T], error)) {
		ctx, call := c.begin(ctx, what)
		p, err := f(ctx)
		if seen, ok := d.newest(c, from, []tsdb.Point[T]{p}, 1, err); ok {
			call.saw(d.part(c, e), seen)
		}
	}
	order := []tsdb.Order{tsdb.NewestFirst, tsdb.OldestFirst}[c.rnd.IntN(2)]
	to := min(slot+c.rnd.IntN(slots), slots-1)
	in := tsdb.Between(at, timeOf(to)).ClosedEnd()
	switch c.rnd.IntN(14) {
	case 0:
		ctx, call := c.begin(ctx, "Get")
		p, err := repo.Get(ctx, e, at, c.hedge())
		if seen, ok := d.window(c, slot, slot, []tsdb.Point[T]{p}, err); ok {
			call.saw(d.part(c, e), seen)
		}
	case 1, 2:
		single("Latest", slots-1, func(ctx context.Context) (tsdb.Point[T], error) { return repo.Latest(ctx, e, c.hedge()) })
	case 3:
		single("AsOf", slot, func(ctx context.Context) (tsdb.Point[T], error) { return repo.AsOf(ctx, e, at) })
	case 4:
		ctx, call := c.begin(ctx, "LatestN")
		n := 1 + c.rnd.IntN(slots)
		newest, err := repo.LatestN(ctx, e, n)
		if seen, ok := d.newest(c, slots-1, newest, n, err); ok {
			call.saw(d.part(c, e), seen)
		}
	case 5, 6:
		ctx, call := c.begin(ctx, "Range")
		found, err := collect(repo.Range(ctx, e, in, order))
		if seen, ok := d.window(c, slot, to, found, err); ok {
			call.saw(d.part(c, e), seen)
		}
	case 7:
		d.pages(ctx, c, e, in, slot, to, order)
	case 8, 9:
		d.many(ctx, c, 1)
	case 10:
		d.cached(ctx, c, e)
	case 11:
		d.under(ctx, c, "Under.Latest", slots-1, 1, func(ctx context.Context, p tsdb.Prefix) ([]tsdb.Point[T], error) {
			return collect(repo.Under(p).Latest(ctx))
		})
	case 12:
		d.under(ctx, c, "Under.PageLatest", slots-1, 1, func(ctx context.Context, p tsdb.Prefix) (all []tsdb.Point[T], err error) {
			return pagesOf(func(next string) (tsdb.Page[T], error) { return repo.Under(p).PageLatest(ctx, 2, next) })
		})
	case 13:
		read := tsdb.PrefixReader[T].Range
		if c.rnd.IntN(2) == 0 {
			read = tsdb.PrefixReader[T].Merged
		}
		d.under(ctx, c, "Under.Range", slots-1, slots, func(ctx context.Context, p tsdb.Prefix) ([]tsdb.Point[T], error) {
			return collect(read(repo.Under(p), ctx, tsdb.AllTime()))
		})
	}
}

func collect[V any](seq iter.Seq2[V, error]) (all []V, err error) {
	for v, err := range seq {
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// pagesOf reads all pages.
func pagesOf[T any](page func(next string) (tsdb.Page[T], error)) (all []tsdb.Point[T], err error) {
	for next := ""; ; {
		p, err := page(next)
		if err != nil {
			return nil, err
		}
		if all, next = append(all, p.Points...), p.Next; next == "" {
			return all, nil
		}
	}
}

// window returns what a read of the slots from one to another has seen. It reports false if the read has failed.
func (d *points[T]) window(c *client, from, to int, found []tsdb.Point[T], err error) (seen sights, ok bool) {
	switch {
	case errors.Is(err, tsdb.ErrNotFound):
		found = nil
	case err != nil:
		c.explain(err)
		return seen, false
	}
	for i := from; i <= to; i++ {
		seen[i].is = absent
	}
	for _, p := range found {
		i := slotOf(p.Time)
		if i < from || i > to || seen[i].is == equal {
			c.fail("%s of %s returns %v, which is twice or outside of slots %d to %d", d.Name(), p.Entity, p, from, to)
			return seen, false
		}
		seen[i] = sight{equal, d.cell(p.Value)}
	}
	return seen, true
}

// newest returns what a read of the n newest points, up to a slot, has seen.
func (d *points[T]) newest(c *client, from int, found []tsdb.Point[T], n int, err error) (seen sights, ok bool) {
	oldest := 0
	if err == nil && len(found) == n {
		oldest = slotOf(found[n-1].Time)
	}
	return d.window(c, oldest, from, found, err)
}

// pages reads an interval page by page. Each page sees the slots behind the page before.
func (d *points[T]) pages(ctx context.Context, c *client, e tsdb.Entity, in tsdb.Interval, from, to int, order tsdb.Order) {
	for next := ""; ; {
		ctx, call := c.begin(ctx, "Page")
		page, err := d.repo(c).Page(ctx, e, in, 2, next, order)
		first, last := from, to
		if n := len(page.Points); err == nil && page.Next != "" && n > 0 {
			end := slotOf(page.Points[n-1].Time)
			if order == tsdb.NewestFirst {
				first, to = end, end-1
			} else {
				last, from = end, end+1
			}
		}
		seen, ok := d.window(c, first, last, page.Points, err)
		if ok {
			call.saw(d.part(c, e), seen)
		}
		if next = page.Next; !ok || next == "" {
			return
		}
	}
}

// many reads the n newest points of all entities. For more than one, it may read the head and then the points, which a
// deletion changes one after the other.
func (d *points[T]) many(ctx context.Context, c *client, n int) {
	var all []tsdb.Entity
	for i := range numEntities {
		all = append(all, entityAt(i))
	}
	ctx, call := c.begin(ctx, fmt.Sprint("LatestMany of ", n))
	found, err := d.repo(c).LatestMany(ctx, all, n, c.hedge())
	c.explain(err)
	for i, f := range found {
		if seen, ok := d.newest(c, slots-1, f.Points, n, f.Err); ok {
			call.saw(d.heads(c, all[i]), seen)
		}
	}
}

// acked returns the order of the last acknowledged write of each slot of an entity through the nodes.
func (d *points[T]) acked(c *client, e tsdb.Entity, nodes ...*node) (orders [slots]int64) {
	for i := range orders {
		row := d.part(c, e)
		row.row = i
		for _, n := range nodes {
			orders[i] = max(orders[i], n.lastAcked(row))
		}
	}
	return orders
}

// staleness is how old an answer of the cache may be.
const staleness = 200 * time.Millisecond

// cached reads through the last-value cache. If two clients write at the same time, the cache may keep the other value.
// So only entities with one writer are read.
func (d *points[T]) cached(ctx context.Context, c *client, e tsdb.Entity) {
	if !d.head {
		return
	}
	own := d.acked(c, e, c.node) // what this store has written counts at once, what others have written after a time
	ctx, call := c.begin(ctx, "Latest from the cache")
	p, err := d.repo(c).Latest(ctx, e, tsdb.MaxStale(staleness))
	seen, ok := d.newest(c, slots-1, []tsdb.Point[T]{p}, 1, err)
	for i, saw := range seen {
		if ok && saw.is != unseen {
			call.sawSince(d.part(c, e), sightOf(i, saw), max(own[i], c.orderBefore(call.at.Add(-staleness))))
		}
	}
}

// under reads the n newest points of each entity below a prefix. With heads it finds entities, and the newest time, by
// heads. A write under way may have written only its point. So a point that is not found is as after its last
// acknowledged write, or later.
func (d *points[T]) under(ctx context.Context, c *client, what string, from, n int, read func(context.Context, tsdb.Prefix) ([]tsdb.Point[T], error)) {
	site := c.rnd.IntN(sites)
	acked := map[tsdb.Entity][slots]int64{}
	for _, e := range entitiesOf(site) {
		acked[e] = d.acked(c, e, c.nodes...)
	}
	ctx, call := c.begin(ctx, what)
	all, err := read(ctx, tsdb.NewPrefix(siteNames[site]))
	if err != nil {
		c.explain(err)
		return
	}
	for _, e := range entitiesOf(site) {
		found := slices.DeleteFunc(slices.Clone(all), func(p tsdb.Point[T]) bool { return p.Entity != e })
		if seen, ok := d.newest(c, from, found, n, nil); ok {
			switch {
			case n == 1:
				call.saw(d.heads(c, e), seen)
			case d.head:
				for i, saw := range seen {
					since := map[presence]int64{equal: call.begun, absent: acked[e][i]}
					call.sawSince(d.part(c, e), sightOf(i, saw), since[saw.is])
				}
			default:
				call.saw(d.part(c, e), seen)
			}
		}
	}
}

func (d *points[T]) put(ctx context.Context, s *tsdb.Store, id tenant.ID, e tsdb.Entity, slot int) error {
	return d.For(s, id).Put(ctx, e, timeOf(slot), d.of(cell{1}))
}

// readAll reads each point of each entity, when nothing is written any more.
func (d *points[T]) readAll(ctx context.Context, c *client) error {
	c.node = c.nodes[0]
	for i := range numEntities {
		e := entityAt(i)
		ctx, call := c.begin(ctx, "Range at the end")
		found, err := collect(d.repo(c).Range(ctx, e, tsdb.AllTime()))
		if err != nil {
			return err
		}
		if seen, ok := d.window(c, 0, slots-1, found, nil); ok {
			call.saw(d.part(c, e), seen)
		}
	}
	for n := 1; n <= 3; n++ {
		d.many(ctx, c, n)
	}
	return ctx.Err()
}

// sawAll records that a call has seen all that another store holds.
func (d *points[T]) sawAll(c *client, call *call, in *tsdb.Store) {
	for i := range numEntities {
		e := entityAt(i)
		found, err := collect(d.For(in, c.tenant).Range(c.t.Context(), e, tsdb.AllTime()))
		c.must(err)
		if seen, ok := d.window(c, 0, slots-1, found, nil); ok {
			call.saw(d.part(c, e), seen)
		}
	}
}
