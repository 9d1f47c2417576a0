package keyadvice_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/keyadvice"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestSampleOfWhatIsStored: a sample contains the tenant's own entities with their write rates, for datasets of any
// shape, and leads to the right advice.
func TestSampleOfWhatIsStored(t *testing.T) {
	key := tsdb.Key("site", "device")
	opts := tsdb.SchemaOptions{Precision: tsdb.Milliseconds}
	salted, heads, only := opts, opts, opts
	salted.Salts = 3
	heads.Head.Points = 5
	only.Head = tsdb.Head{Points: 10, Only: true}
	for name, o := range map[string]tsdb.SchemaOptions{"plain": opts, "salted": salted, "heads": heads, "only": only} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := tsdb.MustDefine("readings", key, codec.Float64(), o)
				other := tsdb.MustDefine("other", tsdb.Key("x"), codec.Float64(), opts)
				store, _ := tsdbtest.Open(t, tsdbtest.Options{})
				if err := store.Ensure(t.Context(), d, other); err != nil {
					t.Fatal(err)
				}
				acme, beta := tenant.MustParse("acme"), tenant.MustParse("acme2")
				now := time.Now().Truncate(time.Millisecond)
				var points []tsdb.Point[float64]
				for device := range 40 {
					every := time.Minute
					if device == 7 || device == 8 {
						every = time.Millisecond
					}
					last := now
					if device == 8 { // became silent
						last = now.Add(-time.Hour)
					}
					for i := range 12 {
						at := last.Add(-every * time.Duration(i))
						points = append(points, tsdb.Point[float64]{Entity: tsdb.NewEntity("berlin", fmt.Sprintf("roof-%d", device)), Time: at, Value: 1})
					}
				}
				for _, id := range []tenant.ID{acme, beta} {
					if _, err := d.For(store, id).PutMany(t.Context(), points); err != nil {
						t.Fatal(err)
					}
				}
				ds, sample, err := keyadvice.TakeSample(t.Context(), store, "readings", acme, 0)
				if err != nil || ds.Name() != "readings" || len(sample.Entities) != 40 || sample.Share != 1 || len(sample.OtherDatasets) != 1 {
					t.Fatalf("%v, %+v, %v", ds, sample, err)
				}
				for _, e := range sample.Entities {
					want := 1.0 / 60
					if e.Entity == tsdb.NewEntity("berlin", "roof-7") {
						want = 1000
					}
					if e.Entity == tsdb.NewEntity("berlin", "roof-8") {
						want = 9.0 / 3600
					}
					if e.Tenant != acme || e.Payload != 8 || e.Rate > want*1.01 || math.Abs(e.Rate-want) > want/100 {
						t.Errorf("%+v, want %v points a second of 8 bytes", e, want)
					}
				}
				advice, err := keyadvice.Advise(ds, sample)
				if err != nil {
					t.Fatal(err)
				}
				if len(advice) == 0 || advice[len(advice)-1].Cause != "hot-entity" && advice[0].Cause != "hot-entity" {
					t.Errorf("no advice on the hot entity: %v", advice)
				}

				_, few, err := keyadvice.TakeSample(t.Context(), store, "readings", acme, 4)
				if err != nil || len(few.Entities) != 4 || few.Share != 0.1 {
					t.Errorf("a sample of 4 of 40 entities: %+v, %v", few, err)
				}
				_, none, err := keyadvice.TakeSample(t.Context(), store, "other", acme, 0)
				if err != nil || len(none.Entities) != 0 || none.Share != 0 {
					t.Errorf("a sample of an empty dataset: %+v, %v", none, err)
				}
			})
		})
	}
}

func TestSampleRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := tsdb.MustDefine("readings", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{})
		if err := store.Ensure(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		acme := tenant.MustParse("acme")
		for _, tt := range []struct {
			name    string
			ctx     context.Context
			dataset string
			id      tenant.ID
			most    int
			want    error
		}{
			{"no dataset", t.Context(), "", acme, 0, tsdb.ErrInvalid},
			{"an unknown one", t.Context(), "reading", acme, 0, tsdb.ErrInvalid},
			{"no tenant", t.Context(), "readings", tenant.ID{}, 0, tenant.ErrInvalid},
			{"another tenant's", tenant.NewContext(t.Context(), tenant.MustParse("beta")), "readings", acme, 0, tsdb.ErrTenantMismatch},
			{"fewer than none", t.Context(), "readings", acme, -1, tsdb.ErrInvalid},
			{"too many", t.Context(), "readings", acme, 10_001, tsdb.ErrInvalid},
		} {
			if ds, sample, err := keyadvice.TakeSample(tt.ctx, store, tt.dataset, tt.id, tt.most); !errors.Is(err, tt.want) || ds != nil || sample.Entities != nil {
				t.Errorf("%s: %v, %+v, %v; want %v", tt.name, ds, sample, err, tt.want)
			}
		}
		one, err := limit.New(limit.Table{Defaults: limit.Limits{ConcurrentReads: 1}}, limit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		strict, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{RequireTenant: true, Limits: one}}, d)
		inside := tenant.NewContext(t.Context(), acme)
		repo := d.For(strict, acme)
		if err := repo.Put(inside, tsdb.NewEntity("roof"), time.Now(), 1); err != nil {
			t.Fatal(err)
		}
		for _, err := range repo.Under(tsdb.AllEntities()).Entities(inside, tsdb.AllTime()) {
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := keyadvice.TakeSample(t.Context(), strict, "readings", acme, 0); err != nil {
				t.Errorf("an operator's call without a tenant in its context: %v, want nil", err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := keyadvice.TakeSample(ctx, store, "readings", acme, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
		store.Close()
		if _, _, err := keyadvice.TakeSample(t.Context(), store, "readings", acme, 0); !errors.Is(err, tsdb.ErrClosed) {
			t.Errorf("on a closed store: %v", err)
		}
	})
}
