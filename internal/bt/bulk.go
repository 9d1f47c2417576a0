package bt

import (
	"context"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/reach"
)

// Bounds of one MutateRows request. The service accepts 100,000 mutations, and the client splits larger requests by
// their number only. A request stays well below that, so it is one stream, and it is bounded in bytes too.
const (
	MaxEntries   = 10_000
	MaxMutations = 50_000
	MaxBytes     = 8 << 20
)

// Entry is one row of a bulk write. Repeating its mutation must not change the stored result, and it must replace
// whatever an earlier entry of the same row sets.
type Entry struct {
	Key       string
	Mutation  *bigtable.Mutation // nil if one of the next two is set
	Stamped   Stamped            // creates a mutation for each attempt
	Direct    Mutations          // needs no *bigtable.Mutation
	Mutations int                // number of mutations
	Bytes     int                // approximate size of the mutations
}

// Stamped creates an entry's mutation, which contains the time of the attempt.
type Stamped interface{ Mutation() *bigtable.Mutation }

func (e *Entry) mutation() *bigtable.Mutation {
	switch {
	case e.Mutation == nil && e.Stamped != nil:
		return e.Stamped.Mutation()
	case e.Direct != nil:
		m := bigtable.NewMutation()
		e.Direct.AddTo(m)
		return m
	}
	return e.Mutation
}

var errNoAnswer = status.Error(codes.Unknown, "tsdb: the service did not answer for this row")

// Bulk writes all entries and returns one outcome for each, in order. If several entries have the same row, it sends
// only the last one, and all get its outcome: the service may reorder the entries of a request. The timeout of writes
// bounds each request with its retries, the timeout of scans the whole call.
func (t *Table) Bulk(ctx context.Context, entries []Entry) []Outcome {
	last := make(map[string]int, len(entries))
	for i := range entries {
		last[entries[i].Key] = i
	}
	todo := make([]int, 0, len(last))
	for i := range entries {
		if last[entries[i].Key] == i {
			todo = append(todo, i)
		}
	}
	b := bulk{t: t, client: t.data, entries: entries, timeout: t.timeouts.Write}
	b.run(ctx, todo)
	if len(last) < len(entries) {
		for i := range entries {
			b.out[i] = b.out[last[entries[i].Key]]
		}
	}
	return b.out
}

// bulk is a running bulk write.
type bulk struct {
	t       *Table
	client  bigtable.TableAPI
	entries []Entry
	timeout time.Duration       // of each request with its repetitions
	tokens  []*btpb.Idempotency // by entry; nil if repeating an entry changes nothing
	replays Replays             // with tokens
	tracks  []Tracker
	out     []Outcome
}

// run writes the entries in as many requests as needed.
func (b *bulk) run(ctx context.Context, todo []int) {
	ctx, cancel := within(ctx, b.t.timeouts.Scan)
	defer cancel()
	b.tracks, b.out = make([]Tracker, len(b.entries)), make([]Outcome, len(b.entries))
	for len(todo) > 0 {
		n := b.fit(todo)
		b.write(ctx, todo[:n])
		todo = todo[n:]
	}
}

// fit returns how many of the entries go into one request.
func (b *bulk) fit(todo []int) int {
	muts, bytes := 0, 0
	for n, i := range todo {
		e := &b.entries[i]
		muts += e.Mutations
		bytes += len(e.Key) + e.Bytes
		if n > 0 && (n == MaxEntries || muts > MaxMutations || bytes > MaxBytes) {
			return n
		}
	}
	return len(todo)
}

// write sends the entries in one request, and retries those that may still succeed.
func (b *bulk) write(ctx context.Context, todo []int) {
	ctx, cancel := within(ctx, b.timeout)
	defer cancel()
	if b.tokens != nil {
		if no := b.t.refuse(ctx); no.Err != nil {
			for _, i := range todo {
				b.out[i] = no
			}
			return
		}
	}
	var pause pauser
	for {
		if ctx.Err() != nil {
			for _, i := range todo {
				if b.tracks[i].attempts == 0 {
					b.out[i] = notSent(ctx)
				}
			}
			return
		}
		again, cause := b.send(ctx, todo)
		if len(again) == 0 || !pause.wait(ctx, cause) {
			return
		}
		if len(again) < len(todo) {
			reach.Point(reach.RepeatedEntries)
		}
		todo = again
	}
}

// send makes one attempt at one request and sets the outcomes. It returns the entries that may be tried again, with the
// error that asks for the longest wait.
func (b *bulk) send(ctx context.Context, part []int) (again []int, cause error) {
	entries := make([]Entry, len(part))
	var rec record
	for n, i := range part {
		entries[n] = b.entries[i]
		if b.tokens != nil {
			rec.tokens = append(rec.tokens, b.tokens[i])
		}
	}
	for n, a := range b.t.attempt(ctx, b.client, entries, rec) {
		i := part[n]
		b.tracks[i].Note(a.Err, a.MaybeApplied)
		b.out[i] = b.tracks[i].Outcome()
		if a.Again && (b.tokens == nil || !b.tracks[i].maybeApplied || b.replays.recognized(ctx)) {
			again = append(again, i)
			cause = longer(cause, a.Err)
		}
	}
	return again, cause
}

// Answer is the result of one attempt at one entry.
type Answer struct {
	Err          error // nil if the entry is stored
	MaybeApplied bool  // it failed, but may have been applied
	Again        bool  // another attempt is safe and may succeed
	Whole        bool  // Err is the error of the whole request, not of this entry
}

// Attempt writes the entries in one request, in one attempt, and returns the result of each. No two entries may have
// the same row. Attempt has no bounds of its own: the caller respects the limits of a request and sets a deadline. If
// limit is not nil, the request announces that the caller follows the service's advice on its rate, and limit is set if
// there is some.
func (t *Table) Attempt(ctx context.Context, entries []Entry, limit *RateLimit) []Answer {
	return t.attempt(ctx, t.data, entries, record{limit: limit})
}

// attempt is Attempt through a client, with the tokens or the limit of rec.
func (t *Table) attempt(ctx context.Context, client bigtable.TableAPI, entries []Entry, rec record) []Answer {
	answers := make([]Answer, len(entries))
	rec.answers = make([]entryState, len(entries))
	keys, muts := standInKeys, standIn
	if t.guarded.Load() {
		rec.entries = requestEntries(entries)
	}
	if rec.entries == nil {
		keys, muts = make([]string, len(entries)), make([]*bigtable.Mutation, len(entries))
		for n := range entries {
			keys[n], muts[n] = entries[n].Key, entries[n].mutation()
		}
	}
	errs, err := client.ApplyBulk(withRecord(ctx, &rec), keys, muts)
	if !rec.seen {
		if err == nil && rec.entries != nil {
			err = errStandIn
		}
		for n := range answers {
			entryErr := err
			if err == nil && errs != nil {
				entryErr = errs[n]
			}
			answers[n] = Answer{Err: unguarded(ended(ctx, entryErr)).Err, MaybeApplied: true, Whole: err != nil}
		}
		return answers
	}
	t.guarded.Store(true)
	for n := range answers {
		a := &answers[n]
		a.Err, a.MaybeApplied = rec.verdict(n)
		if a.Err == nil {
			continue
		}
		a.Again = retryable(a.Err) || a.Err == errNoAnswer
		a.Whole = !rec.answers[n].answered
		a.Err = ended(ctx, a.Err)
	}
	return answers
}

// verdict returns how entry n ended, and whether it may have been applied although it failed. If a stream broke after a
// response, the service was at work: entries without an answer may have been applied, whatever the error.
func (r *record) verdict(n int) (err error, maybeApplied bool) {
	switch a := r.answers[n]; {
	case a.answered:
		return a.err, !refused(a.err) && status.Code(a.err) != codes.ResourceExhausted
	case r.err == nil:
		return errNoAnswer, true
	}
	return r.err, r.answered || !refused(r.err)
}
