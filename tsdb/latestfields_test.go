package tsdb_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var cellar = tsdb.NewEntity("berlin", "cellar-1")

// truck is a payload of which each point has some fields.
type truck struct {
	Temp   *float64          `json:"temp,omitempty"`
	Door   *bool             `json:"door,omitempty"`
	Event  string            `json:"event,omitempty"`
	Engine *motorOf          `json:"engine,omitempty"`
	Tags   map[string]string `json:"tags,omitempty"`
}

type motorOf struct {
	RPM *int `json:"rpm,omitempty"`
	Oil *int `json:"oil,omitempty"`
}

// fieldTimes returns fields as text: the names with their times in units since start, what is missing, and how far they
// go.
func fieldTimes[T any](f tsdb.Fields[T], unit time.Duration) string {
	var b strings.Builder
	for name, at := range f.Times.All() {
		fmt.Fprintf(&b, "%s@%d ", name, at.Sub(start)/unit)
	}
	if f.Missing != nil {
		fmt.Fprintf(&b, "missing %s ", strings.Join(f.Missing, ","))
	}
	if !f.Back.IsZero() {
		fmt.Fprintf(&b, "back to %d ", f.Back.Sub(start)/unit)
	}
	return strings.TrimSpace(b.String())
}

// TestLatestFieldsOfTruck: an event does not hide the temperature, and the answer says what is older than it looked.
func TestLatestFieldsOfTruck(t *testing.T) {
	s := tsdb.MustDefine("trucks", tsdb.Key("site", "device"), codec.JSON[truck](), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	put := func(n int, v truck) {
		if err := repo.Put(t.Context(), roof, start.Add(time.Duration(n)*time.Second), v); err != nil {
			t.Fatal(err)
		}
	}
	put(0, truck{Tags: map[string]string{"a": "b"}, Engine: &motorOf{Oil: new(3)}})
	put(1, truck{Temp: new(21.5), Engine: &motorOf{RPM: new(900)}})
	for n := 2; n < 40; n++ {
		put(n, truck{Event: "connected"})
	}
	for _, tt := range []struct {
		options tsdb.FieldOptions
		want    string
	}{
		{tsdb.FieldOptions{}, "engine.oil@0 engine.rpm@1 event@39 tags@0 temp@1 missing door"},
		{tsdb.FieldOptions{MaxPoints: 39}, "engine.rpm@1 event@39 temp@1 missing door,engine.oil,tags back to 1"},
		{tsdb.FieldOptions{MaxPoints: 16}, "event@39 missing temp,door,engine.rpm,engine.oil,tags back to 24"},
		{tsdb.FieldOptions{AsOf: start.Add(time.Second)}, "engine.oil@0 engine.rpm@1 tags@0 temp@1 missing door,event"},
		{tsdb.FieldOptions{AsOf: start}, "engine.oil@0 tags@0 missing temp,door,event,engine.rpm"},
	} {
		f, err := repo.LatestFields(t.Context(), roof, tt.options)
		if got := fieldTimes(f, time.Second); err != nil || got != tt.want {
			t.Errorf("%+v: %s, %v; want %s", tt.options, got, err, tt.want)
		}
	}
	put(40, truck{Door: new(true)})
	f, err := repo.LatestFields(t.Context(), roof, tsdb.FieldOptions{})
	if v := f.Value; err != nil || *v.Temp != 21.5 || !*v.Door || v.Event != "connected" || *v.Engine.RPM != 900 || *v.Engine.Oil != 3 || v.Tags["a"] != "b" {
		t.Errorf("the value is %+v, %v", f.Value, err)
	}
	if at, ok := f.Times.Of("tags.a"); !ok || !at.Equal(start) {
		t.Errorf("the time of a tag is %v, %v, want that of the tags", at, ok)
	}
	if _, ok := f.Times.Of("nothing"); ok || f.Missing != nil || !f.Back.IsZero() {
		t.Errorf("a field that is not there has a time, or is missing: %s", fieldTimes(f, time.Second))
	}
	if _, err := repo.LatestFields(t.Context(), tsdb.NewEntity("no", "one"), tsdb.FieldOptions{}); !errors.Is(err, tsdb.ErrNotFound) {
		t.Errorf("an entity without points: %v", err)
	}
	if _, err := repo.LatestFields(t.Context(), roof, tsdb.FieldOptions{AsOf: start.Add(-time.Hour)}); !errors.Is(err, tsdb.ErrNotFound) {
		t.Errorf("before the first point: %v", err)
	}
	for _, max := range []int{-1, 10_001} {
		if _, err := repo.LatestFields(t.Context(), roof, tsdb.FieldOptions{MaxPoints: max}); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("MaxPoints %d: %v", max, err)
		}
		if all, err := repo.LatestFieldsMany(t.Context(), []tsdb.Entity{roof}, tsdb.FieldOptions{MaxPoints: max}); all != nil || !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("MaxPoints %d of many: %v, %v", max, all, err)
		}
		if err := firstError(repo.Under(tsdb.AllEntities()).LatestFields(t.Context(), tsdb.FieldOptions{MaxPoints: max})); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("MaxPoints %d below a prefix: %v", max, err)
		}
	}
}

// TestMissingIfNothingDecodes: if no point decodes, all fields are missing; and in LatestFieldsMany, if there is none.
func TestMissingIfNothingDecodes(t *testing.T) {
	former := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[[]int](), tsdb.SchemaOptions{})
	s := readings(t, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	if err := former.For(store, acme).Put(t.Context(), roof, start, []int{1}); err != nil {
		t.Fatal(err)
	}
	f, err := s.For(store, acme).LatestFields(t.Context(), roof, tsdb.FieldOptions{})
	if _, ok := errors.AsType[tsdb.PointErrors](err); !ok || !slices.Equal(f.Missing, []string{"temp_c"}) {
		t.Errorf("missing are %q, error %v; want temp_c, and an error about the point", f.Missing, err)
	}
	all, err := s.For(store, acme).LatestFieldsMany(t.Context(), []tsdb.Entity{tsdb.NewEntity("no", "one")}, tsdb.FieldOptions{})
	if err != nil || !slices.Equal(all[0].Missing, []string{"temp_c"}) {
		t.Errorf("missing of an entity without points are %+v, %v; want temp_c", all, err)
	}
}

// TestFieldWithoutAName: a field whose name is empty is not the payload, so other names do not have its time.
func TestFieldWithoutAName(t *testing.T) {
	s := tsdb.MustDefine("maps", tsdb.Key("device"), codec.JSON[map[string]int](), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo, e := s.For(store, acme), tsdb.NewEntity("d")
	if err := repo.Put(t.Context(), e, start, map[string]int{"": 1}); err != nil {
		t.Fatal(err)
	}
	f, err := repo.LatestFields(t.Context(), e, tsdb.FieldOptions{})
	_, empty := f.Times.Of("")
	_, part := f.Times.Of(".part")
	if at, ok := f.Times.Of("temp"); err != nil || !empty || !part || ok {
		t.Errorf("a time of the empty name: %v, of a part of it: %v, of temp, which nobody sent: %v, %v; error %v", empty, part, at, ok, err)
	}
}

// TestLatestFieldsNull: the schema says whether null is a value.
func TestLatestFieldsNull(t *testing.T) {
	for _, clears := range []bool{false, true} {
		s := tsdb.MustDefine("trucks", tsdb.Key("site", "device"), codec.JSON[map[string]any](), tsdb.SchemaOptions{NullClears: clears})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		for i, v := range []map[string]any{{"a": 1, "b": map[string]any{"c": 2}}, {"a": nil, "b": nil}} {
			if err := repo.Put(t.Context(), roof, start.Add(time.Duration(i)*time.Second), v); err != nil {
				t.Fatal(err)
			}
		}
		want, value := "a@0 b.c@0", "map[a:1 b:map[c:2]]"
		if clears {
			want, value = "a@1 b@1", "map[a:<nil> b:<nil>]"
		}
		f, err := repo.LatestFields(t.Context(), roof, tsdb.FieldOptions{})
		if got := fieldTimes(f, time.Second); err != nil || got != want || fmt.Sprint(f.Value) != value {
			t.Errorf("NullClears %v: %s with %v, %v; want %s with %s", clears, got, f.Value, err, want, value)
		}
	}
}

// TestLatestFieldsOfFormats: a payload that is no object is one field, and points of another format end the search.
func TestLatestFieldsOfFormats(t *testing.T) {
	number := tsdb.MustDefine("numbers", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{})
	boxed := tsdb.MustDefine("boxed", tsdb.Key("site", "device"), codec.Proto[*wrapperspb.DoubleValue](), tsdb.SchemaOptions{})
	type old struct{ A, B, C int }
	type now struct {
		A int `json:",omitempty"`
		B int `json:",omitempty"`
	}
	write := tsdb.MustDefine("moved", tsdb.Key("site", "device"), codec.JSON[old](), tsdb.SchemaOptions{})
	forth := func(o old) (now, error) { return now{10 * o.A, 10 * o.B}, nil }
	plain := codec.Tagged("json.v2", codec.JSON[now]())
	moved := tsdb.MustDefine("moved", tsdb.Key("site", "device"), codec.Fallback(zstd.Wrap(plain, zstd.Options{}), plain, codec.Convert(codec.JSON[old](), forth, nil)), tsdb.SchemaOptions{})
	v2 := tsdb.MustDefine("moved", tsdb.Key("site", "device"), plain, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, number, boxed, moved)
	put := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put(number.For(store, acme).Put(t.Context(), roof, start, 5))
	put(number.For(store, acme).Put(t.Context(), roof, start.Add(time.Second), 6))
	f, err := number.For(store, acme).LatestFields(t.Context(), roof, tsdb.FieldOptions{})
	if at, ok := f.Times.Of("any"); err != nil || f.Value != 6 || fieldTimes(f, time.Second) != "@1" || !ok || !at.Equal(start.Add(time.Second)) {
		t.Errorf("a number: %s with %v, %v", fieldTimes(f, time.Second), f.Value, err)
	}
	put(boxed.For(store, acme).Put(t.Context(), roof, start, wrapperspb.Double(5)))
	put(boxed.For(store, acme).Put(t.Context(), roof, start.Add(time.Second), wrapperspb.Double(0)))
	b, err := boxed.For(store, acme).LatestFields(t.Context(), roof, tsdb.FieldOptions{})
	if err != nil || b.Value.GetValue() != 0 || fieldTimes(b, time.Second) != "value@1" {
		t.Errorf("zero is newer than five, and shown is %v, %s, %v", b.Value, fieldTimes(b, time.Second), err)
	}
	put(write.For(store, acme).Put(t.Context(), roof, start, old{1, 2, 3}))
	put(moved.For(store, acme).Put(t.Context(), roof, start.Add(time.Second), now{A: 4}))
	put(v2.For(store, acme).Put(t.Context(), roof, start.Add(2*time.Second), now{B: 5}))
	m, err := moved.For(store, acme).LatestFields(t.Context(), roof, tsdb.FieldOptions{})
	if err != nil || m.Value != (now{4, 5}) || fieldTimes(m, time.Second) != "A@1 B@2" {
		t.Errorf("compressed and plain: %+v, %s, %v", m.Value, fieldTimes(m, time.Second), err)
	}
	put(v2.For(store, acme).Put(t.Context(), cellar, start.Add(time.Second), now{B: 5}))
	put(write.For(store, acme).Put(t.Context(), cellar, start, old{1, 2, 3}))
	m, err = moved.For(store, acme).LatestFields(t.Context(), cellar, tsdb.FieldOptions{})
	if err != nil || m.Value != (now{B: 5}) || fieldTimes(m, time.Second) != "B@1 missing A back to 1" {
		t.Errorf("before another format: %+v, %s, %v", m.Value, fieldTimes(m, time.Second), err)
	}
	attic := tsdb.NewEntity("berlin", "attic-1")
	put(write.For(store, acme).Put(t.Context(), attic, start, old{1, 2, 3}))
	m, err = moved.For(store, acme).LatestFields(t.Context(), attic, tsdb.FieldOptions{})
	if err != nil || m.Value != (now{10, 20}) || fieldTimes(m, time.Second) != "A@0 B@0 C@0" {
		t.Errorf("of an older format, whose values are converted: %+v, %s, %v", m.Value, fieldTimes(m, time.Second), err)
	}
}

// fieldCase is one way to store trucks whose answers are compared with a fold over Range.
type fieldCase struct {
	name      string
	precision tsdb.Precision
	identity  bool
	head      tsdb.Head
	codec     codec.Codec[codec.Record]
}

// TestLatestFieldsAgainstRange compares, in random histories, each way to ask with a fold over the points of Range.
func TestLatestFieldsAgainstRange(t *testing.T) {
	for i, c := range []fieldCase{
		{"records", tsdb.Nanoseconds, false, tsdb.Head{}, codec.Records()},
		{"milliseconds with heads", tsdb.Milliseconds, false, tsdb.Head{Points: 3}, codec.Records()},
		{"only heads", tsdb.Milliseconds, false, tsdb.Head{Points: 5, Only: true}, codec.Records()},
		{"events", tsdb.Microseconds, true, tsdb.Head{}, zstd.Wrap(codec.Records(), zstd.Options{})},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(6) {
				c.run(t, rand.New(rand.NewPCG(seed, uint64(i))))
			}
		})
	}
}

func (c fieldCase) run(t *testing.T, rnd *rand.Rand) {
	short := gc.Class{Name: "short", Policy: gc.MaxAge(time.Hour)}
	long := gc.Class{Name: "long", Policy: gc.MaxAge(24 * time.Hour)}
	opts := tsdb.SchemaOptions{Precision: c.precision, Identity: c.identity, Head: c.head, Retention: long}
	s := tsdb.MustDefine("readings", tsdb.Key("site", "device"), c.codec, opts)
	opts.Retention, opts.FormerClasses = short, []gc.Class{long}
	both := tsdb.MustDefine("readings", tsdb.Key("site", "device"), c.codec, opts)
	if c.head.Points > 0 {
		both = s // classes of heads have tests of their own
	}
	base := time.Now().Truncate(time.Millisecond)
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, both)
	repo := both.For(store, acme)
	entities := []tsdb.Entity{device("a", 1), device("a", 2), device("b", 1)}
	names := []string{"door", "gps.lat", "temp", "temp.max", "x#y%", "rare"}
	for n := range 60 + rnd.IntN(40) {
		var of codec.Record
		for _, name := range names[:len(names)-rnd.IntN(2)] {
			if rnd.IntN(4) == 0 {
				of = of.With(name, codec.Int(int64(n)))
			}
		}
		p := tsdb.Point[codec.Record]{Entity: entities[rnd.IntN(2)], Value: of}
		p.Time = base.Add(-time.Duration(rnd.IntN(90)) * time.Minute).Add(time.Duration(rnd.IntN(3)) * time.Microsecond)
		if c.identity {
			p.ID = fmt.Sprint(rnd.IntN(3))
		}
		write := repo // the short class, in which some points have expired
		if p.Time.Before(base.Add(-50*time.Minute)) || rnd.IntN(2) == 0 {
			write = s.For(store, acme)
		}
		if _, err := write.PutMany(t.Context(), []tsdb.Point[codec.Record]{p}); err != nil {
			t.Fatal(err)
		}
		if rnd.IntN(12) == 0 && !c.identity && !c.head.Only && c.head.Points == 0 {
			m := bigtable.NewMutation()
			m.Set("short", "p:rec", bigtable.Time(p.Time).TruncateToMilliseconds(), []byte("damaged"))
			apply(t, table, key(p.Entity, p.Time), m)
		}
	}
	for range 12 {
		options := tsdb.FieldOptions{MaxPoints: rnd.IntN(40)}
		if rnd.IntN(2) == 0 {
			options.AsOf = base.Add(-time.Duration(rnd.IntN(100)) * time.Minute)
		}
		c.compare(t, repo, entities, options)
	}
}

// compare asks in each way.
func (c fieldCase) compare(t *testing.T, repo *tsdb.Repository[codec.Record], entities []tsdb.Entity, options tsdb.FieldOptions) {
	t.Helper()
	var want, below []string
	for _, e := range entities {
		w := folded(t, repo, e, options)
		if want = append(want, w); w != "none" {
			below = append(below, w)
		}
		f, err := repo.LatestFields(t.Context(), e, options)
		got := answer(f)
		if errors.Is(err, tsdb.ErrNotFound) {
			got = "none"
		}
		if got != w {
			t.Fatalf("LatestFields of %v with %+v:\n%s, %v; want\n%s", e, options, got, err, w)
		}
	}
	asked := append(slices.Clone(entities), entities[0])
	many, err := repo.LatestFieldsMany(t.Context(), asked, options)
	for i, f := range many {
		if got := answer(f); got != want[i%len(want)] {
			t.Fatalf("LatestFieldsMany of %v with %+v:\n%s; want\n%s", asked[i], options, got, want[i%len(want)])
		}
	}
	if damaged := strings.Contains(strings.Join(want, " "), "damaged"); len(many) != len(asked) || (err != nil) != damaged {
		t.Fatalf("LatestFieldsMany returns %d results and %v, damaged points: %v", len(many), err, damaged)
	}
	var got []string
	for f, err := range repo.Under(tsdb.AllEntities()).LatestFields(t.Context(), options) {
		if _, bad := err.(tsdb.PointErrors); err != nil && !bad {
			t.Fatal(err)
		}
		if a := answer(f); a != "none" {
			got = append(got, a)
		}
	}
	if !slices.Equal(got, below) {
		t.Fatalf("Under.LatestFields with %+v:\n%q; want\n%q", options, got, below)
	}
}

// answer returns fields as text, with the bound of the search and the number of damaged points.
func answer(f tsdb.Fields[codec.Record]) string {
	var out []string
	for name, v := range f.Value.All() {
		at, _ := f.Times.Of(name)
		out = append(out, fmt.Sprintf("%s=%v@%d", name, v, at.UnixNano()))
	}
	if f.Times.Len() != f.Value.Len() {
		out = append(out, "other times")
	}
	bad, _ := f.Err.(tsdb.PointErrors)
	return text(f.Entity, out, f.Back, len(bad), f.Err == nil && f.Back.IsZero() && len(out) == 0)
}

// text of no fields without a bound or an error is that of an entity without points: both answers have none.
func text(e tsdb.Entity, fields []string, back time.Time, bad int, none bool) string {
	if none {
		return "none"
	}
	out := fmt.Sprint(e, " ", strings.Join(fields, " "))
	if !back.IsZero() {
		out += fmt.Sprint(" back to ", back.UnixNano())
	}
	if bad > 0 {
		out += fmt.Sprint(" damaged ", bad)
	}
	return out
}

// folded is the same from the points of Range.
func folded(t *testing.T, repo *tsdb.Repository[codec.Record], e tsdb.Entity, options tsdb.FieldOptions) string {
	t.Helper()
	in := tsdb.AllTime()
	if !options.AsOf.IsZero() {
		in = tsdb.Until(options.AsOf.Add(1))
	}
	newest, at, seen, bad, back, last := map[string]codec.Value{}, map[string]time.Time{}, 0, 0, time.Time{}, time.Time{}
	for p, err := range repo.Range(t.Context(), e, in) {
		if seen == options.MaxPoints && seen > 0 {
			back = last
			break
		}
		seen, last = seen+1, p.Time
		if _, is := err.(*tsdb.PointError); is {
			bad++
		} else if err != nil {
			t.Fatal(err)
		}
		for name, v := range p.Value.All() {
			if _, known := newest[name]; !known {
				newest[name], at[name] = v, p.Time
			}
		}
	}
	var out []string
	for name, v := range newest {
		out = append(out, fmt.Sprintf("%s=%v@%d", name, v, at[name].UnixNano()))
	}
	slices.SortFunc(out, func(a, b string) int {
		return strings.Compare(a[:strings.IndexByte(a, '=')], b[:strings.IndexByte(b, '=')])
	})
	return text(e, out, back, bad, seen == 0 || bad == 0 && back.IsZero() && len(out) == 0)
}

// TestLatestFieldsDynamic: without the Go type the answer has the same names and times.
func TestLatestFieldsDynamic(t *testing.T) {
	s := tsdb.MustDefine("trucks", tsdb.Key("site", "device"), zstd.Wrap(codec.JSON[truck](), zstd.Options{}), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	for i, v := range []truck{{Temp: new(21.5), Engine: &motorOf{RPM: new(900)}}, {Engine: &motorOf{Oil: new(3)}}, {Event: "on"}, {Event: "off"}} {
		if err := repo.Put(t.Context(), roof, start.Add(time.Duration(i)*time.Second), v); err != nil {
			t.Fatal(err)
		}
	}
	untyped, err := dynamic.Schema(s, dynamic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := untyped.For(store, acme).LatestFields(t.Context(), roof, tsdb.FieldOptions{})
	if got := fieldTimes(f, time.Second); err != nil || got != "engine.oil@1 engine.rpm@0 event@3 temp@0" || f.Value.String() != `{engine.oil=3i engine.rpm=900i event="off" temp=21.5}` {
		t.Errorf("%s with %v, %v", got, f.Value, err)
	}
	field, err := dynamic.NewField("temp", dynamic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := dynamic.Numbers(s, field)
	if err != nil {
		t.Fatal(err)
	}
	n, err := numbers.For(store, acme).LatestFields(t.Context(), roof, tsdb.FieldOptions{})
	if v, ok := n.Value.Number(); err != nil || v != 21.5 || !ok || !n.Times.Newest().Equal(start) {
		t.Errorf("the newest point with the field is %v at %v, %v", n.Value, n.Times.Newest(), err)
	}
}

// TestLatestFieldsFaults: a failed entity does not hide others, and a sequence ends with its error.
func TestLatestFieldsFaults(t *testing.T) {
	s := tsdb.MustDefine("trucks", tsdb.Key("site", "device"), codec.JSON[truck](), tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	for _, e := range []tsdb.Entity{roof, cellar} {
		if err := repo.Put(t.Context(), e, start, truck{Event: "on"}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := repo.LatestFieldsMany(t.Context(), []tsdb.Entity{roof, tsdb.NewEntity("one"), cellar}, tsdb.FieldOptions{})
	var report *tsdb.ReadError
	if !errors.As(err, &report) || len(all) != 3 || all[0].Value.Event != "on" || !errors.Is(all[1].Err, tsdb.ErrInvalid) || all[2].Err != nil {
		t.Errorf("%+v, %v", all, err)
	}
	conn.Inject(tsdbtest.CutStream(1, codes.PermissionDenied).On(tsdbtest.ReadRows))
	n := 0
	for f, e := range repo.Under(tsdb.AllEntities()).LatestFields(t.Context(), tsdb.FieldOptions{}) {
		if err = e; e == nil || f.Times.Len() > 0 {
			n++
		}
	}
	if err == nil || n > 2 {
		t.Errorf("a cut stream ends with %v after %d entities", err, n)
	}
	conn.Clear()
	options := tsdb.FieldOptions{AsOf: start.Add(time.Hour)} // the points of each entity are read after all are found
	conn.Reset()
	for _, err := range repo.Under(tsdb.AllEntities()).LatestFields(t.Context(), options) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for skip := range conn.Counts().Calls[tsdbtest.ReadRows] {
		conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.ReadRows).Skip(skip).Times(1))
		err = nil
		for _, err = range repo.Under(tsdb.AllEntities()).LatestFields(t.Context(), options) {
		}
		if err == nil {
			t.Errorf("request %d is refused, and the sequence ends without an error", skip+1)
		}
		conn.Clear()
	}
}
