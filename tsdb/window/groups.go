package window

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
)

// maxGroupEntities is how many entities one group of ReadGroups may have.
const maxGroupEntities = 100_000

// Group is what [Aggregator.ReadGroups] returns for the entities that share their first key fields.
type Group struct {
	// Prefix has the key fields that the entities share.
	Prefix tsdb.Prefix `json:"prefix"`
	// Entities is how many entities were read. Each bucket says how many of them have points in it.
	Entities int `json:"entities"`
	// Buckets are the buckets of all entities, added up as Aggregator.ReadGroup says.
	Buckets []Bucket `json:"buckets"`
}

// ReadGroups aggregates the points of all entities under a prefix by groups and time buckets. A group is the entities
// with the same values in the next key fields below the prefix: with AllEntities and 1 field, each site is a group;
// with 0 fields, all entities under the prefix are one. At least one key field is left for the entities of a group.
// Groups come in the order of their entities, and each group's buckets newest first or in another tsdb.Order.
//
// Each entity is aggregated on its own, and the buckets of a group are added up: [Aggregator.ReadGroup] says what that
// means for each aggregate. A counter's increase is never counted from one entity to another.
//
// It finds the entities at the cost of tsdb.PrefixReader.Entities. Each entity with points since the interval began
// costs as much as [Aggregator.Read] from the points; others cost nothing more, unless a measure has Durations or Hold:
// the last state or number may last into the interval. 16 entities of a group are read at the same time, or as many as
// a tsdb.Concurrency says. The tenant's FanOut bounds these reads and the search for entities together.
//
// It holds one group in memory: its entities, up to 100,000 of them, and its buckets, up to the aggregator's MaxFilled.
// A group with more entities is refused with tsdb.ErrInvalid, and one with more buckets with [ErrTooManyFilled]. There
// is no limit on the number of groups. The interval has a start and an end, and the tenant's limit on the length of
// ranges applies. Any error is the last pair. A point that does not decode is counted as Bad in its bucket. The scan
// timeout bounds the iteration, including the time that the loop body takes.
func (a *Aggregator[T]) ReadGroups(ctx context.Context, from tsdb.PrefixReader[T], fields int, in tsdb.Interval, opts ...tsdb.ReadOption) iter.Seq2[Group, error] {
	return func(yield func(Group, error) bool) {
		_, width, _ := inside.Of(in).ReadOptions(opts) // Begin reports the error
		opts := append(slices.Clip(opts), tsdb.Concurrency(cmp.Or(width, groupConcurrency)))
		ctx, c, err := inside.Of(from).Begin(ctx, telemetry.WindowGroups, in, opts)
		defer func() { c.End(err) }()
		repo, p := inside.Of(from).Scope()
		if err == nil {
			err = a.checkGroups(&c, p, fields, in)
		}
		if err != nil {
			yield(Group{}, err)
			return
		}
		if c.Oldest > c.Newest {
			return
		}
		g := grouping[T]{
			PrefixRead: &c, yield: yield, by: a, in: in, of: len(p.Parts()) + fields,
			repo: inside.Of(repo).Unlimited(nil), // this call has been counted
			opts: opts,
		}
		c.Slots = make(chan struct{}, c.Options.Width)
		carries := a.carriesStates()
		err = c.NewestOfEach(ctx, 1, false, func(h dataset.Hit) bool {
			return h.Units < c.Oldest && !carries || g.take(ctx, inside.Of(tsdb.Entity{}).At(h.Path))
		})
		if err == nil && g.err == nil && !g.stopped {
			g.flush(ctx)
		}
		if g.err != nil {
			err = g.err
		}
		if err != nil && !g.stopped {
			yield(Group{}, err)
		}
	}
}

func (a *Aggregator[T]) checkGroups(c *inside.PrefixRead, p tsdb.Prefix, fields int, in tsdb.Interval) error {
	if _, _, err := closed(in); err != nil {
		return err
	}
	if a == nil || len(a.measures) == 0 {
		return invalid.New(tsdb.ErrInvalid, "aggregator", "the zero value", "an aggregator from New")
	}
	if most := len(c.Rows.D.Fields) - len(p.Parts()) - 1; fields < 0 || fields > most {
		return invalid.New(tsdb.ErrInvalid, "fields of a group", strconv.Itoa(fields), fmt.Sprintf("0 to %d: below the prefix, one key field is left for the entities of a group", most))
	}
	return nil
}

// carriesStates reports whether an entity counts in an interval in which it has no points: its last state or number
// lasts.
func (a *Aggregator[T]) carriesStates() bool {
	return slices.ContainsFunc(a.rules, func(r rule) bool { return r.lasts() })
}

// grouping is one loop over the result of ReadGroups.
type grouping[T any] struct {
	*inside.PrefixRead
	yield   func(Group, error) bool
	by      *Aggregator[T]
	repo    *tsdb.Repository[T]
	in      tsdb.Interval
	opts    []tsdb.ReadOption
	of      int // how many key fields the entities of a group share
	prefix  tsdb.Prefix
	members []tsdb.Entity
	stopped bool // the caller left the loop
	err     error
}

// take adds an entity to its group, and reports whether the call goes on.
func (g *grouping[T]) take(ctx context.Context, e tsdb.Entity) bool {
	prefix := tsdb.AllEntities()
	if g.of > 0 {
		prefix = tsdb.NewPrefix(e.Parts()[:g.of]...)
	}
	if len(g.members) > 0 && prefix != g.prefix && !g.flush(ctx) {
		return false
	}
	if len(g.members) == maxGroupEntities {
		g.err = invalid.New(tsdb.ErrInvalid, "entities of group "+g.prefix.String(), "more than "+strconv.Itoa(maxGroupEntities),
			"up to "+strconv.Itoa(maxGroupEntities)+"; a longer prefix, or more fields")
		return false
	}
	g.prefix, g.members = prefix, append(g.members, e)
	return true
}

// flush yields the group, and reports whether the call goes on.
func (g *grouping[T]) flush(ctx context.Context) bool {
	if len(g.members) == 0 {
		return true
	}
	width, leave := g.enter(ctx)
	defer leave()
	group := Group{Prefix: g.prefix, Entities: len(g.members), Buckets: []Bucket{}} // not null in JSON
	for b, err := range g.by.ReadGroup(ctx, g.repo, g.members, g.in, append(slices.Clip(g.opts), tsdb.Concurrency(width))...) {
		if err != nil {
			g.err = err
			return false
		}
		group.Buckets = append(group.Buckets, b)
	}
	leave() // the scan reads on during the loop body
	g.Op.Returned(len(group.Buckets))
	g.members = g.members[:0]
	g.stopped = !g.yield(group, nil)
	return !g.stopped
}

// enter waits until the group may have requests under way, which the scan reading ahead then cannot send. It returns
// how many they are, up to one for each entity, and the function that gives them back. If the context ends first, the
// group's reads say so.
func (g *grouping[T]) enter(ctx context.Context) (width int, leave func()) {
	width = min(cap(g.Slots), len(g.members))
	held := 0
	for held < width && ctx.Err() == nil {
		select {
		case g.Slots <- struct{}{}:
			held++
		case <-ctx.Done():
		}
	}
	return width, func() {
		for ; held > 0; held-- {
			<-g.Slots
		}
	}
}
