package tsdb_test

import (
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestHeadsOfMixedClasses: a dataset has moved to a class that keeps longer. Points of the new class that are older
// than points of the old class become the newest when those expire, even if some were deleted and others collected in
// between.
func TestHeadsOfMixedClasses(t *testing.T) {
	short, long := gc.Class{Name: "h1", Policy: gc.MaxAge(time.Hour)}, gc.Class{Name: "h9", Policy: gc.MaxAge(9 * time.Hour)}
	opts := tsdb.SchemaOptions{Retention: short, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2}}
	before := tsdb.MustDefine("r", tsdb.Key("id"), codec.String(), opts)
	opts.Retention, opts.FormerClasses = long, []gc.Class{short}
	after := tsdb.MustDefine("r", tsdb.Key("id"), codec.String(), opts)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	for name, remove := range map[string]func(repo *tsdb.Repository[string], e tsdb.Entity) error{
		"Delete": func(repo *tsdb.Repository[string], e tsdb.Entity) error { return repo.Delete(t.Context(), e, at(-5)) },
		"DeleteRange": func(repo *tsdb.Repository[string], e tsdb.Entity) error {
			_, err := repo.DeleteRange(t.Context(), e, tsdb.Between(at(-5), at(-4)))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := testkit.NewClock(start)
			store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, before)
			e := tsdb.NewEntity("x")
			put := func(repo *tsdb.Repository[string], minutes int, value string) {
				t.Helper()
				if err := repo.Put(t.Context(), e, at(minutes), value); err != nil {
					t.Fatal(err)
				}
			}
			put(before.For(store, acme), -1, "short")
			put(before.For(store, acme), -2, "short")
			if err := store.Ensure(t.Context(), after); err != nil {
				t.Fatal(err)
			}
			repo := after.For(store, acme)
			for _, minutes := range []int{-5, -6, -7} {
				put(repo, minutes, "long")
			}
			if err := conn.Collect(t.Context()); err != nil { // the head loses the third newest point of its class
				t.Fatal(err)
			}
			if err := remove(repo, e); err != nil {
				t.Fatal(err)
			}
			c.Set(at(60))
			histories, err := repo.LatestMany(t.Context(), []tsdb.Entity{e}, 2)
			if err != nil {
				t.Fatal(err)
			}
			if got := histories[0].Points; len(got) != 2 || !got[0].Time.Equal(at(-6)) || !got[1].Time.Equal(at(-7)) {
				t.Errorf("after the points of the old class have expired, the head shows %v", got)
			}
		})
	}
}
