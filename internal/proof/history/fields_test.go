package history

import (
	"context"
	"errors"
	"slices"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

var fieldNames = [2]string{"a", "b"}

func recordOf(c cell) (r codec.Record) {
	for i, v := range c {
		if v != 0 {
			r = r.With(fieldNames[i], codec.Int(int64(v)))
		}
	}
	return r
}

func cellOf(r codec.Record) (c cell) {
	for i, name := range fieldNames {
		if v, ok := r.Lookup(name); ok {
			n, _ := v.Int()
			c[i] = int32(n)
		}
	}
	return c
}

// pair is a payload with two fields.
type pair struct {
	A *int32 `json:"a,omitempty"`
	B *int32 `json:"b,omitempty"`
}

func pairOf(c cell) (p pair) {
	for i, to := range []**int32{&p.A, &p.B} {
		if c[i] != 0 {
			*to = &c[i]
		}
	}
	return p
}

func cellOfPair(p pair) (c cell) {
	for i, from := range []*int32{p.A, p.B} {
		if from != nil {
			c[i] = *from
		}
	}
	return c
}

// newFielded returns datasets whose heads have fields: structs, which replace points, and records, which are merged.
// Two clients write an entity of the latter, each at times of its own.
func newFielded(collects bool) []dataset {
	opts := tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Fields: true}}
	records := points[codec.Record]{write: merge, wide: true, fields: true, split: 2, of: recordOf, cell: cellOf}
	records.meeting = map[tsdb.Entity]chan struct{}{}
	for i := range numEntities {
		records.meeting[entityAt(i)] = make(chan struct{})
	}
	records.Schema = tsdb.MustDefine("fields", tsdb.Key("site", "device"), codec.Records(), with(opts, func(o *tsdb.SchemaOptions) { o.Merge = true }))
	pairs := points[pair]{write: set, wide: true, fields: true, head: !collects, of: pairOf, cell: cellOfPair}
	pairs.Schema = tsdb.MustDefine("pairs", tsdb.Key("site", "device"), codec.JSON[pair](), with(opts, func(o *tsdb.SchemaOptions) {
		if pairs.head {
			o.Head.Points = 1
		}
	}))
	return []dataset{&records, &pairs}
}

func with(o tsdb.SchemaOptions, change func(*tsdb.SchemaOptions)) tsdb.SchemaOptions {
	change(&o)
	return o
}

// writeSeries writes some points of an entity in one call, and reports whether all outcomes are known.
func (d *points[T]) writeSeries(ctx context.Context, c *client, e tsdb.Entity, slot int) bool {
	var batch []tsdb.Point[T]
	var ops []op
	_, last := d.ownSlots(slot)
	for i := slot; i <= last; i++ {
		v := d.value(c)
		batch = append(batch, tsdb.Point[T]{Entity: e, Time: timeOf(i), Value: d.of(v)})
		ops = append(ops, op{action: d.write, slot: i, value: v})
	}
	what, write := "PutMany", d.repo(c).PutMany
	if c.rnd.IntN(2) == 0 {
		what, write = "Enqueue", d.repo(c).Via(c.node.writer).EnqueueMany
	}
	ctx, made := c.begin(ctx, what)
	outs, _ := write(ctx, batch) // the outcomes have the errors
	known := true
	for i, out := range outs {
		if what == "Enqueue" {
			made.sent.sentBy(d.part(c, e), out.Attempts)
		}
		made.wrote(d.rows(c, e), ops[i], errorOf(out))
		c.explain(errorOf(out))
		known = known && out.State != tsdb.Unknown
		if row := d.part(c, e); out.State == tsdb.Stored {
			row.row = ops[i].slot
			c.node.acked.Store(row, c.tick())
		}
	}
	return known
}

// readFields reads the newest values of the fields of one entity, of all, or of those below a prefix.
func (d *points[T]) readFields(ctx context.Context, c *client, e tsdb.Entity, slot int) {
	var options tsdb.FieldOptions
	from := slots - 1
	if c.rnd.IntN(4) == 0 {
		options.AsOf, from = timeOf(slot), slot
	}
	if c.rnd.IntN(4) == 0 {
		options.MaxPoints = 1 + c.rnd.IntN(slots)
	}
	switch c.rnd.IntN(4) {
	case 0:
		d.manyFields(ctx, c, options, from)
	case 1:
		d.fieldsUnder(ctx, c, options, from)
	default:
		ctx, call := c.begin(ctx, "LatestFields")
		f, err := d.repo(c).LatestFields(ctx, e, options, c.hedge())
		d.sawFields(c, call, e, from, f, err)
	}
}

func (d *points[T]) manyFields(ctx context.Context, c *client, options tsdb.FieldOptions, from int) {
	all := slices.Concat(entitiesOf(0), entitiesOf(1))
	ctx, call := c.begin(ctx, "LatestFieldsMany")
	found, err := d.repo(c).LatestFieldsMany(ctx, all, options, c.hedge())
	c.explain(err)
	for i, f := range found {
		d.sawFields(c, call, all[i], from, f, f.Err)
	}
}

func (d *points[T]) fieldsUnder(ctx context.Context, c *client, options tsdb.FieldOptions, from int) {
	site := c.rnd.IntN(sites)
	ctx, call := c.begin(ctx, "Under.LatestFields")
	found, err := collect(d.repo(c).Under(tsdb.NewPrefix(siteNames[site])).LatestFields(ctx, options))
	if err != nil {
		c.explain(err)
		return
	}
	for _, e := range entitiesOf(site) {
		if i := slices.IndexFunc(found, func(f tsdb.Fields[T]) bool { return f.Entity == e }); i >= 0 {
			d.sawFields(c, call, e, from, found[i], nil)
		} else if call.sent.scansOf(d.part(c, e)) > 0 {
			d.sawFields(c, call, e, from, tsdb.Fields[T]{}, nil)
		} else if seen, ok := d.window(c, 0, slots-1, nil, nil); ok { // no point or head of it was found
			call.saw(d.heads(c, e), seen)
		}
	}
}

// sawFields records what a read of fields, up to a slot, has seen of an entity: of its head, or of its points if these
// were read.
func (d *points[T]) sawFields(c *client, call *call, e tsdb.Entity, from int, f tsdb.Fields[T], err error) {
	if err != nil && !errors.Is(err, tsdb.ErrNotFound) {
		c.explain(err)
		return
	}
	seen := d.fieldSights(c, e, from, f)
	p := d.part(c, e)
	if n := call.sent.scansOf(p); n > 0 {
		call.sawAt(p, seen, call.begun, !call.byRow && n == 1)
		return
	}
	call.saw(headOf(p), seen)
}

// fieldSights returns what fields say of points: the newest point with a field has its value, and points after it do
// not have the field.
func (d *points[T]) fieldSights(c *client, e tsdb.Entity, from int, f tsdb.Fields[T]) (seen sights) {
	oldest, v := 0, d.cell(f.Value)
	if !f.Back.IsZero() {
		oldest = slotOf(f.Back)
	}
	for i := oldest; i <= from; i++ {
		seen[i] = sight{partly, cell{anything, anything}}
	}
	for k, name := range fieldNames {
		at, found := f.Times.Of(name)
		newest := oldest - 1
		if found {
			newest = slotOf(at)
		}
		if found != (v[k] != 0) || newest < oldest-1 || newest > from || found && newest < oldest {
			c.fail("%s of %v returns %v with the times %v, outside of slots %d to %d", d.Name(), e, v, f.Times, oldest, from)
			return sights{}
		}
		for i := newest + 1; i <= from; i++ {
			seen[i].value[k] = 0
		}
		if found {
			seen[newest].value[k] = v[k]
		}
	}
	return seen
}
