package spool

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// run is the spool's goroutine: it commits waiting requests until Close.
func (s *Spool) run() {
	defer close(s.ended)
	var due, idle <-chan time.Time
	flush, rested := false, false // rested: the file was rewritten since the last commit, or a rewrite is scheduled
	wait := scrubIdle
	last := 0
	for {
		s.gather(last)
		s.mu.Lock()
		batch, dirty, closing := s.take(), len(s.index.dirty) > 0, s.closing
		failed := s.failed
		s.mu.Unlock()
		last = len(batch)
		if failed != nil {
			for _, r := range batch {
				r.finish(failed)
			}
			switch {
			case len(batch) > 0: // The queue may hold more.
			case closing:
				return
			default:
				<-s.wake
			}
			continue
		}
		select {
		case <-due:
			due, flush = nil, true
		default:
		}
		if len(batch) > 0 || dirty && (flush || closing) {
			err := s.commit(batch, flush || closing)
			if err == nil && flush {
				s.reserve()
			}
			flush = false
			if err != nil && closing && len(batch) == 0 {
				s.end(fmt.Errorf("marks of delivered records: %w", err))
			}
			s.shrink()
			idle, rested, wait = nil, false, scrubIdle
			continue
		}
		left, worth := s.worthScrub()
		if closing {
			if s.skipped != 0 && s.state.txid == s.skipped {
				_ = s.attempt(nil, true, math.MaxInt) // Without it, Close writes no note.
			}
			if s.stale > 0 && left <= copyBytes {
				_ = s.scrub() // The file stays valid if this fails.
			}
			return
		}
		if worth && !rested {
			idle, rested = time.After(wait), true
		}
		if dirty && due == nil {
			due = time.After(markDelay)
		}
		select {
		case <-s.wake:
		case <-due:
			due, flush = nil, true
		case <-idle:
			if idle = nil; s.scrub() != nil { // The old file is complete. Try again, less and less often.
				wait, rested = min(2*wait, time.Hour), false
			}
		}
	}
}

// gather yields the processor to the callers that the last commit answered. Their next requests then share one commit;
// otherwise the fastest caller would get a commit alone and the others would wait for the next.
func (s *Spool) gather(last int) {
	for before := -1; last > 1; {
		s.mu.Lock()
		n := len(s.queue)
		s.mu.Unlock()
		if n >= last || n == before {
			return
		}
		before = n
		runtime.Gosched()
	}
}

// take removes the requests of the next commit from the queue. The caller holds mu.
func (s *Spool) take() []*request {
	n, size := 0, 0
	for n < len(s.queue) && (n == 0 || size+s.queue[n].size() <= batchBytes) {
		size += s.queue[n].size()
		s.queue[n].taken = true
		n++
	}
	batch := append([]*request(nil), s.queue[:n]...)
	clear(s.queue[:n])
	s.queue = s.queue[n:]
	return batch
}

func (r *request) size() int {
	size := len(r.body)
	for _, d := range r.bury {
		size += len(d.Data)
	}
	return size
}

func (r *request) finish(err error) {
	if r.err == nil {
		r.err = err
	}
	close(r.done)
}

// commit executes a batch in one transaction and writes to disk what is done: it removes blocks that have no record
// left. If flush is set, it also writes which records of the other blocks are done.
func (s *Spool) commit(batch []*request, flush bool) error {
	scrub := slices.ContainsFunc(batch, func(r *request) bool { return r.scrub })
	err := s.attempt(batch, flush || scrub, math.MaxInt)
	if err != nil && s.relieve() {
		err = s.attempt(batch, flush || scrub, math.MaxInt)
	}
	scrubbed := err
	if scrub && err == nil {
		scrubbed = s.scrub()
	}
	s.mu.Lock()
	for _, r := range batch {
		s.asked -= int64(len(r.body))
	}
	s.signal()
	s.mu.Unlock()
	for _, r := range batch {
		if r.scrub {
			r.finish(scrubbed)
			continue
		}
		r.finish(err)
	}
	return err
}

// attempt runs one commit that removes at most the given number of blocks. It does not finish the batch's requests.
func (s *Spool) attempt(batch []*request, flush bool, blocks int) error {
	return s.try(s.plan(batch, flush, blocks))
}

// try executes a planned commit.
func (s *Spool) try(w *work) error {
	outcome, err := s.journal.update(w.apply)
	s.mu.Lock()
	defer s.mu.Unlock()
	if outcome == committed {
		s.count(w)
		s.publish(w)
	}
	if outcome == unsure || errors.Is(err, ErrDamaged) || errors.Is(err, ErrVersion) || errors.Is(err, ErrFailed) {
		s.fail(err)
	}
	if outcome == unsure {
		err = fmt.Errorf("%w: %w", ErrUnsure, err)
	}
	s.writing = false
	s.signal()
	return err
}

// relieve runs after a commit failed, perhaps because the disk is full. It only removes what is done: that needs no new
// space on the disk, because it reuses free pages of the file. If this fails too, it deletes the reserve file and
// removes one block at a time, because bbolt rewrites a block's neighbours. It reports whether it freed anything.
func (s *Spool) relieve() (helped bool) {
	s.mu.Lock()
	failed, blocks := s.failed != nil, s.index.empty
	s.mu.Unlock()
	if failed || blocks == 0 {
		return false
	}
	if s.attempt(nil, false, math.MaxInt) == nil {
		return true
	}
	s.release()
	for range blocks {
		if s.attempt(nil, false, 1) != nil {
			break
		}
		helped = true
		if s.attempt(nil, false, math.MaxInt) == nil {
			break
		}
	}
	return helped
}

// end is fail for a caller that does not hold mu.
func (s *Spool) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(err)
}

// fail makes the spool refuse all further calls with err. The caller holds mu.
func (s *Spool) fail(err error) {
	if s.failed == nil {
		s.failed = err
	}
	s.signal()
	s.kick()
}
