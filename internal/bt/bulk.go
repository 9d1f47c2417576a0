package bt

import (
	"context"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Bounds of one MutateRows request. The service takes 100,000 mutations, and the client splits there, by count alone; a
// request stays well below so that it is one stream, and is bounded in bytes too.
const (
	maxEntries   = 10_000
	maxMutations = 50_000
	maxBytes     = 8 << 20
)

// Entry is one row of a bulk write. Its mutation may be repeated without changing what ends up stored, and replaces
// whatever an earlier entry for the same row has set.
type Entry struct {
	Key       string
	Mutation  *bigtable.Mutation
	Mutations int // in Mutation
	Bytes     int // of Mutation, about
}

var errNoAnswer = status.Error(codes.Unknown, "tsdb: the service did not answer for this row")

// Bulk writes all entries and returns one outcome for each, in order. Of several entries for one row only the last is
// sent, and its outcome is that of all of them: the service may reorder the entries of a request. Each request with its
// retries is bounded by the timeout of writes, the whole call by that of scans.
func (t *Table) Bulk(ctx context.Context, entries []Entry) []Outcome {
	ctx, cancel := within(ctx, t.timeouts.Scan)
	defer cancel()
	last := make(map[string]int, len(entries))
	for i := range entries {
		last[entries[i].Key] = i
	}
	b := bulk{t: t, entries: entries, tracks: make([]tracker, len(entries)), out: make([]Outcome, len(entries))}
	todo := make([]int, 0, len(last))
	for i := range entries {
		if last[entries[i].Key] == i {
			todo = append(todo, i)
		}
	}
	for len(todo) > 0 {
		n := b.fit(todo)
		b.write(ctx, todo[:n])
		todo = todo[n:]
	}
	if len(last) < len(entries) {
		for i := range entries {
			b.out[i] = b.out[last[entries[i].Key]]
		}
	}
	return b.out
}

// bulk is one bulk write under way.
type bulk struct {
	t       *Table
	entries []Entry
	tracks  []tracker
	out     []Outcome
}

// fit returns how many of the entries go into one request.
func (b *bulk) fit(todo []int) int {
	muts, bytes := 0, 0
	for n, i := range todo {
		e := &b.entries[i]
		muts += e.Mutations
		bytes += len(e.Key) + e.Bytes
		if n > 0 && (n == maxEntries || muts > maxMutations || bytes > maxBytes) {
			return n
		}
	}
	return len(todo)
}

// write sends the entries in one request, and again those that may still succeed.
func (b *bulk) write(ctx context.Context, todo []int) {
	ctx, cancel := within(ctx, b.t.timeouts.Write)
	defer cancel()
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
		todo = again
	}
}

// send makes one attempt at one request, sets the outcomes, and returns the entries that may be tried again, with the
// cause that asks for the longest wait.
func (b *bulk) send(ctx context.Context, part []int) (again []int, cause error) {
	keys := make([]string, len(part))
	muts := make([]*bigtable.Mutation, len(part))
	for n, i := range part {
		keys[n], muts[n] = b.entries[i].Key, b.entries[i].Mutation
	}
	rec := record{answers: make([]entryState, len(part))}
	errs, err := b.t.data.ApplyBulk(withRecord(ctx, &rec), keys, muts)
	if !rec.seen {
		for n, i := range part {
			entryErr := err
			if err == nil && errs != nil {
				entryErr = errs[n]
			}
			b.out[i] = unguarded(ended(ctx, entryErr))
		}
		return nil, nil
	}
	for n, i := range part {
		entryErr, doubt := rec.verdict(n)
		b.tracks[i].note(ended(ctx, entryErr), doubt)
		b.out[i] = b.tracks[i].outcome()
		if entryErr != nil && (retryable(entryErr) || entryErr == errNoAnswer) {
			again = append(again, i)
			cause = longer(cause, entryErr)
		}
	}
	return again, cause
}

// verdict returns how entry n ended, and whether it may have been applied all the same. A stream that broke after a
// response was under way: what it had not answered yet is in doubt whatever it broke with.
func (r *record) verdict(n int) (err error, doubt bool) {
	switch a := r.answers[n]; {
	case a.answered:
		return a.err, !refused(a.err) && status.Code(a.err) != codes.ResourceExhausted
	case r.err == nil:
		return errNoAnswer, true
	}
	return r.err, r.answered || !refused(r.err)
}
