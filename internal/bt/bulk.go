package bt

import (
	"context"
	"errors"

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

// Entry is one row of a bulk write. Its mutation may be repeated without changing what ends up stored.
type Entry struct {
	Key       string
	Mutation  *bigtable.Mutation
	Mutations int // in Mutation
	Bytes     int // of Mutation, about
}

var errNoAnswer = status.Error(codes.Unknown, "tsdb: the service did not answer for this row")

// Bulk writes all entries and returns one outcome for each, in order. Rows that occur more than once are written in the
// order of the entries: the service may reorder within a request, so never two are in one. It retries what may still
// succeed within the timeout of writes, which bounds the whole call.
func (t *Table) Bulk(ctx context.Context, entries []Entry) []Outcome {
	ctx, cancel := within(ctx, t.timeouts.Write)
	defer cancel()
	b := bulk{t: t, entries: entries, tracks: make([]tracker, len(entries)), out: make([]Outcome, len(entries))}
	for _, wave := range waves(entries) {
		b.write(ctx, wave)
	}
	return b.out
}

// waves splits the entries' indexes so that no row is twice in a wave, and each row's entries are in order over them.
func waves(entries []Entry) [][]int {
	count := make(map[string]int, len(entries))
	first := make([]int, 0, len(entries))
	out := [][]int{first}
	for i, e := range entries {
		n := count[e.Key]
		count[e.Key] = n + 1
		if n == len(out) {
			out = append(out, nil)
		}
		out[n] = append(out[n], i)
	}
	return out
}

// bulk is one bulk write under way.
type bulk struct {
	t       *Table
	entries []Entry
	tracks  []tracker
	out     []Outcome
}

// write writes the entries at the given indexes, request by request, and again what may still succeed.
func (b *bulk) write(ctx context.Context, todo []int) {
	var pause pauser
	for len(todo) > 0 {
		var again []int
		var last error
		for len(todo) > 0 {
			n := b.fit(todo)
			again = append(again, b.send(ctx, todo[:n], &last)...)
			todo = todo[n:]
		}
		if len(again) == 0 || !pause.wait(ctx, last) {
			return
		}
		todo = again
	}
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

// send makes one attempt at one request, sets the outcomes, and returns the entries that may be tried again.
func (b *bulk) send(ctx context.Context, part []int, last *error) (again []int) {
	if ctx.Err() != nil {
		for _, i := range part {
			if b.tracks[i].attempts == 0 {
				b.out[i] = notSent(ctx)
			}
		}
		return nil
	}
	keys := make([]string, len(part))
	muts := make([]*bigtable.Mutation, len(part))
	for n, i := range part {
		keys[n], muts[n] = b.entries[i].Key, b.entries[i].Mutation
	}
	rec := record{answers: make([]entryState, len(part))}
	errs, err := b.t.data.ApplyBulk(withRecord(ctx, &rec), keys, muts)
	if !rec.seen {
		for n, i := range part {
			switch {
			case err != nil:
				b.out[i] = unguarded(err)
			case errs != nil:
				b.out[i] = unguarded(errs[n])
			default:
				b.out[i] = unguarded(nil)
			}
		}
		return nil
	}
	for n, i := range part {
		entryErr := rec.answers[n].err
		if !rec.answers[n].answered {
			entryErr = rec.err
			if entryErr == nil || errors.Is(entryErr, errHandled) {
				entryErr = errNoAnswer
			}
		}
		b.tracks[i].note(entryErr)
		b.out[i] = b.tracks[i].outcome()
		if entryErr != nil && (retryable(entryErr) || entryErr == errNoAnswer) {
			again = append(again, i)
			*last = entryErr
		}
	}
	return again
}
