package configs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
)

const (
	numEntities = 6
	slots       = 9
)

var (
	ids   = []tenant.ID{tenant.MustParse("acme"), tenant.MustParse("acme2")}
	start = time.Date(2026, 6, 1, 22, 10, 0, 0, time.UTC)
)

func timeOf(slot int) time.Time { return start.Add(time.Duration(slot) * 25 * time.Minute) }
func slotOf(at time.Time) int   { return int(at.Sub(start) / (25 * time.Minute)) }

// entity is what is stored of an entity: a number by slot, or 0 for no point.
type entity [slots]int64

// newest returns the newest slot that has a point, or -1.
func (e entity) newest() int {
	for i := slots - 1; i >= 0; i-- {
		if e[i] != 0 {
			return i
		}
	}
	return -1
}

func (e entity) count(from, to int) (n int) {
	for i := from; i <= to; i++ {
		if e[i] != 0 {
			n++
		}
	}
	return n
}

// model is what is stored.
type model [2][numEntities]entity

// op is an operation. It changes the model, and what a set-up stores.
type op struct {
	name  string
	model func(*model)
	run   func(context.Context, *world) error
}

// place is a point without its value.
type place struct{ tenant, entity, slot int }

// plan returns the operations of a seed.
func plan(seed uint64, n int) (ops []op) {
	r := rand.New(rand.NewPCG(seed, 1))
	next := int64(0)
	m := new(model) // before the operation
	for range n {
		at := place{r.IntN(len(ids)), r.IntN(numEntities), r.IntN(slots)}
		next += 10
		var o op
		switch k := r.IntN(100); {
		case k < 30:
			o = writes("put", []place{at}, next, func(ctx context.Context, w *world, points []tsdb.Point[int64]) error {
				return w.repo(at.tenant).Put(ctx, points[0].Entity, points[0].Time, points[0].Value)
			})
		case k < 38:
			o = writes("put many", places(r, at.tenant), next, func(ctx context.Context, w *world, points []tsdb.Point[int64]) error {
				outs, err := w.repo(at.tenant).PutMany(ctx, points)
				return errors.Join(err, failures(outs))
			})
		case k < 50:
			o = writes("enqueue", places(r, at.tenant), next, func(ctx context.Context, w *world, points []tsdb.Point[int64]) error {
				outs, err := w.repo(at.tenant).Via(w.w).EnqueueMany(ctx, points)
				return errors.Join(err, failures(outs), w.w.Flush(ctx))
			})
		case k < 58:
			o = putIfAbsent(at, next, m[at.tenant][at.entity][at.slot] == 0)
		case k < 72:
			o = op{"delete", func(m *model) { m[at.tenant][at.entity][at.slot] = 0 }, func(ctx context.Context, w *world) error {
				return w.repo(at.tenant).Delete(ctx, w.keys.entity(at.entity), timeOf(at.slot))
			}}
		case k < 80:
			o = deleteRange(at, min(at.slot+r.IntN(4), slots-1), m[at.tenant][at.entity])
		case k < 83:
			want := m[at.tenant][at.entity].count(0, slots-1)
			o = op{"delete an entity", func(m *model) { m[at.tenant][at.entity] = entity{} }, func(ctx context.Context, w *world) error {
				got, err := w.repo(at.tenant).DeleteRange(ctx, w.keys.entity(at.entity), tsdb.AllTime())
				return counted(got, want, err)
			}}
		case k < 86:
			o = deletePrefix(at, m[at.tenant])
		case k < 92:
			o = op{"let a worker compute the rollups", func(*model) {}, func(ctx context.Context, w *world) error { return w.work(ctx) }}
		case k < 96:
			o = op{"open again", func(*model) {}, func(_ context.Context, w *world) error {
				w.shut()
				w.open()
				return nil
			}}
		default:
			o = op{"export and import", func(*model) {}, func(ctx context.Context, w *world) error {
				var file bytes.Buffer
				if _, err := transfer.Export(ctx, w.store, ids[at.tenant], &file, transfer.ExportOptions{}); err != nil {
					return err
				}
				_, err := transfer.Import(ctx, w.store, ids[at.tenant], &file, transfer.ImportOptions{})
				return err
			}}
		}
		o.model(m)
		o.name = fmt.Sprintf("%s %v", o.name, at)
		ops = append(ops, o)
	}
	return ops
}

// places draws places of a tenant, one of each of some entities.
func places(r *rand.Rand, tenant int) (at []place) {
	for _, i := range r.Perm(numEntities)[:1+r.IntN(numEntities)] {
		at = append(at, place{tenant, i, r.IntN(slots)})
	}
	return at
}

// writes is an operation that writes points. Where the first write of a point wins, it deletes them first.
func writes(name string, at []place, value int64, run func(context.Context, *world, []tsdb.Point[int64]) error) op {
	return op{name, func(m *model) {
		for i, p := range at {
			m[p.tenant][p.entity][p.slot] = value + int64(i)
		}
	}, func(ctx context.Context, w *world) error {
		var points []tsdb.Point[int64]
		for i, p := range at {
			points = append(points, tsdb.Point[int64]{Entity: w.keys.entity(p.entity), Time: timeOf(p.slot), Value: value + int64(i)})
			if w.opts.FirstWins {
				if err := w.repo(p.tenant).Delete(ctx, w.keys.entity(p.entity), timeOf(p.slot)); err != nil {
					return err
				}
			}
		}
		return run(ctx, w, points)
	}}
}

func failures(outs []tsdb.Outcome) (err error) {
	for _, o := range outs {
		if o.State != tsdb.Stored && o.State != tsdb.Journaled {
			err = errors.Join(err, &tsdb.WriteError{Outcome: o})
		}
	}
	return err
}

func putIfAbsent(at place, value int64, absent bool) op {
	return op{"put if absent", func(m *model) {
		if absent {
			m[at.tenant][at.entity][at.slot] = value
		}
	}, func(ctx context.Context, w *world) error {
		stored, err := w.repo(at.tenant).PutIfAbsent(ctx, w.keys.entity(at.entity), timeOf(at.slot), value)
		if err == nil && stored != absent {
			err = fmt.Errorf("it was stored: %v, want %v", stored, absent)
		}
		return err
	}}
}

func deleteRange(at place, to int, before entity) op {
	return op{"delete a range", func(m *model) {
		for i := at.slot; i <= to; i++ {
			m[at.tenant][at.entity][i] = 0
		}
	}, func(ctx context.Context, w *world) error {
		got, err := w.repo(at.tenant).DeleteRange(ctx, w.keys.entity(at.entity), tsdb.Between(timeOf(at.slot), timeOf(to)).ClosedEnd())
		return counted(got, before.count(at.slot, to), err)
	}}
}

// deletePrefix deletes a half of the entities. Where they share no prefix, it deletes them one by one.
func deletePrefix(at place, before [numEntities]entity) op {
	first := at.entity / (numEntities / 2) * (numEntities / 2)
	return op{"delete below a prefix", func(m *model) {
		for i := first; i < first+numEntities/2; i++ {
			m[at.tenant][i] = entity{}
		}
	}, func(ctx context.Context, w *world) error {
		got, want := 0, 0
		for i := first; i < first+numEntities/2; i++ {
			want += before[i].count(0, slots-1)
			if !w.keys.shared {
				n, err := w.repo(at.tenant).DeleteRange(ctx, w.keys.entity(i), tsdb.AllTime())
				if err != nil {
					return err
				}
				got += n
			}
		}
		if !w.keys.shared {
			return counted(got, want, nil)
		}
		got, err := w.repo(at.tenant).DeletePrefix(ctx, w.keys.site(at.entity))
		return counted(got, want, err)
	}}
}

func counted(got, want int, err error) error {
	if err == nil && got != want {
		err = fmt.Errorf("it deleted %d points, want %d", got, want)
	}
	return err
}
