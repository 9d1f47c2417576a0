package tsdb_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var fieldSwitches = flag.Int("heads.switches", 2, "how often TestFieldsInAllOrders changes from one call to another before that has ended")

// TestFieldsInAllOrders: calls change the points of an entity at once. Their requests come in each order with a few
// changes from one call to another. Whenever a call has ended, the head shows no value that is deleted, and hides none
// that is stored.
func TestFieldsInAllOrders(t *testing.T) {
	testkit.Plain(t) // one request at a time
	del := func(i int) lane {
		return lane{deletes: i, call: func(ctx context.Context, r *tsdb.Repository[sparse], e tsdb.Entity) error {
			return r.Delete(ctx, e, laneTime(i))
		}}
	}
	put := func(i int) lane {
		return lane{puts: []int{i}, call: func(ctx context.Context, r *tsdb.Repository[sparse], e tsdb.Entity) error {
			return r.Put(ctx, e, laneTime(i), tempOf(float64(i)))
		}}
	}
	both := func(i, k int) lane {
		return lane{puts: []int{i, k}, call: func(ctx context.Context, r *tsdb.Repository[sparse], e tsdb.Entity) error {
			return errors.Join(put(i).call(ctx, r, e), put(k).call(ctx, r, e))
		}}
	}
	for name, s := range map[string]laneCase{
		"two deletions":                              {[]int{1, 3, 5}, []lane{del(5), del(3)}},
		"two deletions of all":                       {[]int{3, 5}, []lane{del(5), del(3)}},
		"three deletions":                            {[]int{1, 2, 3, 5}, []lane{del(5), del(3), del(2)}},
		"a late write":                               {[]int{1, 5}, []lane{del(5), put(3)}},
		"a late write without older ones":            {[]int{5}, []lane{del(5), put(3)}},
		"two late writes":                            {[]int{5}, []lane{del(5), both(3, 2)}},
		"two deletions and a late write":             {[]int{1, 3, 5}, []lane{del(5), del(3), put(4)}},
		"late writes, of which one is deleted":       {[]int{5}, []lane{del(5), lateThenDeleted(3, 2)}},
		"late writes above, of which one is deleted": {[]int{1, 5}, []lane{del(5), lateThenDeleted(4, 3)}},
	} {
		t.Run(name, func(t *testing.T) { s.explore(t, *fieldSwitches, true) })
		t.Run(name+", not collected", func(t *testing.T) { s.explore(t, *fieldSwitches, false) })
	}
}

// lateThenDeleted writes two points and deletes the first.
func lateThenDeleted(i, k int) lane {
	return lane{puts: []int{k}, deletes: i, call: func(ctx context.Context, r *tsdb.Repository[sparse], e tsdb.Entity) error {
		return errors.Join(r.Put(ctx, e, laneTime(i), tempOf(float64(i))), r.Put(ctx, e, laneTime(k), tempOf(float64(k))), r.Delete(ctx, e, laneTime(i)))
	}}
}

func laneTime(i int) time.Time { return start.Add(time.Duration(i) * time.Minute) }

// lane is a call that runs beside others, one request at a time.
type lane struct {
	call    func(context.Context, *tsdb.Repository[sparse], tsdb.Entity) error
	puts    []int // points that are there at the end
	deletes int   // the point that is not; 0 for none
}

type laneCase struct {
	points []int
	lanes  []lane
}

// lanes lets the requests of calls pass one by one.
type lanes struct {
	arrived chan struct{} // the current call has come to its next request, or has ended
	pass    []chan struct{}
}

type laneKey struct{}

func (l *lanes) request(ctx context.Context) {
	if n, ok := ctx.Value(laneKey{}).(int); ok {
		l.arrived <- struct{}{}
		<-l.pass[n]
	}
}

func (l *lanes) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			l.request(ctx)
			return invoker(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			l.request(ctx)
			return streamer(ctx, desc, cc, method, opts...)
		}),
	}
}

// explore runs the calls in all orders of their requests with up to a number of changes before a call has ended. Cells
// are collected after each request, or never.
func (c laneCase) explore(t *testing.T, switches int, collects bool) {
	l := &lanes{}
	s := fieldSchema(tsdb.SchemaOptions{})
	var repo *tsdb.Repository[sparse]
	var conn *tsdbtest.Conn
	runs := 0
	for order := []int(nil); ; runs++ {
		if runs%20 == 0 { // a collection looks at all rows
			var store *tsdb.Store
			store, conn = tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: testkit.NewClock(laneTime(19)).Now}, DialOptions: l.options()}, s)
			repo = s.For(store, acme)
		}
		r := &laneRun{T: t, laneCase: c, lanes: l, repo: repo, entity: tsdb.NewEntity(fmt.Sprint(runs), "d"), order: order, left: switches}
		if collects {
			r.conn = conn
		}
		r.run()
		if t.Failed() {
			t.Fatalf("in the order %s", r.String())
		}
		if order = r.next(); order == nil {
			t.Logf("%d orders", runs+1)
			return
		}
	}
}

// laneRun is one order.
type laneRun struct {
	*testing.T
	laneCase
	*lanes
	repo   *tsdb.Repository[sparse]
	conn   *tsdbtest.Conn // nil without collections
	entity tsdb.Entity
	order  []int // the choices so far; the first possible one follows
	ways   []int // how many choices there were
	left   int   // changes before a call has ended
	who    []string
	state  []int // of each call: 0 before its first request, 1, or 2 at its end
	errs   []error
}

func (r *laneRun) String() string { return strings.Join(r.who, " ") }

// next returns the choices of the next order; nil for none.
func (r *laneRun) next() []int {
	for i := len(r.ways) - 1; i >= 0; i-- {
		if r.order[i]+1 < r.ways[i] {
			return append(r.order[:i:i], r.order[i]+1)
		}
	}
	return nil
}

func (r *laneRun) run() {
	for _, i := range r.points {
		if err := r.repo.Put(r.Context(), r.entity, laneTime(i), tempOf(float64(i))); err != nil {
			r.Fatal(err)
		}
	}
	r.state, r.errs = make([]int, len(r.laneCase.lanes)), make([]error, len(r.laneCase.lanes))
	r.arrived, r.pass = make(chan struct{}), nil
	for range r.laneCase.lanes {
		r.pass = append(r.pass, make(chan struct{}))
	}
	for current := -1; ; {
		if current = r.choose(current); current < 0 {
			break
		}
		r.step(current)
		if r.state[current] == 2 && r.errs[current] != nil {
			r.Fatal(r.errs[current])
		}
		if r.conn != nil {
			if err := r.conn.Collect(r.Context()); err != nil {
				r.Fatal(err)
			}
		}
		r.check(r.state[current] == 2)
	}
	sameFields(r.T, "at the end", r.repo, []tsdb.Entity{r.entity})
}

// choose returns the call whose request comes next; negative if all have ended. The current one is the first choice.
func (r *laneRun) choose(current int) int {
	var can []int
	if current >= 0 && r.state[current] < 2 {
		can = append(can, current)
	}
	for i, s := range r.state {
		if s < 2 && i != current && (len(can) == 0 || can[0] != current || r.left > 0) {
			can = append(can, i)
		}
	}
	if len(can) == 0 {
		return -1
	}
	n := len(r.ways)
	r.ways = append(r.ways, len(can))
	if n == len(r.order) {
		r.order = append(r.order, 0)
	}
	chosen := can[r.order[n]]
	if can[0] == current && chosen != current {
		r.left--
	}
	return chosen
}

// step lets a call make its next request.
func (r *laneRun) step(n int) {
	r.who = append(r.who, fmt.Sprint(n))
	if r.state[n] == 0 {
		r.state[n] = 1
		go func() {
			r.errs[n] = r.laneCase.lanes[n].call(context.WithValue(r.Context(), laneKey{}, n), r.repo, r.entity)
			r.state[n] = 2
			r.arrived <- struct{}{}
		}()
		<-r.arrived
		return
	}
	r.pass[n] <- struct{}{}
	<-r.arrived
}

// check checks the head. Points that a call under way writes or deletes may be there or not.
func (r *laneRun) check(ended bool) {
	if !ended {
		return
	}
	sure := fieldHeads(r.T, r.repo, []tsdb.Entity{r.entity})[0]
	if sure == nil {
		return
	}
	shown, is := sure["temp"]
	newest, allowed := 0, map[int]bool{}
	there := func(i int) { newest, allowed[i] = max(newest, i), true }
	for _, i := range r.points {
		if s := r.deleting(i); s == 0 {
			there(i)
		} else if s == 1 {
			allowed[i] = true
		}
	}
	for n, l := range r.laneCase.lanes {
		for _, i := range l.puts {
			if allowed[i] = r.state[n] > 0; r.state[n] == 2 {
				there(i)
			}
		}
		if r.state[n] == 1 {
			allowed[l.deletes] = true
		}
	}
	at := int(time.UnixMilli(shown.at).Sub(start) / time.Minute)
	if is && (!allowed[at] || at < newest) || !is && newest > 0 {
		r.Errorf("the head shows temp of %d (%v), and has to show one of %v that is not before %d", at, is, allowed, newest)
	}
}

// deleting returns the state of the call that deletes a point; 0 for none.
func (r *laneRun) deleting(i int) (state int) {
	for n, l := range r.laneCase.lanes {
		if l.deletes == i {
			state = max(state, r.state[n])
		}
	}
	return state
}
