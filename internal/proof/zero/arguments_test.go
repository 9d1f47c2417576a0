package zero

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"reflect"
	"runtime/debug"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/calls"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestNilContextIsNamed makes each call of the list with a nil context and otherwise valid arguments; slices have
// an element. None may panic or succeed, and each error names the context.
func TestNilContextIsNamed(t *testing.T) {
	for _, c := range calls.List {
		f := reflect.ValueOf(c.Func)
		if !takesContext(f.Type()) {
			continue
		}
		t.Run(c.Name(), func(t *testing.T) {
			valid := validArguments(t)
			for _, v := range only[c.Name()] {
				valid.add(v)
			}
			var in []reflect.Value
			for i := range f.Type().NumIn() {
				of := f.Type().In(i)
				if f.Type().IsVariadic() && i == f.Type().NumIn()-1 {
					if of = of.Elem(); of == reflect.TypeFor[tsdb.ReadOption]() {
						break
					}
				}
				v, ok := valid.of(of)
				if !ok {
					t.Fatalf("validArguments has no %v", of)
				}
				in = append(in, v)
			}
			panicked, err := firstError(f, in)
			if panicked != "" {
				t.Fatalf("panics: %s", panicked)
			}
			if _, other := withoutContext[c.Name()]; !namesContext(err) && !other {
				t.Errorf("got %v, want an error that names ctx", err)
			}
		})
	}
}

// withoutContext are the calls that succeed without a context or return another error, with the reason.
var withoutContext = map[string]string{
	"Schema.FromContext": "the context carries no tenant",
	"Writer.Close":       "nothing is buffered",
	"Writer.DeadLetters": "there are none",
}

// only holds arguments of single calls, which replace those of the same types.
var only = map[string][]any{
	"Repository.Page":              {""}, // the first page
	"PrefixReader.PageLatest":      {""},
	"PrefixReader.PageEntities":    {""},
	"PrefixReader.Page":            {""},
	"window.Aggregator.ReadGroups": {0}, // key fields that entities of a group share: the key has only one
}

func takesContext(f reflect.Type) bool {
	for i := range f.NumIn() {
		if f.In(i) == contextType {
			return true
		}
	}
	return false
}

// firstError calls a function and returns the first error of its results, and how it panicked.
func firstError(f reflect.Value, in []reflect.Value) (panicked string, err error) {
	defer func() {
		if r := recover(); r != nil {
			panicked = fmt.Sprintf("%v\n%s", r, debug.Stack())
		}
	}()
	for _, v := range f.Call(in) {
		if err = errorIn(v); err != nil {
			return "", err
		}
	}
	return "", nil
}

// errorIn returns the error that a result is, or the first one of a sequence or of a field.
func errorIn(v reflect.Value) error {
	switch {
	case v.Type() == errorType && !v.IsNil():
		return v.Interface().(error)
	case v.Kind() == reflect.Func && v.Type().CanSeq2() && !v.IsNil():
		for _, second := range v.Seq2() {
			if err := errorIn(second); err != nil {
				return err
			}
		}
	case v.Kind() == reflect.Struct:
		for f, field := range v.Fields() {
			if !f.IsExported() {
				continue
			}
			if err := errorIn(field); err != nil {
				return err
			}
		}
	}
	return nil
}

// argumentsByType holds a valid argument of each type.
type argumentsByType map[reflect.Type]reflect.Value

// add adds an argument.
func (a argumentsByType) add(v any) {
	a[reflect.TypeOf(v)] = reflect.ValueOf(v)
	if d, ok := v.(tsdb.Dataset); ok {
		addAs(a, d)
	}
}

// of returns a valid argument of a type; of contexts, nil. Options are zero. A slice has one element.
func (a argumentsByType) of(t reflect.Type) (reflect.Value, bool) {
	if v, ok := a[t]; ok {
		return v, true
	}
	switch {
	case t == contextType:
		return reflect.Zero(t), true
	case t.Kind() == reflect.Slice:
		v, ok := a.of(t.Elem())
		if !ok {
			return v, false
		}
		return reflect.Append(reflect.MakeSlice(t, 0, 1), v), true
	case t.Kind() == reflect.Struct: // options, for which zero is valid
		return reflect.Zero(t), true
	}
	return reflect.Value{}, false
}

// validArguments returns an argument of each type that the calls of the list have, of a new store.
func validArguments(t *testing.T) argumentsByType {
	t.Helper()
	l := newLive(t)
	valid := argumentsByType{}
	add := func(values ...any) {
		for _, v := range values {
			valid.add(v)
		}
	}
	check := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	add(l.store, l.schema, l.repo, l.repo.Under(tsdb.AllEntities()), l.writer, l.sink, l.worker, acme, roof, noon)
	add("d", 1, uint64(1), time.Hour, tsdb.AllEntities(), tsdb.Between(noon, noon.Add(time.Hour)), window.Every(time.Hour))
	add(tsdb.Point[int]{Entity: roof, Time: noon, Value: 1}, func(tsdb.Outcome) {}, tenants.Part{Dataset: "d", Class: "c"}, tsdb.Config{Project: "p", Instance: "i", Table: "t"}, []byte(nil))
	add(map[string]string{"pool": "a"}, map[string]gc.Policy{"d": gc.MaxAge(time.Hour)})
	add(rollup.For(l.hours, l.repo), rollup.NewAdder(l.counts[rollup.ByStream], l.repo, l.writer),
		rollup.NewAdder(l.counts[rollup.ByMessage], l.repo, nil), rollup.NewAdder(l.counts[rollup.Once], l.repo, nil))

	measure := window.Measure[int]{Name: "n", Int: func(v int) (int64, bool) { return int64(v), true }}
	aggregator, err := window.New(window.Every(time.Hour), []window.Measure[int]{measure}, window.Options{})
	check(err)
	add(measure, aggregator, window.LineOptions{Columns: 10},
		window.NewSeries(l.repo, roof, func(v int) (int, bool) { return v, true }))
	follower, err := l.repo.Follow(t.Context(), roof, tsdb.FollowOptions{})
	check(err)
	t.Cleanup(func() { _ = follower.Close() })
	view, err := dynamic.Open(t.Context(), l.store, acme, "d")
	check(err)
	plan, err := retention.NewPlan(t.Context(), l.store, l.schema)
	check(err)
	server, err := embedded.NewServer(embedded.Options{})
	check(err)
	t.Cleanup(func() { _ = server.Close() })
	add(follower, view, plan, server, dynamic.Point{Entity: roof, Time: noon, Tag: "json", Class: dynamic.Describe(view.Repository().Schema()).Classes[0].Name, Payload: []byte("1")})

	lis, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	t.Cleanup(func() { _ = lis.Close() })
	addAs[window.Ranger[int]](valid, l.repo)
	addAs[io.Reader](valid, bytes.NewReader(export(t, l)))
	addAs[io.Writer](valid, new(bytes.Buffer))
	addAs[net.Listener](valid, lis)
	addAs[bigtable.TableAPI](valid, l.table)
	return valid
}

// addAs adds an argument for parameters of the interface I.
func addAs[I any](valid argumentsByType, v I) { valid[reflect.TypeFor[I]()] = reflect.ValueOf(v) }
