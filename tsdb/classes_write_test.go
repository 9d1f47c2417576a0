package tsdb_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// inClasses returns the number of payloads of a tenant in each family.
func inClasses(t testing.TB, table *bigtable.Table, id tenant.ID) map[string]int {
	t.Helper()
	out := map[string]int{}
	for key, row := range rows(t, table) {
		if strings.HasPrefix(key, id.String()+"#") {
			for family, items := range row {
				out[family] += len(items)
			}
		}
	}
	return out
}

func checkCounts(t testing.TB, what string, got, want map[string]int) {
	t.Helper()
	for family, n := range want {
		if got[family] != n {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestARewriteMovesThePoint: a point that is written again after its tenant changed class is only in the new class, in
// its row and in the head, for every way of writing. Other points stay where they are.
func TestARewriteMovesThePoint(t *testing.T) {
	for name, tt := range map[string]struct {
		opts     tsdb.SchemaOptions
		old, new map[string]int
	}{
		"points": {tsdb.SchemaOptions{}, map[string]int{"d7": 1}, map[string]int{"d30": 1}},
		"heads":  {tsdb.SchemaOptions{Head: tsdb.Head{Points: 2}}, map[string]int{"d7": 1, "d7.h2": 1}, map[string]int{"d30": 1, "d30.h2": 1}},
		"only":   {tsdb.SchemaOptions{Head: tsdb.Head{Points: 2, Only: true}}, map[string]int{"d7.h2": 1}, map[string]int{"d30.h2": 1}},
		// The first write stays in its class, and so does its head; it counts as the writer's own.
		"first":  {tsdb.SchemaOptions{FirstWins: true}, map[string]int{"d7": 1}, map[string]int{"d7": 1}},
		"firsts": {tsdb.SchemaOptions{Head: tsdb.Head{Points: 2}, FirstWins: true}, map[string]int{"d7": 1, "d7.h2": 1}, map[string]int{"d7": 1, "d7.h2": 1}},
	} {
		for _, way := range []string{"Put", "PutMany", "Writer", "journal"} {
			t.Run(name+"/"+way, func(t *testing.T) {
				testkit.OneOf(t, name == "heads")
				longBubble(t, func(t *testing.T) {
					s := choosing(t, tt.opts)
					store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
					names := []string{"a", "ab", "a-", "a."}
					at := time.Now()
					write := func() {
						for _, n := range names {
							if err := ways[way](t, s.For(store, tenant.MustParse(n)), tsdb.NewEntity("x", "y"), at); err != nil {
								t.Fatal(n, err)
							}
						}
					}
					write()
					assign(t, store, tenant.MustParse("a"), tenants.Profile{Retention: "d30"})
					write()
					checkCounts(t, "the tenant that moved", inClasses(t, table, tenant.MustParse("a")), tt.new)
					for _, n := range names[1:] {
						checkCounts(t, n, inClasses(t, table, tenant.MustParse(n)), tt.old)
					}
					assign(t, store, tenant.MustParse("a"), tenants.Profile{})
					write()
					checkCounts(t, "back again", inClasses(t, table, tenant.MustParse("a")), tt.old)
				})
			})
		}
	}
}

// TestAMergeMovesThePoint: a merge moves a point to the tenant's new class with all its fields, and its head too.
func TestAMergeMovesThePoint(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := merging(t, tsdb.SchemaOptions{Retention: week, Classes: []gc.Class{month}, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2}})
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
		repo, at := s.For(store, acme), time.Now()
		if err := repo.Put(t.Context(), roof, at, rec("a", int64(1))); err != nil {
			t.Fatal(err)
		}
		checkCounts(t, "before", inClasses(t, table, acme), map[string]int{"d7": 1, "d7.h2": 1})
		assign(t, store, acme, tenants.Profile{Retention: "d30"})
		if err := repo.Put(t.Context(), roof, at, rec("b", int64(2))); err != nil {
			t.Fatal(err)
		}
		checkCounts(t, "after", inClasses(t, table, acme), map[string]int{"d30": 1, "d30.h2": 1})
		p, err := repo.Latest(t.Context(), roof)
		if err != nil || p.Value.String() != "{a=1i b=2i}" {
			t.Errorf("Latest = %v, %v", p, err)
		}
	})
}

// TestArrivalGoesByTheClassThatIsWritten: by every way of writing, the class of the write decides whether a point has
// expired.
func TestArrivalGoesByTheClassThatIsWritten(t *testing.T) {
	for _, only := range []bool{false, true} {
		longBubble(t, func(t *testing.T) {
			s := choosing(t, tsdb.SchemaOptions{Head: tsdb.Head{Points: 3, Only: only}})
			store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
			a, ab := tenant.MustParse("a"), tenant.MustParse("ab")
			assign(t, store, a, tenants.Profile{Classes: map[string]string{"r": "d30"}})
			i := 0
			for way, put := range ways {
				i++
				at := time.Now().Add(-10*day - time.Duration(i)*time.Second)
				if err := put(t, s.For(store, a), roof, at); err != nil {
					t.Errorf("%s of a point within the 30 day class: %v", way, err)
				}
				if err := put(t, s.For(store, a), roof, at.Add(-21*day)); !errors.Is(err, tsdb.ErrExpired) {
					t.Errorf("%s of an older point: %v, want ErrExpired", way, err)
				}
				if err := put(t, s.For(store, ab), roof, at); !errors.Is(err, tsdb.ErrExpired) || !strings.Contains(err.Error(), "d7") {
					t.Errorf("%s of another tenant: %v, want ErrExpired in d7", way, err)
				}
			}
		})
	}
}

// TestAWriterGoesByTheClassOfWhenItSends: a point that waited in a journal is written in the class that its tenant has
// when it is sent. If it has expired in that class, it becomes a dead letter.
func TestAWriterGoesByTheClassOfWhenItSends(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := choosing(t, tsdb.SchemaOptions{})
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
		repo, at := s.For(store, acme), time.Now()
		assign(t, store, acme, tenants.Profile{Retention: "d30"})
		if err := repo.Put(t.Context(), roof, at, "x"); err != nil { // now the store knows the class
			t.Fatal(err)
		}
		dir := t.TempDir()
		w := must[*tsdb.Writer](t)(store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: dir}}))
		outage := func() { conn.Inject(tsdbtest.Fail(codes.Unavailable).On(tsdbtest.MutateRows)) }
		outage()
		for _, ago := range []time.Duration{time.Hour, 10 * day} {
			if err := repo.Via(w).Enqueue(t.Context(), roof, at.Add(-ago), "x"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		assign(t, store, acme, tenants.Profile{})
		conn.Clear()
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkCounts(t, "delivered", inClasses(t, table, acme), map[string]int{"d30": 1, "d7": 1})
		letters := 0
		for l, err := range w.DeadLetters(t.Context()) {
			if err != nil || !strings.Contains(l.Reason, "d7") {
				t.Errorf("%+v, %v", l, err)
			}
			letters++
		}
		if letters != 1 {
			t.Errorf("%d dead letters, want 1, of the point of 10 days ago", letters)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestAJournalOfAnotherProgram: a journal stores which classes the schema offers, and not which one the tenant has.
func TestAJournalOfAnotherProgram(t *testing.T) {
	for first, then := range map[string]string{"": "d30", "d30": ""} {
		longBubble(t, func(t *testing.T) {
			s := choosing(t, tsdb.SchemaOptions{})
			store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
			dir := t.TempDir()
			w := must[*tsdb.Writer](t)(store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: dir}}))
			assign(t, store, acme, tenants.Profile{Retention: first})
			conn.Inject(tsdbtest.Fail(codes.Unavailable).On(tsdbtest.MutateRows))
			if err := s.For(store, acme).Via(w).Enqueue(t.Context(), roof, time.Now(), "x"); err != nil {
				t.Fatal(err)
			}
			expired, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := w.Close(expired); !errors.Is(err, tsdb.ErrUndelivered) {
				t.Fatal(err)
			}
			cancel()
			conn.Clear()
			assign(t, store, acme, tenants.Profile{Retention: then})
			w = must[*tsdb.Writer](t)(store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: dir}}))
			if err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			checkCounts(t, "delivered", inClasses(t, table, acme), map[string]int{cmp.Or(then, "d7"): 1})
		})
	}
}

// TestAClassThatTheProgramDoesNotOffer: an assignment to a class that the schema does not offer is ignored; the points
// go to the default class.
func TestAClassThatTheProgramDoesNotOffer(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		year := gc.Class{Name: "d365", Policy: gc.MaxAge(365 * day)}
		newer := tsdb.MustDefine("r", tsdb.Key("a", "b"), codec.String(), tsdb.SchemaOptions{Retention: week, Classes: []gc.Class{month, year}, Precision: tsdb.Milliseconds})
		older := choosing(t, tsdb.SchemaOptions{FormerClasses: []gc.Class{year}})
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, newer)
		assign(t, store, acme, tenants.Profile{Retention: "d365"})
		if err := older.For(store, acme).Put(t.Context(), roof, time.Now(), "x"); err != nil {
			t.Fatal(err)
		}
		checkCounts(t, "written", inClasses(t, table, acme), map[string]int{"d7": 1})
		if err := newer.For(store, acme).Put(t.Context(), roof, time.Now().Add(time.Second), "x"); err != nil {
			t.Fatal(err)
		}
		checkCounts(t, "written", inClasses(t, table, acme), map[string]int{"d7": 1, "d365": 1})
	})
}
