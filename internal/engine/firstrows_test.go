package engine_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/firstrow"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

func entity(n int) string { return fmt.Sprintf("t#d#e%03d#", n) }

func timedKey(n, at int) string { return fmt.Sprintf("%s%05d", entity(n), at) }

// firstOf returns what a full read shows of the first rows of ranges.
func firstOf(all []string, ranges ...bigtable.RowRange) []string {
	out := []string{}
	for _, rng := range ranges {
		first := ""
		for _, line := range all {
			key, _, _ := strings.Cut(line, " ")
			if rng.Contains(key) && (first == "" || first == key) {
				first = key
				out = append(out, line)
			}
		}
	}
	return out
}

// lastOf returns what a full read shows of the last row of a range.
func lastOf(all []string, rng bigtable.RowRange) []string {
	out, last := []string{}, ""
	for _, line := range all {
		key, _, _ := strings.Cut(line, " ")
		if !rng.Contains(key) {
			continue
		}
		if key != last {
			out, last = out[:0], key
		}
		out = append(out, line)
	}
	return out
}

// TestFirstRowsAreExact makes random changes of every kind, and compares reads of first rows, which the engine
// remembers, with full reads.
func TestFirstRowsAreExact(t *testing.T) {
	for name, o := range map[string]engine.Options{"memory": {}, "folder": {Dir: "db", FS: vfs.NewMem()}} {
		t.Run(name, func(t *testing.T) {
			const seed = 1
			random := rand.New(rand.NewPCG(seed, 2))
			r := open(t, o)
			table := r.create(t)
			if err := r.admin.SetGCPolicy(r.ctx, tableID, "f", bigtable.MaxVersionsPolicy(1)); err != nil {
				t.Fatal(err)
			}
			const entities, times = 6, 8
			randomKey := func() string { return timedKey(random.IntN(entities), random.IntN(times)) }
			value := 0
			next := func() string { value++; return fmt.Sprint(value) }
			steps := 3000 / testkit.Stride(5)
			if testing.Short() {
				steps = 300
			}
			for step := range steps {
				what, err := "", error(nil)
				switch kind := random.IntN(24); kind {
				default:
					what = "put"
					err = table.Apply(r.ctx, randomKey(), set([]string{"f", "g"}[kind%2], "q", 1000*int64(1+random.IntN(3)), next()))
				case 10, 11, 12:
					what = "bulk"
					keys, muts := []string{randomKey(), randomKey()}, []*bigtable.Mutation{set("f", "q", 2000, next()), bigtable.NewMutation()}
					muts[1].DeleteRow()
					_, err = table.ApplyBulk(r.ctx, keys, muts)
				case 13, 14, 15:
					what = "delete row"
					m := bigtable.NewMutation()
					m.DeleteRow()
					err = table.Apply(r.ctx, randomKey(), m)
				case 16:
					what = "delete cells"
					m := bigtable.NewMutation()
					m.DeleteTimestampRange("f", "q", 0, 2000)
					err = table.Apply(r.ctx, randomKey(), m)
				case 17:
					what = "conditional"
					err = table.Apply(r.ctx, randomKey(), bigtable.NewCondMutation(bigtable.PassAllFilter(), set("g", "c", 1000, next()), set("f", "q", 1000, next())))
				case 18:
					what = "read and modify"
					m := bigtable.NewReadModifyWrite()
					m.AppendValue("f", "q", []byte("+"))
					_, err = table.ApplyReadModifyWrite(r.ctx, randomKey(), m)
				case 19:
					switch step % 10 {
					case 0:
						what = "drop a range"
						err = r.admin.DropRowRange(r.ctx, tableID, entity(random.IntN(entities)))
					case 1:
						what = "drop all rows"
						err = r.admin.DropAllRows(r.ctx, tableID)
					case 2:
						what = "delete a wide row"
						wide, m := bigtable.NewMutation(), bigtable.NewMutation()
						for column := range 600 {
							wide.Set("f", fmt.Sprint(column), 1000, nil)
						}
						m.DeleteRow()
						key := randomKey()
						err = cmp.Or(table.Apply(r.ctx, key, wide), table.Apply(r.ctx, key, m))
					}
				case 20:
					if step%5 == 0 {
						what = "drop a family"
						if err = r.admin.DeleteColumnFamily(r.ctx, tableID, "g"); err == nil {
							err = r.admin.CreateColumnFamily(r.ctx, tableID, "g")
						}
					}
				case 21:
					what = "collect"
					err = r.RunGC(r.ctx)
				case 22:
					what = "flush"
					err = r.Flush(r.ctx)
				}
				if err != nil {
					t.Fatal(what, err)
				}
				var ranges bigtable.RowRangeList
				for n := range entities {
					from, to := 0, times
					if random.IntN(3) == 0 {
						from = random.IntN(times)
						to = from + 1 + random.IntN(times-from)
					}
					ranges = append(ranges, bigtable.NewRange(timedKey(n, from), timedKey(n, to)))
				}
				var opts []bigtable.ReadOption
				switch random.IntN(4) {
				case 0:
					opts = append(opts, bigtable.RowFilter(bigtable.TimestampRangeFilterMicros(2000, 0)))
				case 1:
					opts = append(opts, bigtable.RowFilter(bigtable.FamilyFilter("f")))
				}
				ctx := r.ctx
				r.ctx = firstrow.Only(ctx)
				got := dump(t, r, ranges, opts...)
				r.ctx = ctx
				all := dump(t, r, bigtable.InfiniteRange(""), opts...)
				if want := firstOf(all, ranges...); !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d, after %s: first rows %q, want %q", seed, step, what, got, want)
				}
				one := ranges[random.IntN(entities)]
				if got, want := dump(t, r, one, append(opts, bigtable.LimitRows(1))...), firstOf(all, one); !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d, after %s: one row %q, want %q", seed, step, what, got, want)
				}
				opts = append(opts, bigtable.ReverseScan())
				if got, want := dump(t, r, one, append(opts, bigtable.LimitRows(1))...), lastOf(all, one); !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d, after %s: the last row %q, want %q", seed, step, what, got, want)
				}
			}
			testViewOfFirstRow(t, r, table)
			if rows, _ := r.Remembered(); rows == 0 {
				t.Error("the engine remembers no row: the test shows nothing")
			}
		})
	}
}

// testViewOfFirstRow remembers a row with a cell outside of a view, and reads it through the view.
func testViewOfFirstRow(t *testing.T, r *rig, table *bigtable.Table) {
	t.Helper()
	m := set("f", "q", 1000, "open")
	m.Set("g", "secret", 1000, []byte("hidden"))
	apply(t, r, "v#d#e#1", m)
	conf := &bigtable.SubsetViewConf{}
	conf.AddRowPrefix([]byte("v#"))
	conf.AddFamilySubsetQualifierPrefix("f", nil)
	if err := r.admin.CreateAuthorizedView(r.ctx, &bigtable.AuthorizedViewConf{TableID: tableID, AuthorizedViewID: "v", AuthorizedView: conf}); err != nil {
		t.Fatal(err)
	}
	rng, opts := bigtable.NewRange("v#d#e#0", "v#d#e#9"), bigtable.LimitRows(1)
	for range 3 {
		all, err := read(r, table, rng, opts)
		if err != nil || len(all) != 2 {
			t.Fatalf("without the view: %q, %v", all, err)
		}
		seen, err := read(r, r.data.OpenAuthorizedView(tableID, "v"), rng, opts)
		if err != nil || len(seen) != 1 || strings.Contains(seen[0], "hidden") {
			t.Errorf("through the view: %q, %v; want one cell", seen, err)
		}
	}
}

// TestFirstRowsBesideWriters: a read sees at least what was acknowledged before it began, and never something older
// than an earlier read of the same reader has seen.
func TestFirstRowsBesideWriters(t *testing.T) {
	for name, o := range map[string]engine.Options{"memory": {}, "folder": {Dir: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			r := open(t, o)
			table := r.create(t)
			ctx, cancel := context.WithTimeout(r.ctx, 2*time.Second)
			defer cancel()
			const entities, most = 3, 99_999
			var acknowledged [entities]atomic.Int64
			var all sync.WaitGroup
			for n := range entities {
				all.Go(func() { // newer points have smaller keys; every third is deleted again before the next comes
					for at := int64(1); ctx.Err() == nil && at < most; at++ {
						key := timedKey(n, most-int(at))
						if err := table.Apply(r.ctx, key, set("f", "q", 1000, fmt.Sprint(at))); err != nil {
							t.Error(err)
							return
						}
						if at%3 == 0 {
							m := bigtable.NewMutation()
							m.DeleteRow()
							if err := table.Apply(r.ctx, key, m); err != nil {
								t.Error(err)
								return
							}
							continue
						}
						acknowledged[n].Store(at)
						if at%16 == 0 {
							time.Sleep(time.Millisecond) // readers find no write in flight
						}
					}
				})
			}
			each := firstrow.Only(r.ctx)
			ranges := make(bigtable.RowRangeList, entities)
			for n := range ranges {
				ranges[n] = bigtable.NewRange(timedKey(n, 0), timedKey(n, most))
			}
			for reader := range 4 {
				all.Go(func() {
					var seen, least, at [entities]int64
					row := func(row bigtable.Row) bool {
						var n int
						var value int64
						if _, err := fmt.Sscanf(row.Key()+string(row["f"][0].Value), entity(0)[:5]+"%03d#%5d%d", &n, new(int), &value); err != nil {
							t.Error(err)
							return false
						}
						at[n] = value
						return true
					}
					for ctx.Err() == nil {
						for n := range entities {
							least[n], at[n] = acknowledged[n].Load(), 0
						}
						var err error
						if reader%2 == 0 { // all in one read
							err = table.ReadRows(each, ranges, row)
						} else {
							for _, rng := range ranges {
								err = cmp.Or(err, table.ReadRows(r.ctx, rng, row, bigtable.LimitRows(1)))
							}
						}
						if err != nil {
							t.Error(err)
							return
						}
						for n := range entities {
							if at[n] < least[n] || at[n] < seen[n] && seen[n]%3 != 0 {
								t.Errorf("entity %d: the newest is %d; %d was acknowledged before, and %d seen", n, at[n], least[n], seen[n])
								return
							}
						}
						seen = at
					}
				})
			}
			all.Wait()
		})
	}
}

// TestFirstRowsOfOneMoment: a writer puts A, then Z, and deletes Z before A. So a read that sees Z without A, or
// neither where there always is one of others, mixes two moments.
func TestFirstRowsOfOneMoment(t *testing.T) {
	for name, limit := range map[string]int64{"one row": 1, "few": 5, "many": 1000} {
		t.Run(name, func(t *testing.T) {
			r := open(t, engine.Options{})
			table := r.create(t)
			const entities = 400
			var ranges bigtable.RowRangeList
			for n := range entities {
				ranges = append(ranges, bigtable.NewRange(timedKey(n, 0), timedKey(n, 9)))
			}
			a, z := timedKey(0, 5), timedKey(entities-1, 5)
			ctx, cancel := context.WithTimeout(r.ctx, time.Second)
			defer cancel()
			var all sync.WaitGroup
			all.Go(func() {
				gone := bigtable.NewMutation()
				gone.DeleteRow()
				for ctx.Err() == nil {
					for _, w := range []struct {
						key string
						m   *bigtable.Mutation
					}{{a, set("f", "q", 1000, "")}, {z, set("f", "q", 1000, "")}, {z, gone}, {a, gone}} {
						if err := table.Apply(r.ctx, w.key, w.m); err != nil {
							t.Error(err)
						}
					}
				}
			})
			for reader := range 3 {
				all.Go(func() {
					each := r.ctx
					if limit > 1 || reader == 0 {
						each = firstrow.Only(each)
					}
					for ctx.Err() == nil {
						var keys []string
						err := table.ReadRows(each, ranges, func(row bigtable.Row) bool {
							keys = append(keys, row.Key())
							return true
						}, bigtable.LimitRows(limit))
						if err != nil || len(keys) > 0 && keys[0] == z {
							t.Errorf("read %q, %v: the last row without the first", keys, err)
							return
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// TestFirstRowsAreBounded reads more ranges than the engine may remember.
func TestFirstRowsAreBounded(t *testing.T) {
	testkit.Plain(t)
	r := open(t, engine.Options{CacheBytes: 16 << 20})
	table := r.create(t)
	const entities = 30_000
	var keys []string
	var muts []*bigtable.Mutation
	for n := range entities {
		m := bigtable.NewMutation()
		for column := range 4 {
			m.Set("f", fmt.Sprint(column), 1000, []byte("v"))
		}
		keys, muts = append(keys, timedKey(n, 1)), append(muts, m)
	}
	if _, err := table.ApplyBulk(r.ctx, keys, muts); err != nil {
		t.Fatal(err)
	}
	keys, muts = nil, nil
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for n := range entities {
		if err := table.ReadRows(r.ctx, bigtable.NewRange(timedKey(n, 0), timedKey(n, 9)), func(bigtable.Row) bool { return true }, bigtable.LimitRows(1)); err != nil {
			t.Fatal(err)
		}
	}
	rows, bytes := r.Remembered()
	took := int(heap()) - int(before)
	if bytes > 4<<20 || rows < 2000 {
		t.Errorf("the engine remembers %d rows in %d bytes, want at most a quarter of 16 MiB, and most of that", rows, bytes)
	}
	if took > 5<<20 {
		t.Errorf("%d rows take %d bytes of the heap, counted as %d", rows, took, bytes)
	}
}
