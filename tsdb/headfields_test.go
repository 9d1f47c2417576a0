package tsdb_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	storepoints "github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// sparse is a payload whose points have some of the fields.
type sparse struct {
	Temp  *float64 `json:"temp,omitempty"`
	Door  *bool    `json:"door,omitempty"`
	Note  string   `json:"note,omitempty"`
	Motor struct {
		Speed *int `json:"speed,omitempty"`
		Hours *int `json:"hours,omitempty"`
	} `json:"motor"`
}

// fieldShown is the newest value of a field as text, with its time in milliseconds.
type fieldShown struct {
	at   int64
	text string
}

// fieldFold returns the newest value of each field by a walk over all points.
func fieldFold[T any](t *testing.T, repo *tsdb.Repository[T], e tsdb.Entity) map[string]fieldShown {
	t.Helper()
	out := map[string]fieldShown{}
	for p, err := range repo.Range(t.Context(), e, tsdb.AllTime()) {
		if err != nil {
			t.Fatal(err)
		}
		for path, text := range fieldsOfValue(t, p.Value) {
			if _, ok := out[path]; !ok {
				out[path] = fieldShown{p.Time.UnixMilli(), text}
			}
		}
	}
	return out
}

// fieldsOfValue returns the fields of a value by their paths, without the code that is tested.
func fieldsOfValue(t *testing.T, v any) map[string]string {
	out := map[string]string{}
	if r, ok := v.(codec.Record); ok {
		for name, value := range r.All() {
			out[strings.ReplaceAll(name, "#", "%23")] = value.String()
		}
		return out
	}
	if m, ok := v.(proto.Message); ok {
		m.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, value protoreflect.Value) bool {
			one := m.ProtoReflect().New()
			one.Set(fd, value)
			wire, err := proto.Marshal(one.Interface())
			if err != nil {
				t.Fatal(err)
			}
			out[fmt.Sprint(fd.Number())] = string(wire)
			return true
		})
		return out
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var walk func(prefix string, text json.RawMessage)
	walk = func(prefix string, text json.RawMessage) {
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) != nil {
			out[strings.TrimSuffix(prefix, "#")] = string(text)
			return
		}
		for name, m := range members {
			walk(prefix+name+"#", m)
		}
	}
	walk("", text)
	return out
}

// fieldHeads returns the newest values in the heads of entities; nil where points must be read.
func fieldHeads[T any](t *testing.T, repo *tsdb.Repository[T], entities []tsdb.Entity) []map[string]fieldShown {
	t.Helper()
	in, err := inside.Of(repo).Internals()
	if err != nil {
		t.Fatal(err)
	}
	paths := make([]string, len(entities))
	for i, e := range entities {
		paths[i] = inside.Of(e).Path()
	}
	var mu sync.Mutex
	out := make([]map[string]fieldShown, len(entities))
	in.Rows.NewestFields(t.Context(), paths, storepoints.Options{Width: 4}, func(i int, fields []dataset.HeadField, sure bool, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Error(err)
		}
		if !sure {
			return
		}
		out[i] = map[string]fieldShown{}
		for _, f := range fields {
			out[i][f.Path] = fieldShown{int64(f.Cell) / 1000, fieldText(t, in.Rows.D.Tags[0], f.Raw)}
		}
	})
	return out
}

func fieldText(t *testing.T, tag string, raw []byte) string {
	if tag != "rec" {
		return string(raw)
	}
	r, err := codec.Records().Decode(append([]byte{1, 1, 'x'}, raw...))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := r.Lookup("x")
	return v.String()
}

// sameFields compares heads with the points, and returns how many heads can be used.
func sameFields[T any](t *testing.T, what string, repo *tsdb.Repository[T], entities []tsdb.Entity) (sure int) {
	t.Helper()
	for i, got := range fieldHeads(t, repo, entities) {
		if got == nil {
			continue
		}
		sure++
		if want := fieldFold(t, repo, entities[i]); !maps.Equal(got, want) {
			t.Fatalf("%s: the head of %v shows the fields\n%v, its points have\n%v", what, entities[i], got, want)
		}
	}
	sameAnswers(t, what, repo, entities)
	return sure
}

// sameAnswers compares LatestFields of heads with that of points, which a time to look back from makes it read.
func sameAnswers[T any](t *testing.T, what string, repo *tsdb.Repository[T], entities []tsdb.Entity) {
	t.Helper()
	points := tsdb.FieldOptions{AsOf: time.UnixMilli(1 << 45), MaxPoints: 10_000}
	want, err := repo.LatestFieldsMany(t.Context(), entities, points)
	if err != nil {
		t.Fatal(err)
	}
	got, err := repo.LatestFieldsMany(t.Context(), entities, tsdb.FieldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var below []tsdb.Fields[T]
	under := tsdb.AllEntities()
	if len(entities) == 1 { // the table may have many more
		under = tsdb.NewPrefix(entities[0].Parts()[:1]...)
	}
	for f, err := range repo.Under(under).LatestFields(t.Context(), tsdb.FieldOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		below = append(below, f)
	}
	for i, e := range entities {
		if !got[i].Back.IsZero() { // the head lacks a field, and so do the points that were looked at
			continue
		}
		sameFieldsOf(t, what+": a list", got[i], want[i])
		one, err := repo.LatestFields(t.Context(), e, tsdb.FieldOptions{})
		if err != nil && !errors.Is(err, tsdb.ErrNotFound) {
			t.Fatal(err)
		}
		one.Entity = e
		sameFieldsOf(t, what+": one", one, want[i])
		k := slices.IndexFunc(below, func(f tsdb.Fields[T]) bool { return f.Entity == e })
		switch {
		case k >= 0:
			sameFieldsOf(t, what+": below a prefix", below[k], want[i])
		case want[i].Times.Len() > 0:
			t.Fatalf("%s: LatestFields of a prefix lacks %v", what, e)
		}
	}
}

func sameFieldsOf[T any](t *testing.T, what string, got, want tsdb.Fields[T]) {
	t.Helper()
	text := func(f tsdb.Fields[T]) string {
		return fmt.Sprint(fieldsOfValue(t, f.Value), maps.Collect(f.Times.All()))
	}
	if text(got) != text(want) {
		t.Fatalf("%s: LatestFields of %v from its head is\n%s, from its points\n%s", what, got.Entity, text(got), text(want))
	}
}

func randomSparse(rnd *rand.Rand, n int) (v sparse) {
	if rnd.IntN(3) == 0 {
		f := float64(n)
		v.Temp = &f
	}
	if rnd.IntN(4) == 0 {
		b := n%2 == 0
		v.Door = &b
	}
	if rnd.IntN(5) == 0 {
		v.Note = fmt.Sprint("n", n)
	}
	if rnd.IntN(2) == 0 {
		v.Motor.Speed = &n
	}
	if rnd.IntN(9) == 0 {
		v.Motor.Hours = &n
	}
	return v
}

func randomMessage(rnd *rand.Rand, n int) *descriptorpb.FieldDescriptorProto {
	m := &descriptorpb.FieldDescriptorProto{}
	if rnd.IntN(3) == 0 {
		m.Number = proto.Int32(int32(n))
	}
	if rnd.IntN(3) == 0 {
		m.Name = proto.String(fmt.Sprint("name", n))
	}
	if rnd.IntN(2) == 0 {
		m.JsonName = proto.String("")
	}
	return m
}

func randomRecord(rnd *rand.Rand, n int) codec.Record {
	var fields []codec.Field
	for _, name := range []string{"a", "b", "c.d", "e#f"} {
		if rnd.IntN(3) == 0 {
			fields = append(fields, codec.Field{Name: name, Value: codec.Int(int64(n))})
		}
	}
	return codec.NewRecord(fields...)
}

var fieldSeeds = flag.Uint64("heads.seeds", 1, "how many random lives TestFieldHeadsAgainstBruteForce tries for each payload and kind of head")

// TestFieldHeadsAgainstBruteForce: the fields in heads are those of a walk over all points, whatever happened to the
// points: late ones, some that replace others with fewer fields, merges, deletions, other classes, expiry, lost
// responses, and garbage collection at any time.
func TestFieldHeadsAgainstBruteForce(t *testing.T) {
	for seed := range *fieldSeeds {
		for _, opts := range some(int(seed), []tsdb.SchemaOptions{{}, {Salts: 4, Head: tsdb.Head{Points: 1}}, {Head: tsdb.Head{Points: 3}}}) {
			opts.Precision, opts.Head.Fields = tsdb.Milliseconds, true
			name := fmt.Sprint(seed, opts.Head.Points)
			t.Run("json/"+name, func(t *testing.T) {
				longBubble(t, func(t *testing.T) { fieldModel(t, seed, codec.JSON[sparse](), randomSparse, opts) })
			})
			t.Run("protobuf/"+name, func(t *testing.T) {
				c := codec.Proto[*descriptorpb.FieldDescriptorProto]()
				longBubble(t, func(t *testing.T) { fieldModel(t, seed, c, randomMessage, opts) })
			})
			opts.Merge = true
			t.Run("records/"+name, func(t *testing.T) {
				longBubble(t, func(t *testing.T) { fieldModel(t, seed, codec.Records(), randomRecord, opts) })
			})
		}
	}
}

func fieldModel[T any](t *testing.T, seed uint64, c codec.Codec[T], random func(*rand.Rand, int) T, opts tsdb.SchemaOptions) {
	rnd := rand.New(rand.NewPCG(seed, 11))
	opts.Retention, opts.Classes = minutes10, []gc.Class{minutes20}
	s := tsdb.MustDefine("r", tsdb.Key("site", "device"), c, opts)
	clock := testkit.NewClock(start)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: clock.Now}}, s)
	repo, ctx := s.For(store, acme), t.Context()
	entities := []tsdb.Entity{tsdb.NewEntity("a", "1"), tsdb.NewEntity("a", "2"), tsdb.NewEntity("a#", "1"), tsdb.NewEntity("b", "1")}
	one := func() tsdb.Entity { return entities[rnd.IntN(len(entities))] }
	when := func() time.Time {
		return clock.Now().Add(-time.Duration(rnd.Int64N(int64(9 * time.Minute)))).Truncate(20 * time.Second)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	methods := []tsdbtest.Method{tsdbtest.ReadRows, tsdbtest.MutateRow, tsdbtest.MutateRows, tsdbtest.CheckAndMutateRow}
	try := func(call func() error) { // once more after a fault, which repairs what is unknown
		t.Helper()
		if rnd.IntN(3) == 0 {
			m, skip := methods[rnd.IntN(len(methods))], rnd.IntN(4)
			switch rnd.IntN(3) {
			case 0:
				conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(m).Skip(skip))
			case 1:
				conn.Inject(tsdbtest.LoseResponse(codes.Unknown).On(m).Skip(skip))
			case 2:
				head := rnd.IntN(2) == 0
				conn.Inject(tsdbtest.FailEntries(codes.PermissionDenied, func(key string) bool { return strings.Contains(key, "!head#") == head }))
			}
		}
		err := call()
		conn.Clear()
		if err != nil {
			err = call()
		}
		check(err)
	}
	sure, all := 0, 0
	for step := range 200 / testkit.Stride(4) { // one call at a time
		what := ""
		switch e, at := one(), when(); rnd.IntN(12) {
		case 0, 1, 2, 3:
			v := random(rnd, step)
			what = fmt.Sprintf("put %v of %v: %+v", e, at.UnixMilli(), v)
			try(func() error { return repo.Put(ctx, e, at, v) })
		case 4, 5:
			var batch []tsdb.Point[T]
			for i := range rnd.IntN(12) {
				batch = append(batch, tsdb.Point[T]{Entity: one(), Time: when(), Value: random(rnd, 1000*step+i)})
			}
			what = fmt.Sprintf("batch %+v", batch)
			try(func() error { _, err := repo.PutMany(ctx, batch); return err })
		case 6:
			what = "put if absent"
			v := random(rnd, step)
			try(func() error { _, err := repo.PutIfAbsent(ctx, e, at, v); return err })
		case 7:
			for p, err := range repo.Range(ctx, e, tsdb.AllTime(), tsdb.Limit(1+rnd.IntN(4))) { // one that a head may show
				check(err)
				at = p.Time
			}
			what = fmt.Sprintf("delete %v of %v", e, at.UnixMilli())
			try(func() error { return repo.Delete(ctx, e, at) })
		case 8:
			in := tsdb.Between(at, at.Add(time.Duration(rnd.Int64N(int64(3*time.Minute)))))
			if rnd.IntN(5) == 0 {
				in = tsdb.AllTime()
			}
			what = fmt.Sprintf("delete %v in %v", e, in)
			try(func() error { _, err := repo.DeleteRange(ctx, e, in); return err })
		case 9:
			if rnd.IntN(4) == 0 {
				what = "delete under a"
				try(func() error { _, err := repo.DeletePrefix(ctx, tsdb.NewPrefix("a")); return err })
			} else if rnd.IntN(3) == 0 {
				assign(t, store, acme, tenants.Profile{Retention: []string{minutes10.Name, minutes20.Name}[rnd.IntN(2)]})
			}
		case 10:
			what = "later"
			clock.Add(time.Duration(rnd.Int64N(int64(2 * time.Minute))))
		case 11:
			what = "collection"
			check(conn.Collect(ctx))
		}
		sure += sameFields(t, fmt.Sprintf("step %d, after %s", step, what), repo, entities)
		all += len(entities)
	}
	if sure < all*2/3 {
		t.Errorf("%d of %d heads can be used; the others cost a walk over their points", sure, all)
	}
}

// TestFieldsOfAnotherType: the type of a field has changed since a point was stored. Whether or not a head has it, the
// other fields are found, and the error names that point.
func TestFieldsOfAnotherType(t *testing.T) {
	type before struct {
		Temp string `json:"temp"`
	}
	type after struct {
		Temp *float64 `json:"temp,omitempty"`
		Door *int     `json:"door,omitempty"`
	}
	for _, heads := range []bool{false, true} {
		opts := tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Fields: heads}}
		former := tsdb.MustDefine("doors", tsdb.Key("site", "device"), codec.JSON[before](), opts)
		s := tsdb.MustDefine("doors", tsdb.Key("site", "device"), codec.JSON[after](), opts)
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, former)
		repo, door := s.For(store, acme), 7
		err := errors.Join(store.Ensure(t.Context(), s),
			former.For(store, acme).Put(t.Context(), roof, start, before{"warm"}),
			repo.Put(t.Context(), roof, start.Add(time.Second), after{Door: &door}))
		if err != nil {
			t.Fatal(err)
		}
		check := func(call string, f tsdb.Fields[after], err error) {
			t.Helper()
			bad, ok := errors.AsType[tsdb.PointErrors](err)
			if f.Value.Door == nil || *f.Value.Door != door || f.Times.Len() != 1 || !slices.Equal(f.Missing, []string{"temp"}) || !ok || len(bad) != 1 || !bad[0].Time.Equal(start) {
				t.Errorf("heads %v, %s: %+v, error %v; want the door, and an error about the first point", heads, call, f, err)
			}
		}
		f, err := repo.LatestFields(t.Context(), roof, tsdb.FieldOptions{})
		check("LatestFields", f, err)
		many, _ := repo.LatestFieldsMany(t.Context(), []tsdb.Entity{roof}, tsdb.FieldOptions{})
		check("LatestFieldsMany", many[0], many[0].Err)
		for f, err := range repo.Under(tsdb.AllEntities()).LatestFields(t.Context(), tsdb.FieldOptions{}) {
			check("Under", f, err)
		}
	}
}
