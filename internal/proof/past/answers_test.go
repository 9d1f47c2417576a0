package past_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// teller collects what a store reads, in the lines that testdata/writer.txt writes.
type teller struct {
	*testing.T
	lines []string
}

func (t *teller) say(words ...any) { t.lines = append(t.lines, fmt.Sprintln(words...)) }

// answers returns what a store reads of all tenants.
func answers(tt *testing.T, store *tsdb.Store, v version) string {
	tt.Helper()
	t := &teller{T: tt}
	for _, id := range []tenant.ID{acme, globex, hooli} {
		list(t, store, weather, id)
		list(t, store, state, id)
		list(t, store, orders, id)
		list(t, store, fields, id)
		if v.has(events) {
			list(t, store, events, id)
		}
		if v.has(meters) {
			list(t, store, meters, id)
			list(t, store, waits, id)
			for b, err := range buckets(load, meters.For(store, id), tsdb.NewEntity("m1")) {
				if err != nil {
					t.Fatal(err)
				}
				g, c := b.Values[0], b.Values[1]
				t.say("load", id, b.Start.Format(time.RFC3339), b.Points, g.Sum, g.First, g.Last, g.StdDev, g.Integral, g.Covered,
					g.Quantile(0.5), g.Quantile(0.95), c.Increase, c.Resets)
			}
		}
		repo := weather.For(store, id)
		for _, r := range []*rollup.Rollup[reading]{hour, day} {
			for _, e := range entities(t, repo) {
				t.sums(buckets(r, repo, e), r.Name(), id, e)
			}
		}
		for _, r := range []*rollup.Rollup[trip]{v.stream, byMessage, byOnce} {
			truck := tsdb.NewEntity("t1")
			t.sums(buckets(r, tripsWith(v.stream).For(store, id), truck), r.Name(), id, truck)
		}
	}
	_, err := weather.For(store, initech).Latest(t.Context(), tsdb.NewEntity("berlin", "roof-7"))
	t.say("erased", initech, errors.Is(err, tsdb.ErrErased))
	err = weather.For(store, acme).Put(t.Context(), tsdb.NewEntity("berlin", "gone"), at(0), reading{})
	t.say("erased", acme, "berlin/gone", errors.Is(err, tsdb.ErrErased))
	if p, err := tenants.Load(t.Context(), store, globex); err == nil {
		t.say("profile", globex, p.Name, p.Retention)
	}
	return strings.Join(t.lines, "")
}

func entities[T any](t *teller, repo *tsdb.Repository[T]) (list []tsdb.Entity) {
	for e, err := range repo.Under(tsdb.AllEntities()).Entities(t.Context(), tsdb.AllTime()) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

func list[T any](t *teller, store *tsdb.Store, s *tsdb.Schema[T], id tenant.ID) {
	repo := s.For(store, id)
	known := entities(t, repo)
	for _, e := range known {
		for p, err := range repo.Range(t.Context(), e, tsdb.AllTime()) {
			if err != nil {
				t.Fatal(err)
			}
			t.say("point", s.Name(), id, text(p))
		}
	}
	latest, err := repo.LatestMany(t.Context(), known, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range latest {
		t.say("latest", s.Name(), id, text(a.Points[0]))
	}
}

func text[T any](p tsdb.Point[T]) string {
	name := p.ID
	if name != "" {
		name += " "
	}
	value, err := json.Marshal(p.Value)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%q %s %s%s", p.Entity.Parts(), p.Time.Format(time.RFC3339Nano), name, value)
}

func buckets[T any](r *rollup.Rollup[T], repo *tsdb.Repository[T], e tsdb.Entity) iter.Seq2[window.Bucket, error] {
	return rollup.For(r, repo).Buckets(context.Background(), e, tsdb.Until(base), tsdb.OldestFirst)
}

func (t *teller) sums(seq iter.Seq2[window.Bucket, error], name string, id tenant.ID, e tsdb.Entity) {
	for b, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		v := b.Values[0]
		t.say("bucket", name, id, fmt.Sprintf("%q", e.Parts()), b.Start.Format(time.RFC3339), b.Points, v.Count, v.Sum, v.Min, v.Max)
	}
}
