package heatview_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/heatview"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/heat"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

const (
	step  = 20 * time.Millisecond // of a load, and a column
	steps = 16
)

// write is one point of a load.
type write struct {
	tenant string
	parts  []string
	age    time.Duration
}

// record stores the points of a load, in as many steps, through a store with a recorder, and returns the recording. The
// writes are real, the time is that of a bubble of testing/synctest.
func record(t *testing.T, fields []string, load func(step int, at time.Time) []write) *heat.Recording {
	t.Helper()
	recorder, err := heatmap.NewRecorder(heatmap.Options{Column: step})
	if err != nil {
		t.Fatal(err)
	}
	schema := tsdb.MustDefine("readings", tsdb.Key(fields...), codec.Float64(), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{DialOptions: recorder.DialOptions()}, schema)
	defer store.Close()
	for n := range steps {
		byTenant := map[string][]tsdb.Point[float64]{}
		for i, w := range load(n, time.Now()) {
			at := time.Now().Add(-w.age - time.Duration(i)*time.Microsecond)
			byTenant[w.tenant] = append(byTenant[w.tenant], tsdb.Point[float64]{Entity: tsdb.NewEntity(w.parts...), Time: at, Value: 21.5})
		}
		for id, points := range byTenant {
			if _, err := schema.For(store, tenant.MustParse(id)).PutMany(t.Context(), points); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(step)
	}
	return heatview.Of(recorder)
}

// textbook are loads of at least 20,000 rows a second, and what is found in each.
var textbook = map[string]struct {
	fields []string
	load   func(step int, at time.Time) []write
	want   []string
}{
	"time first": {
		[]string{"minute", "device"}, func(_ int, at time.Time) []write {
			return several(400, func(i int) write {
				return write{"acme", []string{fmt.Sprint(at.UnixMilli() + int64(i/20)), fmt.Sprintf("device-%04d", i)}, 0}
			})
		}, []string{"sequential acme#readings#"},
	},
	"entity first": {
		[]string{"device"}, func(int, time.Time) []write {
			return several(400, func(i int) write { return write{"acme", []string{fmt.Sprintf("device-%04d", i)}, 0} })
		}, nil,
	},
	"a whale with a hot entity": {
		[]string{"device"}, func(int, time.Time) []write {
			return several(400, func(i int) write {
				switch {
				case i < 180:
					return write{"whale", []string{"gateway"}, 0}
				case i < 360:
					return write{"whale", []string{fmt.Sprintf("device-%04d", i)}, 0}
				}
				return write{fmt.Sprintf("tenant-%d", i%10), []string{fmt.Sprintf("device-%04d", i)}, 0}
			})
		}, []string{"hot entity whale#readings#gateway#", "whale tenant whale#"},
	},
	"a fleet that restarts": {
		[]string{"device"}, func(n int, _ time.Time) []write {
			rows := 80
			if n >= 12 {
				rows = 480
			}
			return several(rows, func(int) write { return write{"acme", []string{fmt.Sprintf("device-%04d", rand.IntN(600))}, 0} })
		}, []string{"sudden increase acme#readings#"},
	},
	// An import walks entities in their order, so its writes move as those of keys that begin with the time do.
	"an import": {
		[]string{"device"}, func(n int, _ time.Time) []write {
			return several(400, func(i int) write {
				return write{"acme", []string{fmt.Sprintf("device-%06d", n*20+i/20)}, 1000*time.Hour + time.Duration(i)*time.Hour}
			})
		}, nil,
	},
	// A backfill has one old point of each entity, in their order.
	"a backfill": {
		[]string{"device"}, func(n int, _ time.Time) []write {
			return several(400, func(i int) write {
				return write{"acme", []string{fmt.Sprintf("device-%06d", n*400+i)}, 1000 * time.Hour}
			})
		}, nil,
	},
	"ids that count up": {
		[]string{"order"}, func(n int, _ time.Time) []write {
			return several(400, func(i int) write { return write{"acme", []string{fmt.Sprintf("%08d", 5_000_000+n*400+i)}, 0} })
		}, []string{"sequential acme#readings#"},
	},
	"a hot prefix": {
		[]string{"site", "device"}, func(n int, _ time.Time) []write {
			return several(400, func(i int) write {
				if i < 300 {
					return write{"acme", []string{"berlin", fmt.Sprintf("device-%02d", i%30)}, 0}
				}
				return write{"acme", []string{fmt.Sprintf("site-%02d", i%50), fmt.Sprintf("device-%05d", n*400+i)}, 0}
			})
		}, []string{"hot prefix acme#readings#berlin#"},
	},
	"a job by the clock": {
		[]string{"device"}, func(n int, _ time.Time) []write {
			rows := 10
			if n%4 == 1 {
				rows = 1600
			}
			return several(rows, func(i int) write { return write{"acme", []string{fmt.Sprintf("device-%04d", i)}, 0} })
		}, []string{"periodic acme#readings#"},
	},
	// The shape of a hot entity at a rate that every server bears.
	"little load": {
		[]string{"device"}, func(int, time.Time) []write {
			return several(8, func(i int) write { return write{"acme", []string{fmt.Sprintf("device-%d", max(i-4, 0))}, 0} })
		}, nil,
	},
}

func several(n int, one func(i int) write) []write {
	out := make([]write, n)
	for i := range out {
		out[i] = one(i)
	}
	return out
}

// TestTextbookLoads: each load is found as what it is and as nothing else, and after the
// recording went through a file.
func TestTextbookLoads(t *testing.T) {
	testkit.Plain(t)
	for name, test := range textbook {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)))
				r := record(t, test.fields, test.load)
				if got := found(r); !slices.Equal(got, test.want) {
					t.Errorf("found %q, want %q: %+v", got, test.want, heatview.Findings(r))
				}
				name := t.TempDir() + "/load.heat"
				if err := r.Save(name); err != nil {
					t.Fatal(err)
				}
				loaded, err := heatview.Load(name)
				if err != nil || !slices.Equal(found(loaded), test.want) {
					t.Errorf("from the file: %v %q", err, found(loaded))
				}
			})
		})
	}
}

func found(r *heat.Recording) (out []string) {
	for _, f := range heatview.Findings(r) {
		out = append(out, string(f.Rule)+" "+f.Key)
	}
	return out
}

// TestRawClientTimeFirst: the keys of a client without this module are found, too.
func TestRawClientTimeFirst(t *testing.T) {
	testkit.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)))
		recorder, err := heatmap.NewRecorder(heatmap.Options{Column: step})
		if err != nil {
			t.Fatal(err)
		}
		table := rawTable(t, recorder)
		for range steps {
			var keys []string
			var muts []*bigtable.Mutation
			for i := range 400 {
				keys = append(keys, fmt.Sprintf("%d#device-%04d", time.Now().Unix(), i))
				m := bigtable.NewMutation()
				m.Set("f", "v", bigtable.Now(), []byte("21.5"))
				muts = append(muts, m)
			}
			if errs, err := table.ApplyBulk(context.Background(), keys, muts); err != nil || errs != nil {
				t.Fatal(err, errs)
			}
			time.Sleep(step)
		}
		if got := found(heatview.Of(recorder)); !slices.Equal(got, []string{"sequential "}) {
			t.Errorf("found %q, want keys that begin with the time", got)
		}
	})
}

// rawTable returns a table of the official client, without the store's interceptors, on an engine of its own.
func rawTable(t *testing.T, recorder *heatmap.Recorder) *bigtable.Table {
	t.Helper()
	server, err := local.Open(engine.Options{GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	conn, err := server.Dial(recorder.DialOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	client, admin, err := local.Clients(context.Background(), conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = admin.Close()
		_ = client.Close()
	})
	if err := admin.CreateTableFromConf(context.Background(), &bigtable.TableConf{TableID: "t", Families: map[string]bigtable.GCPolicy{"f": bigtable.NoGcPolicy(), "g": bigtable.NoGcPolicy()}}); err != nil {
		t.Fatal(err)
	}
	return client.Open("t")
}
