package forecast_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/forecast"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

const aDay = 24 * time.Hour

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// truth describes what was written for a tenant.
type truth struct {
	ages  []time.Duration
	each  float64 // bytes of a point
	bytes float64
}

// world is a table with known contents.
type world struct {
	store  *tsdb.Store
	conn   *tsdbtest.Conn
	table  *bigtable.Table
	clock  atomic.Pointer[time.Time] // the store's background goroutines read it too
	schema *tsdb.Schema[string]
	of     map[string]*truth
	random *rand.Rand

	// SampleRowKeys returns the samples in cut, or else the engine's first result, because later ones change while it
	// compacts.
	samples []*btpb.SampleRowKeysResponse
	breaks  int // the number of streams of samples that break in the middle
}

func (w *world) set(now time.Time) { w.clock.Store(&now) }

func (w *world) freeze(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, cc, name, opts...)
	if err != nil || name != btpb.Bigtable_SampleRowKeys_FullMethodName {
		return s, err
	}
	return &freezer{ClientStream: s, world: w}, nil
}

type freezer struct {
	grpc.ClientStream
	*world
	read bool
	left []*btpb.SampleRowKeysResponse
}

func (f *freezer) RecvMsg(m any) error {
	if !f.read {
		var all []*btpb.SampleRowKeysResponse
		for {
			one := new(btpb.SampleRowKeysResponse)
			if err := f.ClientStream.RecvMsg(one); err == io.EOF {
				break
			} else if err != nil {
				return err
			}
			all = append(all, one)
		}
		if f.read = true; f.samples == nil {
			f.samples = all
		}
		f.left = f.samples
	}
	if len(f.left) == 0 {
		return io.EOF
	}
	if f.breaks > 0 && len(f.left) < len(f.samples)/2 {
		f.breaks--
		return status.Error(codes.Unavailable, "broken")
	}
	proto.Merge(m.(proto.Message), f.left[0])
	f.left = f.left[1:]
	return nil
}

func newWorld(t testing.TB, age time.Duration) *world {
	t.Helper()
	w := &world{of: map[string]*truth{}, random: rand.New(rand.NewPCG(1, 2))}
	w.set(noon.Add(-10 * 365 * aDay))
	w.schema = tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{
		Retention: gc.Class{Name: "d30", Policy: gc.MaxAge(age)}, MaxFuture: 100 * 365 * aDay,
	})
	w.store, w.conn, w.table = tsdbtest.OpenTable(t, tsdbtest.Options{
		StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return *w.clock.Load() }},
		DialOptions:  []grpc.DialOption{grpc.WithChainStreamInterceptor(w.freeze)},
	}, w.schema)
	return w
}

// fill writes points of a tenant with n devices and these ages at noon. Values are 40 incompressible bytes. Points are
// stored while they are young, whatever their age at noon is.
func (w *world) fill(t testing.TB, name string, devices int, ages []time.Duration) {
	t.Helper()
	tr := w.of[name]
	if tr == nil {
		tr = &truth{}
		w.of[name] = tr
	}
	points := make([]tsdb.Point[string], 0, len(ages))
	seen := map[string]bool{}
	for i, age := range ages {
		device := fmt.Sprintf("dev-%04d", i%devices)
		at := noon.Add(-age).Truncate(time.Millisecond)
		if key := fmt.Sprint(device, at); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		value := fmt.Sprintf("%016x%016x%08x", w.random.Uint64(), w.random.Uint64(), w.random.Uint32())
		points = append(points, tsdb.Point[string]{Entity: tsdb.NewEntity("site", device), Time: at, Value: value})
		tr.ages = append(tr.ages, noon.Sub(at))
		tr.each = float64(len(name+"#readings#site#dev-0000#")+19) + float64(len("p:str")+40)
		tr.bytes += tr.each
	}
	w.set(noon.Add(-10 * 365 * aDay))
	for len(points) > 0 {
		n := min(len(points), 5000)
		if _, err := w.schema.For(w.store, tenant.MustParse(name)).PutMany(t.Context(), points[:n]); err != nil {
			t.Fatal(err)
		}
		points = points[n:]
	}
	w.set(noon)
}

// cut makes SampleRowKeys divide the table into parts of about n rows. The engine's own samples depend on when it
// compacts, so a forecast from them differs between runs, and is sometimes off by more than a test of its errors can
// allow.
func (w *world) cut(t testing.TB, rows int) {
	t.Helper()
	w.samples = nil
	offset, left, last := 0.0, rows, 0
	err := w.table.ReadRows(t.Context(), bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		if left--; left == 0 {
			w.samples = append(w.samples, &btpb.SampleRowKeysResponse{RowKey: []byte(r.Key()), OffsetBytes: int64(offset)})
			left, last = rows/2+w.random.IntN(rows), 0
		}
		last++
		offset += 70 * (0.9 + 0.2*w.random.Float64()) // the service's sizes are estimates, of compressed rows
		return true
	}, bigtable.RowFilter(bigtable.StripValueFilter()))
	if err != nil {
		t.Fatal(err)
	}
	if last < rows/2 {
		w.samples = w.samples[:len(w.samples)-1]
	}
	w.samples = append(w.samples, &btpb.SampleRowKeysResponse{OffsetBytes: int64(offset)})
}

func (w *world) forecast(t testing.TB, opts forecast.Options) *forecast.Forecast {
	t.Helper()
	w.conn.Reset()
	f, err := forecast.New(t.Context(), w.store, opts)
	if err != nil {
		t.Fatal(err)
	}
	counts := w.conn.Counts()
	if got := counts.Calls["ReadRows"] + counts.Calls["SampleRowKeys"] - 1; got != f.Cost.Requests || opts.Bytes == 0 && int64(f.Cost.Rows) > counts.RowsReturned {
		t.Errorf("cost %+v; counted %d requests that returned %d rows", f.Cost, got, counts.RowsReturned)
	}
	if o := opts; o.Rows > 0 && f.Cost.Rows > o.Rows || o.Requests > 0 && f.Cost.Requests > o.Requests {
		t.Errorf("cost %+v exceeds the options %+v", f.Cost, o)
	}
	return f
}

// uniform returns n ages spread evenly between two.
func uniform(n int, from, to time.Duration) (ages []time.Duration) {
	for i := range n {
		ages = append(ages, from+time.Duration(float64(to-from)*(float64(i)+0.5)/float64(n)))
	}
	return ages
}

// within checks a figure against the truth: it may be off by a share of it.
func within(t testing.TB, what string, got, want, most float64) {
	t.Helper()
	if off := math.Abs(got - want); off > most*want+want/1e6 {
		t.Errorf("%s is %.0f, want %.0f within %.0f%%", what, got, want, most*100)
	}
}

func sizeOf(ages []time.Duration, some func(time.Duration) bool) (n float64) {
	for _, age := range ages {
		if some(age) {
			n++
		}
	}
	return n
}

// check compares a forecast with the truth. Each figure may be off by this share of it.
func (w *world) check(t testing.TB, f *forecast.Forecast, age time.Duration, most float64) {
	t.Helper()
	var all truth
	a, gone := float64(age), 0.0
	expired := func(x time.Duration) bool { return float64(x) > a }
	for _, tr := range w.of {
		all.ages = append(all.ages, tr.ages...)
		all.bytes += tr.bytes
		gone += sizeOf(tr.ages, expired) * tr.each
	}
	within(t, "bytes", f.Whole.Bytes, all.bytes, most)
	within(t, "cells", f.Whole.Cells, float64(len(all.ages)), most)
	within(t, "the class's bytes", f.Classes[0].Bytes, all.bytes, most)
	if gone > 0 {
		within(t, "expired", f.Whole.ExpiredBytes, gone, 2*most)
	}
	d, err := f.Drops("d30", gc.MaxAge(age/3))
	if err != nil {
		t.Fatal(err)
	}
	if n := sizeOf(all.ages, func(x time.Duration) bool { return float64(x) > a/3 && !expired(x) }); n > 0 {
		within(t, "dropped", d.Cells, n, 3*most)
	}
}

func TestForecastOfAShortTable(t *testing.T) {
	w := newWorld(t, 30*aDay)
	w.fill(t, "acme", 10, uniform(3000, 0, 40*aDay))
	w.fill(t, "ac", 10, uniform(60, 0, 20*aDay))
	f := w.forecast(t, forecast.Options{})
	if f.Basis != forecast.Counted || len(f.Holdings) != 2 || f.Holdings[0].Tenant.String() != "ac" {
		t.Fatalf("forecast %+v", f)
	}
	w.check(t, f, 30*aDay, 0)
	within(t, "the small one's", f.Holdings[0].Bytes, w.of["ac"].bytes, 0)
	within(t, "the big one's expired", f.Holdings[1].ExpiredCells, 750, 0)
	each := w.of["acme"].bytes / 3000
	if got, want := f.Holdings[1].DayBytes, 75*each; math.Abs(got-want) > want/50 {
		t.Errorf("%.0f bytes a day, want %.0f", got, want)
	}
	for i, e := range f.Holdings[1].Weeks {
		if want := 75 * 30 * each; math.Abs(e-want) > want/50 {
			t.Errorf("after %d weeks %.0f bytes, want %.0f, because additions and expiry are equal", i+1, e, want)
		}
	}
	if s := f.Holdings[1].Steady; s == nil || math.Abs(*s-75*30*each) > 75*30*each/50 {
		t.Errorf("steady state: %v", s)
	}
	// The small tenant is 20 days old, and grows for 10 more.
	each = w.of["ac"].bytes / 60
	if got, want := f.Holdings[0].Weeks[1], 3*30*each; math.Abs(got-want) > want/20 {
		t.Errorf("after two weeks %.0f bytes, want %.0f", got, want)
	}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var back forecast.Forecast
	if err := json.Unmarshal(text, &back); err != nil || back.String() != f.String() {
		t.Errorf("error %v, and forecast %s", err, back.String())
	}
	if _, err := back.Drops("d30", gc.MaxAge(aDay)); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("Drop of a forecast from JSON: %v", err)
	}
}

func TestForecastBySample(t *testing.T) {
	testkit.Plain(t)
	bursts := func(n int) (ages []time.Duration) { // one hour each week, and nothing in between
		for i := range n {
			ages = append(ages, time.Duration(i%8)*7*aDay+time.Duration(i)*time.Hour/time.Duration(n))
		}
		return ages
	}
	for name, fill := range map[string]func(*world){
		"uniform":             func(w *world) { w.fill(t, "acme", 100, uniform(90_000, 0, 45*aDay)) },
		"bursts":              func(w *world) { w.fill(t, "acme", 20, bursts(90_000)) },
		"nothing but expired": func(w *world) { w.fill(t, "acme", 20, uniform(90_000, 31*aDay, 45*aDay)) },
		"one big, many small": func(w *world) {
			w.fill(t, "big", 50, uniform(80_000, 0, 45*aDay))
			for i := range 100 {
				w.fill(t, fmt.Sprintf("small-%03d", i), 3, uniform(100, 0, 40*aDay))
			}
		},
		"many alike": func(w *world) {
			for i := range 60 {
				w.fill(t, fmt.Sprintf("t-%02d", i), 10, uniform(1500, 0, time.Duration(10+i)*aDay))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if testkit.Raced && name != "one big, many small" {
				t.Skip("a statistical test; it runs without the race detector")
			}
			w := newWorld(t, 30*aDay)
			fill(w)
			w.cut(t, 700)
			for seed := range uint64(5) {
				opts := forecast.Options{Rows: 20_000, Seed: seed}
				f := w.forecast(t, opts)
				if f.Basis != forecast.Sampled || f.Cost.Parts < 20 {
					t.Fatalf("basis %s, cost %+v", f.Basis, f.Cost)
				}
				w.check(t, f, 30*aDay, 0.25)
				if again := w.forecast(t, opts); figures(f) != figures(again) {
					t.Error("the same seed returns a different forecast")
				}
				if seed < 2 {
					t.Log(f.Cost, f.Whole.Bytes, f.Whole.ExpiredBytes)
				}
			}
		})
	}
}

func figures(f *forecast.Forecast) string {
	text, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestForecastOfNothing(t *testing.T) {
	w := newWorld(t, 30*aDay)
	w.set(noon)
	f := w.forecast(t, forecast.Options{})
	if f.Basis != forecast.Counted || f.Whole.Bytes != 0 || len(f.Holdings) != 0 || len(f.Classes) != 1 || f.Classes[0].Policy != "maxage=30d" {
		t.Errorf("forecast %+v", f)
	}
}

// TestForecastIsNotBiased: over many samples of one table, the forecasts are right on average, both if parts are read
// to their ends and if they are too large for that.
func TestForecastIsNotBiased(t *testing.T) {
	if testkit.Raced {
		t.Skip("a statistical test; it runs without the race detector")
	}
	w := newWorld(t, 30*aDay)
	w.fill(t, "big", 50, uniform(50_000, 0, 45*aDay))
	for i := range 40 {
		w.fill(t, fmt.Sprintf("small-%03d", i), 3, uniform(100, 0, 40*aDay))
	}
	w.cut(t, 700)
	want := 0.0
	for _, tr := range w.of {
		want += tr.each * sizeOf(tr.ages, func(x time.Duration) bool { return x > 30*aDay })
	}
	for _, rows := range []int{2000, 8000, 20_000} {
		const seeds = 25
		off := 0.0
		for seed := range uint64(seeds) {
			off += (w.forecast(t, forecast.Options{Rows: rows, Seed: seed}).Whole.ExpiredBytes - want) / want / seeds
		}
		t.Logf("%d rows: off by %.0f%% on average", rows, off*100)
		if math.Abs(off) > 0.2 {
			t.Errorf("%d rows: off by %.0f%% on average", rows, off*100)
		}
	}
}

// TestForecastOfPartsThatAreTooLarge: if no part can be read to its end, as in a table of few tablets, random reads
// still estimate the age and owner of the data, and the forecast says that its bytes come from the service's estimate.
func TestForecastOfPartsThatAreTooLarge(t *testing.T) {
	testkit.Plain(t)
	w := newWorld(t, 30*aDay)
	w.fill(t, "big", 20, uniform(60_000, 0, 45*aDay))
	w.fill(t, "middle", 20, uniform(20_000, 0, 45*aDay))
	for i := range 20 {
		w.fill(t, fmt.Sprintf("small-%03d", i), 3, uniform(50, 0, 40*aDay))
	}
	w.cut(t, 13_000)
	share, of, met := 0.0, map[string]float64{}, 0
	const seeds = 10
	for seed := range uint64(seeds) {
		f := w.forecast(t, forecast.Options{Rows: 4000, Seed: seed})
		if f.Basis != forecast.Assumed || f.Cost.Parts > 8 {
			t.Fatalf("basis %s, cost %+v", f.Basis, f.Cost)
		}
		share += f.Whole.ExpiredBytes / f.Whole.Bytes / seeds
		for _, h := range f.Holdings {
			of[h.Tenant.String()] += h.Bytes / f.Whole.Bytes / seeds
		}
		met += len(f.Holdings)
	}
	t.Logf("expired: %.2f, of the large ones: %.2f and %.2f, of the first small one: %.4f, met %d of 22", share, of["big"], of["middle"], of["small-000"], met/seeds)
	if share < 0.25 || share > 0.42 || of["big"] < 0.6 || of["big"] > 0.9 || of["middle"] < 0.15 || of["middle"] > 0.35 || of["small-000"] > 0.01 || met < 15*seeds {
		t.Errorf("want about 0.33, 0.74, 0.25, 0.0006 and all")
	}
}
