package history

import (
	"context"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

// changes are entities whose points are stored on change, each by one client of one program.
type changes struct {
	schema  *tsdb.Schema[int64]
	clients [stores]changing
}

// changing is what one client has offered, since its last deletion.
type changing struct {
	entity tsdb.Entity
	points []tsdb.Point[int64]
	states []tsdb.State
}

// leastChange is how long a value is left out.
const leastChange = time.Second

func newChanges() *changes {
	return &changes{schema: tsdb.MustDefine("changes", tsdb.Key("device"), codec.Int64(), tsdb.SchemaOptions{})}
}

// begin starts a client for each program.
func (c *changes) begin(ctx context.Context, w *world, load *sync.WaitGroup) {
	for i := range c.clients {
		one := &c.clients[i]
		one.entity = tsdb.NewEntity([]string{"a", "a.b", "ab"}[i])
		load.Go(func() {
			one.run(ctx, w, c.schema.For(w.nodes[i].store, acme), w.nodes[i].writer, newDice(w.seed, uint64(400+i)))
		})
	}
}

func (c *changing) run(ctx context.Context, w *world, repo *tsdb.Repository[int64], writer *tsdb.Writer, chance *dice) {
	sink := repo.Via(writer).OnChange(tsdb.OnChange[int64]{AtLeast: leastChange, Owner: true})
	for n := 0; pause(ctx, chance.millis(30)); {
		if chance.intN(40) == 0 {
			_, err := repo.DeleteRange(w.t.Context(), c.entity, tsdb.AllTime())
			w.explain(err)
			c.points, c.states = nil, nil
		}
		var points []tsdb.Point[int64]
		for range 1 + chance.intN(3) {
			points = append(points, tsdb.Point[int64]{Entity: c.entity, Time: start.Add(time.Duration(n) * 100 * time.Millisecond), Value: int64(chance.intN(8) / 6)})
			n++
		}
		outcomes, err := sink.EnqueueMany(w.t.Context(), points)
		w.explain(err)
		c.points = append(c.points, points...)
		for _, o := range outcomes {
			c.states = append(c.states, o.State)
		}
	}
}

// check compares what was offered with what is stored, without faults: a point that was left out is there, or the
// newest one before it has its value and is less than leastChange older.
func (c *changes) check(w *world) {
	for i := range c.clients {
		one, repo := &c.clients[i], c.schema.For(w.nodes[i].store, acme)
		w.slowly(w.nodes[i].writer.Flush)
		there, err := collect(repo.Range(w.t.Context(), one.entity, tsdb.AllTime(), tsdb.OldestFirst))
		if err != nil {
			w.fail("reading %v: %v", one.entity, err)
		}
		for k, p := range one.points {
			var before tsdb.Point[int64]
			for _, q := range there {
				if !q.Time.After(p.Time) {
					before = q
				}
			}
			switch same := before.Value == p.Value; {
			case one.states[k] == tsdb.Stored && !(same && before.Time.Equal(p.Time)):
				w.fail("%v at %v is stored, and read is %v at %v", p.Value, p.Time, before.Value, before.Time)
			case one.states[k] == tsdb.Unchanged && !(same && p.Time.Sub(before.Time) < leastChange):
				w.fail("%v at %v is unchanged, and read is %v at %v", p.Value, p.Time, before.Value, before.Time)
			}
		}
	}
}
