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

// Dead is a request to turn a record into a dead letter.
type Dead struct {
	// Seq is the record's sequence number.
	Seq uint64
	// Reason says why the record cannot be delivered, in up to 64 KiB.
	Reason string
	// Attempts is the number of delivery attempts.
	Attempts int
	// Data is what the dead letter holds, and what Revive appends. Nil means the record's own data.
	Data []byte
}

// DeadLetter is a record that could not be delivered.
type DeadLetter struct {
	// ID identifies the letter in this journal. It is never used again.
	ID uint64
	// Seq is the sequence number of the record.
	Seq uint64
	// Time is when the record became a dead letter, by Options.Clock.
	Time     time.Time
	Reason   string
	Attempts int
	Data     []byte
}

// deadPage and deadPageBytes bound how many dead letters one transaction reads into memory.
const (
	deadPage      = 64
	deadPageBytes = 1 << 20
)

// Bury turns records into dead letters in one durable step; they are then no longer to be delivered. It skips records
// that are done already and refuses sequence numbers that were never assigned. It works on a full journal too. Errors
// are those of Append except ErrFull.
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

// Revive appends dead letters again, in the given order, under new sequence numbers, and removes the letters, all in
// one durable step. It returns how many it found and skips the others. It works on a full journal too. It holds all
// letters of a call in memory at once. Errors are those of Append except ErrFull.
func (s *Spool) Revive(ctx context.Context, ids ...uint64) (int, error) {
	return s.unbury(ctx, &request{revive: slices.Clone(ids)})
}

// Drop permanently removes dead letters and returns how many there were. It returns when that is durable. Errors are
// those of Append except ErrFull.
func (s *Spool) Drop(ctx context.Context, ids ...uint64) (int, error) {
	return s.unbury(ctx, &request{drop: slices.Clone(ids)})
}

// unbury removes the dead letters that a request names, and returns how many there were.
func (s *Spool) unbury(ctx context.Context, r *request) (int, error) {
	if len(r.revive)+len(r.drop) == 0 {
		return 0, nil
	}
	_, err := s.do(ctx, r)
	if err != nil {
		return 0, err
	}
	return r.n, nil
}

// Dead returns the dead letters, oldest first. It reads pages of up to 64 letters or about 1 MiB. If a letter is
// revived or dropped during the loop, the loop may or may not return it. An error is the last pair.
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

// deadFrom copies a page of dead letters and reports whether there may be another.
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

// buryAll writes the commit's dead letters. It runs before the commit moves their records.
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
			return damaged("the numbers for dead letters are used up")
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

// unbury revives or drops the dead letters that a request names. It skips those that do not exist.
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
