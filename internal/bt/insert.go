package bt

import (
	"context"
	"sync"

	"cloud.google.com/go/bigtable"
)

// Insertion is a row that is written only where nothing that Exists passes is there yet.
type Insertion struct {
	Key      string
	Exists   bigtable.Filter
	Mutation *bigtable.Mutation
	// Mine reports whether a row that Exists passed is the one that Mutation writes.
	Mine func(bigtable.Row) bool
	// Tell asks to tell Same from Other always, at the cost of a read where the row is there. Without it the row is read
	// only where an answer was lost, and Other is any row.
	Tell bool
}

// Inserted says how an insertion whose outcome is Stored found the row.
type Inserted uint8

// What an insertion found.
const (
	Fresh Inserted = iota + 1 // nothing: it is written
	Same                      // what it would have written
	Other                     // something else, which was left as it is
)

// Insert makes the insertion, within the timeout of writes. Where an answer was lost it tries again, and reports a row that
// it then finds and that is Mine as Fresh: its own earlier attempt.
func (t *Table) Insert(ctx context.Context, in Insertion) (Inserted, Outcome) {
	ctx, cancel := within(ctx, t.timeouts.Write)
	defer cancel()
	var tr tracker
	var pause pauser
	for {
		matched, out := t.Conditional(ctx, in.Key, in.Exists, nil, in.Mutation)
		if out.Attempts == 0 {
			if tr.attempts == 0 {
				return 0, out
			}
			return 0, tr.outcome()
		}
		doubt := tr.doubt
		tr.note(out.Err)
		switch {
		case out.Err == nil && !matched:
			return Fresh, tr.outcome()
		case out.Err == nil:
			return t.found(ctx, in, doubt, &tr)
		case !retryable(out.Err) || !pause.wait(ctx, out.Err):
			return 0, tr.outcome()
		}
	}
}

// found tells a row that is there already from the insertion's own.
func (t *Table) found(ctx context.Context, in Insertion, doubt bool, tr *tracker) (Inserted, Outcome) {
	if !doubt && !in.Tell {
		return Other, tr.outcome()
	}
	row, err := t.Row(ctx, in.Key, in.Exists)
	switch {
	case err != nil && doubt:
		return 0, Outcome{State: Unknown, Attempts: tr.attempts, Err: err}
	case err != nil:
		return 0, Outcome{State: Rejected, Attempts: tr.attempts, Err: err}
	case !in.Mine(row):
		return Other, tr.outcome()
	case doubt:
		return Fresh, tr.outcome()
	}
	return Same, tr.outcome()
}

// InsertMany makes the insertions, at most width at a time, and returns what each found, in order. Insertions of one row
// are made in their order.
func (t *Table) InsertMany(ctx context.Context, ins []Insertion, width int) ([]Inserted, []Outcome) {
	found, out := make([]Inserted, len(ins)), make([]Outcome, len(ins))
	order := make(map[string][]int, len(ins))
	var keys []string
	for i, in := range ins {
		if order[in.Key] == nil {
			keys = append(keys, in.Key)
		}
		order[in.Key] = append(order[in.Key], i)
	}
	next := make(chan string)
	var workers sync.WaitGroup
	for range min(width, len(keys)) {
		workers.Go(func() {
			for key := range next {
				for _, i := range order[key] {
					found[i], out[i] = t.Insert(ctx, ins[i])
				}
			}
		})
	}
	for _, key := range keys {
		next <- key
	}
	close(next)
	workers.Wait()
	return found, out
}
