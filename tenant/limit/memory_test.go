package limit

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/gate"
	"github.com/tidemark-go/tidemark/tenant"
)

func (l *Limiter) kept() (n int) {
	for i := range l.shards {
		n += len(l.shards[i].tenants)
	}
	return n
}

// TestTenantsAreForgotten: memory does not grow with the number of tenants ever seen.
func TestTenantsAreForgotten(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits Limits
		step   time.Duration
		most   int
	}{
		{"idle", Limits{PointsPerSecond: 10, BytesPerSecond: 10}, time.Second, 700},
		{"idle entities", Limits{Entities: 10}, time.Hour, 2000},
		{"too many", Limits{PointsPerSecond: 1, PointsBurst: 100}, 0, 1024},
		{"none", Limits{}, 0, 0},
	} {
		var now atomic.Int64
		clock := func() time.Time { return time.Unix(0, now.Load()) }
		l, err := New(Table{Defaults: tt.limits}, Options{Clock: clock, Tenants: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20_000 {
			now.Add(int64(tt.step))
			if err := gate.Of(l).Write(tenant.MustParse(fmt.Sprint(i)), "d", "e", 1); err != nil {
				t.Fatal(err)
			}
			if n := l.kept(); n > tt.most {
				t.Fatalf("%s: %d tenants are kept after %d, want at most %d", tt.name, n, i+1, tt.most)
			}
		}
	}
}

// TestReadsAreNotForgotten: a tenant with a running read keeps its count, however many other tenants come.
func TestReadsAreNotForgotten(t *testing.T) {
	l, err := New(Table{Defaults: Limits{ConcurrentReads: 1, PointsPerSecond: 1}}, Options{Tenants: 1})
	if err != nil {
		t.Fatal(err)
	}
	acme := tenant.MustParse("acme")
	done, err := gate.Of(l).Read(acme)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		_ = gate.Of(l).Write(tenant.MustParse(fmt.Sprint(i)), "d", "e", 1)
	}
	if _, err := gate.Of(l).Read(acme); err == nil {
		t.Error("a second parallel read was accepted: the tenant was forgotten during the first")
	}
	done()
}

// TestEntitiesModel compares the set with a map over several windows.
func TestEntitiesModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	e := entities{}
	last := map[uint64]int64{} // the last window in which an entity was marked
	now, window := int64(0), int64(100)
	e.turn(now, window)
	for range 200_000 {
		if rnd.IntN(2000) == 0 {
			now += window // one window later; the set is never empty
			e.turn(now, window)
			for h, at := range last {
				if at < now-window {
					delete(last, h)
				}
			}
		}
		h := uint64(rnd.IntN(20_000))
		if _, want := last[h]; e.has(h) != want {
			t.Fatalf("%x: known %v, want %v", h, !want, want)
		}
		e.add(h)
		last[h] = now
		if e.count() != len(last) {
			t.Fatalf("%d entities, want %d", e.count(), len(last))
		}
	}
}
