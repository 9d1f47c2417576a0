package tsdb_test

import (
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestHeadsWhosePointsMoveToAShorterClass: a head of one point lost the older of two points. The newer one was written
// again in a class that keeps shorter. When it expires, the older one is the newest, although the default class is the
// longest.
func TestHeadsWhosePointsMoveToAShorterClass(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := tsdb.MustDefine("r", tsdb.Key("a", "b"), codec.String(), tsdb.SchemaOptions{
			Retention: month, Classes: []gc.Class{week}, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 1},
		})
		c := testkit.NewClock(start)
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
		repo := s.For(store, acme)
		older, newer := start.Add(-2*time.Hour), start.Add(-time.Hour)
		put := func(at time.Time) {
			t.Helper()
			if err := repo.Put(t.Context(), roof, at, "x"); err != nil {
				t.Fatal(err)
			}
		}
		put(older)
		put(newer)
		collectHeads(t, conn)
		assign(t, store, acme, tenants.Profile{Retention: week.Name})
		put(newer)
		newestByHeads(t, repo, newer)
		c.Set(newer.Add(7*day + time.Millisecond))
		newestByHeads(t, repo, older)
	})
}

func collectHeads(t *testing.T, conn *tsdbtest.Conn) {
	t.Helper()
	if err := conn.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// newestByHeads compares LatestMany and Under.Latest with the wanted point of the only entity.
func newestByHeads(t *testing.T, repo *tsdb.Repository[string], want time.Time) {
	t.Helper()
	answers, err := latestMany(t.Context(), repo, []tsdb.Entity{roof})
	if err != nil || answers[0].Err != nil || !answers[0].Point.Time.Equal(want) {
		t.Errorf("LatestMany = %v, %v, want %v", answers, err, want)
	}
	under, err := collect(repo.Under(tsdb.AllEntities()).Latest(t.Context()))
	if err != nil || len(under) != 1 || !under[0].Time.Equal(want) {
		t.Errorf("Under.Latest = %v, %v, want %v", under, err, want)
	}
}

// TestHeadsOfARetentionThatWasShorterForAWhile: points were written in a long class, then one of them again in a
// shorter class, and now the long class is used again.
func TestHeadsOfARetentionThatWasShorterForAWhile(t *testing.T) {
	schema := func(now gc.Class, older ...gc.Class) *tsdb.Schema[string] {
		return tsdb.MustDefine("r", tsdb.Key("a", "b"), codec.String(), tsdb.SchemaOptions{
			Retention: now, FormerClasses: older, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 1},
		})
	}
	first, again := schema(month), schema(month, week)
	c := testkit.NewClock(start)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, first)
	older, newer := start.Add(-2*time.Hour), start.Add(-time.Hour)
	put := func(s *tsdb.Schema[string], at time.Time) {
		t.Helper()
		if err := store.Ensure(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if err := s.For(store, acme).Put(t.Context(), roof, at, "x"); err != nil {
			t.Fatal(err)
		}
	}
	put(first, older)
	put(first, newer)
	collectHeads(t, conn)
	put(schema(week, month), newer)
	newestByHeads(t, again.For(store, acme), newer)
	c.Set(newer.Add(7*day + time.Millisecond))
	newestByHeads(t, again.For(store, acme), older)
}
