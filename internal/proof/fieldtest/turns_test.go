package fieldtest

import (
	"encoding/json"
	"flag"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var turnEntities = flag.Int("turn.entities", 50, "how many entities TestTurns has; 5000 is the whole check")

// wide is a payload with all fields.
type wide struct {
	F00, F01, F02, F03, F04, F05, F06, F07, F08, F09 codec.Value `json:",omitzero"`
	F10, F11, F12, F13, F14, F15, F16, F17, F18, F19 codec.Value `json:",omitzero"`
	F20, F21, F22, F23, F24, F25, F26, F27, F28, F29 codec.Value `json:",omitzero"`
	F30, F31, F32, F33, F34, F35, F36, F37, F38, F39 codec.Value `json:",omitzero"`
}

// TestTurns: entities send fields in turn, and LatestFields returns the newest value of each with its time: of each
// entity, of a list, below a prefix and as of a time; from points and from heads.
func TestTurns(t *testing.T) {
	points := tsdb.SchemaOptions{Precision: tsdb.Milliseconds}
	heads := points
	heads.Head.Fields = true
	merged := heads
	merged.Merge = true
	all := Turns(*turnEntities)
	t.Run("records", func(t *testing.T) { turnsOf(t, all, codec.Records(), points, recordOf) })
	t.Run("records with heads", func(t *testing.T) { turnsOf(t, all, codec.Records(), merged, recordOf) })
	t.Run("JSON", func(t *testing.T) { turnsOf(t, all, codec.JSON[map[string]any](), points, throughJSON[map[string]any]) })
	t.Run("structs", func(t *testing.T) { turnsOf(t, all, codec.JSON[wide](), points, throughJSON[wide]) })
	t.Run("structs with heads", func(t *testing.T) { turnsOf(t, all, codec.JSON[wide](), heads, throughJSON[wide]) })
}

func recordOf(values map[string]any) (r codec.Record) {
	for name, v := range values {
		switch x := v.(type) {
		case int:
			r = r.With(name, codec.Int(int64(x)))
		case float64:
			r = r.With(name, codec.Float(x))
		}
	}
	return r
}

func throughJSON[T any](values map[string]any) (v T) {
	text, err := json.Marshal(values)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		panic(err)
	}
	return v
}

// turns is a dataset whose entities send fields in turn.
type turns[T any] struct {
	*testing.T
	repo *tsdb.Repository[T]
	conn *tsdbtest.Conn
	all  []Message
}

func turnsOf[T any](t *testing.T, all []Message, c codec.Codec[T], opts tsdb.SchemaOptions, of func(map[string]any) T) {
	schema := tsdb.MustDefine("turns", tsdb.Key("entity"), c, opts)
	end := TurnStart.Add(time.Hour)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return end }}}, schema)
	turns := turns[T]{t, schema.For(store, tenant.MustParse("acme")), conn, all}
	turns.put(of)
	middle := TurnStart.Add(TurnMessages / 2 * 10 * time.Second)
	list, under := 0, 0 // most reads, from heads
	if opts.Head.Fields {
		list, under = 1+*turnEntities/1000, *turnEntities
	}
	turns.check("each", 0, time.Time{}, turns.each)
	turns.check("a list", list, time.Time{}, turns.list)
	turns.check("a list as of the middle", 0, middle, turns.list)
	turns.check("below a prefix", under, time.Time{}, turns.under)
	turns.check("below a prefix as of the middle", 0, middle, turns.under)
}

func (t *turns[T]) put(of func(map[string]any) T) {
	for part := range slices.Chunk(t.all, 5000) {
		var points []tsdb.Point[T]
		for _, m := range part {
			points = append(points, tsdb.Point[T]{Entity: turnEntity(m.Entity), Time: m.Time, Value: of(m.Values)})
		}
		if _, err := t.repo.PutMany(t.Context(), points); err != nil {
			t.Fatal(err)
		}
	}
}

func turnEntity(i int) tsdb.Entity { return tsdb.NewEntity(strconv.Itoa(i)) }

// check compares what a read finds with what was sent. The read may send a number of requests at most; 0 is for no
// limit.
func (t *turns[T]) check(what string, most int, asOf time.Time, read func(tsdb.FieldOptions) []tsdb.Fields[T]) {
	t.Helper()
	t.conn.Reset()
	began := time.Now()
	found := read(tsdb.FieldOptions{AsOf: asOf})
	took, requests := time.Since(began).Round(time.Millisecond), t.conn.Counts().Calls[tsdbtest.ReadRows]
	if asOf.IsZero() {
		asOf = TurnStart.Add(time.Hour)
	}
	want, tally := NewestOf(t.all, asOf), Tally{}
	for _, f := range found {
		i, err := strconv.Atoi(f.Entity.Parts()[0])
		if err != nil || f.Err != nil || want[i] == nil {
			t.Fatalf("%s: %v, %v", what, f.Entity, f.Err)
		}
		if wrong := tally.Compare(fieldsFound(t.T, f), want[i]); wrong != "" && tally.Wrong < 10 {
			t.Errorf("%s: %v: %s", what, f.Entity, wrong)
		}
		delete(want, i)
	}
	t.Logf("%s: %d entities in %v with %d reads: of %d fields %d are wrong, %d not found", what, len(found), took, requests, tally.Compared, tally.Wrong, tally.Lacking)
	if len(want) > 0 || tally.Wrong+tally.Lacking > 0 {
		t.Errorf("%s: %d entities are not found, %d fields are wrong, %d not found", what, len(want), tally.Wrong, tally.Lacking)
	}
	if most > 0 && requests > most {
		t.Errorf("%s: %d reads, want at most %d, from heads", what, requests, most)
	}
}

// fieldsFound returns the values of fields with their times.
func fieldsFound[T any](t *testing.T, f tsdb.Fields[T]) map[string]Newest {
	t.Helper()
	values := map[string]float64{}
	if r, is := any(f.Value).(codec.Record); is {
		for name, v := range r.All() {
			values[name], _ = v.Number()
		}
	} else if text, err := json.Marshal(f.Value); err != nil || json.Unmarshal(text, &values) != nil {
		t.Fatalf("%v: %s, %v", f.Entity, text, err)
	}
	out := map[string]Newest{}
	for name, v := range values {
		at, ok := f.Times.Of(name)
		if !ok {
			t.Fatalf("%v: %s has no time", f.Entity, name)
		}
		out[name] = Newest{at, v}
	}
	if len(out) != f.Times.Len() {
		t.Fatalf("%v: %d values with %d times", f.Entity, len(out), f.Times.Len())
	}
	return out
}

func (t *turns[T]) each(o tsdb.FieldOptions) (found []tsdb.Fields[T]) {
	for i := range *turnEntities {
		f, err := t.repo.LatestFields(t.Context(), turnEntity(i), o)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, f)
	}
	return found
}

func (t *turns[T]) list(o tsdb.FieldOptions) (found []tsdb.Fields[T]) {
	var entities []tsdb.Entity
	for i := range *turnEntities {
		entities = append(entities, turnEntity(i))
	}
	for part := range slices.Chunk(entities, 1000) {
		some, err := t.repo.LatestFieldsMany(t.Context(), part, o)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, some...)
	}
	return found
}

func (t *turns[T]) under(o tsdb.FieldOptions) (found []tsdb.Fields[T]) {
	for f, err := range t.repo.Under(tsdb.AllEntities()).LatestFields(t.Context(), o) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, f)
	}
	return found
}
