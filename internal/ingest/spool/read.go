package spool

import (
	"context"
	"slices"
	"strconv"

	bolt "go.etcd.io/bbolt"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Record is one record of the journal.
type Record struct {
	Seq  uint64
	Data []byte
}

// wanted is a block to read, as memory had it at that moment.
type wanted struct {
	first uint64
	done  bitmap
	seqs  *block // first, offsets and n only
}

// Read returns records that are not done, in order, from sequence number from on. It returns at most maxRecords, and
// stops after maxBytes of data, but returns at least one if there is one. An empty result is no error. The caller owns
// the data; records of one block share memory, up to 32 KiB. Read waits only if a commit is replacing the blocks that
// it reads. Errors are the context's, ErrClosed, ErrDamaged and the error that ended the spool.
func (s *Spool) Read(ctx context.Context, from uint64, maxRecords, maxBytes int) ([]Record, error) {
	if maxRecords <= 0 || maxBytes <= 0 {
		return nil, invalid.New(ErrInvalid, "maxRecords and maxBytes", strconv.Itoa(maxRecords)+" and "+strconv.Itoa(maxBytes), "at least 1 each")
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.mu.Lock()
		list, commits, writing, changed := s.index.want(from, maxRecords, maxBytes), s.commits, s.writing, s.changed
		err := s.refusal()
		s.mu.Unlock()
		if err != nil || len(list) == 0 {
			return nil, err
		}
		var records []Record
		var missing *wanted
		err = s.view(func(tx *bolt.Tx) (err error) {
			records, missing, err = readAll(tx, list, from, maxRecords, maxBytes)
			return err
		})
		if err != nil || missing == nil {
			return records, err
		}
		// A commit has replaced the block since want looked at memory, or is replacing it now.
		s.mu.Lock()
		again := s.commits != commits || s.index.over(missing)
		writing = writing || s.writing
		s.mu.Unlock()
		switch {
		case again:
		case writing:
			select {
			case <-changed:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		default:
			err := damaged("the block of sequence %d is missing", missing.first)
			s.end(err)
			return nil, err
		}
	}
}

// want lists the blocks that a read needs, perhaps more. The caller holds the spool's mu.
func (x *index) want(from uint64, maxRecords, maxBytes int) []wanted {
	var out []wanted
	for _, b := range x.list[x.at(from):] {
		if b.left == 0 {
			continue
		}
		out = append(out, wanted{b.first, slices.Clone(b.done), b})
		if from <= b.first {
			maxRecords -= b.left
			maxBytes -= b.size / b.n * b.left
		}
		if maxRecords <= 0 || maxBytes <= 0 {
			break
		}
	}
	return out
}

// over reports whether all records of a block are done by now. The caller holds the spool's mu.
func (x *index) over(w *wanted) bool {
	b, _, ok := x.find(w.first)
	return !ok || b.left == 0
}

// readAll reads blocks. missing is a block that does not exist or that has changed.
func readAll(tx *bolt.Tx, list []wanted, from uint64, maxRecords, maxBytes int) (out []Record, missing *wanted, err error) {
	var frames []frame
	for i := range list {
		w := &list[i]
		stored, err := load(tx, blocks, seqKey(w.first))
		if err != nil {
			return nil, nil, err
		}
		if stored == nil {
			return nil, w, nil
		}
		value := slices.Clone(stored)
		if frames, err = parseBlock(frames[:0], value); err != nil {
			return nil, nil, err
		}
		// The last block may have grown, and any block may have lost done records.
		place := 0
		for _, f := range frames {
			seq := w.first + uint64(f.offset)
			for place < w.seqs.n && w.seqs.seq(place) < seq {
				if !w.done.has(place) {
					return nil, w, nil
				}
				place++
			}
			if place == w.seqs.n {
				break
			}
			if w.seqs.seq(place) == seq && seq >= from && !w.done.has(place) {
				if len(out) == maxRecords || maxBytes <= 0 {
					return out, nil, nil
				}
				out = append(out, Record{seq, f.data})
				maxBytes -= len(f.data)
			}
			place++
		}
		for ; place < w.seqs.n; place++ {
			if !w.done.has(place) {
				return nil, w, nil
			}
		}
	}
	return out, nil, nil
}

// view runs f in a read transaction. The result of f must not refer to the file's mapping.
func (s *Spool) view(f func(*bolt.Tx) error) error {
	s.handle.RLock()
	defer s.handle.RUnlock()
	s.mu.Lock()
	err := s.refusal()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if err := s.journal.view(f); err != nil {
		s.end(err)
		return err
	}
	return nil
}
