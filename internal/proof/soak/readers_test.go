package soak

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// erasedFlag is set when a tenant's erasure begins.
type erasedFlag struct{ atomic.Bool }

// read makes random reads until the load ends, and checks each answer.
func (w *world) read(n int) {
	rnd := rand.New(rand.NewPCG(w.seed, uint64(300+n)))
	questions := []func(*rand.Rand, *device) error{
		w.askLatest, w.askLatest, w.askCached, w.askCached, w.askStale, w.askStale, w.askLatestMany, w.askRange, w.askRange, w.askPage, w.askAsOf, w.askGet, w.askLatestN, w.askRollup,
		w.askShort, w.askShort,
	}
	for pause(w.ctx, time.Duration(rnd.IntN(20))*time.Millisecond) {
		d := w.devices[rnd.IntN(len(w.devices))]
		if rnd.IntN(4) == 0 {
			d = w.devices[rnd.IntN(busy)]
		}
		question := questions[rnd.IntN(len(questions))]
		if rnd.IntN(60) == 0 {
			question = w.askUnder
		}
		if d.tenant.erased.Load() {
			continue
		}
		w.stats.reads.Add(1)
		err := question(rnd, d)
		if err == nil || d.tenant.erased.Load() {
			continue
		}
		w.stats.readErrors.Add(1)
		if !byFaults(err) {
			w.fail("reading tenant %s, device %s (%d): %v", d.tenant.id, d.entity, d.n, err)
		}
	}
}

// checkPoint checks one point of an answer.
func (w *world) checkPoint(what string, d *device, s *series, o *expectation, p tsdb.Point[reading]) {
	w.stats.points.Add(1)
	if err := d.mismatch(w.base, p); err != nil {
		w.fail("%s of tenant %s, device %s (%d) at %v: %v", what, d.tenant.id, d.entity, d.n, p.Time, err)
		return
	}
	slot := p.Value.Slot
	if !s.wasTried(slot, p.Value.Version) {
		w.fail("%s of tenant %s, device %s (%d): slot %d has version %d, which was never put or was rejected", what, d.tenant.id, d.entity, d.n, slot, p.Value.Version)
	}
	if o == nil || slot < o.from || slot-o.from >= len(o.slots) {
		return
	}
	if o.again[slot-o.from] && p.Value.Version == 0 && !d.tenant.erased.Load() {
		w.fail("%s of tenant %s, device %s (%d): slot %d has version 0, but version 1 was delivered", what, d.tenant.id, d.entity, d.n, slot)
	}
	o.slots[slot-o.from] = false
}

// checkMissing fails if a slot from from to to was delivered, had not expired at a time, and was not returned.
func (w *world) checkMissing(what string, d *device, s *series, o *expectation, from, to int, at time.Time) {
	if d.tenant.erased.Load() {
		return
	}
	for i, is := range o.slots {
		slot := o.from + i
		if !is || slot < from || slot >= to || s.age > 0 && !d.time(w.base, slot).Add(s.age-2*time.Millisecond).After(at) {
			continue
		}
		w.fail("%s of tenant %s, device %s (%d): lost: slot %d at %v was delivered and is missing", what, d.tenant.id, d.entity, d.n, slot, d.time(w.base, slot))
		return
	}
}

// checkNewest checks a newest point, which must be in slot floor or later.
func (w *world) checkNewest(what string, d *device, s *series, floor int, p tsdb.Point[reading], err error) error {
	var bad *tsdb.PointError
	switch {
	case errors.Is(err, tsdb.ErrNotFound):
		if floor >= 0 && !d.tenant.erased.Load() && (s.age == 0 || d.time(w.base, floor).Add(s.age-2*time.Millisecond).After(w.clock.now())) {
			w.fail("%s of tenant %s, device %s (%d): got no point, but slot %d was delivered or returned before", what, d.tenant.id, d.entity, d.n, floor)
		}
		return nil
	case errors.As(err, &bad), err != nil:
		return err
	}
	o := s.expectedIn(p.Value.Slot, p.Value.Slot) // expects no slot: the version may have changed since
	w.checkPoint(what, d, s, &o, p)
	if p.Value.Slot < floor {
		w.fail("%s of tenant %s, device %s (%d): got slot %d, but slot %d was delivered or returned before", what, d.tenant.id, d.entity, d.n, p.Value.Slot, floor)
	}
	return nil
}

func (w *world) repo(d *device) *tsdb.Repository[reading] { return w.plain.For(w.store, d.tenant.id) }

func (w *world) askLatest(_ *rand.Rand, d *device) error {
	floor := d.plain.floor(byPoints, true)
	p, err := w.repo(d).Latest(d.tenant.ctx(w.ctx), d.entity)
	err = w.checkNewest("Latest", d, d.plain, floor, p, err)
	if err == nil && p.Entity == d.entity {
		d.plain.recordSeen(byPoints, p.Value.Slot)
	}
	return err
}

// askCached reads through the cache. The answer must include what this store has delivered, not what other reads have
// returned.
func (w *world) askCached(rnd *rand.Rand, _ *device) error {
	d := w.devices[rnd.IntN(len(w.devices)/4)] // so that there are hits
	if d.tenant.erased.Load() {
		return nil
	}
	floor := d.plain.floor(byPoints, false)
	p, err := w.repo(d).Latest(d.tenant.ctx(w.ctx), d.entity, tsdb.MaxStale(30*time.Second))
	if d.tenant.erased.Load() {
		return nil
	}
	return w.checkNewest("Latest from the cache", d, d.plain, floor, p, err)
}

// askStale reads from another store, which does not see this store's writes, like one in another process. The answer
// must include what was delivered before its staleness bound.
func (w *world) askStale(rnd *rand.Rand, _ *device) error {
	const stale = 2 * time.Second
	d := w.devices[rnd.IntN(len(w.devices)/20)] // so that there are hits
	if d.tenant.erased.Load() {
		return nil
	}
	floor := d.plain.floorBy(time.Now().Add(-stale))
	p, err := w.plain.For(w.other, d.tenant.id).Latest(d.tenant.ctx(w.ctx), d.entity, tsdb.MaxStale(stale))
	if d.tenant.erased.Load() {
		return nil
	}
	return w.checkNewest("Latest from another store's cache", d, d.plain, floor, p, err)
}

func (w *world) askLatestMany(rnd *rand.Rand, d *device) error {
	var asked []*device
	var entities []tsdb.Entity
	var floors []int
	for range min(30, len(d.tenant.devices)) {
		one := d.tenant.devices[rnd.IntN(len(d.tenant.devices))]
		asked, entities = append(asked, one), append(entities, one.entity)
		floors = append(floors, one.plain.floor(byHead, true))
	}
	answers, err := w.repo(d).LatestMany(d.tenant.ctx(w.ctx), entities, 1)
	if err != nil && len(answers) == 0 {
		return err
	}
	for i, a := range answers {
		if a.Err != nil {
			err = a.Err
			continue
		}
		p, none := newestOf(a)
		if failed := w.checkNewest("LatestMany", asked[i], asked[i].plain, floors[i], p, none); failed != nil {
			err = failed
		} else if none == nil {
			asked[i].plain.recordSeen(byHead, p.Value.Slot)
		}
	}
	return err
}

// newestOf returns the newest point of a history, or ErrNotFound.
func newestOf(h tsdb.History[reading]) (tsdb.Point[reading], error) {
	if len(h.Points) == 0 {
		return tsdb.Point[reading]{Entity: h.Entity}, tsdb.ErrNotFound
	}
	return h.Points[0], nil
}

// askUnder reads the newest points of all devices of a tenant.
func (w *world) askUnder(_ *rand.Rand, d *device) error {
	c := d.tenant
	floors := make(map[*device]int, len(c.devices))
	for _, one := range c.devices {
		floors[one] = one.plain.floor(byHead, true)
	}
	last := tsdb.Entity{}
	for p, err := range w.repo(d).Under(tsdb.AllEntities()).Latest(c.ctx(w.ctx)) {
		if err != nil {
			return err
		}
		one := c.find(p.Entity)
		if one == nil || p.Entity.Compare(last) <= 0 && last != (tsdb.Entity{}) {
			w.fail("Under.Latest of tenant %s: got %s after %s: unknown, twice or out of order", c.id, p.Entity, last)
			return nil
		}
		last = p.Entity
		if err := w.checkNewest("Under.Latest", one, one.plain, floors[one], p, nil); err != nil {
			return err
		}
		one.plain.recordSeen(byHead, p.Value.Slot)
		delete(floors, one)
	}
	for one, floor := range floors {
		_ = w.checkNewest("Under.Latest", one, one.plain, floor, tsdb.Point[reading]{}, tsdb.ErrNotFound)
	}
	return nil
}

// someSlots draws a range of the slots so far.
func (w *world) someSlots(rnd *rand.Rand, d *device) (from, to int) {
	now := w.slotNow(d) + 1
	from = rnd.IntN(now)
	return from, min(from+1+rnd.IntN(300), now+1)
}

func (w *world) askRange(rnd *rand.Rand, d *device) error {
	return w.askOne(rnd, d, w.repo(d), d.plain)
}

// askShort reads points that expire meanwhile.
func (w *world) askShort(rnd *rand.Rand, _ *device) error {
	d := w.shortOnes[rnd.IntN(len(w.shortOnes))]
	if d.tenant.erased.Load() {
		return nil
	}
	err := w.askOne(rnd, d, w.short.For(w.store, d.tenant.id), d.short)
	if d.tenant.erased.Load() {
		return nil
	}
	return err
}

func (w *world) askOne(rnd *rand.Rand, d *device, repo *tsdb.Repository[reading], s *series) error {
	from, to := w.someSlots(rnd, d)
	if s.age > 0 {
		from, to = max(0, w.slotNow(d)-int(s.age/slotWidth)-8), w.slotNow(d)+1
	}
	return w.ask(d.tenant.ctx(w.ctx), "Range", d, repo, s, from, to, []tsdb.Order{tsdb.NewestFirst, tsdb.OldestFirst}[rnd.IntN(2)])
}

// ask reads a range and checks all of it.
func (w *world) ask(ctx context.Context, what string, d *device, repo *tsdb.Repository[reading], s *series, from, to int, order tsdb.Order) error {
	o := s.expectedIn(from, to)
	begun := w.clock.now()
	in := tsdb.Between(d.time(w.base, from), d.time(w.base, to))
	last := time.Time{}
	for p, err := range repo.Range(ctx, d.entity, in, order) {
		if err != nil {
			return err
		}
		w.checkOrder(what, d, in, order, last, p.Time)
		last = p.Time
		if s.age > 0 && p.Time.Add(s.age).Before(begun) {
			w.fail("%s of tenant %s, device %s (%d): got slot %d, which had expired when the read began, at %v", what, d.tenant.id, d.entity, d.n, p.Value.Slot, begun)
		}
		w.checkPoint(what, d, s, &o, p)
	}
	w.checkMissing(what, d, s, &o, from, to, w.clock.now())
	return nil
}

func (w *world) checkOrder(what string, d *device, in tsdb.Interval, order tsdb.Order, last, t time.Time) {
	if !in.Contains(t) {
		w.fail("%s of tenant %s, device %s (%d): got a point at %v, outside the interval", what, d.tenant.id, d.entity, d.n, t)
	}
	if !last.IsZero() && (order == tsdb.NewestFirst) != t.Before(last) || t.Equal(last) {
		w.fail("%s of tenant %s, device %s (%d): got %v after %v: twice, or out of order", what, d.tenant.id, d.entity, d.n, t, last)
	}
}

// askPage reads a range in pages.
func (w *world) askPage(rnd *rand.Rand, d *device) error {
	from, to := w.someSlots(rnd, d)
	o := d.plain.expectedIn(from, to)
	order := []tsdb.Order{tsdb.NewestFirst, tsdb.OldestFirst}[rnd.IntN(2)]
	in := tsdb.Between(d.time(w.base, from), d.time(w.base, to))
	cursor, last := "", time.Time{}
	for {
		page, err := w.repo(d).Page(d.tenant.ctx(w.ctx), d.entity, in, 1+rnd.IntN(7), cursor, order)
		if err != nil {
			return err
		}
		for _, p := range page.Points {
			w.checkOrder("Page", d, in, order, last, p.Time)
			last = p.Time
			w.checkPoint("Page", d, d.plain, &o, p)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	w.checkMissing("Page", d, d.plain, &o, from, to, w.clock.now())
	return nil
}

// askGet reads one point.
func (w *world) askGet(rnd *rand.Rand, d *device) error {
	slot, _ := w.someSlots(rnd, d)
	o := d.plain.expectedIn(slot, slot+1)
	p, err := w.repo(d).Get(d.tenant.ctx(w.ctx), d.entity, d.time(w.base, slot))
	switch {
	case err == nil:
		w.checkPoint("Get", d, d.plain, &o, p)
	case !errors.Is(err, tsdb.ErrNotFound):
		return err
	}
	w.checkMissing("Get", d, d.plain, &o, slot, slot+1, w.clock.now())
	return nil
}

// askLatestN reads a few newest points, without a gap.
func (w *world) askLatestN(rnd *rand.Rand, d *device) error {
	const n = 8
	o := d.plain.expectedIn(0, w.slotNow(d)+1)
	points, err := w.repo(d).LatestN(d.tenant.ctx(w.ctx), d.entity, n)
	if err != nil {
		return err
	}
	oldest, last := 0, time.Time{}
	for _, p := range points {
		w.checkOrder("LatestN", d, tsdb.AllTime(), tsdb.NewestFirst, last, p.Time)
		last = p.Time
		w.checkPoint("LatestN", d, d.plain, &o, p)
	}
	if len(points) == n {
		oldest = points[n-1].Value.Slot
	}
	w.checkMissing("LatestN", d, d.plain, &o, oldest, len(o.slots), w.clock.now())
	return nil
}

// askAsOf reads the point that was newest at a time.
func (w *world) askAsOf(rnd *rand.Rand, d *device) error {
	slot, _ := w.someSlots(rnd, d)
	at := d.time(w.base, slot)
	o := d.plain.expectedIn(0, slot+1)
	p, err := w.repo(d).AsOf(d.tenant.ctx(w.ctx), d.entity, at)
	floor := -1
	for i, is := range o.slots {
		if is {
			floor = i
		}
	}
	if err == nil && p.Time.After(at) {
		w.fail("AsOf %v of tenant %s, device %s (%d): %v", at, d.tenant.id, d.entity, d.n, p.Time)
	}
	return w.checkNewest("AsOf", d, d.plain, floor, p, err)
}
