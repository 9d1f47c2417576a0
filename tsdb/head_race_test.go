package tsdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestMendingUndoesNothing: a deletion reads points to fill up the head. Between that read and its write to the head,
// other calls delete, change or rewrite these points; and again while the deletion re-reads them.
func TestMendingUndoesNothing(t *testing.T) {
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Minute) }
	type step func(ctx context.Context, r *tsdb.Repository[reading]) error
	del := func(i int) step {
		return func(ctx context.Context, r *tsdb.Repository[reading]) error { return r.Delete(ctx, roof, at(i)) }
	}
	put := func(i int, v float64) step {
		return func(ctx context.Context, r *tsdb.Repository[reading]) error {
			return r.Put(ctx, roof, at(i), reading{v})
		}
	}
	for name, meanwhile := range map[string][]step{
		"deleted":                     {del(2)},
		"deleted, then another":       {del(2), del(1)},
		"changed":                     {put(2, 20)},
		"changed, then changed again": {put(2, 20), put(2, 21)},
		"deleted, then written":       {del(2), put(2, 21)},
		"all deleted": {func(ctx context.Context, r *tsdb.Repository[reading]) error {
			_, err := r.DeleteRange(ctx, roof, tsdb.AllTime())
			return err
		}},
		"pushed out, deleted, and to light again": {func(ctx context.Context, r *tsdb.Repository[reading]) error {
			for i := range 5 {
				if err := put(10+i, 0)(ctx, r); err != nil {
					return err
				}
			}
			return del(2)(ctx, r)
		}, nil},
	} {
		for _, call := range []string{"Delete", "DeleteRange"} {
			s := headSchema(t, false, tsdb.SchemaOptions{})
			var repo *tsdb.Repository[reading]
			var inside atomic.Bool
			passed := 0
			hook := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if fills(req) && passed < len(meanwhile) && !inside.Swap(true) {
					if f := meanwhile[passed]; f != nil {
						if err := f(context.Background(), repo); err != nil {
							t.Error(err)
						}
					}
					passed++
					inside.Store(false)
				}
				return invoker(ctx, method, req, reply, cc, opts...)
			})
			store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{DialOptions: []grpc.DialOption{hook}}, s)
			repo = s.For(store, acme)
			for i := range 6 {
				if err := repo.Put(t.Context(), roof, at(i), reading{float64(i)}); err != nil {
					t.Fatal(err)
				}
			}
			collected := bigtable.NewMutation()
			collected.DeleteTimestampRange("keep.h3", "p:json", 0, bigtable.Time(at(3)))
			apply(t, table, headKey(roof), collected)
			var err error
			if call == "Delete" {
				err = repo.Delete(t.Context(), roof, at(5))
			} else {
				_, err = repo.DeleteRange(t.Context(), roof, tsdb.Since(at(5)))
			}
			if err != nil || passed == 0 {
				t.Fatalf("%s, %s: error %v, the head was filled up %d times", call, name, err, passed)
			}
			wholeHead(t, call+", "+name, repo, roof, kept)
			for i := range 5 { // no version of a deleted point is left
				for _, it := range rows(t, table)[headKey(roof)]["keep.h3"] {
					if row := rows(t, table)[milliKey(roof, it.Timestamp.Time())]; row == nil {
						t.Errorf("%s, %s: the head still holds the deleted point of %v", call, name, it.Timestamp.Time())
					}
				}
				if err := repo.Delete(t.Context(), roof, at(10+i)); err != nil {
					t.Fatal(err)
				}
			}
			wholeHead(t, call+", "+name, repo, roof, kept)
		}
	}
}

// fills reports whether a request fills up a head: it sets cells of one row, while a write with heads goes to two rows.
func fills(req any) bool {
	m, ok := req.(*btpb.MutateRowRequest)
	if !ok {
		return false
	}
	for _, mut := range m.Mutations {
		if mut.GetSetCell() != nil {
			return true
		}
	}
	return false
}

// TestHeadsConverge: writers and deleters work on the same entities in parallel. Each point is deleted after its write
// was acknowledged. In the end the heads hold the points that the rows hold.
func TestHeadsConverge(t *testing.T) {
	for _, opts := range []tsdb.SchemaOptions{{}, {FirstWins: true}, {Salts: 3}} {
		s := headSchema(t, false, opts)
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		entities := make([]tsdb.Entity, 4)
		for i := range entities {
			entities[i] = tsdb.NewEntity("berlin", fmt.Sprintf("d%d", i))
		}
		var clock atomic.Int64
		var workers sync.WaitGroup
		for n := range uint64(6) {
			workers.Go(func() {
				rnd := rand.New(rand.NewPCG(n, 1))
				var mine []tsdb.Point[reading]
				for range 60 {
					e := entities[rnd.IntN(len(entities))]
					switch rnd.IntN(4) {
					case 0, 1:
						for range 1 + rnd.IntN(3) {
							ms := clock.Add(1)
							p := tsdb.Point[reading]{Entity: e, Time: start.Add(time.Duration(ms) * time.Millisecond), Value: reading{float64(ms)}}
							if err := repo.Put(t.Context(), p.Entity, p.Time, p.Value); err != nil {
								t.Error(err)
							}
							mine = append(mine, p)
						}
					case 2:
						var batch []tsdb.Point[reading]
						for range 6 {
							ms := clock.Add(1)
							batch = append(batch, tsdb.Point[reading]{Entity: entities[rnd.IntN(len(entities))], Time: start.Add(time.Duration(ms) * time.Millisecond), Value: reading{float64(ms)}})
						}
						if _, err := repo.PutMany(t.Context(), batch); err != nil {
							t.Error(err)
						}
						mine = append(mine, batch...)
					case 3:
						for len(mine) > 0 && rnd.IntN(4) > 0 {
							p := mine[len(mine)-1]
							mine = mine[:len(mine)-1]
							if err := repo.Delete(t.Context(), p.Entity, p.Time); err != nil {
								t.Error(err)
							}
						}
					}
				}
			})
		}
		workers.Wait()
		there := rows(t, table)
		for key, row := range there {
			point, ok := strings.CutPrefix(key, "acme#readings!head#")
			for _, item := range row["keep.h3"] {
				if of := fmt.Sprintf("acme#readings#%s%019d", point, (1<<63-1)-item.Timestamp.Time().UnixMilli()); ok && there[of] == nil {
					t.Errorf("%+v: the head %s holds the deleted point %s", opts, key, of)
				}
			}
		}
		for i := range 2 * kept { // the versions behind the newest points must be right too
			for _, e := range entities {
				wholeHead(t, fmt.Sprintf("%+v, after %d deletions", opts, i), repo, e, kept)
				if p, err := repo.Latest(t.Context(), e); err == nil {
					if err := repo.Delete(t.Context(), e, p.Time); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}
