package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var berlin = tsdb.NewPrefix("berlin")

// wholeSweep is the longest time until a follower with default options has read the whole lateness again.
const wholeSweep = 17 * time.Second

// world is two stores on one table, as two processes would have them, in a bubble with a simulated clock.
type world struct {
	*testing.T
	schema *tsdb.Schema[int64]
	own    *tsdb.Store // the follower's
	conn   *tsdbtest.Conn
	a, b   *tsdb.Repository[int64] // of both stores
	start  time.Time
}

// followBubble runs a test with a simulated clock.
func followBubble(t *testing.T, opts tsdb.SchemaOptions, f func(w *world)) {
	t.Helper()
	followBubbleWith(t, opts, tsdb.StoreOptions{}, f)
}

func followBubbleWith(t *testing.T, opts tsdb.SchemaOptions, store tsdb.StoreOptions, f func(w *world)) {
	t.Helper()
	if os.Getenv("TIDEMARK_TEST_TCP") != "" {
		t.Skip("needs a simulated clock; it runs in process")
	}
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, schema: tsdb.MustDefine("events", tsdb.Key("site", "device"), codec.Int64(), opts)}
		w.own, w.conn = tsdbtest.Open(t, tsdbtest.Options{StoreOptions: store}, w.schema)
		client, _ := tsdbtest.Clients(t, w.conn)
		other, err := tsdb.New(client, tsdbtest.Table, tsdb.Options{})
		w.ok(err)
		t.Cleanup(func() { _ = other.Close() })
		w.a, w.b = w.schema.For(w.own, acme), w.schema.For(other, acme)
		w.start = time.Now()
		f(w)
	})
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// under follows Berlin until the end of the test.
func (w *world) under(opts tsdb.FollowOptions) *tsdb.Follower[int64] {
	w.Helper()
	f, err := w.a.Under(berlin).Follow(w.Context(), opts)
	w.ok(err)
	w.Cleanup(func() { _ = f.Close() })
	return f
}

// put stores a point that is so old, through one of the stores.
func (w *world) put(by *tsdb.Repository[int64], e tsdb.Entity, age time.Duration, v int64) time.Time {
	w.Helper()
	at := time.Now().Add(-age)
	w.ok(by.Put(w.Context(), e, at, v))
	return at
}

// values returns the values that arrive within d.
func (w *world) values(f *tsdb.Follower[int64], d time.Duration) (out []int64) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), d)
	defer cancel()
	for p, err := range f.Points(ctx) {
		switch {
		case errors.Is(err, context.DeadlineExceeded):
		case err != nil:
			w.Fatal(err)
		default:
			out = append(out, p.Value)
		}
	}
	return out
}

// want checks the values that arrive within d.
func (w *world) want(f *tsdb.Follower[int64], d time.Duration, want ...int64) {
	w.Helper()
	if got := w.values(f, d); fmt.Sprint(got) != fmt.Sprint(want) {
		w.Fatalf("%v arrive within %v, want %v", got, d, want)
	}
}

// first returns the next n points.
func (w *world) first(f *tsdb.Follower[int64], n int) (out []tsdb.Point[int64]) {
	w.Helper()
	for p, err := range f.Points(w.Context()) {
		w.ok(err)
		if out = append(out, p); len(out) == n {
			break
		}
	}
	return out
}
