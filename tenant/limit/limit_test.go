package limit_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/internal/gate"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	acme  = tenant.MustParse("acme")
	other = tenant.MustParse("other")
	start = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
)

// clock is a clock that a test sets.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time          { return start.Add(time.Duration(c.offset.Load())) }
func (c *clock) advance(d time.Duration) { c.offset.Add(int64(d)) }

func open(t testing.TB, table limit.Table) (*limit.Limiter, *clock) {
	t.Helper()
	c := &clock{}
	l, err := limit.New(table, limit.Options{Clock: c.now})
	if err != nil {
		t.Fatal(err)
	}
	return l, c
}

// put writes points of one byte until one is rejected. It returns how many were accepted, and the error.
func put(l *limit.Limiter, id tenant.ID, offered int) (through int, err error) {
	for range offered {
		if e := gate.Of(l).Write(id, "d", "e", 1); e != nil {
			err = e
		} else {
			through++
		}
	}
	return through, err
}

func exceeded(t testing.TB, err error) *limit.Error {
	t.Helper()
	e, ok := errors.AsType[*limit.Error](err)
	if !ok || !errors.Is(err, limit.ErrExceeded) {
		t.Fatalf("%v is not a *limit.Error that matches ErrExceeded", err)
	}
	return e
}

// TestRatesAreExact: over hours of irregular steps, exactly the allowed number of points is accepted.
func TestRatesAreExact(t *testing.T) {
	testkit.Plain(t)
	for _, rate := range []int64{1, 3, 7, 1000, 333_333} {
		for _, step := range []time.Duration{time.Nanosecond, 333 * time.Nanosecond, 7 * time.Millisecond, time.Second / 3} {
			offered := int64(step)*rate/int64(time.Second) + 2
			if offered > 1000 {
				continue
			}
			l, c := open(t, limit.Table{Defaults: limit.Limits{PointsPerSecond: rate, PointsBurst: 5000}})
			through, elapsed := int64(0), time.Duration(0)
			n, _ := put(l, acme, 6000)
			through += int64(n)
			for range 3000 {
				c.advance(step)
				elapsed += step
				n, _ := put(l, acme, int(offered))
				through += int64(n)
			}
			if want := 5000 + int64(elapsed)*rate/int64(time.Second); through != want {
				t.Errorf("%d a second, every %v for %v: %d accepted, want %d", rate, step, elapsed, through, want)
			}
		}
	}
}

func TestRetryAfterIsTrue(t *testing.T) {
	for _, limits := range []limit.Limits{
		{PointsPerSecond: 7},
		{PointsPerSecond: 3, PointsBurst: 1},
		{BytesPerSecond: 13},
		{BytesPerSecond: 1000, BytesBurst: 1},
		{PointsPerSecond: 1000, BytesPerSecond: 7, BytesBurst: 300},
		{PointsPerSecond: 1, PointsBurst: 2, BytesPerSecond: 1 << 32},
	} {
		l, c := open(t, limit.Table{Defaults: limits})
		refused := 0
		for i := range 3000 {
			size := 1 + i%5
			err := gate.Of(l).Write(acme, "d", "e", size)
			if err == nil {
				continue
			}
			refused++
			e := exceeded(t, err)
			if e.RetryAfter <= 0 || e.Used <= e.Burst && e.ID == limit.PointsPerSecond {
				t.Fatalf("limits %+v: error %+v", limits, e)
			}
			c.advance(e.RetryAfter - 1)
			if err := gate.Of(l).Write(acme, "d", "e", size); err == nil {
				t.Fatalf("limits %+v: accepted before the end of RetryAfter, %v", limits, e.RetryAfter)
			}
			c.advance(1)
			if err := gate.Of(l).Write(acme, "d", "e", size); err != nil {
				t.Fatalf("limits %+v: after RetryAfter of %v: %v, want nil", limits, e.RetryAfter, err)
			}
		}
		if refused == 0 {
			t.Errorf("limits %+v rejected nothing", limits)
		}
	}
}

func TestErrorSaysWhichLimit(t *testing.T) {
	all := limit.Limits{
		PointsPerSecond: 2, PointsBurst: 3, BytesPerSecond: 100, BytesBurst: 1000, Entities: 2, PointBytes: 500, RangeLength: time.Hour, ConcurrentReads: 1,
	}
	l, _ := open(t, limit.Table{Defaults: limit.Limits{PointsPerSecond: 1}, Overrides: map[tenant.ID]limit.Limits{acme: all}})
	done, err := gate.Of(l).Read(acme)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	write := func(entity string, bytes int) error { return gate.Of(l).Write(acme, "d", entity, bytes) }
	for _, tt := range []struct {
		name string
		err  error
		want limit.Error
		text string
	}{
		{"in order", errors.Join(write("a", 400), write("b", 500)), limit.Error{}, ""},
		{
			"size", write("a", 501),
			limit.Error{ID: limit.PointBytes, Limit: 500, Used: 501},
			"limit: exceeded: point_bytes of acme is 500, this would be 501",
		},
		{
			"entity", write("c", 1),
			limit.Error{ID: limit.Entities, Limit: 2, Used: 3},
			"limit: exceeded: entities of acme is 2, this would be 3",
		},
		{
			"bytes", write("a", 130),
			limit.Error{ID: limit.BytesPerSecond, Limit: 100, Burst: 1000, Used: 1030, RetryAfter: 300 * time.Millisecond},
			"limit: exceeded: bytes_per_second of acme is 100 with bursts of 1000, this would be 1030; try again in 300ms",
		},
		{"third", write("a", 0), limit.Error{}, ""},
		{"points", write("a", 0), limit.Error{ID: limit.PointsPerSecond, Limit: 2, Burst: 3, Used: 4, RetryAfter: 500 * time.Millisecond}, ""},
		{"the longer wait of two", write("a", 400), limit.Error{ID: limit.BytesPerSecond, Limit: 100, Burst: 1000, Used: 1300, RetryAfter: 3 * time.Second}, ""},
		{
			"range", gate.Of(l).Span(acme, 90*time.Minute),
			limit.Error{ID: limit.RangeLength, Limit: int64(time.Hour), Used: int64(90 * time.Minute)},
			"limit: exceeded: range_length of acme is 1h0m0s, this would be 1h30m0s",
		},
		{"range at the limit", gate.Of(l).Span(acme, time.Hour), limit.Error{}, ""},
		{"reads", func() error { _, err := gate.Of(l).Read(acme); return err }(), limit.Error{ID: limit.ConcurrentReads, Limit: 1, Used: 2, RetryAfter: 100 * time.Millisecond}, ""},
	} {
		if tt.want == (limit.Error{}) {
			if tt.err != nil {
				t.Errorf("%s: %v", tt.name, tt.err)
			}
			continue
		}
		tt.want.Tenant = acme
		if got := exceeded(t, tt.err); *got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, *got, tt.want)
		}
		if tt.text != "" && tt.err.Error() != tt.text {
			t.Errorf("%s: %q, want %q", tt.name, tt.err, tt.text)
		}
	}
	done()
	done()
	if again, err := gate.Of(l).Read(acme); err != nil {
		t.Errorf("a read after the running one has ended: %v", err)
	} else if _, err := gate.Of(l).Read(acme); err == nil {
		t.Error("ending one read twice made room for two")
	} else {
		again()
	}
	if _, err := put(l, other, 2); exceeded(t, err).Tenant != other {
		t.Errorf("the error names another tenant: %v", err)
	}
}

// TestLargePointIsPaidBack: a point larger than the burst is not rejected for ever, and the rate still holds.
func TestLargePointIsPaidBack(t *testing.T) {
	l, c := open(t, limit.Table{Defaults: limit.Limits{BytesPerSecond: 100}})
	if err := gate.Of(l).Write(acme, "d", "e", 1000); err != nil {
		t.Fatal(err)
	}
	e := exceeded(t, gate.Of(l).Write(acme, "d", "e", 1000))
	if e.RetryAfter != 10*time.Second {
		t.Errorf("RetryAfter = %v, want 10s, in which 1000 bytes refill", e.RetryAfter)
	}
	c.advance(10 * time.Second)
	if err := gate.Of(l).Write(acme, "d", "e", math.MaxInt); err != nil {
		t.Fatal(err)
	}
	if e := exceeded(t, gate.Of(l).Write(acme, "d", "e", 0)); e.RetryAfter <= 0 {
		t.Errorf("after the largest point: %+v", e)
	}
}

func TestEntities(t *testing.T) {
	const most, window = 1000, 24 * time.Hour
	l, c := open(t, limit.Table{Defaults: limit.Limits{Entities: most}})
	write := func(from, to int) (through int) {
		for i := from; i < to; i++ {
			if gate.Of(l).Write(acme, "d", fmt.Sprint("e", i), 1) == nil {
				through++
			}
		}
		return through
	}
	if got := write(0, 5*most); got != most {
		t.Fatalf("%d new entities accepted, want %d", got, most)
	}
	if got := write(0, most); got != most {
		t.Fatalf("%d of %d known entities accepted", got, most)
	}
	if e := exceeded(t, gate.Of(l).Write(acme, "d2", "e0", 1)); e.ID != limit.Entities || e.RetryAfter != 0 {
		t.Errorf("an entity of another dataset: %+v, want it to be counted separately", e)
	}
	if err := gate.Of(l).Write(other, "d", "x", 1); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	// An entity that continues to write always counts. One that stops counts for one to two windows.
	for range 4 {
		c.advance(window / 2)
		if got := write(0, 10); got != 10 {
			t.Fatalf("%d of 10 known entities accepted", got)
		}
	}
	if got := write(10, 10+most); got != most-10 {
		t.Errorf("after two windows %d new entities accepted, want %d", got, most-10)
	}
	c.advance(2 * window)
	if got := write(5000, 7000); got != most {
		t.Errorf("after two windows without writes %d entities accepted, want %d", got, most)
	}
	// Known entities are accepted under a lower limit too.
	if err := l.Set(limit.Table{Defaults: limit.Limits{Entities: 1}}); err != nil {
		t.Fatal(err)
	}
	if got := write(5000, 7000); got != most {
		t.Errorf("under a lower limit %d known entities accepted, want %d", got, most)
	}
}

// TestEntitiesAfterAClockThatGoesBack: an entity counts for at most two windows after its write, also if the clock was
// far ahead then.
func TestEntitiesAfterAClockThatGoesBack(t *testing.T) {
	const window = 24 * time.Hour
	l, c := open(t, limit.Table{Defaults: limit.Limits{Entities: 1}})
	for i, step := range []time.Duration{100 * window, -100 * window, 2 * window} {
		c.advance(step)
		err := gate.Of(l).Write(acme, "d", fmt.Sprint("e", i), 1)
		if refused := i == 1; (err != nil) != refused {
			t.Errorf("entity %d: %v, want it refused: %v", i, err, refused)
		}
	}
}

// TestRefusedUsesNothing: what one limit rejects does not count against another.
func TestRefusedUsesNothing(t *testing.T) {
	l, c := open(t, limit.Table{Defaults: limit.Limits{PointsPerSecond: 10, BytesPerSecond: 10, Entities: 1, PointBytes: 10}})
	for range 100 {
		_ = gate.Of(l).Write(acme, "d", "a", 11)
	}

	if err := gate.Of(l).Write(acme, "d", "a", 10); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		_ = gate.Of(l).Write(acme, "d", "a", -1_000_000) // refills nothing
		_ = gate.Of(l).Write(acme, "d", fmt.Sprint(i), 0)
		_ = gate.Of(l).Write(acme, "d", "a", 1)
	}
	c.advance(time.Second)
	if through, err := put(l, tenant.MustParse("fresh"), 10); through != 10 {
		t.Fatal(err)
	}
	for i := range 10 {
		if err := gate.Of(l).Write(acme, "d", "a", 1); err != nil {
			t.Fatalf("point %d of ten after a second of refusals: %v", i, err)
		}
	}
}

func TestSetWhileRunning(t *testing.T) {
	at := func(rate, burst int64) limit.Table {
		return limit.Table{Defaults: limit.Limits{PointsPerSecond: rate, PointsBurst: burst}}
	}
	l, c := open(t, at(10, 100))
	for i, step := range []struct {
		set  limit.Table
		wait time.Duration
		want int
	}{
		{at(10, 100), 0, 100},
		{at(10, 100), time.Second, 10},
		{at(100, 200), 0, 0}, // usage is kept
		{at(100, 200), 500 * time.Millisecond, 50},
		{at(1, 5), time.Hour, 5}, // the new burst applies
		{limit.Table{}, 0, 1000}, // no limits
		{at(10, 20), 0, 20},      // a limit where there was none
		{at(10, 20), 100 * time.Millisecond, 1},
	} {
		if err := l.Set(step.set); err != nil {
			t.Fatal(err)
		}
		c.advance(step.wait)
		if got, _ := put(l, acme, 1000); got != step.want {
			t.Fatalf("step %d: %d points accepted, want %d", i, got, step.want)
		}
	}
	// The time before the change counts at the old rate, even without calls in between.
	c.advance(time.Second)
	if err := l.Set(at(1, 100)); err != nil {
		t.Fatal(err)
	}
	c.advance(3 * time.Second)
	if got, _ := put(l, acme, 1000); got != 10+3 {
		t.Errorf("%d points accepted, want the 10 of the first second and 3 more", got)
	}
	// An invalid table changes nothing.
	before := l.Limits(acme)
	if err := l.Set(limit.Table{Share: 2}); !errors.Is(err, invalid.ErrLimits) || l.Limits(acme) != before {
		t.Errorf("Set of a bad table: %v, limits are %+v", err, l.Limits(acme))
	}
	table := limit.Table{Overrides: map[tenant.ID]limit.Limits{acme: {Entities: 5}}}
	if err := l.Set(table); err != nil {
		t.Fatal(err)
	}
	table.Overrides[acme] = limit.Limits{Entities: 6}
	if got := l.Limits(acme).Entities; got != 5 {
		t.Errorf("the limiter uses the caller's changed table: %d entities", got)
	}
}

func TestShare(t *testing.T) {
	whole := limit.Limits{
		PointsPerSecond: 100, PointsBurst: 10, BytesPerSecond: 1, Entities: 5, Datasets: 4, PointBytes: 1000, RangeLength: time.Hour, FanOut: 8, ConcurrentReads: 3,
	}
	for _, tt := range []struct {
		share float64
		want  limit.Limits
	}{
		{0, limit.Limits{PointsPerSecond: 100, PointsBurst: 10, BytesPerSecond: 1, BytesBurst: 1, Entities: 5, ConcurrentReads: 3}},
		{1, limit.Limits{PointsPerSecond: 100, PointsBurst: 10, BytesPerSecond: 1, BytesBurst: 1, Entities: 5, ConcurrentReads: 3}},
		{0.1, limit.Limits{PointsPerSecond: 10, PointsBurst: 1, BytesPerSecond: 1, BytesBurst: 1, Entities: 1, ConcurrentReads: 1}},
		{0.25, limit.Limits{PointsPerSecond: 25, PointsBurst: 3, BytesPerSecond: 1, BytesBurst: 1, Entities: 2, ConcurrentReads: 1}},
		{0.07, limit.Limits{PointsPerSecond: 7, PointsBurst: 1, BytesPerSecond: 1, BytesBurst: 1, Entities: 1, ConcurrentReads: 1}},
		{1e-9, limit.Limits{PointsPerSecond: 1, PointsBurst: 1, BytesPerSecond: 1, BytesBurst: 1, Entities: 1, ConcurrentReads: 1}},
	} {
		l, _ := open(t, limit.Table{Defaults: whole, Share: tt.share})
		tt.want.Datasets = 4                                                         // the table's own, counted in its catalogue
		tt.want.PointBytes, tt.want.RangeLength, tt.want.FanOut = 1000, time.Hour, 8 // limits of a single call are not divided
		if got := l.Limits(acme); got != tt.want {
			t.Errorf("share %v: %+v, want %+v", tt.share, got, tt.want)
		}
	}
}

func TestNewAndSetRefuse(t *testing.T) {
	for _, tt := range []struct {
		table limit.Table
		opts  limit.Options
		want  string
	}{
		{limit.Table{Share: -0.1}, limit.Options{}, "share is -0.1"},
		{limit.Table{Share: math.NaN()}, limit.Options{}, "share is NaN"},
		{limit.Table{Defaults: limit.Limits{PointsPerSecond: -1}}, limit.Options{}, "defaults.points_per_second is -1; want 0 for no limit, or up to 4294967296"},
		{limit.Table{Defaults: limit.Limits{BytesBurst: 1}}, limit.Options{}, "defaults.bytes_burst is 1; want 0, because bytes_per_second is 0"},
		{limit.Table{Defaults: limit.Limits{Entities: 10_000_001}}, limit.Options{}, "defaults.entities is 10000001"},
		{limit.Table{Defaults: limit.Limits{RangeLength: -time.Second}}, limit.Options{}, "defaults.range_length is -1s"},
		{limit.Table{Overrides: map[tenant.ID]limit.Limits{acme: {FanOut: -1}}}, limit.Options{}, "overrides.acme.fan_out is -1"},
		{limit.Table{Overrides: map[tenant.ID]limit.Limits{{}: {}}}, limit.Options{}, "tenant in overrides is the zero ID"},
		{limit.Table{}, limit.Options{Window: -1}, "Window is -1ns"},
		{limit.Table{}, limit.Options{Tenants: -1}, "Tenants is -1"},
	} {
		if _, err := limit.New(tt.table, tt.opts); !errors.Is(err, invalid.ErrLimits) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("New = %v, want %q", err, tt.want)
		}
	}
}

func TestNilLimitsNobody(t *testing.T) {
	checkUnlimited(t, nil)
	checkUnlimited(t, &limit.Limiter{})
}

func checkUnlimited(t *testing.T, l *limit.Limiter) {
	t.Helper()
	done, err := gate.Of(l).Read(acme)
	if err := errors.Join(err, gate.Of(l).Write(acme, "d", "e", 1), gate.Of(l).Span(acme, math.MaxInt64), l.Wait(t.Context(), acme, 1)); err != nil {
		t.Error(err)
	}
	done()
	if gate.Of(l).Concurrency(acme, 7) != 7 || l.Limits(acme) != (limit.Limits{}) {
		t.Error("the zero limiter has limits")
	}
	if err := l.Set(limit.Table{}); !errors.Is(err, invalid.ErrLimits) {
		t.Errorf("Set on the zero limiter: %v, want ErrInvalid", err)
	}
}

// TestManyAtOnce: parallel calls are accepted up to the limits and no more, while limits are set.
func TestManyAtOnce(t *testing.T) {
	const burst, reads, entities = 5000, 7, 50
	limits := limit.Limits{PointsPerSecond: 1, PointsBurst: burst, ConcurrentReads: reads, Entities: entities, FanOut: 3}
	l, _ := open(t, limit.Table{Defaults: limits})
	var through, under, most atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				if gate.Of(l).Write(acme, "d", fmt.Sprint(i%100), 1) == nil {
					through.Add(1)
				}
				if done, err := gate.Of(l).Read(acme); err == nil {
					now := under.Add(1)
					for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
					}
					under.Add(-1)
					done()
				}
				_ = gate.Of(l).Write(tenant.MustParse(fmt.Sprint("t", g, "-", i)), "d", "e", 1)
				if i%100 == 0 {
					if err := l.Set(limit.Table{Defaults: limit.Limits{PointsPerSecond: 1, PointsBurst: burst, ConcurrentReads: reads, Entities: entities, FanOut: int64(i)}}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if through.Load() != burst || most.Load() > reads {
		t.Errorf("%d points and %d parallel reads, want %d and at most %d", through.Load(), most.Load(), burst, reads)
	}
}

// TestRatesAreExactAtOnce: calls at once use no time twice, also if they take their turns in another order than they
// have come.
func TestRatesAreExactAtOnce(t *testing.T) {
	const burst, rate, offered = 10, 100_000, 40_000
	var ticks atomic.Int64
	clock := func() time.Time { return start.Add(time.Duration(ticks.Add(1)) * time.Microsecond) }
	l, err := limit.New(limit.Table{Defaults: limit.Limits{PointsPerSecond: rate, PointsBurst: burst}}, limit.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	var through atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			n, _ := put(l, acme, offered)
			through.Add(int64(n))
		})
	}
	wg.Wait()
	if got, most := through.Load(), burst+ticks.Load()*rate/1_000_000; got > most {
		t.Errorf("%d points accepted, want at most %d", got, most)
	}
}
