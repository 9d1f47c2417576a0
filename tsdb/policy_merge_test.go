package tsdb_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestMergesBelieveThePolicy: records are merged into visible points and never into expired ones, under random policies
// and in random classes, before and after garbage collection.
func TestMergesBelieveThePolicy(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"points":      {},
		"heads":       {Head: tsdb.Head{Points: headPoints}},
		"moves":       {Classes: []gc.Class{{}}},
		"moves heads": {Classes: []gc.Class{{}}, Head: tsdb.Head{Points: headPoints}},
	} {
		opts.Merge, opts.Precision = true, tsdb.Milliseconds
		t.Run(name, func(t *testing.T) {
			testkit.OneOf(t, name == "moves heads")
			for i := range *beliefLives {
				seed := *beliefSeed + uint64(i)
				longBubble(t, func(t *testing.T) {
					b := &policyModel{T: t, rnd: rand.New(rand.NewPCG(seed, uint64(len(name)))), name: fmt.Sprintf("%s, seed %d", name, seed), opts: opts}
					b.merge()
				})
			}
		})
	}
}

// merge is live for records.
func (b *policyModel) merge() {
	b.invent()
	schema := define(b, b.schema(0), codec.Records())
	store, conn := tsdbtest.Open(b, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: b.now}}, schema)
	repo := schema.For(store, acme)
	records := map[tsdb.Entity]map[time.Time]codec.Record{}
	steps := 6 * *beliefSteps
	for b.steps = range steps {
		if i := b.steps * len(b.classes) / steps; !b.moves && b.classes[i].Name != b.class.Name {
			schema := define(b, b.schema(i), codec.Records())
			if err := store.Ensure(b.Context(), schema); err != nil {
				b.fail("Ensure: %v", err)
			}
			repo, b.class = schema.For(store, acme), b.classes[i]
		}
		e, at := b.all[b.rnd.IntN(len(b.all))], b.when()
		if times := slices.SortedFunc(maps.Keys(b.points[e]), time.Time.Compare); len(times) > 0 && b.rnd.IntN(3) > 0 {
			at = times[b.rnd.IntN(len(times))] // visible or not
		}
		old, there := b.points[e][at]
		there = there && b.visible(at, old)
		value := rec(fmt.Sprint("f", b.rnd.IntN(4)), int64(b.steps))
		merged := value
		if there {
			merged = records[e][at].Merge(value)
		}
		noted := func(err error) {
			if b.wrote(e, at, merged.String(), err); err == nil {
				if records[e] == nil {
					records[e] = map[time.Time]codec.Record{}
				}
				records[e][at] = merged
			}
		}
		switch b.rnd.IntN(8) {
		case 0:
			stored, err := repo.PutIfAbsent(b.Context(), e, at, value)
			if err == nil && stored == there {
				b.fail("PutIfAbsent at %v = %v, where a point is there: %v", at, stored, there)
			}
			if stored || err != nil {
				noted(err)
			}
		case 1, 2, 3, 4:
			noted(repo.Put(b.Context(), e, at, value))
		case 5:
			if b.moves {
				b.move(store)
			}
		case 6:
			if err := conn.Collect(b.Context()); err != nil {
				b.fail("Collect: %v", err)
			}
		default:
			b.wait()
		}
		b.askMerged(repo)
	}
}

func (b *policyModel) askMerged(repo *tsdb.Repository[codec.Record]) {
	b.Helper()
	answers, err := latestMany(b.Context(), repo, b.all)
	if err != nil {
		b.fail("LatestMany: %v", err)
	}
	for i, e := range b.all {
		want := b.shown(e)
		var got []tsdb.Point[string]
		for p, err := range repo.Range(b.Context(), e, tsdb.AllTime()) {
			if err != nil {
				b.fail("Range: %v", err)
			}
			got = append(got, tsdb.Point[string]{Entity: e, Time: p.Time, Value: p.Value.String()})
		}
		if !slices.Equal(got, want) {
			b.fail("Range of %v = %v\nwant %v", e, got, want)
		}
		p, err := answers[i].Point, answers[i].Err
		if len(want) == 0 && errors.Is(err, tsdb.ErrNotFound) {
			continue
		}
		if err != nil || len(want) == 0 || !p.Time.Equal(want[0].Time) || p.Value.String() != want[0].Value {
			b.fail("LatestMany of %v = %v, %v, want %.1v", e, p, err, want)
		}
	}
}
