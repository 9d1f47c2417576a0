package conform

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

const design = "https://github.com/tidemark-go/tidemark/blob/main/docs/design.md"

// The dataset of the cases of a store. One rollup counts events by message, one once.
var (
	byMessage = rollup.MustDefine("messages", window.Every(time.Hour), []rollup.Measure[float64]{}, rollup.Options{Mode: rollup.ByMessage})
	once      = rollup.MustDefine("once", window.Every(time.Hour), []rollup.Measure[float64]{}, rollup.Options{Mode: rollup.Once})
	readings  = tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{
		Retention: gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)}, Rollups: []tsdb.Rollup{byMessage, once},
	})
	plainReadings = tsdb.MustDefine("plain", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{})
	acme, beta    = tenant.MustParse("acme"), tenant.MustParse("beta")
)

// onStore runs a case on a store on the scratch table, which has a dataset.
func onStore(d tsdb.Dataset, see func(e *env, s *tsdb.Store) (string, error)) func(*env) (string, error) {
	return onStoreWith(tsdb.StoreOptions{}, d, see)
}

func onStoreWith(o tsdb.StoreOptions, d tsdb.Dataset, see func(e *env, s *tsdb.Store) (string, error)) func(*env) (string, error) {
	return func(e *env) (_ string, err error) {
		s, err := tsdb.New(e.client, e.table, tsdb.Options{StoreOptions: o, Conditional: e.cond, Admin: e.tables})
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		if err := s.Ensure(e.ctx, d); err != nil {
			return oneLine(err.Error()), nil
		}
		return see(e, s)
	}
}

// entity is one of the case, with bytes that need escaping.
func (e *env) entity() tsdb.Entity { return tsdb.NewEntity(e.prefix, "roof ä#%/\x00") }

var storeTests = []test{
	{
		name: "store/ensure", claim: "a store makes its families, and finds them as it made them", source: design, want: "verified, an empty plan", aggregates: true,
		see: onStore(readings, func(e *env, s *tsdb.Store) (string, error) {
			if err := s.Verify(e.ctx, readings); err != nil {
				return oneLine(err.Error()), nil
			}
			plan, err := retention.NewPlan(e.ctx, s, readings)
			if err != nil {
				return oneLine(err.Error()), nil
			}
			if !plan.Empty() {
				return fmt.Sprintf("verified, a plan of %d changes", len(plan.Items())), nil
			}
			return "verified, an empty plan", nil
		}),
	},
	{
		name: "store/points", claim: "points are read newest first, in their time, and not under other tenants", source: design, want: "latest 3, range 1 2, other tenant not found",
		see: onStore(plainReadings, func(e *env, s *tsdb.Store) (string, error) {
			repo, start := plainReadings.For(s, acme), time.Now().Add(-time.Minute).Truncate(time.Millisecond)
			for n := range 3 {
				if err := repo.Put(e.ctx, e.entity(), start.Add(time.Duration(n)*time.Second), float64(n+1)); err != nil {
					return oneLine(err.Error()), nil
				}
			}
			latest, err := repo.Latest(e.ctx, e.entity())
			if err != nil {
				return oneLine(err.Error()), nil
			}
			var in []string
			for p, err := range repo.Range(e.ctx, e.entity(), tsdb.Between(start, start.Add(2*time.Second)), tsdb.OldestFirst) {
				if err != nil {
					return oneLine(err.Error()), nil
				}
				in = append(in, fmt.Sprint(p.Value))
			}
			other := "found"
			if _, err := plainReadings.For(s, beta).Latest(e.ctx, e.entity()); errors.Is(err, tsdb.ErrNotFound) {
				other = "not found"
			}
			return fmt.Sprintf("latest %v, range %s, other tenant %s", latest.Value, strings.Join(in, " "), other), nil
		}),
	},
	{
		name: "store/lost response", claim: "a put whose response is lost is stored", source: design, want: "stored: 1",
		see: onStore(plainReadings, func(e *env, s *tsdb.Store) (string, error) {
			repo := plainReadings.For(s, acme)
			if err := repo.Put(e.ctx, e.entity(), time.Now().Add(-time.Second), 0); err != nil {
				return oneLine(err.Error()), nil
			}
			e.meter.loseNext("MutateRow")
			if err := repo.Put(e.ctx, e.entity(), time.Now(), 1); err != nil {
				return oneLine(err.Error()), nil
			}
			p, err := repo.Latest(e.ctx, e.entity())
			return fmt.Sprintf("stored: %v", p.Value), err
		}),
	},
	{
		name: "store/lost insert", claim: "an insert whose response is lost is recognized as its own", source: design, want: "first true, then false: 1",
		see: onStore(plainReadings, func(e *env, s *tsdb.Store) (string, error) {
			repo, at := plainReadings.For(s, acme), time.Now().Truncate(time.Millisecond)
			e.meter.loseNext("CheckAndMutateRow")
			first, err := repo.PutIfAbsent(e.ctx, e.entity(), at, 1)
			if err != nil {
				return oneLine(err.Error()), nil
			}
			then, err := repo.PutIfAbsent(e.ctx, e.entity(), at, 2)
			if err != nil {
				return oneLine(err.Error()), nil
			}
			p, err := repo.Latest(e.ctx, e.entity())
			return fmt.Sprintf("first %v, then %v: %v", first, then, p.Value), err
		}),
	},
	{
		name: "store/lost addition", claim: "an event whose response is lost counts once, by its token", source: idempotency, want: "1 event", aggregates: true,
		see: onStore(readings, func(e *env, s *tsdb.Store) (string, error) {
			e.meter.loseNext("MutateRow")
			if err := rollup.NewAdder(once, readings.For(s, acme), nil).Add(e.ctx, e.entity(), time.Now(), 1); err != nil {
				return oneLine(err.Error()), nil
			}
			return e.events(s, once)
		}),
	},
	{
		name: "store/lost message", claim: "a message whose response is lost counts once, by its marker", source: design, want: "1 event", aggregates: true,
		see: onStore(readings, func(e *env, s *tsdb.Store) (string, error) {
			in := rollup.NewAdder(byMessage, readings.For(s, acme), nil)
			e.meter.loseNext("CheckAndMutateRow")
			for range 2 {
				if _, err := in.AddMessage(e.ctx, "message-1", e.entity(), time.Now(), 1); err != nil {
					return oneLine(err.Error()), nil
				}
			}
			return e.events(s, byMessage)
		}),
	},
	{
		name: "store/no view", claim: "a tenant without a view is ErrNoView, by the text of NotFound", source: errorPage, want: "ErrNoView",
		see: onStoreWith(tsdb.StoreOptions{Views: true}, plainReadings, func(e *env, s *tsdb.Store) (string, error) {
			_, err := plainReadings.For(s, tenant.MustParse("none")).Latest(e.ctx, e.entity())
			if errors.Is(err, tsdb.ErrNoView) {
				return "ErrNoView", nil
			}
			return oneLine(fmt.Sprint(err)), nil
		}),
	},
	{
		name: "store/view", claim: "a tenant's rows are written, read and deleted through its view", source: viewPage, want: "1, then not found",
		see: onStoreWith(tsdb.StoreOptions{Views: true}, plainReadings, func(e *env, s *tsdb.Store) (string, error) {
			if err := s.EnsureView(e.ctx, beta, plainReadings); err != nil {
				return oneLine(err.Error()), nil
			}
			repo, at := plainReadings.For(s, beta), time.Now().Truncate(time.Millisecond)
			if err := repo.Put(e.ctx, e.entity(), at, 1); err != nil {
				return oneLine(err.Error()), nil
			}
			p, err := repo.Latest(e.ctx, e.entity())
			if err == nil {
				err = repo.Delete(e.ctx, e.entity(), at)
			}
			if err != nil {
				return oneLine(err.Error()), nil
			}
			then := "found"
			if _, err := repo.Latest(e.ctx, e.entity()); errors.Is(err, tsdb.ErrNotFound) {
				then = "not found"
			}
			return fmt.Sprintf("%v, then %s", p.Value, then), nil
		}),
	},
}

// events returns how many events of the case's entity count.
func (e *env) events(s *tsdb.Store, r *rollup.Rollup[float64]) (string, error) {
	n := int64(0)
	for b, err := range rollup.For(r, readings.For(s, acme)).Buckets(e.ctx, e.entity(), tsdb.Between(time.Now().Add(-2*time.Hour), time.Now().Add(time.Hour))) {
		if err != nil {
			return oneLine(err.Error()), nil
		}
		n += b.Points
	}
	return fmt.Sprintf("%d event", n), nil
}
