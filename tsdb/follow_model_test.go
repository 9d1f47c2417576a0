package tsdb_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

var steps = flag.Int("steps", 60, "steps of TestModel for each schema")

type followedKey struct {
	entity tsdb.Entity
	at     time.Time
	id     string
}

// followModel knows which points a follower still has to deliver.
type followModel struct {
	*world
	rnd     *rand.Rand
	f       *tsdb.Follower[int64]
	next    int64
	stored  map[followedKey]int64
	arrived map[followedKey]int64 // the last delivered value
	pending map[followedKey]int64
	late    map[followedKey]bool // of pending: found only while the follower lives
	trace   []string
}

func (m *followModel) note(format string, args ...any) {
	m.trace = append(m.trace, time.Since(m.start).String()+" "+fmt.Sprintf(format, args...))
}

// TestModel: through random writes, deletions and repetitions by two stores, late points, new entities, neighbours with
// the same keys, pauses, and kills at any point, each point that is not too late arrives, once, and nothing else does.
func TestModel(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"plain": {}, "salted identity": {Identity: true, Salts: 3},
		"heads": {Head: tsdb.Head{Points: 5}, Precision: tsdb.Milliseconds}, "heads only": {Head: tsdb.Head{Points: 100, Only: true}, Precision: tsdb.Milliseconds, Salts: 2},
	} {
		if testkit.Raced && name != "salted identity" {
			continue // under the race detector each takes ten times as long
		}
		t.Run(name, func(t *testing.T) {
			followBubble(t, opts, func(w *world) {
				m := &followModel{
					world: w, rnd: rand.New(rand.NewPCG(uint64(len(name)), 7)),
					stored: map[followedKey]int64{}, arrived: map[followedKey]int64{}, pending: map[followedKey]int64{}, late: map[followedKey]bool{},
				}
				m.f = w.under(tsdb.FollowOptions{})
				for range *steps {
					m.step(opts.Identity)
				}
			})
		})
	}
}

func (m *followModel) step(identity bool) {
	touched := map[followedKey]bool{}
	for range m.rnd.IntN(6) {
		k := followedKey{entity: tsdb.NewEntity("berlin", fmt.Sprint("d", m.rnd.IntN(9))), at: time.Now().Add(-time.Duration(m.rnd.IntN(30_000)) * time.Millisecond).Truncate(time.Millisecond)}
		if identity {
			k.id = fmt.Sprint("id", m.rnd.IntN(3))
		}
		late := m.rnd.IntN(6) == 0
		if late {
			k.at = k.at.Add(-10 * time.Minute)
		}
		for old := range m.stored { // any
			if m.rnd.IntN(3) == 0 && time.Since(old.at) < 45*time.Second {
				k, late = old, false
			}
			break
		}
		if touched[k] {
			continue
		}
		touched[k] = true
		repo := m.a
		if m.rnd.IntN(2) == 0 {
			repo = m.b
		}
		if identity {
			repo = repo.WithID(k.id)
		}
		m.write(repo, k, late)
	}
	switch m.rnd.IntN(5) {
	case 0:
		m.kill(m.rnd.IntN(4))
	case 1:
		time.Sleep(time.Duration(m.rnd.IntN(90)) * time.Second) // a slow loop
	}
	m.drain()
}

func (m *followModel) write(repo *tsdb.Repository[int64], k followedKey, late bool) {
	own := repo.Store() == m.own
	value, stored := m.stored[k]
	switch last, ok := m.arrived[k]; {
	case stored && m.rnd.IntN(4) == 0:
		m.ok(repo.Delete(m.Context(), k.entity, k.at))
		m.note("delete %v", k)
		delete(m.stored, k)
		return
	case stored && ok && last == value && m.rnd.IntN(3) == 0:
		m.ok(repo.Put(m.Context(), k.entity, k.at, value)) // again
		m.note("repeat %v", k)
		return
	}
	m.next++
	m.note("put %v = %d, own %v, late %v", k, m.next, own, late)
	m.ok(repo.Put(m.Context(), k.entity, k.at, m.next))
	neighbour := m.schema.For(repo.Store(), tenant.MustParse("acme2"))
	m.ok(neighbour.WithID(k.id).Put(m.Context(), k.entity, k.at, -1))
	m.stored[k] = m.next
	if late && !own {
		return
	}
	m.pending[k] = m.next
	if late {
		m.late[k] = true
	}
}

// deliver takes in a point.
func (m *followModel) deliver(p tsdb.Point[int64]) {
	k := followedKey{p.Entity, p.Time, p.ID}
	k.at = k.at.Local()
	for pending := range m.pending {
		if pending.entity == k.entity && pending.at.Equal(k.at) && pending.id == k.id {
			k = pending
		}
	}
	if want, ok := m.pending[k]; !ok || want != p.Value {
		m.fail("%v = %d arrives, but is not pending", k, p.Value)
	}
	m.note("arrived %v = %d", k, p.Value)
	delete(m.pending, k)
	delete(m.late, k)
	m.arrived[k] = p.Value
}

// kill ends the follower after some more points, and continues in a new one.
func (m *followModel) kill(after int) {
	for range min(after, len(m.pending)) {
		ctx, cancel := context.WithTimeout(m.Context(), wholeSweep)
		for p, err := range m.f.Points(ctx) {
			m.ok(err)
			m.deliver(p)
			break
		}
		cancel()
	}
	position := m.f.Cursor()
	m.ok(m.f.Close())
	m.note("killed")
	for k := range m.late {
		delete(m.pending, k)
	}
	clear(m.late)
	m.f = m.under(tsdb.FollowOptions{After: position})
}

// drain takes all points that arrive until the whole lateness was read again, and expects none to be left.
func (m *followModel) drain() {
	ctx, cancel := context.WithTimeout(m.Context(), wholeSweep)
	defer cancel()
	for p, err := range m.f.Points(ctx) {
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		m.ok(err)
		m.deliver(p)
	}
	if len(m.pending) > 0 {
		m.fail("%v did not arrive", m.pending)
	}
}

func (m *followModel) fail(format string, args ...any) {
	m.Helper()
	for _, line := range m.trace[max(0, len(m.trace)-60):] {
		m.Log(line)
	}
	m.Fatalf(format, args...)
}
