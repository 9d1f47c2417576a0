package rollup

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/tsdb"
)

// addOnce is Add in mode Once.
func (a *Adder[T]) addOnce(ctx context.Context, e tsdb.Entity, t time.Time, v T) (err error) {
	ctx, op := a.begin(ctx, 0, false)
	defer func() { op.End(err) }()
	in, u, err := a.open(ctx, Once)
	if err != nil {
		return errorOf(rejected(err))
	}
	p, err := a.place(in, u, e, t, v)
	if err != nil {
		return errorOf(rejected(err))
	}
	b := a.rollup.added.Batch()
	b.Add(p.event)
	m, _ := b.Mutation()
	return errorOf(outcome(in, in.View.Once(ctx, p.key, m, replays(in, u))))
}

// addManyOnce is AddMany in mode Once.
func (a *Adder[T]) addManyOnce(ctx context.Context, events []tsdb.Point[T]) (outcomes []tsdb.Outcome, err error) {
	if a == nil {
		a = new(Adder[T])
	}
	ctx, op := a.begin(ctx, len(events), true)
	defer func() {
		for _, o := range outcomes {
			if o.State != tsdb.Stored {
				op.Unstored(1)
			}
		}
		op.End(err)
	}()
	outcomes = make([]tsdb.Outcome, len(events))
	in, u, refused := a.open(ctx, Once)
	var rows []*rowOfEvents
	last := map[string]*rowOfEvents{}
	for i, ev := range events {
		p, err := placed{}, refused
		if err == nil {
			p, err = a.place(in, u, ev.Entity, ev.Time, ev.Value)
		}
		if err != nil {
			outcomes[i] = rejected(err)
			continue
		}
		row := last[p.key]
		if row == nil || !row.batch.Add(p.event) {
			round := 0
			if row != nil {
				round = row.round + 1
			}
			row = &rowOfEvents{key: p.key, batch: a.rollup.added.Batch(), round: round}
			row.batch.Add(p.event)
			last[p.key] = row
			rows = append(rows, row)
		}
		row.events = append(row.events, i)
	}
	for round := 0; len(rows) > 0; round++ {
		rows = a.addRound(ctx, in, replays(in, u), rows, round, outcomes)
	}
	return outcomes, inside.Of(a.writer).BatchError(outcomes)
}

// replays says how an addition of now may be repeated.
func replays(in inside.Repository, u *inside.Rollup) bt.Replays {
	return bt.Replays{Start: in.Clock(), Recognized: func(ctx context.Context) bool { return in.Table.RecognizesTokens(ctx, u.Families.Sum) }}
}

// rowOfEvents are events of one row that share a mutation.
type rowOfEvents struct {
	key    string
	batch  *rollupadd.Batch
	events []int // indexes in the call
	round  int   // how many mutations of the row precede it: a request has a row at most once
}

// addRound sends the rows of a round, and returns the rows of later rounds.
func (a *Adder[T]) addRound(ctx context.Context, in inside.Repository, again bt.Replays, rows []*rowOfEvents, round int, outcomes []tsdb.Outcome) (later []*rowOfEvents) {
	var entries []bt.Entry
	var sent []*rowOfEvents
	for _, r := range rows {
		if r.round > round {
			later = append(later, r)
			continue
		}
		m, n := r.batch.Mutation()
		entries = append(entries, bt.Entry{Key: r.key, Mutation: m, Mutations: n, Bytes: r.batch.Bytes()})
		sent = append(sent, r)
	}
	for i, out := range in.View.BulkOnce(ctx, entries, again) {
		for _, e := range sent[i].events {
			outcomes[e] = outcome(in, out)
		}
	}
	return later
}
