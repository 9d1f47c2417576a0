package spool

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Append stores records and returns the sequence number of the first; the others follow it without a gap. It returns
// when the records are on disk and synced. Appends that wait at the same time share a commit. Append stores either all
// records of a call or none. It copies the records before it waits.
//
// Append stored nothing if the context ended before a commit took the records, if the journal is full (ErrFull, at
// once) or closed, or if the file system failed, for example because the disk is full; the spool then goes on. Only
// ErrUnsure means that the records may be on disk: the context ended during the commit, which is not rolled back, or
// the disk failed at the end of the commit. Such records are delivered like others; appending them again stores them
// twice. A record has up to 32 MiB and may be empty.
func (s *Spool) Append(ctx context.Context, records [][]byte) (first uint64, err error) {
	size, err := s.size(records)
	if err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	body := make([]byte, 0, size)
	for _, r := range records {
		body = appendFrame(body, r)
	}
	r, err := s.do(ctx, &request{body: body, records: len(records)})
	if err != nil {
		return 0, err
	}
	return r.first, nil
}

// size returns how many bytes records count towards MaxBytes.
func (s *Spool) size(records [][]byte) (int64, error) {
	if len(records) == 0 {
		return 0, invalid.New(ErrInvalid, "records", "empty", "at least one record")
	}
	size := int64(0)
	for i, r := range records {
		if len(r) > maxRecord {
			return 0, invalid.New(ErrInvalid, "record "+strconv.Itoa(i), strconv.Itoa(len(r))+" bytes", "at most 32 MiB")
		}
		size += int64(frameSize(r))
	}
	if size > s.o.MaxBytes {
		return 0, invalid.New(ErrInvalid, "records", strconv.FormatInt(size, 10)+" bytes", "at most MaxBytes, which is "+strconv.FormatInt(s.o.MaxBytes, 10))
	}
	return size, nil
}

// room reports whether an append of size bytes may wait for a commit. The caller holds mu.
func (s *Spool) room(size int64) bool {
	used := s.index.bytes + s.deadBytes + s.asked
	// An empty journal accepts every append that size allows, although a block adds some bytes.
	return used+size <= s.o.MaxBytes || used == 0
}

// Room waits until an Append of these records would not get ErrFull. Another append may take the room first, so call
// both in a loop. Errors are the context's, ErrClosed and the error that ended the spool.
func (s *Spool) Room(ctx context.Context, records [][]byte) error {
	size, err := s.size(records)
	if err != nil {
		return err
	}
	for {
		s.mu.Lock()
		err, room, changed := s.refusal(), s.room(size), s.changed
		s.mu.Unlock()
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if room {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Done marks records as delivered: Read no longer returns them, and their space is free once all records of their block
// are done. It does no I/O. A commit writes the marks to disk within about a quarter of a second, Close at the latest.
// After a crash before that, Read returns these records again; no other record is lost. Done ignores unknown and
// repeated sequence numbers.
func (s *Spool) Done(seqs ...uint64) {
	s.mu.Lock()
	before, dirty := s.index.bytes, len(s.index.dirty) > 0
	for _, seq := range seqs {
		if b, place, ok := s.index.find(seq); ok {
			s.index.mark(b, place)
		}
	}
	if s.index.bytes != before {
		s.signal()
	}
	kick := !dirty && len(s.index.dirty) > 0
	s.mu.Unlock()
	if kick {
		s.kick()
	}
}

// request is one call's part of the next commit. Exactly one field of its first group is set.
type request struct {
	body   []byte // records, by appendFrame
	bury   []Dead
	revive []uint64
	drop   []uint64
	meta   *meta
	scrub  bool

	records int // in body

	first uint64 // for body: its first sequence number
	n     int    // for revive and drop: how many there were

	taken bool          // taken by a commit; guarded by Spool.mu
	done  chan struct{} // closed when err is final
	err   error
}

type meta struct {
	name   string
	value  []byte
	remove bool
}

// do hands a request to the committer and waits for its outcome.
func (s *Spool) do(ctx context.Context, r *request) (*request, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.done = make(chan struct{})
	s.mu.Lock()
	if err := s.refusal(); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	if size := int64(len(r.body)); size > 0 {
		if !s.room(size) {
			s.mu.Unlock()
			return nil, ErrFull
		}
		s.asked += size
	}
	s.queue = append(s.queue, r)
	s.mu.Unlock()
	s.kick()
	select {
	case <-r.done:
		return r, r.err
	case <-ctx.Done():
	}
	if s.withdraw(r) {
		return nil, ctx.Err()
	}
	select {
	case <-r.done:
		return r, r.err
	default:
		return nil, fmt.Errorf("%w: %w", ErrUnsure, ctx.Err())
	}
}

// withdraw takes a request out of the queue, if no commit has taken it.
func (s *Spool) withdraw(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.taken {
		return false
	}
	s.queue = slices.DeleteFunc(s.queue, func(other *request) bool { return other == r })
	s.asked -= int64(len(r.body))
	s.signal()
	return true
}
