package history

import (
	"context"

	"github.com/tidemark-go/tidemark/tsdb"
)

func errorOf(o tsdb.Outcome) error {
	if o.State == tsdb.Stored {
		return nil
	}
	return &tsdb.WriteError{Outcome: o}
}

// writeMany writes a point of each entity in one call.
func (d *points[T]) writeMany(ctx context.Context, c *client, p tsdb.Point[T], o op, what string, call func(context.Context, []tsdb.Point[T]) ([]tsdb.Outcome, error)) {
	var batch []tsdb.Point[T]
	var ops []op
	for i := range numEntities {
		p.Entity, o.value = entityAt(i), d.value(c)
		p.Value = d.of(o.value)
		batch, ops = append(batch, p), append(ops, o)
	}
	ctx, made := c.begin(ctx, what)
	outs, _ := call(ctx, batch) // the outcomes have the errors
	for i, out := range outs {
		e, err := batch[i].Entity, errorOf(out)
		if what == "Enqueue" {
			made.sent.sentBy(d.part(c, e), out.Attempts)
		}
		d.wrote(c, made, e, ops[i], err)
		c.explain(err, tsdb.ErrExists)
	}
}
