package spool

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"
)

// run is the spool's goroutine: it commits what waits, until Close.
func (s *Spool) run() {
	defer close(s.ended)
	var due <-chan time.Time
	flush := false
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
			case len(batch) > 0: // There may be more.
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
				s.mu.Lock()
				s.fail(fmt.Errorf("marks of delivered records: %w", err))
				s.mu.Unlock()
			}
			s.shrink()
			continue
		}
		if closing {
			return
		}
		if dirty && due == nil {
			due = time.After(markDelay)
		}
		select {
		case <-s.wake:
		case <-due:
			due, flush = nil, true
		}
	}
}

// gather gives those whose requests the last commit did the processor, so that they can ask again: their next requests then
// share a commit, instead of the fastest getting one alone and the others the next.
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

// take removes from the queue what the next commit does. The caller holds mu.
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

// commit does a batch in one transaction, and notes on disk what is done: blocks without a record left are removed; which
// records of the others are done is written if flush is set.
func (s *Spool) commit(batch []*request, flush bool) error {
	err := s.attempt(batch, flush, math.MaxInt)
	if err != nil && s.relieve() {
		err = s.attempt(batch, flush, math.MaxInt)
	}
	s.mu.Lock()
	for _, r := range batch {
		s.asked -= int64(len(r.body))
	}
	s.signal()
	s.mu.Unlock()
	for _, r := range batch {
		r.finish(err)
	}
	return err
}

// attempt is a commit that removes at most some blocks. The batch is not told.
func (s *Spool) attempt(batch []*request, flush bool, blocks int) error {
	w := s.plan(batch, flush, blocks)
	outcome, err := s.journal.update(w.apply)
	s.mu.Lock()
	defer s.mu.Unlock()
	if outcome == committed {
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

// relieve removes from the file what is done, and nothing else, after a commit failed: a full disk may have failed it, and
// what is free in the file needs no space on the disk. If need be it gives the reserve up, and goes block by block: bbolt
// writes a block's neighbours again. It says whether it helped.
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

// fail ends the spool's work. The caller holds mu.
func (s *Spool) fail(err error) {
	if s.failed == nil {
		s.failed = err
	}
	s.signal()
	s.kick()
}
