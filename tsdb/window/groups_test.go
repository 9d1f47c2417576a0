package window_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

var (
	acme  = tenant.MustParse("acme")
	start = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
)

type point = tsdb.Point[int64]

// elements runs a sequence to its end.
func elements[V any](t *testing.T, seq iter.Seq2[V, error]) (out []V) {
	t.Helper()
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

func firstError[V any](seq iter.Seq2[V, error]) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}

func whole(v int64) (int64, bool) { return v, true }

func byHour(t *testing.T, opts window.Options, more ...window.Measure[int64]) *window.Aggregator[int64] {
	t.Helper()
	agg, err := window.New(window.Every(time.Hour), append([]window.Measure[int64]{{Name: "counter", Kind: window.Counter, Int: whole}, {Name: "gauge", Int: whole}}, more...), opts)
	if err != nil {
		t.Fatal(err)
	}
	return agg
}

// TestReadGroups: for any prefix, number of fields, salts and order, ReadGroups returns each group once, with the
// buckets that its entities have together.
func TestReadGroups(t *testing.T) {
	rnd := rand.New(rand.NewPCG(19, 9))
	for _, salts := range []int{0, 4} {
		schema := tsdb.MustDefine("meters", tsdb.Key("site", "street", "meter"), codec.Int64(), tsdb.SchemaOptions{Salts: salts})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return start.Add(24 * time.Hour) }}}, schema)
		repo := schema.For(store, acme)
		var points []point
		for range 60 {
			e := tsdb.NewEntity(fmt.Sprint("s", rnd.IntN(3)), fmt.Sprint("a", rnd.IntN(3)), fmt.Sprint("m", rnd.IntN(4)))
			points = append(points, point{Entity: e, Time: start.Add(time.Duration(rnd.IntN(600)) * time.Minute), Value: rnd.Int64N(100)})
		}
		points = append(points, point{Entity: tsdb.NewEntity("s0", "a0", "old"), Time: start.Add(-time.Hour), Value: 7})
		if _, err := repo.PutMany(t.Context(), points); err != nil {
			t.Fatal(err)
		}
		in := tsdb.Between(start.Add(100*time.Minute), start.Add(8*time.Hour))
		agg := byHour(t, window.Options{Gaps: window.Null})
		for _, p := range []tsdb.Prefix{tsdb.AllEntities(), tsdb.NewPrefix("s0"), tsdb.NewPrefix("s1", "a1"), tsdb.NewPrefix("nowhere")} {
			for fields := range 3 - len(p.Parts()) {
				order := tsdb.Order(rnd.IntN(2))
				want := map[tsdb.Prefix][]tsdb.Entity{}
				for _, x := range points {
					parts := x.Entity.Parts()
					key := tsdb.AllEntities()
					if n := len(p.Parts()) + fields; n > 0 {
						key = tsdb.NewPrefix(parts[:n]...)
					}
					newest := slices.ContainsFunc(points, func(y point) bool { return y.Entity == x.Entity && !y.Time.Before(start.Add(100*time.Minute)) })
					if slices.Equal(parts[:len(p.Parts())], p.Parts()) && newest && !slices.Contains(want[key], x.Entity) {
						want[key] = append(want[key], x.Entity)
					}
				}
				got := elements(t, agg.ReadGroups(t.Context(), repo.Under(p), fields, in, order))
				if len(got) != len(want) || !slices.IsSortedFunc(got, func(a, b window.Group) int { return strings.Compare(a.Prefix.String(), b.Prefix.String()) }) {
					t.Fatalf("%d salts, %v, %d fields: groups %v, want those of %v", salts, p, fields, got, want)
				}
				for _, g := range got {
					slices.SortFunc(want[g.Prefix], tsdb.Entity.Compare) // rates are added in this order
					buckets := elements(t, agg.ReadGroup(t.Context(), repo, want[g.Prefix], in, order))
					if a, b := asJSON(t, g.Buckets), asJSON(t, buckets); a != b || g.Entities != len(want[g.Prefix]) {
						t.Errorf("%d salts, %v, %d fields: group %v of %d has\n     %s\nwant %s", salts, p, fields, g.Prefix, g.Entities, a, b)
					}
				}
			}
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestReadGroupsCarryStates: an entity that was silent in the interval counts for a measure whose state lasts, and
// costs nothing for others.
func TestReadGroupsCarryStates(t *testing.T) {
	schema := tsdb.MustDefine("doors", tsdb.Key("site", "door"), codec.Int64(), tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return start.Add(24 * time.Hour) }}}, schema)
	repo := schema.For(store, acme)
	for i := range 10 {
		if err := repo.Put(t.Context(), tsdb.NewEntity("berlin", fmt.Sprint(i)), start.Add(-time.Minute), int64(i%2)); err != nil {
			t.Fatal(err)
		}
	}
	in := tsdb.Between(start, start.Add(time.Hour))
	open := window.Measure[int64]{Name: "open", Kind: window.State, Int: whole, Aggregates: window.Durations}
	groups := elements(t, byHour(t, window.Options{Gaps: window.Null}, open).ReadGroups(t.Context(), repo.Under(tsdb.AllEntities()), 1, in))
	if len(groups) != 1 || groups[0].Entities != 10 || groups[0].Buckets[0].Values[2].States.Time("1").Seconds() != 5*3600 {
		t.Errorf("got %s, want five doors that were open for an hour each", asJSON(t, groups))
	}
	load := window.Measure[int64]{Name: "load", Int: whole, Aggregates: window.Integral, Hold: true}
	groups = elements(t, byHour(t, window.Options{Gaps: window.Null}, load).ReadGroups(t.Context(), repo.Under(tsdb.AllEntities()), 1, in))
	if len(groups) != 1 || groups[0].Buckets[0].Values[2].Integral != 5*3600 || groups[0].Buckets[0].Values[2].Covered.Seconds() != 10*3600 {
		t.Errorf("got %s, want the loads of ten entities, which hold", asJSON(t, groups))
	}
	conn.Reset()
	if groups := elements(t, byHour(t, window.Options{}).ReadGroups(t.Context(), repo.Under(tsdb.AllEntities()), 1, in)); len(groups) != 0 {
		t.Errorf("got %s, want no group without points", asJSON(t, groups))
	}
	if reads := conn.Counts().Calls[tsdbtest.ReadRows]; reads > 3 {
		t.Errorf("ten silent entities cost %d reads, want no read for each", reads)
	}
}

// TestReadGroupsKeepFanOut: the reads of a group and the search for more entities together have no more requests under
// way than the tenant may.
func TestReadGroupsKeepFanOut(t *testing.T) {
	const fanOut = 3
	var now, most atomic.Int32
	count := grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		return streamer(ctx, desc, cc, method, opts...)
	})
	l, err := limit.New(limit.Table{Defaults: limit.Limits{FanOut: fanOut}}, limit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	schema := tsdb.MustDefine("meters", tsdb.Key("site", "meter"), codec.Int64(), tsdb.SchemaOptions{Salts: 16})
	options := tsdb.StoreOptions{Limits: l, Clock: func() time.Time { return start.Add(24 * time.Hour) }}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: options, DialOptions: []grpc.DialOption{count}}, schema)
	repo := schema.For(store, acme)
	const sites, each, live = 40, 40, 4 // most entities are only found, so that the search goes on beside the reads
	var points []point
	for i := range sites * each {
		p := point{Entity: tsdb.NewEntity(fmt.Sprintf("s%03d", i/each), fmt.Sprint(i%each)), Time: start.Add(-time.Hour)}
		if i%each < live {
			p.Time = start
		}
		points = append(points, p)
	}
	if _, err := repo.PutMany(t.Context(), points); err != nil {
		t.Fatal(err)
	}
	conn.Inject(tsdbtest.Delay(time.Millisecond).On(tsdbtest.ReadRows))
	most.Store(0)
	groups := elements(t, byHour(t, window.Options{}).ReadGroups(t.Context(), repo.Under(tsdb.AllEntities()), 1, tsdb.Between(start, start.Add(time.Hour)), tsdb.Concurrency(9)))
	if got := most.Load(); got != fanOut {
		t.Errorf("%d requests at once, want the tenant's %d", got, fanOut)
	}
	if len(groups) != sites || slices.ContainsFunc(groups, func(g window.Group) bool { return g.Entities != live }) {
		t.Errorf("%d groups, want %d of %d entities each", len(groups), sites, live)
	}
}

func TestReadGroupsRefuse(t *testing.T) {
	schema := tsdb.MustDefine("events", tsdb.Key("site", "device"), codec.Int64(), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, schema)
	repo := schema.For(store, acme)
	for d := range 3 {
		if err := repo.Put(t.Context(), tsdb.NewEntity("berlin", fmt.Sprint(d)), start, 1); err != nil {
			t.Fatal(err)
		}
	}
	in := tsdb.Between(start, start.Add(time.Hour))
	agg := byHour(t, window.Options{})
	for want, err := range map[string]error{
		"aggregator is the zero value":         firstError((*window.Aggregator[int64])(nil).ReadGroups(t.Context(), repo.Under(tsdb.AllEntities()), 1, in)),
		"fields of a group is -1; want 0 to 1": firstError(agg.ReadGroups(t.Context(), repo.Under(tsdb.AllEntities()), -1, in)),
		"fields of a group is 2; want 0 to 1":  firstError(agg.ReadGroups(t.Context(), repo.Under(tsdb.AllEntities()), 2, in)),
		"fields of a group is 1; want 0 to 0":  firstError(agg.ReadGroups(t.Context(), repo.Under(tsdb.NewPrefix("berlin")), 1, in)),
		"interval is open":                     firstError(agg.ReadGroups(t.Context(), repo.Under(tsdb.AllEntities()), 1, tsdb.Since(start))),
		"read option 0 is tsdb.Limit":          firstError(agg.ReadGroups(t.Context(), repo.Under(tsdb.AllEntities()), 1, in, tsdb.Limit(1))),
		"prefix":                               firstError(agg.ReadGroups(t.Context(), repo.Under(tsdb.Prefix{}), 1, in)),
	} {
		if !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := firstError(agg.ReadGroups(ctx, repo.Under(tsdb.AllEntities()), 1, in)); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	for range agg.ReadGroups(t.Context(), repo.Under(tsdb.AllEntities()), 1, in) {
		break // goleak finds what leaving the loop would leave behind
	}
}
