package spool

import (
	"context"
	"time"
)

// scrubIdle is how long nothing must be written before the spool rewrites the file by itself.
const scrubIdle = 10 * time.Second

// Scrub rewrites the file so that it holds no data of records that were done, or of dead letters that were dropped,
// before the call. It copies all remaining records, makes appends wait meanwhile, and needs as much space on the disk.
// It does nothing if nothing was done since the last rewrite. A crash leaves the old file or the new one, and no record
// is lost. Scrub does not overwrite the old file's blocks in the file system.
//
// A spool scrubs by itself after 10 seconds without a write, if the done bytes are at least a quarter of the remaining
// ones; so one record causes a copy of at most four. It also scrubs on Close if at most 8 MiB remain.
//
// Errors are those of Append except ErrFull, and those of the file system, such as a full disk. The records are then
// unchanged, and the old file stays in place, except after ErrFailed: then the folder must be opened again.
func (s *Spool) Scrub(ctx context.Context) error {
	_, err := s.do(ctx, &request{scrub: true})
	return err
}

// scrub implements Scrub, on the committer's goroutine.
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

// planScrub plans a commit that removes done records from blocks that have other records left, from a sequence number
// on. It returns where the next commit continues, because one commit handles a bounded number of bytes.
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
		case b.left == b.n, b.left == 0 && !b.dirty: // nothing is done, or the block is already removed
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

// worthScrub reports whether enough records are done for the spool to rewrite the file by itself, and how many bytes
// are left.
func (s *Spool) worthScrub() (left int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left = s.index.bytes + s.deadBytes + int64(s.metaBytes)
	return left, s.failed == nil && s.stale > 0 && s.stale >= left/4
}

// count adds to stale the bytes that a commit left unused in the file.
func (s *Spool) count(w *work) {
	for b, src := range w.sources {
		s.stale += int64(b.size * (b.n - src.left) / b.n)
	}
	s.stale += max(0, -w.deadBytes)
}
