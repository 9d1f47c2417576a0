package spool

import (
	"context"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Dead asks for a record to become a dead letter.
type Dead struct {
	// Seq is the record's sequence number.
	Seq uint64
	// Reason says why it cannot be delivered, in up to 64 KiB.
	Reason string
	// Attempts is how often that was tried.
	Attempts int
	// Data is what the dead letter holds, and what Revive appends; nil is the record's own.
	Data []byte
}

// DeadLetter is a record that could not be delivered.
type DeadLetter struct {
	// ID names the letter in this journal. It is never given again.
	ID uint64
	// Seq is the sequence number that the record had.
	Seq uint64
	// Time is when it was buried, by Options.Clock.
	Time     time.Time
	Reason   string
	Attempts int
	Data     []byte
}

// deadPage bounds what one look at the dead letters holds in memory.
const (
	deadPage      = 64
	deadPageBytes = 1 << 20
)

// Bury moves records to the dead letters, where they no longer count as to be delivered, in one durable step. Records that
// are done already are passed over; sequence numbers that were never given are refused. It works on a full journal too.
// Errors are those of Append, but for ErrFull.
func (s *Spool) Bury(ctx context.Context, letters ...Dead) error {
	if len(letters) == 0 {
		return nil
	}
	next := s.Stats().Next
	copied := slices.Clone(letters)
	for i, d := range copied {
		switch {
		case d.Seq >= next:
			return invalid.New(ErrInvalid, "sequence number", strconv.FormatUint(d.Seq, 10), "less than "+strconv.FormatUint(next, 10))
		case len(d.Reason) > maxReason:
			return invalid.New(ErrInvalid, "reason", strconv.Itoa(len(d.Reason))+" bytes", "at most 64 KiB")
		case d.Attempts < 0 || d.Attempts > maxAttempts:
			return invalid.New(ErrInvalid, "attempts", strconv.Itoa(d.Attempts), "0 to 2147483647")
		case len(d.Data) > maxRecord:
			return invalid.New(ErrInvalid, "data", strconv.Itoa(len(d.Data))+" bytes", "at most 32 MiB")
		}
		if d.Data != nil {
			copied[i].Data = append([]byte{}, d.Data...)
		}
	}
	_, err := s.do(ctx, &request{bury: copied})
	return err
}

// Revive appends dead letters again, in the order given, under new sequence numbers, and removes the letters, all in one
// durable step. It returns how many there were; others are passed over. It works on a full journal too. All letters of a
// call are in memory at once. Errors are those of Append, but for ErrFull.
func (s *Spool) Revive(ctx context.Context, ids ...uint64) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	r, err := s.do(ctx, &request{revive: slices.Clone(ids)})
	if err != nil {
		return 0, err
	}
	return r.n, nil
}

// Drop removes dead letters for good, durably, and returns how many there were. Errors are those of Append, but for
// ErrFull.
func (s *Spool) Drop(ctx context.Context, ids ...uint64) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	r, err := s.do(ctx, &request{drop: slices.Clone(ids)})
	if err != nil {
		return 0, err
	}
	return r.n, nil
}

// Dead returns the dead letters, oldest first. Each page of up to 64 letters or about 1 MiB is read by itself: letters
// that are revived or dropped meanwhile may or may not show. An error is the last pair.
func (s *Spool) Dead(ctx context.Context) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		for from, more := uint64(0), true; more; {
			var page []DeadLetter
			err := s.view(func(tx *bolt.Tx) (err error) {
				page, more, err = deadFrom(tx, from)
				return err
			})
			if err != nil {
				yield(DeadLetter{}, err)
				return
			}
			for _, d := range page {
				if err := ctx.Err(); err != nil {
					yield(DeadLetter{}, err)
					return
				}
				if !yield(d, nil) {
					return
				}
				from = d.ID + 1
			}
		}
	}
}

// deadFrom copies a page of dead letters, and says whether there may be another.
func deadFrom(tx *bolt.Tx, from uint64) (page []DeadLetter, more bool, err error) {
	table, err := txn{tx: tx}.bucket(dead)
	if err != nil {
		return nil, false, err
	}
	size := 0
	c := table.Cursor()
	for k, v := c.Seek(seqKey(from)); k != nil; k, v = c.Next() {
		if len(page) == deadPage || size >= deadPageBytes {
			return page, true, nil
		}
		if len(k) != 8 {
			return nil, false, damaged("a dead letter with a key of %d bytes", len(k))
		}
		value, err := unseal(dead, k, v)
		if err != nil {
			return nil, false, err
		}
		d, err := decodeDead(binary.BigEndian.Uint64(k), slices.Clone(value))
		if err != nil {
			return nil, false, err
		}
		page, size = append(page, d), size+len(v)
	}
	return page, false, nil
}

// buryAll writes the commit's dead letters, while their records are still where they were.
func (w *work) buryAll(t txn) error {
	loaded := map[*block][]frame{}
	for _, b := range w.burials {
		data := b.dead.Data
		if data == nil {
			if loaded[b.src.b] == nil {
				list, err := b.src.b.frames(t.tx)
				if err != nil {
					return err
				}
				loaded[b.src.b] = list
			}
			data = loaded[b.src.b][b.place].data
		}
		if w.state.nextDead == math.MaxUint64 {
			return damaged("no number is left for a dead letter")
		}
		size, err := t.put(dead, seqKey(w.state.nextDead), encodeDead(DeadLetter{
			Seq: b.dead.Seq, Time: w.now(), Reason: b.dead.Reason, Attempts: b.dead.Attempts, Data: data,
		}))
		if err != nil {
			return err
		}
		w.state.nextDead++
		w.deadBytes += int64(size)
	}
	return nil
}

// unbury does what a request asks of dead letters that are there.
func (w *work) unbury(t txn, out *writer, r *request) error {
	r.n = 0
	for _, ids := range [][]uint64{r.revive, r.drop} {
		for _, id := range ids {
			key := seqKey(id)
			value, err := load(t.tx, dead, key)
			if err != nil {
				return err
			}
			if value == nil {
				continue
			}
			if r.revive != nil {
				d, err := decodeDead(id, value)
				if err != nil {
					return err
				}
				if err := out.append(appendFrame(nil, d.Data)); err != nil {
					return err
				}
			}
			w.deadBytes -= int64(len(key) + len(value) + sumBytes)
			if err := t.delete(dead, key); err != nil {
				return err
			}
			r.n++
		}
	}
	return nil
}
