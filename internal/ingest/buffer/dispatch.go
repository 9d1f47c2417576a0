package buffer

import (
	"context"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
)

// window is how many batches of a long queue are sorted by row together. More would make the key ranges narrower, but
// the items would wait longer.
const window = 4

// batch is the items of one request.
type batch struct {
	items     []*Item
	lanes     []*lane // the lanes of its items, each once
	tries     int     // attempts at all of its items together
	throttled bool    // it uses one of the few slots for batches that permit throttles
	reason    Reason
}

// dispatch forms batches and sends them, until the buffer is closed and empty.
func (q *Buffer) dispatch() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		q.mu.Lock()
		at := q.sendDue(time.Now())
		q.timerAt = at
		q.mu.Unlock()
		if at.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(at))
		}
		select {
		case <-q.wake:
		case <-timer.C:
		case <-q.idle:
			return
		}
	}
}

// sendDue sends what can go now. It returns when something is due next; zero means never.
func (q *Buffer) sendDue(now time.Time) time.Time {
	if q.ctx.Err() != nil {
		q.abandon()
		return time.Time{}
	}
	q.expire(now)
	q.gov.pacer.expire(now)
	for len(q.inFlight) < q.gov.slots() && !now.Before(q.gov.ready()) {
		b := q.next(now)
		if b == nil {
			break
		}
		q.launch(b, now)
	}
	return q.nextDue(now)
}

// nextDue returns when something is due next. Due items that remain are held back by their lane's share of the slots;
// they go when a batch ends, which wakes the dispatcher.
func (q *Buffer) nextDue(now time.Time) time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	sooner(q.expiry)
	if len(q.inFlight) >= q.gov.slots() {
		return at
	}
	if ready := q.gov.ready(); now.Before(ready) {
		sooner(ready)
		return at
	}
	if len(q.retries) > 0 {
		sooner(q.retries[0].at)
	}
	l := q.ring.at
	for range q.ring.n {
		if it := l.peek(); it != nil {
			sooner(it.arrived.Add(q.opts.Linger))
		}
		if l.failed > 0 {
			sooner(l.until)
			sooner(l.lastUnpaid.Add(retryPace))
		}
		l = l.next
	}
	return at
}

// next takes the next batch to send: a due retry, or the next lane's batch. If the batch before was throttled, it looks
// for a throttled one last, so throttled batches delay others by one request at most.
func (q *Buffer) next(now time.Time) *batch {
	throttled := !q.lastThrottled || q.gov.down != nil // an outage is probed with items that were sent before
	b := q.pick(now, throttled)
	if b == nil && !throttled {
		b = q.pick(now, true)
	}
	if b != nil {
		q.lastThrottled = b.throttled
	}
	return b
}

// pick takes the next batch to send. It takes a throttled one only if throttled is set.
func (q *Buffer) pick(now time.Time, throttled bool) *batch {
	if b := q.nextRetry(now, throttled); b != nil {
		return b
	}
	return q.nextNew(now, throttled)
}

// nextNew takes the next lane's batch of items that were not sent yet. See pick.
func (q *Buffer) nextNew(now time.Time, throttled bool) *batch {
	for range q.ring.n {
		turn := q.ring.at
		if turn == nil {
			return nil
		}
		q.ring.at = turn.next
		if !q.hasSlot(turn) {
			continue
		}
		reason := q.due(turn, now)
		if reason == "" {
			continue
		}
		extra := false
		if turn.failed > 0 {
			var ok bool
			if ok, extra, _ = q.permit(turn, now, throttled); !ok {
				continue
			}
		}
		b := q.form(turn)
		if turn.empty() {
			q.ring.remove(turn)
		}
		if b != nil {
			b.reason, b.throttled = reason, extra
			return b
		}
	}
	return nil
}

// canSend reports whether the lane may send new items without a permit.
func (q *Buffer) canSend(l *lane) bool { return l.failed == 0 && q.hasSlot(l) }

// hasSlot reports whether the lane's share of the slots has room for one more batch. Like the buffer's room, a lane's
// share is a multiple of the free slots. With several slots, one stays free for other lanes.
func (q *Buffer) hasSlot(l *lane) bool {
	slots := q.gov.slots()
	return l.inflight == 0 || l.inflight < min(slots-1, share*(slots-len(q.inFlight)))
}

// throttledSlots returns how many throttled batches may be in flight.
func (q *Buffer) throttledSlots() int { return max(1, q.gov.slots()/(share+1)) }

// due returns why the lane has something to send now; empty if it has nothing.
func (q *Buffer) due(l *lane, now time.Time) Reason {
	switch {
	case len(l.chunks) > 0 || q.full(l):
		return Full
	case q.waiting >= q.crowd():
		return Crowd
	case q.closed:
		return Closing
	}
	switch it := l.peek(); {
	case it == nil:
		return ""
	case len(q.flushes) > 0 && it.gen <= q.flushes[len(q.flushes)-1].gen:
		return Flush
	case !now.Before(it.arrived.Add(q.opts.Linger)):
		return Linger
	}
	return ""
}

// crowd is the number of waiting items at which all lanes send: as many as fill a batch. If tenants cannot share a
// batch, it is as many as leave little room.
func (q *Buffer) crowd() int {
	if q.opts.Apart {
		return max(q.opts.BatchEntries, q.opts.BufferEntries/2)
	}
	return q.opts.BatchEntries
}

// form makes a batch of the lane's items. From a long queue it takes items that are next to each other in the table. A
// short queue it takes whole, and fills the batch with items of other short queues.
func (q *Buffer) form(l *lane) *batch {
	if len(l.chunks) == 0 && q.full(l) {
		q.cut(l)
	}
	if len(l.chunks) > 0 {
		items := l.chunks[0]
		l.chunks[0] = nil
		l.chunks = l.chunks[1:]
		return newBatch(items, 0)
	}
	f := q.filling(l)
	q.fill(&f, l)
	for other, n := l.next, q.ring.n; n > 1 && !f.full && !q.opts.Apart; n-- {
		turn := other
		other = other.next
		if turn != l && turn.id.alone == l.id.alone && len(turn.chunks) == 0 && !q.full(turn) && q.canSend(turn) {
			q.fill(&f, turn)
			if turn.empty() {
				q.ring.remove(turn)
			}
		}
	}
	if len(f.items) == 0 {
		return nil
	}
	byRow(f.items)
	return newBatch(f.items, 0)
}

// filling is a batch that is being formed.
type filling struct {
	items              []*Item
	limit, bytes, muts int // what still fits
	full               bool
}

// filling returns an empty batch for items of a lane.
func (q *Buffer) filling(l *lane) filling {
	return filling{limit: q.entries(l), bytes: q.opts.BatchBytes, muts: q.opts.BatchMutations}
}

// entries returns how many items of a lane a batch has at most.
func (q *Buffer) entries(l *lane) int {
	if l.id.alone {
		return q.opts.AloneEntries
	}
	return q.opts.BatchEntries
}

// fits reports whether the item still fits, and sets full if not.
func (f *filling) fits(it *Item) bool {
	f.full = len(f.items) > 0 && (len(f.items) == f.limit || it.Bytes > f.bytes || int(it.Mutations) > f.muts)
	return !f.full
}

func (q *Buffer) fill(f *filling, l *lane) {
	for {
		it := l.peek()
		if it == nil || !f.fits(it) {
			return
		}
		if it = q.pop(l); it == nil {
			return
		}
		if !f.fits(it) { // pop skipped the item that peek returned, because its row is taken
			q.putBack(it)
			return
		}
		f.items = append(f.items, it)
		f.bytes -= it.Bytes
		f.muts -= int(it.Mutations)
	}
}

// putBack undoes pop.
func (q *Buffer) putBack(it *Item) {
	l := it.lane
	delete(q.rows, it.hash) // no item can wait for it yet
	it.claimed = false
	rest := l.front
	l.front = list{}
	q.push(l, it, true)
	l.front.append(&rest)
}

// cut takes a window of the lane's items, sorts them by row, and cuts them into chunks. Each chunk is within the limits
// of a batch.
func (q *Buffer) cut(l *lane) {
	f := q.filling(l)
	items := make([]*Item, 0, min(l.waiting, window*f.limit))
	bytes := 0
	for len(items) < window*f.limit && bytes < window*q.opts.BatchBytes {
		it := q.pop(l)
		if it == nil {
			break
		}
		items = append(items, it)
		bytes += it.Bytes
	}
	byRow(items)
	begin, left := 0, f
	for i, it := range items {
		left.items = items[begin:i]
		if !left.fits(it) {
			l.chunks = append(l.chunks, items[begin:i:i])
			begin, left = i, f
		}
		left.bytes -= it.Bytes
		left.muts -= int(it.Mutations)
	}
	if begin < len(items) {
		l.chunks = append(l.chunks, items[begin:])
	}
}

func newBatch(items []*Item, tries int) *batch {
	b := &batch{items: items, tries: tries}
	for _, it := range items {
		if n := len(b.lanes); n > 0 && b.lanes[n-1] == it.lane { // the items are sorted by row, so a tenant's are together
			continue
		}
		b.lanes = append(b.lanes, it.lane)
	}
	return b
}

// launch starts a goroutine that sends a batch.
func (q *Buffer) launch(b *batch, now time.Time) {
	if q.opts.FlowControl {
		q.gov.pacer.launched(now, bytesOf(b.items))
	}
	q.inFlight[b] = struct{}{}
	for _, l := range b.lanes {
		l.inflight++
	}
	if b.throttled {
		q.throttled++
	}
	q.stats.Requests++
	q.workers.Go(func() { q.attempt(b) })
}

func bytesOf(items []*Item) (bytes int) {
	for _, it := range items {
		bytes += it.Bytes
	}
	return bytes
}

// attempt makes one attempt at a batch.
func (q *Buffer) attempt(b *batch) {
	ctx, cancel := context.WithTimeout(q.ctx, q.opts.Request)
	defer cancel()
	oldest := b.items[0].arrived
	for _, it := range b.items {
		it.Retry, it.Wait = false, 0
		if it.arrived.Before(oldest) {
			oldest = it.arrived
		}
	}
	begin := time.Now()
	if q.opts.Sends != nil {
		q.opts.Sends(Sending{Items: len(b.items), Wait: begin.Sub(oldest), Reason: b.reason})
	}
	report := q.sender.Send(ctx, b.items)
	now := time.Now()
	// Callers of Enqueue wait for the lock, so what can be done before it is.
	over := make([]ending, 0, len(b.items))
	var again []*Item
	for _, it := range b.items {
		if it.Retry {
			again = append(again, it)
		} else {
			over = append(over, ending{it, it.Track.Outcome()})
		}
	}
	if changed, after, err := q.finishAttempt(b, begin, now, bytesOf(b.items), over, again, report); changed && q.opts.HealthChanged != nil {
		q.opts.HealthChanged(err, after)
	}
}

// finishAttempt ends the items of an attempt, or lets them wait for the next one. It reports whether the attempt showed
// that the service went down or came back, the reason, and how long it was down.
func (q *Buffer) finishAttempt(b *batch, begin, now time.Time, bytes int, over []ending, again []*Item, report Report) (changed bool, after time.Duration, down error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.gov.down
	busy := slices.ContainsFunc(b.lanes, func(l *lane) bool { return !q.hasSlot(l) })
	delete(q.inFlight, b)
	for _, l := range b.lanes {
		l.inflight--
		if !report.Down && !report.Suspect {
			l.failed++ // reset below if one of its items was served
		}
	}
	if b.throttled {
		q.throttled--
	}
	q.gov.note(begin, now, sizeOf(bytes, b.items[0].Alone), report, busy)
	for _, e := range over {
		e.it.lane.failed = 0
		if e.out.State == bt.Rejected && !e.it.Merge { // merged items are refused together
			q.splitCoalesced(e.it)
		}
	}
	for _, l := range b.lanes {
		switch {
		case l.failed > 0:
			l.until = now.Add(pause(l.failed))
		case !report.Down && !report.Overload && !report.Suspect:
			l.budget = min(retryBudget, l.budget+retryRatio)
		}
	}
	q.end(over)
	if len(again) > 0 {
		q.scheduleRetry(again, b.tries+1, now, report)
	}
	q.poke()
	down = q.gov.down
	if changed = (was == nil) != (down == nil); changed && down == nil {
		after = now.Sub(q.downSince)
	} else if changed {
		q.downSince = now
	}
	return changed, after, down
}
