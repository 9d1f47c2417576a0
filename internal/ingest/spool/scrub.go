package spool

import (
	"context"
	"time"
)

// scrubIdle is for how long nothing is written before the file is written anew by itself.
const scrubIdle = 10 * time.Second

// Scrub writes the file anew, so that it holds nothing of records that were done, and of dead letters that were dropped, before
// the call. It costs a copy of all records that are left, during which appends wait, and as much space on the disk; and nothing
// where nothing was done since the file was last written anew. A crash leaves the old file or the new one, and no record is lost.
// What the file system does with the blocks of the old file is its own affair.
//
// By itself a spool does the same where nothing was written for 10 seconds, if as much was done as is at least a quarter of what is
// left, so that a record costs a copy of four at most; and when it is closed with at most 8 MiB left.
//
// Errors are those of Append, but for ErrFull, and those of the file system such as a full disk, after which the file is as it was.
func (s *Spool) Scrub(ctx context.Context) error {
	_, err := s.do(ctx, &request{scrub: true})
	return err
}

// scrub does that on the committer's goroutine.
func (s *Spool) scrub() error {
	if s.stale == 0 {
		return nil
	}
	for from, more := uint64(0), true; more; {
		var w *work
		if w, from, more = s.planScrub(from); len(w.sources) == 0 {
			continue
		}
		if err := s.try(w); err != nil {
			return err
		}
	}
	err := s.rewrite()
	if err == nil {
		s.stale = 0
	}
	return err
}

// planScrub decides on a commit that removes what is done from blocks in which other records are left, from a sequence number on.
// It says where the next one goes on, as one commit takes a bounded number of bytes.
func (s *Spool) planScrub(from uint64) (w *work, next uint64, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w = s.newWork(nil)
	defer func() { s.writing = len(w.sources) > 0 }()
	size := 0
	for _, b := range s.index.list[s.index.at(from):] {
		if size >= batchBytes {
			return w, b.first, true
		}
		switch {
		case b.left == b.n, b.left == 0 && !b.dirty: // nothing is done, or it is removed already
			continue
		case b.left == 0:
			w.source(b).role = remove
		default:
			src := w.source(b)
			src.role = merge
			w.runs = append(w.runs, &run{from: []*source{src}})
		}
		size += b.size
	}
	return w, 0, false
}

// worthScrub says whether enough is done for the file to be written anew by itself, and how much is left.
func (s *Spool) worthScrub() (left int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left = s.index.bytes + s.deadBytes + int64(s.metaBytes)
	return left, s.failed == nil && s.stale > 0 && s.stale >= left/4
}

// count notes what a commit has left in the file that is not needed any more.
func (s *Spool) count(w *work) {
	for b, src := range w.sources {
		s.stale += int64(b.size * (b.n - src.left) / b.n)
	}
	s.stale += max(0, -w.deadBytes)
}
