// Package refused tries to reach the core of public types. The compiler refuses each marked line, and no other.
package refused

import (
	"context"
	"iter"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func methods(s *tsdb.Store, r *tsdb.Repository[int], w *tsdb.Writer, e tsdb.Entity, d tsdb.Dataset, u *rollup.Rollup[int]) {
	s.Internals()                          // refused
	s.Watch()                              // refused
	s.core()                               // refused
	_ = s.storeGate                        // refused
	r.Internals()                          // refused
	r.Unlimited(nil)                       // refused
	r.Tap(nil, true)                       // refused
	r.core()                               // refused
	_ = r.repositoryGate                   // refused
	w.Add(context.Background(), nil, nil)  // refused
	e.Path()                               // refused
	_ = e.path                             // refused
	d.Shape()                              // refused
	d.core()                               // refused
	d.shape()                              // refused
	u.core()                               // refused
	_ = u.definition                       // refused
	_ = tsdb.Entity{path: "other#dataset"} // refused
	_ = (*tsdb.Store).core                 // refused
	_ = tsdb.storeCore{}                   // refused
}

// Generic functions that infer a core's type from methods, with values, nil, and zero values.

func byMethod[P interface{ core() C }, C any](p P) (c C) { return p.core() }

func byPromotion[P interface {
	*E
	core() C
}, E, C any](p P) (c C) {
	return c
}

func byResult[C any](p interface{ Internals() (C, error) }) (c C, err error) { return p.Internals() }

func byParameter[K any](p interface{ Inside(K) }) { var k K; p.Inside(k) }

func byField[G any](p struct{ storeGate G }) (g G) { return p.storeGate }

func byFunction[P, C any](p P, of func(P) C) C { return of(p) }

func infer(s *tsdb.Store, r *tsdb.Repository[int], d tsdb.Dataset, u tsdb.Rollup) {
	byMethod(s)                            // refused
	byMethod(r)                            // refused
	byMethod(d)                            // refused
	byMethod(u)                            // refused
	byMethod((*tsdb.Store)(nil))           // refused
	byMethod(tsdb.Entity{})                // refused
	byMethod(tsdb.Interval{})              // refused
	byPromotion(s)                         // refused
	byPromotion(r)                         // refused
	byResult(s)                            // refused
	byResult(r)                            // refused
	byParameter(s)                         // refused
	byField(tsdb.Store{})                  // refused
	byFunction(s, (*tsdb.Store).Internals) // refused
	byMethod(mine{s})                      // refused
	byMethod(around{d})                    // refused
	byPromotion(&mine{s})                  // refused
}

// Types of its own around public ones.

type mine struct{ *tsdb.Store }

type around struct{ tsdb.Dataset }

func (m mine) reach() {
	m.core()           // refused
	m.Store.core()     // refused
	m.storeGate.core() // refused
	m.Internals()      // refused
	_ = tsdb.Store(m)  // refused
	_ = m.Store.admin  // refused
}

func (a around) reach() { a.Dataset.core() } // refused

// The thief implements all methods that it can name, generic over what it would steal, and is handed to each public
// function that takes an interface.

type thief[C any] struct{ loot C }

func (t *thief[C]) core() C                            { return t.loot }
func (t *thief[C]) Of(c C) *thief[C]                   { t.loot = c; return t }
func (t *thief[C]) Inside(c C)                         { t.loot = c }
func (t *thief[C]) Value() C                           { return t.loot }
func (t *thief[C]) readOption()                        {}
func (t *thief[C]) Name() string                       { return "thief" }
func (t *thief[C]) Entity(...any) (tsdb.Entity, error) { return tsdb.Entity{}, nil }
func (t *thief[C]) Prefix(...any) (tsdb.Prefix, error) { return tsdb.Prefix{}, nil }
func (t *thief[C]) Scan(tsdb.Entity, ...any) error     { return nil }
func (t *thief[C]) derived() []string                  { return nil }
func (t *thief[C]) pass(context.Context, *rollup.Worker, tenant.ID, C) (bool, error) {
	return false, nil
}
func (t *thief[C]) ages() bool                                                { return false }
func (t *thief[C]) trim(context.Context, *tsdb.Store, tenant.ID) (int, error) { return 0, nil }

func steal[C any](ctx context.Context, s *tsdb.Store, r *tsdb.Repository[int], by *window.Aggregator[int]) {
	t := new(thief[C])
	e, in := tsdb.NewEntity("a"), tsdb.AllTime()
	_ = s.Ensure(ctx, t)                                                                // refused
	_ = s.Verify(ctx, t)                                                                // refused
	_ = tsdb.SchemaOptions{Rollups: []tsdb.Rollup{t}}                                   // refused
	_, _ = r.Latest(ctx, e, t)                                                          // refused
	_ = r.Range(ctx, e, in, t)                                                          // refused
	_, _ = r.LatestMany(ctx, []tsdb.Entity{e}, 1, t)                                    // refused
	_ = by.Read(ctx, t, e, in)                                                          // refused
	_ = by.Read(ctx, r, e, in, t)                                                       // refused
	_, _ = rollup.NewWorker(s, rollup.WorkerOptions{}, t)                               // refused
	_, _ = tsdb.Define("thief", tsdb.Key("a"), codec.Codec[C](t), tsdb.SchemaOptions{}) // refused
}

// ranger is a window.Ranger, which anybody may implement. Its method has public types only.
type ranger struct{}

func (ranger) Range(context.Context, tsdb.Entity, tsdb.Interval, ...tsdb.ReadOption) iter.Seq2[tsdb.Point[int], error] {
	return nil
}

func allowed(ctx context.Context, by *window.Aggregator[int]) {
	_ = by.Read(ctx, ranger{}, tsdb.NewEntity("a"), tsdb.Since(time.Now()))
}
