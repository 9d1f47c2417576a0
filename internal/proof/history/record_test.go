package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/anishathalye/porcupine"

	"github.com/tidemark-go/tidemark/tsdb"
)

// part is what Porcupine decides by itself. Bigtable promises that each row is consistent, and nothing about several
// rows. So with weak scans a part is one row. With other scans it is an entity, because a scan sees all of its points
// at one moment.
type part struct {
	dataset, entity string // the tenant is part of the dataset's name
	row             int
}

// Rows of a part that are not a point's.
const (
	allPoints = -1
	headRow   = -2
)

// recorder collects the operations of a history.
type recorder struct {
	byRow bool // each part is one row

	now   atomic.Int64 // counts the begins and ends of calls: their order
	calls atomic.Int64

	mu     sync.Mutex
	ops    map[part][]porcupine.Operation
	stamps []stamp // in order
}

// stamp is the order of a call's beginning, and its time.
type stamp struct {
	at    time.Time
	order int64
}

// never is the end of an operation that may happen at any later time.
const never = math.MaxInt64

func (r *recorder) tick() int64 { return r.now.Add(1) }

// call is one call of a client.
type call struct {
	*recorder
	client int
	what   string
	begun  int64
	at     time.Time
	sent   traffic
}

// traffic counts the requests of a call that reached the engine.
type traffic struct {
	mu     sync.Mutex
	scans  int
	ranges [][2]string    // of scans with values
	writes map[string]int // by row key
}

type trafficKey struct{}

func (t *traffic) scan(rows *btpb.RowSet, values bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.scans++
	if !values {
		return
	}
	for _, r := range rows.GetRowRanges() {
		t.ranges = append(t.ranges, [2]string{string(r.GetStartKeyClosed()) + string(r.GetStartKeyOpen()), string(r.GetEndKeyOpen())})
	}
}

// scansOf returns how many scans of an entity's points there were, without those of more entities.
func (t *traffic) scansOf(p part) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := "#" + escape.Replace(p.entity)
	for _, r := range t.ranges {
		if strings.Contains(r[0], key+"#") && strings.Contains(r[1], key) {
			n++
		}
	}
	return n
}

func (t *traffic) write(row string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.writes == nil {
		t.writes = map[string]int{}
	}
	t.writes[row]++
}

// sentBy records the writes of an entity that a writer has sent: it sends without the call's context.
func (t *traffic) sentBy(p part, attempts int) {
	for range attempts {
		t.write("#" + escape.Replace(p.entity) + "#")
		t.write("!head#" + escape.Replace(p.entity) + "#")
	}
}

// escape writes a part of an entity as row keys do, and puts the separator between two parts.
var escape = strings.NewReplacer("%", "%25", "#", "%23", "/", "#")

// times returns how often a row of a part was written.
func (t *traffic) times(p part) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for row, times := range t.writes {
		if strings.Contains(row, "#"+escape.Replace(p.entity)+"#") && strings.Contains(row, "!head#") == (p.row == headRow) {
			n += times
		}
	}
	return n
}

// begin begins a call of a client. Requests with the returned context count as the call's.
func (c *client) begin(ctx context.Context, what string) (context.Context, *call) {
	return c.recorder.begin(ctx, c.id, fmt.Sprintf("%s at store %d", what, c.node.id))
}

func (r *recorder) begin(ctx context.Context, client int, what string) (context.Context, *call) {
	c := &call{recorder: r, client: client, at: time.Now()}
	c.what = fmt.Sprintf("%v %s", c.at.Format("05.000"), what)
	r.mu.Lock()
	c.begun = r.tick()
	r.stamps = append(r.stamps, stamp{c.at, c.begun})
	r.mu.Unlock()
	r.calls.Add(1)
	return context.WithValue(ctx, trafficKey{}, &c.sent), c
}

// orderBefore returns the order of the last call that began before a time.
func (r *recorder) orderBefore(at time.Time) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, _ := slices.BinarySearchFunc(r.stamps, at, func(s stamp, at time.Time) int { return s.at.Compare(at) })
	if i == 0 {
		return 0
	}
	return r.stamps[i-1].order
}

// add adds an operation to the part of its row, or of its entity.
func (r *recorder) add(p part, client int, o op, from, to int64) {
	if p.row == allPoints && r.byRow {
		p.row = o.slot
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops[p] = append(r.ops[p], porcupine.Operation{ClientId: client, Input: &o, Call: from, Return: to})
}

// wrote records what a write of one point did: o happened if the write is acknowledged. Without an answer it may happen
// at any later time. A rejected write does nothing.
func (c *call) wrote(rows []part, o op, err error) {
	end := int64(never)
	if err == nil {
		end = c.tick()
	} else if errors.Is(err, tsdb.ErrRejected) {
		return
	}
	o.what, o.maybe, o.late = c.what, err != nil, err != nil
	for _, p := range rows {
		c.add(p, c.client, o, c.begun, end)
	}
	c.again(rows, o, end)
}

// refused records that o did nothing, because there was a point already.
func (c *call) refused(rows []part, o op) {
	for _, p := range rows {
		c.add(p, c.client, op{slot: o.slot, seen: sightOf(o.slot, sight{is: present}), what: c.what}, c.begun, c.tick())
	}
	c.again(rows, o, c.now.Load())
}

// again records that a write that was sent more than once may have happened more than once.
func (c *call) again(rows []part, o op, end int64) {
	o.what, o.maybe, o.late = c.what, true, end == never
	for _, p := range rows {
		for range c.sent.times(p) - 1 {
			c.add(p, c.client, o, c.begun, end)
		}
	}
}

// saw records what a read saw. One request sees all points of an entity at one moment; whole is set for that.
func (c *call) saw(p part, seen sights) { c.sawSince(p, seen, c.begun) }

// sawSince is saw for a read whose moment may be earlier than the call.
func (c *call) sawSince(p part, seen sights, from int64) {
	c.sawAt(p, seen, from, p.row == headRow || !c.byRow && c.sent.scans <= 1)
}

// sawAt is saw. whole says whether the call has seen all points at one moment.
func (c *call) sawAt(p part, seen sights, from int64, whole bool) {
	end := c.tick()
	if whole {
		c.add(p, c.client, op{seen: seen, what: c.what}, from, end)
		return
	}
	for i, saw := range seen {
		if saw.is != unseen {
			c.add(p, c.client, op{slot: i, seen: sightOf(i, saw), what: c.what}, from, end)
		}
	}
}

// verdict is what Porcupine has decided about all parts of a history.
type verdict struct {
	parts, ops, undecided int
	wrong                 []string
}

// patience bounds the search for an order of one part's operations.
const patience = 5 * time.Second

// check lets Porcupine decide each part. If it finds neither an order nor that there is none in time, the part is
// undecided, and at least each of its rows is decided.
func (r *recorder) check() (v verdict) {
	order := func(a, b part) int {
		return cmp.Or(cmp.Compare(a.dataset, b.dataset), cmp.Compare(a.entity, b.entity), cmp.Compare(a.row, b.row))
	}
	for _, p := range slices.SortedFunc(maps.Keys(r.ops), order) {
		v.parts++
		v.ops += len(r.ops[p])
		if v.decide(p, r.ops[p]) {
			continue
		}
		v.undecided++
		for row := range slots {
			one := p
			one.row = row
			v.decide(one, ofRow(r.ops[p], row))
		}
	}
	return v
}

// decide reports whether Porcupine has decided operations in time.
func (v *verdict) decide(p part, ops []porcupine.Operation) bool {
	result := porcupine.CheckOperationsTimeout(model, ops, patience)
	if result == porcupine.Illegal {
		v.wrong = append(v.wrong, fmt.Sprintf("no order of these calls explains what they saw of %v:\n%s", p, lines(ops)))
	}
	return result != porcupine.Unknown
}

// ofRow returns what operations did to one row, and what they saw of it.
func ofRow(ops []porcupine.Operation, row int) (of []porcupine.Operation) {
	for _, o := range ops {
		in := *o.Input.(*op)
		switch {
		case in.action == look && in.seen[row].is != unseen:
			in.slot, in.seen = row, sightOf(row, in.seen[row])
		case in.action == look || in.slot != row:
			continue
		}
		o.Input = &in
		of = append(of, o)
	}
	return of
}

// lines returns operations as text, in the order of their beginnings.
func lines(ops []porcupine.Operation) string {
	ops = slices.SortedFunc(slices.Values(ops), func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var text strings.Builder
	for _, o := range ops {
		end := "     ?"
		if o.Return != never {
			end = fmt.Sprintf("%6d", o.Return)
		}
		fmt.Fprintf(&text, "  %6d to %s, client %2d: %v\n", o.Call, end, o.ClientId, o.Input)
	}
	return text.String()
}
