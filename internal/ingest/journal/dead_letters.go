package journal

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// maxRejected bounds the writes that wait to become dead letters. At the bound, reject blocks the buffer's report of
// outcomes.
const maxRejected = 1000

// rejectPause is how long the journal waits before it tries again to write dead letters, if the disk had no room for
// them.
const rejectPause = time.Second

// rejected holds the writes that are to become dead letters.
type rejected struct {
	queue        []rejection
	total, ended uint64 // since Open; ended counts those that became dead letters, or could not
}

// rejection is one rejected write.
type rejection struct {
	letter spool.Dead
	item   *buffer.Item // nil if the record cannot be read
	out    bt.Outcome
}

func deadLetter(seq uint64, out bt.Outcome) spool.Dead {
	return spool.Dead{Seq: seq, Reason: reason(out), Attempts: out.Attempts}
}

// reason returns why a write is a dead letter, from its outcome.
func reason(out bt.Outcome) string {
	const most = 4 << 10
	text := out.State.String()
	if out.Err != nil {
		text += ": " + out.Err.Error()
	}
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// delivered removes a write from the journal when the buffer reports how it ended. A write that ended because the
// writer was closed stays for the next writer.
func (j *Journal) delivered(it *buffer.Item, out bt.Outcome) {
	e := entryOf(it)
	switch {
	case out.State == bt.Stored, e.Applied:
		j.remove(e)
	case errors.Is(out.Err, buffer.ErrClosed):
	case j.opts.Erasures.Refused(out.Err):
		j.erased.Add(1)
		j.remove(e)
		wake(j.wakeScrub)
	default:
		j.reject(e.seq, it, out)
	}
}

// remove removes the record of a write and frees its share.
func (j *Journal) remove(e *Entry) {
	j.spool.Done(e.seq)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.addToShare(e.Item.Tenant, -e.bytes)
}

// reject makes rejectLoop turn a write into a dead letter. It waits while maxRejected writes are queued.
func (j *Journal) reject(seq uint64, it *buffer.Item, out bt.Outcome) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.rejected.total-j.rejected.ended >= maxRejected && j.ctx.Err() == nil {
		changed := j.changed
		j.mu.Unlock()
		select {
		case <-changed:
		case <-j.ctx.Done():
		}
		j.mu.Lock()
	}
	j.rejected.total++
	j.rejected.queue = append(j.rejected.queue, rejection{deadLetter(seq, out), it, out})
	wake(j.wakeReject)
}

// rejectLoop turns rejected writes into dead letters.
func (j *Journal) rejectLoop() {
	for {
		j.mu.Lock()
		queue := j.rejected.queue
		j.rejected.queue = nil
		j.mu.Unlock()
		if len(queue) == 0 {
			select {
			case <-j.wakeReject:
				continue
			case <-j.ctx.Done():
				return
			}
		}
		if j.writeDeadLetters(queue) {
			for _, r := range queue {
				if r.item != nil {
					j.opts.Failed(r.item, r.out)
				}
			}
		}
		j.mu.Lock()
		for _, r := range queue {
			if r.item != nil { // otherwise its tenant is not known
				j.addToShare(r.item.Tenant, int64(len(r.letter.Reason)))
			}
		}
		j.rejected.ended += uint64(len(queue))
		j.change()
		j.mu.Unlock()
	}
}

// writeDeadLetters writes dead letters, and tries again while the disk has no room. If it returns false, the records
// stay in the journal, and the next writer sends them again.
func (j *Journal) writeDeadLetters(queue []rejection) bool {
	letters := make([]spool.Dead, len(queue))
	for i, r := range queue {
		letters[i] = r.letter
	}
	for {
		err := j.spool.Bury(j.ctx, letters...)
		switch {
		case err == nil:
			return true
		case j.ctx.Err() != nil, errors.Is(err, spool.ErrInvalid):
			return false
		}
		if _, err := j.spool.Read(j.ctx, j.spool.Stats().Next, 1, 1); err != nil {
			j.fail(err)
			return false
		}
		j.pause(rejectPause)
	}
}

// Reject turns writes into dead letters at once, for a Sender that must not free their row before. Applied writes leave
// the journal instead. It reports whether all of that is on disk; if it returns false, it may be on disk or not.
func (j *Journal) Reject(out bt.Outcome, entries ...*Entry) bool {
	var letters []spool.Dead
	for _, e := range entries {
		if e.Applied {
			j.Done(e)
			continue
		}
		letters = append(letters, deadLetter(e.seq, out))
	}
	return len(letters) == 0 || j.spool.Bury(j.ctx, letters...) == nil
}

// DeadLetter is a write that was rejected.
type DeadLetter struct {
	spool.DeadLetter
	Entry *Entry // nil if the record cannot be read
}

// bytes returns how much of its tenant's share the letter takes.
func (l DeadLetter) bytes() int64 { return int64(len(l.Data) + len(l.Reason)) }

// DeadLetters returns the dead letters, oldest first. If a letter is retried or dropped during the loop, the loop may
// or may not return it. An error is the last pair.
func (j *Journal) DeadLetters(ctx context.Context) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		for d, err := range j.spool.Dead(ctx) {
			if err != nil {
				yield(DeadLetter{}, closed(err))
				return
			}
			l := DeadLetter{DeadLetter: d}
			if e, err := j.opts.Codec.Decode(d.Data); err == nil {
				l.Entry = e
			}
			if !yield(l, nil) {
				return
			}
		}
	}
}

// Retry appends the records of dead letters to the journal, even if the journal is full. It returns how many of the IDs
// it found.
func (j *Journal) Retry(ctx context.Context, ids ...uint64) (int, error) {
	return j.removeLetters(ctx, ids, j.spool.Revive, func(l DeadLetter) int64 { return int64(len(l.Reason)) })
}

// Drop removes dead letters, and returns how many of the IDs it found.
func (j *Journal) Drop(ctx context.Context, ids ...uint64) (int, error) {
	return j.removeLetters(ctx, ids, j.spool.Drop, DeadLetter.bytes)
}

// removeLetters removes dead letters by calling remove, and frees each letter's part of its tenant's share.
func (j *Journal) removeLetters(ctx context.Context, ids []uint64, remove func(context.Context, ...uint64) (int, error), frees func(DeadLetter) int64) (int, error) {
	freed, err := j.freedBy(ctx, ids, frees)
	if err != nil {
		return 0, err
	}
	n, err := remove(ctx, ids...)
	if n > 0 {
		j.giveBack(freed)
	}
	wake(j.wakeFeed)
	return n, closed(err)
}

// closed returns an error of the spool as callers know it: a closed spool is that of a closed writer.
func closed(err error) error {
	if errors.Is(err, spool.ErrClosed) {
		return buffer.ErrClosed
	}
	return err
}
