package tsdb_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/gcrule"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var (
	beliefSeed  = flag.Uint64("belief.seed", 1, "seed of the first random life of a store whose points expire")
	beliefLives = flag.Int("belief.lives", 1, "how many lives each kind of schema is given, each with the next seed")
	beliefSteps = flag.Int("belief.steps", 50, "steps of a life")
)

// TestReadsFollowThePolicy uses random nested policies, changes of class, random writes and deletions, and a clock that
// jumps by milliseconds or weeks, often to the exact time at which a point expires. Before, during and after garbage
// collection, each read and each predicate must agree with the policies.
func TestReadsFollowThePolicy(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"plain":      {},
		"salted":     {Salts: 3, Precision: tsdb.Microseconds},
		"first wins": {FirstWins: true},
		"heads":      {Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: headPoints}},
		"first head": {Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: headPoints}, FirstWins: true},
		"only heads": {Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: headPoints, Only: true}},
		// In these schemas the tenant moves between classes.
		"moves":            {Classes: []gc.Class{{}}},
		"moves first":      {Classes: []gc.Class{{}}, FirstWins: true},
		"moves heads":      {Classes: []gc.Class{{}}, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: headPoints}},
		"moves first head": {Classes: []gc.Class{{}}, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: headPoints}, FirstWins: true},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.OneOf(t, name == "heads" || name == "moves first head")
			for i := range *beliefLives {
				seed := *beliefSeed + uint64(i)
				longBubble(t, func(t *testing.T) {
					b := &policyModel{T: t, rnd: rand.New(rand.NewPCG(seed, uint64(len(name)))), name: fmt.Sprintf("%s, seed %d", name, seed), opts: opts}
					b.live()
				})
			}
		})
	}
}

// headPoints is the number of points in the heads of these tests.
const headPoints = 3

// policyModel is a store under test and the model of what it must show.
type policyModel struct {
	*testing.T
	rnd     *rand.Rand
	name    string
	opts    tsdb.SchemaOptions
	classes []gc.Class
	words   map[string]meaning
	conn    *tsdbtest.Conn
	admin   *bigtable.AdminClient
	repo    *tsdb.Repository[string]
	writer  *tsdb.Writer
	moves   bool     // the tenant moves between all classes of the schema; otherwise the schema changes the class that it writes
	class   gc.Class // the class of new points
	points  map[tsdb.Entity]map[time.Time]modelPoint
	all     []tsdb.Entity
	steps   int
	ahead   atomic.Int64 // nanoseconds ahead of the synctest clock
}

type modelPoint struct {
	value string
	class string
}

func (b *policyModel) fail(format string, args ...any) {
	b.Helper()
	b.Fatalf("%s, step %d, %v: %s", b.name, b.steps, b.words, fmt.Sprintf(format, args...))
}

// live writes, deletes, waits and reads.
func (b *policyModel) live() {
	b.invent()
	if b.opts.Head.Only { // garbage collection decides whether points behind the newest ones of another class are visible
		b.classes = b.classes[:1]
	}
	schema := define(b, b.schema(0), codec.String())
	store, conn := tsdbtest.Open(b, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: b.now, Cache: tsdb.CacheOptions{Entries: 100}}}, schema)
	w, err := store.NewWriter(tsdb.WriterOptions{Linger: -1})
	if err != nil {
		b.fail("%v", err)
	}
	defer w.Close(context.Background())
	_, b.admin = tsdbtest.Clients(b, conn)
	b.conn, b.writer = conn, w
	b.repo = schema.For(store, acme)
	for b.steps = range *beliefSteps {
		if n := len(b.classes); !b.moves && b.steps > 0 && b.steps%(*beliefSteps/n+1) == 0 {
			i := b.steps / (*beliefSteps/n + 1)
			schema := define(b, b.schema(i), codec.String())
			b.drift(false)
			if err := store.Ensure(b.Context(), schema); err != nil {
				b.fail("Ensure: %v", err)
			}
			b.repo, b.class = schema.For(store, acme), b.classes[i]
		}
		b.step()
		b.reads()
	}
}

// invent chooses the classes. The first one is written first.
func (b *policyModel) invent() {
	b.words, b.points = map[string]meaning{}, map[tsdb.Entity]map[time.Time]modelPoint{}
	b.moves = len(b.opts.Classes) > 0
	n := 1 + b.rnd.IntN(3)
	if b.moves {
		n = 2 + b.rnd.IntN(2)
	}
	for i := range n {
		c := gc.Class{Name: fmt.Sprint("c", i)}
		m := randomMeaning(b.rnd, 2)
		b.words[c.Name], c.Policy = m, m.policy()
		b.classes = append(b.classes, c)
	}
	b.class = b.classes[0]
	b.all = []tsdb.Entity{tsdb.NewEntity("a", "1"), tsdb.NewEntity("a", "2"), tsdb.NewEntity("a#", "1"), tsdb.NewEntity("b", "1")}
}

// schema returns a schema that writes in class i and has written in the classes before it.
func (b *policyModel) schema(i int) tsdb.SchemaOptions {
	opts := b.opts
	if b.moves {
		opts.Retention, opts.Classes = b.classes[0], b.classes[1:]
		return opts
	}
	opts.Retention, opts.FormerClasses = b.classes[i], slices.Clone(b.classes[:i])
	return opts
}

func define[T any](b *policyModel, opts tsdb.SchemaOptions, c codec.Codec[T]) *tsdb.Schema[T] {
	s, err := tsdb.Define("r", tsdb.Key("site", "device"), c, opts)
	if err != nil {
		b.fail("Define: %v", err)
	}
	return s
}

// move assigns the tenant to another class, or to the same one.
func (b *policyModel) move(store *tsdb.Store) {
	to := b.classes[b.rnd.IntN(len(b.classes))]
	var p tenants.Profile
	switch b.rnd.IntN(3) {
	case 0:
		p.Retention = to.Name
	case 1:
		p.Retention, p.Classes = b.classes[0].Name, map[string]string{"r": to.Name}
	default:
		to = b.classes[0]
	}
	if _, err := tenants.Onboard(b.Context(), store, acme, p, tenants.OnboardOptions{Replace: true}); err != nil {
		b.fail("Onboard: %v", err)
	}
	b.class = to
}

// cell returns the cell timestamp, which garbage collection uses.
func cell(at time.Time) time.Time { return at.Truncate(time.Millisecond) }

// now is the time of the store and of its table.
func (b *policyModel) now() time.Time { return time.Now().Round(0).Add(time.Duration(b.ahead.Load())) }

func (b *policyModel) since(t time.Time) time.Duration { return b.now().Sub(t) }

// pass moves the clock. A long time passes in one jump, because every ticker would tick through it.
func (b *policyModel) pass(d time.Duration) {
	if d < time.Second {
		time.Sleep(d)
		return
	}
	b.ahead.Add(int64(d))
}

func (b *policyModel) visible(at time.Time, p modelPoint) bool {
	return !b.words[p.class].removes(b.since(cell(at)))
}

// when returns a time to write at: within the retention of the class, at its very end, or in the future. It draws from
// few times, so that points are often written again.
func (b *policyModel) when() time.Time {
	unit := []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}[b.rnd.IntN(4)]
	at := b.now().Add(-time.Duration(b.rnd.IntN(30)-3) * unit).Truncate(unit)
	if ages := b.words[b.class.Name].ages(); b.rnd.IntN(3) > 0 && len(ages) > 0 {
		age := ages[b.rnd.IntN(len(ages))]
		switch b.rnd.IntN(3) {
		case 0:
			at = b.now().Add(-age).Add(time.Duration(b.rnd.IntN(5)-2) * time.Millisecond)
		default:
			step := max(age/5, time.Second)
			at = b.now().Add(-time.Duration(b.rnd.Int64N(int64(age)))).Truncate(step)
		}
	}
	if b.opts.Precision == tsdb.Nanoseconds && b.rnd.IntN(3) == 0 {
		at = at.Add([]time.Duration{1, 999_999, 500_000}[b.rnd.IntN(3)])
	}
	if b.opts.Precision == tsdb.Microseconds {
		return at.Truncate(time.Microsecond).UTC()
	}
	if b.opts.Precision == tsdb.Milliseconds {
		return cell(at).UTC()
	}
	return at.UTC()
}

// wait lets time pass, often until or around the time at which a point expires.
func (b *policyModel) wait() {
	e := b.all[b.rnd.IntN(len(b.all))]
	for _, at := range slices.SortedFunc(maps.Keys(b.points[e]), time.Time.Compare) {
		for _, age := range b.words[b.points[e][at].class].ages() {
			edge := cell(at).Add(age).Add([]time.Duration{-1, 0, 1, time.Millisecond}[b.rnd.IntN(4)])
			if d := edge.Sub(b.now()); d > 0 {
				b.pass(d)
				return
			}
		}
	}
	b.pass(time.Duration(1+b.rnd.IntN(5)) * []time.Duration{1, time.Millisecond, time.Second, time.Minute, time.Hour, 5 * 24 * time.Hour}[b.rnd.IntN(6)])
}

// step does one random operation.
func (b *policyModel) step() {
	ctx, e, at, value := b.Context(), b.all[b.rnd.IntN(len(b.all))], b.when(), fmt.Sprint("v", b.steps)
	switch b.rnd.IntN(13) {
	case 0, 1:
		b.wrote(e, at, value, b.repo.Put(ctx, e, at, value))
	case 2:
		var reported tsdb.Outcome
		err := b.repo.Via(b.writer).EnqueueFunc(ctx, e, at, value, func(o tsdb.Outcome) { reported = o })
		if err == nil {
			if err = b.writer.Flush(ctx); err != nil {
				b.fail("Flush: %v", err)
			}
			err = ended(reported)
		}
		b.wrote(e, at, value, err)
	case 3, 4, 5:
		var batch []tsdb.Point[string]
		for i := range 1 + b.rnd.IntN(10) {
			batch = append(batch, tsdb.Point[string]{Entity: b.all[b.rnd.IntN(len(b.all))], Time: b.when(), Value: fmt.Sprint(value, ".", i)})
		}
		outcomes, _ := b.repo.PutMany(ctx, batch)
		for i, p := range batch {
			b.wrote(p.Entity, p.Time, p.Value, ended(outcomes[i]))
		}
	case 6:
		if b.opts.Head.Only { // it may find points behind the newest ones
			return
		}
		old, there := b.points[e][at]
		there = there && b.visible(at, old)
		stored, err := b.repo.PutIfAbsent(ctx, e, at, value)
		if err == nil && stored == there {
			b.fail("PutIfAbsent at %v = %v, where a point is there: %v", at, stored, there)
		}
		if stored || err != nil {
			b.wrote(e, at, value, err)
		}
	case 7:
		if b.opts.Head.Only {
			b.deleted(e, tsdb.AllTime())
		} else if err := b.repo.Delete(ctx, e, at); err != nil {
			b.fail("Delete: %v", err)
		} else {
			delete(b.points[e], at)
		}
	case 8:
		in := tsdb.Between(at, at.Add(time.Duration(b.rnd.Int64N(int64(time.Hour)))))
		if b.opts.Head.Only || b.rnd.IntN(4) == 0 {
			in = tsdb.AllTime()
		}
		b.deleted(e, in)
	case 9:
		b.drift(true)
	case 10:
		if b.moves {
			b.move(b.repo.Store())
		}
		b.wait()
	default:
		b.wait()
	}
}

// drift changes the policies of the table's families behind the store's back, to longer ones or to none, or restores
// them.
func (b *policyModel) drift(away bool) {
	for i := range b.classes {
		c := &b.classes[i]
		if away && b.rnd.IntN(2) == 0 || !b.moves && c.Name > b.class.Name {
			continue
		}
		policies := map[string]gc.Policy{c.Name: c.Policy}
		if n := b.opts.Head.Points; n > 0 {
			policies[fmt.Sprintf("%s.h%d", c.Name, n)] = gc.Any(c.Policy, gc.MaxVersions(n))
		}
		if b.opts.Head.Only {
			delete(policies, c.Name)
		}
		longer := gc.Never()
		if b.rnd.IntN(2) == 0 {
			longer = randomMeaning(b.rnd, 2).policy()
		}
		for name, p := range policies {
			if away {
				p = gc.All(p, longer)
			}
			if err := b.admin.UpdateFamily(b.Context(), tsdbtest.Table, name, bigtable.Family{GCPolicy: gcrule.To(p)}); err != nil {
				b.fail("drifting: %v", err)
			}
		}
	}
}

// ended converts an outcome to the error that Put would return.
func ended(o tsdb.Outcome) error {
	switch o.State {
	case tsdb.Stored:
		return nil
	case tsdb.Rejected:
		return fmt.Errorf("%w: %w", tsdb.ErrRejected, o.Err)
	}
	return fmt.Errorf("state %v: %w", o.State, o.Err)
}

// deleted deletes an interval.
func (b *policyModel) deleted(e tsdb.Entity, in tsdb.Interval) {
	if _, err := b.repo.DeleteRange(b.Context(), e, in); err != nil {
		b.fail("DeleteRange: %v", err)
	}
	maps.DeleteFunc(b.points[e], func(at time.Time, _ modelPoint) bool { return in.Contains(at) })
}

// wrote records a write that returned err, and checks err.
func (b *policyModel) wrote(e tsdb.Entity, at time.Time, value string, err error) {
	b.Helper()
	old, there := b.points[e][at]
	var want error
	switch {
	case b.words[b.class.Name].removes(b.since(cell(at))):
		want = tsdb.ErrExpired
	case b.opts.FirstWins && there && b.visible(at, old) && old.value != value:
		want = tsdb.ErrExists
	}
	if !errors.Is(err, want) || want != nil && !errors.Is(err, tsdb.ErrRejected) {
		b.fail("a write at %v, %v ago: %v, want %v", at, b.since(at), err, want)
	}
	if want != nil {
		return
	}
	if b.points[e] == nil {
		b.points[e] = map[time.Time]modelPoint{}
	}
	if b.opts.FirstWins && there && b.visible(at, old) {
		return
	}
	b.points[e][at] = modelPoint{value, b.class.Name}
}

// shown returns the visible points of an entity, newest first.
func (b *policyModel) shown(e tsdb.Entity) (out []tsdb.Point[string]) {
	for at, p := range b.points[e] {
		if b.visible(at, p) {
			out = append(out, tsdb.Point[string]{Entity: e, Time: at, Value: p.value})
		}
	}
	slices.SortFunc(out, func(a, b tsdb.Point[string]) int { return b.Time.Compare(a.Time) })
	if b.opts.Head.Only {
		out = out[:min(headPoints, len(out))]
	}
	return out
}
