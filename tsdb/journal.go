package tsdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/catalog"
	"github.com/tidemark-go/tidemark/internal/ingest"
	"github.com/tidemark-go/tidemark/internal/spool"
)

const (
	// journalQueue bounds the records that wait for a sync, in bytes.
	journalQueue = 16 << 20
	// journalGroup is how much of it one commit takes.
	journalGroup = 4 << 20
)

// journal is the disk under a writer: points come in by offer, are synced in groups, go on to the writer's buffer in the
// order of the journal, and leave it once the buffer says what became of them.
type journal struct {
	buffer *ingest.Buffer
	spool  *spool.Spool
	failed func(*ingest.Item, bt.Outcome)
	atOnce int // records that are read from the disk at once

	ctx  context.Context // of everything that goes on behind the callers
	stop context.CancelFunc

	mu       sync.Mutex
	queue    []*pending // that wait for a sync
	queued   int        // bytes, up to when the callers were told
	full     bool       // the disk's limit is reached
	closed   bool
	changed  chan struct{} // closed and replaced when something is done that a caller may wait for
	datasets map[uint64]*dataset
	numbers  map[*dataset]uint64
	feed     feed
	letters  []letter // that are to be buried
	burying  int

	describing sync.Mutex // held while a description is written

	wake, wakeFeed, wakeBury chan struct{}
	freed                    chan struct{} // poked when the buffer has room again
	synced                   chan struct{} // closed when the last group is synced, after close
	tells                    telling
	workers                  sync.WaitGroup
}

// letter is a point that is to become a dead letter.
type letter struct {
	dead spool.Dead
	item *ingest.Item
	out  bt.Outcome
}

func openJournal(opts JournalOptions) (*journal, error) {
	sp, err := spool.Open(opts.Dir, spool.Options{MaxBytes: opts.MaxBytes})
	if err != nil {
		return nil, fmt.Errorf("tsdb: %w", err)
	}
	j := &journal{
		spool:    sp,
		changed:  make(chan struct{}),
		datasets: map[uint64]*dataset{},
		numbers:  map[*dataset]uint64{},
		wake:     make(chan struct{}, 1),
		wakeFeed: make(chan struct{}, 1),
		wakeBury: make(chan struct{}, 1),
		freed:    make(chan struct{}, 1),
		synced:   make(chan struct{}),
	}
	j.tells.wake = make(chan struct{}, 1)
	if err := j.readDescriptions(); err != nil {
		return nil, errors.Join(err, sp.Close())
	}
	j.feed = newFeed(sp.Stats().First)
	j.ctx, j.stop = context.WithCancel(context.Background())
	return j, nil
}

// start begins the delivery into a buffer.
func (j *journal) start(b *ingest.Buffer) {
	j.buffer = b
	j.workers.Go(j.commit)
	j.workers.Go(j.feedOn)
	j.workers.Go(j.bury)
	j.workers.Go(j.tell)
	poke(j.wakeFeed)
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// change wakes everybody who waits for something to be done. The journal is locked.
func (j *journal) change() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// describe returns the number under which the journal describes a dataset, and writes the description where there is none.
func (j *journal) describe(ctx context.Context, d *dataset) (uint64, error) {
	j.mu.Lock()
	number, ok := j.numbers[d]
	j.mu.Unlock()
	if ok {
		return number, nil
	}
	text, err := json.Marshal(d.entry())
	if err != nil {
		return 0, err
	}
	for {
		next := uint64(0)
		for name, have := range j.spool.Metas() {
			n, ok := parseDescription(name)
			if ok && string(have) == string(text) {
				j.mu.Lock()
				defer j.mu.Unlock()
				j.numbers[d] = n
				if j.datasets[n] == nil {
					j.datasets[n] = d
				}
				return n, nil
			}
			if ok {
				next = max(next, n+1)
			}
		}
		if err := j.writeDescription(ctx, next, text); err != nil {
			return 0, err
		}
	}
}

// writeDescription writes a description under a number that is free; where another was faster, it does nothing.
func (j *journal) writeDescription(ctx context.Context, number uint64, text []byte) error {
	j.describing.Lock()
	defer j.describing.Unlock()
	name := descriptionPrefix + strconv.FormatUint(number, 10)
	if _, taken := j.spool.Meta(name); taken {
		return nil
	}
	return j.spool.SetMeta(ctx, name, text)
}

const descriptionPrefix = "dataset/"

func parseDescription(name string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, descriptionPrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

func (j *journal) readDescriptions() error {
	for name, text := range j.spool.Metas() {
		number, ok := parseDescription(name)
		if !ok {
			continue
		}
		var e catalog.Dataset
		if err := json.Unmarshal(text, &e); err != nil {
			return fmt.Errorf("tsdb: the journal's %s: %w", name, err)
		}
		d, err := described(e)
		if err != nil {
			return fmt.Errorf("tsdb: the journal's %s: %w", name, err)
		}
		j.datasets[number] = d
	}
	return nil
}

// offer queues a point for the next sync. Its told is called when it is on disk, or will not be; where offer returns an
// error, it is not.
func (j *journal) offer(ctx context.Context, p *pending, try bool) error {
	number, err := j.describe(ctx, p.write.d)
	if err != nil {
		return err
	}
	path, units, ok := p.place()
	if !ok {
		return fmt.Errorf("tsdb: the row key %q is none of dataset %s", p.write.key, p.write.d.name)
	}
	p.record = appendRecord(make([]byte, 0, len(p.write.key)+len(p.write.payload)+32), number, p.item.Tenant, path, units, p.write.payload)
	p.try = try
	j.mu.Lock()
	for {
		switch {
		case j.closed:
			j.mu.Unlock()
			return ErrWriterClosed
		case try && j.full:
			j.mu.Unlock()
			return ErrBufferFull
		case j.queued == 0 || j.queued+len(p.record) <= journalQueue:
			j.queued += len(p.record)
			j.queue = append(j.queue, p)
			j.mu.Unlock()
			poke(j.wake)
			return nil
		case try:
			j.mu.Unlock()
			return ErrBufferFull
		}
		changed := j.changed
		j.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		j.mu.Lock()
	}
}

// put is offer for a caller that waits until its point is on disk.
func (j *journal) put(ctx context.Context, p *pending, try bool) Outcome {
	done := make(chan Outcome, 1)
	p.told = func(o Outcome) { done <- o }
	if err := j.offer(ctx, p, try); err != nil {
		return rejected(err)
	}
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
	}
	if j.withdraw(p) {
		return rejected(context.Cause(ctx))
	}
	select {
	case o := <-done:
		return o
	default:
		return Outcome{State: Unknown, Err: context.Cause(ctx)} // it is being synced just now
	}
}

// withdraw takes a point back that is not being synced yet.
func (j *journal) withdraw(p *pending) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, q := range j.queue {
		if q == p {
			j.queue = append(j.queue[:i], j.queue[i+1:]...)
			j.forget(p)
			return true
		}
	}
	return false
}

// forget gives back the room of a point in the queue.
func (j *journal) forget(p *pending) {
	j.queued -= len(p.record)
	p.record = nil
	j.change()
}

// commit syncs what waits, group by group, and hands it on.
func (j *journal) commit() {
	defer close(j.synced)
	for {
		group, records := j.group()
		if group == nil {
			return
		}
		first, err := j.spool.Append(j.ctx, records)
		switch {
		case err == nil:
			j.handOn(first, group)
		case errors.Is(err, spool.ErrFull):
			j.putBack(group)
			// Where room is not to be had, because the spool failed or the writer is closed at once, the next Append says so.
			_ = j.spool.Room(j.ctx, records[:1])
			j.mu.Lock()
			j.full = false
			j.mu.Unlock()
		case errors.Is(err, spool.ErrUnsure):
			j.answer(group, Outcome{State: Unknown, Err: err})
		default:
			if j.ctx.Err() != nil {
				err = ErrWriterClosed
			}
			j.answer(group, rejected(err))
		}
	}
}

// group waits for points and takes a group of them. It returns nil when the journal is closed and none is left.
func (j *journal) group() (group []*pending, records [][]byte) {
	for {
		j.mu.Lock()
		size := 0
		for i, p := range j.queue {
			if size += len(p.record); size > journalGroup && i > 0 {
				break
			}
			group, records = append(group, p), append(records, p.record)
		}
		clear(j.queue[:len(group)])
		j.queue = j.queue[len(group):]
		closed := j.closed
		j.mu.Unlock()
		if group != nil || closed {
			return group, records
		}
		<-j.wake
	}
}

// putBack puts a group back for which the journal has no room, apart from points whose callers do not wait for room.
func (j *journal) putBack(group []*pending) {
	j.mu.Lock()
	j.full = true
	var back []*pending
	for _, p := range group {
		if !p.try {
			back = append(back, p)
		}
	}
	j.queue = append(back, j.queue...)
	j.mu.Unlock()
	for _, p := range group {
		if p.try {
			j.answer([]*pending{p}, rejected(ErrBufferFull))
		}
	}
}

// handOn tells callers that their points are on disk, and lets the points go on to the buffer.
func (j *journal) handOn(first uint64, group []*pending) {
	j.answer(group, Outcome{State: Journaled})
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, p := range group {
		p.seq, p.record = first+uint64(i), nil
		p.item.Done = j.delivered
		j.feedDirect(p)
	}
}

func (j *journal) answer(group []*pending, o Outcome) {
	j.tells.Lock()
	for _, p := range group {
		j.tells.list = append(j.tells.list, told{p.told, len(p.record), o})
	}
	j.tells.Unlock()
	poke(j.tells.wake)
}

// telling is what callers are to be told, off the path of the syncs.
type telling struct {
	sync.Mutex
	list []told
	wake chan struct{}
	over bool
}

type told struct {
	tell  func(Outcome)
	bytes int
	out   Outcome
}

func (j *journal) tell() {
	for {
		j.tells.Lock()
		list, over := j.tells.list, j.tells.over
		j.tells.list = nil
		j.tells.Unlock()
		if list == nil {
			if over {
				return
			}
			<-j.tells.wake
			continue
		}
		for _, t := range list {
			t.tell(t.out)
		}
		bytes := 0
		for _, t := range list {
			bytes += t.bytes
		}
		j.mu.Lock()
		j.queued -= bytes
		j.change()
		j.mu.Unlock()
	}
}

// delivered takes a point out of the journal, once it is stored or refused. Anything else was said because the writer is
// closed: it stays for the next one.
func (j *journal) delivered(it *ingest.Item, out bt.Outcome) {
	p := it.Work.(*pending)
	switch {
	case out.State == bt.Stored:
		j.spool.Done(p.seq)
	case errors.Is(out.Err, ErrWriterClosed):
	default:
		j.condemn(p.seq, it, out)
	}
}

// condemn queues a point to become a dead letter, and waits while many do.
func (j *journal) condemn(seq uint64, it *ingest.Item, out bt.Outcome) {
	const most = 1000
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.burying >= most && j.ctx.Err() == nil {
		changed := j.changed
		j.mu.Unlock()
		select {
		case <-changed:
		case <-j.ctx.Done():
		}
		j.mu.Lock()
	}
	j.burying++
	j.letters = append(j.letters, letter{spool.Dead{Seq: seq, Reason: reason(out), Attempts: out.Attempts}, it, out})
	poke(j.wakeBury)
}

// reason is why a point is a dead letter, in the words of its outcome.
func reason(out bt.Outcome) string {
	const most = 4 << 10
	text := State(out.State).String()
	if out.Err != nil {
		text += ": " + out.Err.Error()
	}
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// bury makes dead letters of what the service refused.
func (j *journal) bury() {
	for {
		j.mu.Lock()
		letters := j.letters
		j.letters = nil
		j.mu.Unlock()
		if len(letters) == 0 {
			select {
			case <-j.wakeBury:
				continue
			case <-j.ctx.Done():
				return
			}
		}
		dead := make([]spool.Dead, len(letters))
		for i, l := range letters {
			dead[i] = l.dead
		}
		// Where it fails the points stay in the journal, and the next writer finds out again.
		err := j.spool.Bury(j.ctx, dead...)
		for _, l := range letters {
			if err == nil && l.item != nil {
				j.failed(l.item, l.out)
			}
		}
		j.mu.Lock()
		j.burying -= len(letters)
		j.change()
		j.mu.Unlock()
	}
}

// flush returns when all points that are on disk by now have been delivered or refused.
func (j *journal) flush(ctx context.Context) error {
	target := j.spool.Stats().Next
	if err := j.until(ctx, func() bool { return j.feed.past(target) }); err != nil {
		return err
	}
	if err := j.buffer.Flush(ctx); err != nil {
		return err
	}
	return j.until(ctx, func() bool { return j.burying == 0 })
}

// until waits for something to be so.
func (j *journal) until(ctx context.Context, so func() bool) error {
	for {
		j.mu.Lock()
		ok, changed := so(), j.changed
		j.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// close takes no more points, delivers what it can while ctx lasts, and returns an error that matches ErrKept where points
// stay behind.
func (j *journal) close(ctx context.Context) error {
	j.mu.Lock()
	j.closed = true
	j.change()
	j.mu.Unlock()
	poke(j.wake)
	err := j.drain(ctx)
	// Whatever is still under way ends now; what the service has answered by then is taken out of the journal.
	j.stop()
	poke(j.wake)
	if berr := j.buffer.Close(ctx); berr != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		_ = j.buffer.Close(last)
		cancel()
		err = errors.Join(err, berr)
	}
	<-j.synced
	j.tells.Lock()
	j.tells.over = true
	j.tells.Unlock()
	poke(j.tells.wake)
	j.workers.Wait()
	if n := j.spool.Stats().Records; n > 0 {
		err = errors.Join(fmt.Errorf("%w: %d", ErrKept, n), err)
	}
	return errors.Join(err, j.spool.Close())
}

// drain waits until everything has been delivered.
func (j *journal) drain(ctx context.Context) error {
	select {
	case <-j.synced:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return j.flush(ctx)
}

// dataset returns the dataset that the journal describes under a number, or nil.
func (j *journal) dataset(number uint64) *dataset {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.datasets[number]
}
