package dynamic_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

type sample struct {
	TempC float64 `json:"temp_c"`
}

var hour = rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[sample]{
	{Name: "temp", Of: func(r sample) (float64, bool) { return r.TempC, true }, Decimals: 1, Max: 1000},
}, rollup.Options{})

func define(t *testing.T, opts tsdb.SchemaOptions) *tsdb.Schema[sample] {
	t.Helper()
	s, err := tsdb.Define("readings", tsdb.Key("site", "device"), codec.JSON[sample](), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A view returns the same points as the repository of the dataset, in the same order, for each kind of schema and
// interval. The repository reads the points that the view puts, in its rollups and heads too.
func TestViewEqualsRepository(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"plain": {}, "salted": {Salts: 3, Precision: tsdb.Microseconds}, "heads": {Head: tsdb.Head{Points: 2}, Precision: tsdb.Milliseconds},
		"only heads": {Head: tsdb.Head{Points: 50, Only: true}, Precision: tsdb.Milliseconds}, "rollups": {Rollups: []tsdb.Rollup{hour}},
	} {
		t.Run(name, func(t *testing.T) {
			s := define(t, opts)
			store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return start.Add(time.Hour) }}}, s)
			repo := s.For(store, acme)
			for i := range 40 {
				for _, e := range []tsdb.Entity{roof, tsdb.NewEntity("berlin", "roof-77")} {
					if err := repo.Put(t.Context(), e, start.Add(time.Duration(i)*time.Second), sample{float64(i)}); err != nil {
						t.Fatal(err)
					}
				}
			}
			v, err := dynamic.Open(t.Context(), store, acme, "readings")
			if err != nil {
				t.Fatal(err)
			}
			rnd := rand.New(rand.NewPCG(1, 2))
			at := func() time.Time { return start.Add(time.Duration(rnd.IntN(42)-1) * time.Second) }
			for range 40 {
				from, to := at(), at()
				if to.Before(from) {
					from, to = to, from
				}
				in := []tsdb.Interval{{}, tsdb.Since(from), tsdb.Until(to), tsdb.Between(from, to), tsdb.Between(from, to).OpenStart().ClosedEnd()}[rnd.IntN(5)]
				var got, want []time.Time
				for p, err := range v.Points(t.Context(), roof, in) {
					if err != nil || p.Entity != roof || p.Tag != "json" || string(p.Payload) != fmt.Sprintf(`{"temp_c":%d}`, int(p.Time.Sub(start).Seconds())) {
						t.Fatalf("a view returns %+v, %v", p, err)
					}
					got = append(got, p.Time)
				}
				if opts.Head.Only {
					for p, err := range repo.Range(t.Context(), roof, in) {
						want = append(want, p.Time)
						if err != nil {
							t.Fatal(err)
						}
					}
				} else {
					for i := 39; i >= 0; i-- {
						if at := start.Add(time.Duration(i) * time.Second); in.Contains(at) {
							want = append(want, at)
						}
					}
				}
				if !slices.EqualFunc(got, want, time.Time.Equal) {
					t.Errorf("%+v: %v, want %v", in, got, want)
				}
			}

			at50 := start.Add(50 * time.Second)
			d := dynamic.Describe(v.Repository().Schema())
			if err := v.Put(t.Context(), dynamic.Point{Entity: roof, Time: at50, Class: d.Classes[0].Name, Tag: d.Tags[0], Payload: []byte(`{"temp_c":99}`)}); err != nil {
				t.Fatal(err)
			}
			if p, err := repo.Latest(t.Context(), roof); err != nil || p.Value.TempC != 99 || !p.Time.Equal(at50) {
				t.Errorf("the view's point is read as %v, %v", p, err)
			}
			if p, err := v.Repository().Latest(t.Context(), roof); err != nil || !p.Time.Equal(at50) {
				t.Errorf("a view's newest point is %v, %v", p, err)
			}
			if len(opts.Rollups) > 0 {
				b, err := rollup.For(hour, repo).Total(t.Context(), roof, tsdb.AllTime())
				if err != nil || b.Points != 41 || b.Values[0].Max != 99 {
					t.Errorf("the rollup holds %+v, %v; want the view's point in it", b, err)
				}
			}
		})
	}
}

// Invalid input is rejected, and a view stays within its tenant.
func TestViewRefuses(t *testing.T) {
	s := define(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	v, err := dynamic.Open(t.Context(), store, acme, "readings")
	if err != nil {
		t.Fatal(err)
	}
	first := func(v *dynamic.View, e tsdb.Entity, in tsdb.Interval) error {
		for _, err := range v.Points(t.Context(), e, in) {
			return err
		}
		return nil
	}
	good := dynamic.Point{Entity: roof, Time: start, Class: dynamic.Describe(v.Repository().Schema()).Classes[0].Name, Tag: "json", Payload: []byte(`{}`)}
	changed := func(change func(*dynamic.Point)) error {
		p := good
		change(&p)
		return v.Put(t.Context(), p)
	}
	if _, err := v.Entity(map[string]string{"site": "a", "device": "b"}); err != nil {
		t.Error(err)
	}
	_, short := v.Entity(map[string]string{"site": "a"})
	_, long := v.Entity(map[string]string{"site": "a", "device": "b", "room": "c"})
	_, empty := v.Entity(map[string]string{"site": "a", "device": ""})
	_, unknown := dynamic.Open(t.Context(), store, acme, "none")
	_, none := dynamic.Open(t.Context(), nil, acme, "readings")
	_, zero := dynamic.Open(t.Context(), store, tenant.ID{}, "readings")
	var nothing *dynamic.View
	_, noEntity := nothing.Entity(nil)
	for name, err := range map[string]error{
		"a missing field": short, "an unknown field": long, "an empty field": empty, "an unknown dataset": unknown, "no store": none, "no view": noEntity,
		"the zero entity": first(v, tsdb.Entity{}, tsdb.AllTime()), "a short entity": first(v, tsdb.NewEntity("berlin"), tsdb.AllTime()),
		"ends that are mixed up": first(v, roof, tsdb.Between(start.Add(1), start)), "points of no view": first(nil, roof, tsdb.AllTime()),
		"an unknown class": changed(func(p *dynamic.Point) { p.Class = "d9" }), "an unknown tag": changed(func(p *dynamic.Point) { p.Tag = "pb" }),
		"no entity": changed(func(p *dynamic.Point) { p.Entity = tsdb.Entity{} }), "a time before 1970": changed(func(p *dynamic.Point) { p.Time = time.Unix(-1, 0) }),
		"put into no view": nothing.Put(t.Context(), good),
	} {
		if !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	if !errors.Is(zero, tenant.ErrInvalid) {
		t.Errorf("Open for the zero tenant: %v", zero)
	}
	if _, err := v.Repository().Latest(t.Context(), roof); !errors.Is(err, tsdb.ErrNotFound) {
		t.Errorf("refused points are stored: %v", err)
	}
	other := tenant.NewContext(t.Context(), tenant.MustParse("acme2"))
	if _, err := dynamic.Open(other, store, acme, "readings"); !errors.Is(err, tsdb.ErrTenantMismatch) {
		t.Errorf("Open with another tenant in the context: %v", err)
	}
	if err := v.Put(other, good); !errors.Is(err, tsdb.ErrTenantMismatch) {
		t.Errorf("Put with another tenant in the context: %v", err)
	}
	if err := v.Put(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	conn.Inject(tsdbtest.Fail(codes.PermissionDenied))
	if _, err := v.Repository().Latest(t.Context(), roof); err == nil || errors.Is(err, tsdb.ErrNotFound) {
		t.Errorf("under a fault, the newest point is %v", err)
	}
	if err := v.Put(t.Context(), good); !errors.Is(err, tsdb.ErrRejected) {
		t.Errorf("under a fault, Put returns %v", err)
	}
}

// The points of a dataset, with only its catalogue entry.
func ExampleOpen() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	readings := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[sample](), tsdb.SchemaOptions{})
	if err := store.Ensure(ctx, readings); err != nil {
		log.Fatal(err)
	}
	if err := readings.For(store, acme).Put(ctx, roof, start, sample{TempC: 21.5}); err != nil {
		log.Fatal(err)
	}

	v, err := dynamic.Open(ctx, store, acme, "readings")
	if err != nil {
		log.Fatal(err)
	}
	e, err := v.Entity(map[string]string{"site": "berlin", "device": "roof-7"})
	if err != nil {
		log.Fatal(err)
	}
	for p, err := range v.Points(ctx, e, tsdb.AllTime()) {
		fmt.Printf("%s %s %s %v\n", p.Entity, p.Tag, p.Payload, err)
	}
	// Output: berlin/roof-7 json {"temp_c":21.5} <nil>
}
