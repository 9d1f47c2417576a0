package adopt_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/adopt"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

const devices, perDevice = 5, 60

// versionOf says which version of a point was written last.
type versionOf func(device, i int) int

// compare checks that the dataset has exactly the points of a layout, byte for byte.
func (w *world) compare(l layout, devices, count int, v versionOf) {
	w.t.Helper()
	m := must(adopt.Parse([]byte(l.mapping)))
	views := map[tenant.ID]*dynamic.View{}
	for d := range devices {
		id, e, _, _, _ := l.stored(d, 0, 0)
		if views[id] == nil {
			var err error
			views[id], err = dynamic.Open(context.Background(), w.store, id, m.Dataset())
			w.ok(err)
		}
		i := count
		for p, err := range views[id].Points(context.Background(), e, tsdb.AllTime()) {
			w.ok(err)
			i--
			if i < 0 {
				w.t.Fatalf("%s: entity %s has more than %d points", l.name, e, count)
			}
			_, _, t, tag, payload := l.stored(d, i, v(d, i))
			if !p.Time.Equal(t) || p.Tag != tag || !bytes.Equal(p.Payload, payload) {
				w.t.Fatalf("%s: point %d of %s is %s %s %q, want %s %s %q", l.name, i, e, p.Time, p.Tag, p.Payload, t, tag, payload)
			}
		}
		if i != 0 {
			w.t.Fatalf("%s: entity %s lacks its first %d points", l.name, e, i)
		}
	}
}

func (w *world) verify(s *adopt.Source, want int) *adopt.Verified {
	w.t.Helper()
	v, err := s.Verify(context.Background(), w.store, adopt.VerifyOptions{RangePoints: 50})
	w.ok(err)
	if want >= 0 && (!v.Same() || v.Source != int64(want) || v.Stored != int64(want)) {
		w.t.Fatalf("Verify = %+v, want %d equal points", v, want)
	}
	return v
}

// TestLayouts copies a table of each layout, and what is written during and after the copy.
func TestLayouts(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			ctx := t.Context()
			w := newWorld(t)
			table := w.create(l.name)
			l.put(t, table, devices, 0, perDevice, 0)
			s := l.source(t, table)

			report, err := s.Check(ctx, w.store, adopt.CheckOptions{})
			w.ok(err)
			if report.Refused() || len(report.Unfit) > 0 || report.Points != devices*perDevice || report.Entities != devices || !report.Whole {
				t.Errorf("Check = %+v, want %d points of %d entities, and nothing unfit", report, devices*perDevice, devices)
			}
			if !report.Oldest.Equal(at(0)) || !report.Newest.Equal(at(perDevice-1)) {
				t.Errorf("Check: points from %s to %s, want %s to %s", report.Oldest, report.Newest, at(0), at(perDevice-1))
			}

			state, err := s.Copy(ctx, w.store, adopt.CopyOptions{Rate: 10_000_000})
			w.ok(err)
			if !state.Complete() || state.Points != devices*perDevice {
				t.Errorf("Copy wrote %d points, complete %v; want %d, true", state.Points, state.Complete(), devices*perDevice)
			}
			w.compare(l, devices, perDevice, func(int, int) int { return 0 })
			w.verify(s, devices*perDevice)

			// Written after the copy began: new points, and the last ones again.
			w.clock = w.clock.Add(time.Minute)
			began := written
			written = micros(w.clock)
			defer func() { written = began }()
			l.put(t, table, devices, perDevice-3, perDevice+5, 1)
			state, err = s.Copy(ctx, w.store, adopt.CopyOptions{State: state, Rate: 10_000_000, Overlap: 40 * 24 * time.Hour})
			w.ok(err)
			if state.Pass != 2 {
				t.Errorf("the second Copy made pass %d, want 2", state.Pass)
			}
			w.compare(l, devices, perDevice+5, func(_, i int) int { return min(max(i-perDevice+4, 0), 1) })
			w.verify(s, devices*(perDevice+5))
		})
	}
}

// TestSchemaOfACopy: a program's own schema fits the dataset that a copy creates, and reads all points.
func TestSchemaOfACopy(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			w := newWorld(t)
			table := w.create(l.name)
			l.put(t, table, devices, 0, perDevice, 0)
			s := l.source(t, table)
			_, err := s.Copy(t.Context(), w.store, adopt.CopyOptions{Rate: 10_000_000})
			w.ok(err)
			_, _, _, tag, _ := l.stored(0, 0, 0)
			switch tag {
			case "rec":
				readCopy(w, l, codec.Records())
			case "json":
				readCopy(w, l, codec.JSON[map[string]any]())
			case "f64":
				readCopy(w, l, codec.Float64())
			}
		})
	}
}

func readCopy[T any](w *world, l layout, c codec.Codec[T]) {
	t, ctx := w.t, context.Background()
	id, e, _, _, _ := l.stored(2, 0, 0)
	m := must(adopt.Parse([]byte(l.mapping)))
	key := tsdb.Key("device")
	opts := tsdb.SchemaOptions{}
	switch l.name {
	case "ascending":
		key, opts.Precision = tsdb.Key("site", "device"), tsdb.Milliseconds
	case "reversed":
		key, opts.Precision = tsdb.Key().Uint("device", 5), tsdb.Microseconds
	case "binary":
		opts.Precision, opts.Identity, opts.Retention = tsdb.Microseconds, true, d90
	case "versions":
		key, opts.Precision = tsdb.Key("site", "device"), tsdb.Milliseconds
	}
	schema, err := tsdb.Define(m.Dataset(), key, c, opts)
	w.ok(err)
	if err := w.store.Verify(ctx, schema); err != nil {
		t.Fatalf("a program's schema does not fit the created dataset: %v", err)
	}
	n := 0
	for _, err := range schema.For(w.store, id).Range(ctx, e, tsdb.AllTime()) {
		w.ok(err)
		n++
	}
	if n != perDevice {
		t.Errorf("the repository has %d points of %s, want %d", n, e, perDevice)
	}
}

// TestCopyContinues ends a copy after each saved state, and continues it from JSON. No point may be missing.
func TestCopyContinues(t *testing.T) {
	l := layouts[0]
	w := newWorld(t)
	table := w.create(l.name)
	l.put(t, table, devices, 0, perDevice, 0)
	s := l.source(t, table)
	state, err := s.Copy(t.Context(), w.store, adopt.CopyOptions{Rate: 10_000_000})
	w.ok(err)
	state = adopt.State{Mapping: state.Mapping, Dataset: state.Dataset, Pass: 1, Started: state.Started}
	var last []byte
	for _, end := range []string{"site-0#dev 003#", "site-1#dev 001#1780272", "site-2", ""} {
		r := adopt.Range{Start: last}
		if end != "" {
			r.End = []byte(end)
		}
		state.Ranges, last = append(state.Ranges, r), r.End
	}
	w.remove("weather")
	broken := errors.New("killed")
	for round := 0; !state.Complete(); round++ {
		if round > 10 {
			t.Fatal("the copy does not get on")
		}
		saved := state
		got, err := s.Copy(t.Context(), w.store, adopt.CopyOptions{State: state, Rate: 10_000_000, Concurrency: 1, Save: func(st adopt.State) error {
			saved = st
			return broken
		}})
		if !errors.Is(err, broken) || got.Done() != saved.Done() {
			t.Fatalf("Copy = %v, want the error of Save", err)
		}
		w.ok(json.Unmarshal(must(json.Marshal(saved)), &state))
	}
	if state.Points != devices*perDevice {
		t.Errorf("the state counts %d points, want %d", state.Points, devices*perDevice)
	}
	w.compare(l, devices, perDevice, func(int, int) int { return 0 })
	w.verify(s, devices*perDevice)

	for what, bad := range map[string]func(*adopt.State){
		"another mapping": func(s *adopt.State) { s.Mapping = "x" },
		"a gap":           func(s *adopt.State) { s.Ranges[1].Start = []byte("site-1") },
		"no end":          func(s *adopt.State) { s.Ranges = s.Ranges[:2] },
	} {
		st := state
		st.Ranges = slices.Clone(state.Ranges)
		bad(&st)
		if _, err := s.Copy(t.Context(), w.store, adopt.CopyOptions{State: st}); !errors.Is(err, adopt.ErrState) {
			t.Errorf("Copy with a state with %s = %v, want ErrState", what, err)
		}
	}
}

// TestCatchUpReadsWholeRows writes one column of a point after the copy. The other fields must stay.
func TestCatchUpReadsWholeRows(t *testing.T) {
	l := layouts[0]
	w := newWorld(t)
	table := w.create(l.name)
	l.put(t, table, devices, 0, perDevice, 0)
	s := l.source(t, table)
	state, err := s.Copy(t.Context(), w.store, adopt.CopyOptions{Rate: 10_000_000})
	w.ok(err)
	w.clock = w.clock.Add(time.Hour)
	key, _, _ := l.row(1, 2, 0)
	m := bigtable.NewMutation()
	m.Set("s", "door", micros(w.clock), []byte("shut"))
	w.ok(table.Apply(t.Context(), key, m))
	state, err = s.Copy(t.Context(), w.store, adopt.CopyOptions{State: state, Overlap: time.Minute})
	w.ok(err)
	if state.Points != 1 {
		t.Errorf("the pass that catches up wrote %d points, want 1", state.Points)
	}
	w.verify(s, devices*perDevice)
}

// remove deletes a dataset, which undoes a copy.
func (w *world) remove(dataset string) {
	w.t.Helper()
	part := tenants.Part{Dataset: dataset}
	_, err := tenants.Remove(context.Background(), w.store, part, tenants.RemoveOptions{Settle: time.Millisecond, RowsPerSecond: -1})
	w.ok(err)
	w.ok(tenants.Release(context.Background(), w.store, part))
}

// TestCopyContinuesInARange ends a copy after the first chunk of a range. The rest of the range must follow, and only
// the rest.
func TestCopyContinuesInARange(t *testing.T) {
	l := layouts[0]
	w := newWorld(t)
	table := w.create(l.name)
	l.put(t, table, devices, 0, 220, 0)
	s := l.source(t, table)
	state, err := s.Copy(t.Context(), w.store, adopt.CopyOptions{Rate: 10_000_000})
	w.ok(err)
	w.remove("weather")
	state = adopt.State{Mapping: state.Mapping, Dataset: state.Dataset, Pass: 1, Started: state.Started, Ranges: []adopt.Range{{}}} // one range
	broken := errors.New("killed")
	state, err = s.Copy(t.Context(), w.store, adopt.CopyOptions{State: state, Rate: 10_000_000, Save: func(adopt.State) error { return broken }})
	if !errors.Is(err, broken) || state.Complete() || state.Ranges[0].After == nil {
		t.Fatalf("Copy = %+v, %v; want it to end in its only range", state, err)
	}
	first := state.Points
	state, err = s.Copy(t.Context(), w.store, adopt.CopyOptions{State: state, Rate: 10_000_000})
	w.ok(err)
	if state.Points != devices*220 || first == 0 || state.Pass != 1 {
		t.Errorf("the copy wrote %d points, %d of them at first; want %d, and no point twice", state.Points, first, devices*220)
	}
	w.compare(l, devices, 220, func(int, int) int { return 0 })
	w.verify(s, devices*220)
}

// TestUndo deletes the new dataset, which leaves the foreign table as it is, and copies again.
func TestUndo(t *testing.T) {
	l := layouts[3]
	w := newWorld(t)
	table := w.create(l.name)
	l.put(t, table, devices, 0, perDevice, 0)
	s := l.source(t, table)
	for range 2 {
		_, err := s.Copy(t.Context(), w.store, adopt.CopyOptions{Rate: 10_000_000})
		w.ok(err)
		w.verify(s, devices*perDevice)
		w.remove("flow")
		if v := w.verify(s, -1); v.Same() || v.Stored != 0 || v.Source != devices*perDevice {
			t.Fatalf("Verify after the removal = %+v, want no stored point", v)
		}
	}
}

// TestVerifyFindsDifferences changes, removes and adds one stored point, and one byte of a payload.
func TestVerifyFindsDifferences(t *testing.T) {
	l := layouts[0]
	w := newWorld(t)
	table := w.create(l.name)
	l.put(t, table, devices, 0, perDevice, 0)
	s := l.source(t, table)
	_, err := s.Copy(t.Context(), w.store, adopt.CopyOptions{Rate: 10_000_000})
	w.ok(err)
	v, err := dynamic.Open(t.Context(), w.store, acme, "weather")
	w.ok(err)
	_, e, when, tag, payload := l.stored(1, 10, 0)
	changed := bytes.Clone(payload)
	changed[len(changed)-1] ^= 1
	w.ok(v.Put(t.Context(), dynamic.Point{Entity: e, Time: when, Class: "keep", Tag: tag, Payload: changed}))
	w.ok(v.Put(t.Context(), dynamic.Point{Entity: e, Time: when.Add(time.Second), Class: "keep", Tag: tag, Payload: payload}))
	missing, _, _ := l.row(4, 11, 0)
	rows, err := storedRows(w, "acme#weather#site-1#dev%20004#")
	w.ok(err)
	m := bigtable.NewMutation()
	m.DeleteRow()
	w.ok(w.client.OpenTable("tidemark").Apply(t.Context(), rows[5], m))
	got := w.verify(s, -1)
	if got.Same() || got.Source != got.Stored || len(got.Different) == got.Ranges {
		t.Fatalf("Verify = %+v, want some ranges that differ", got)
	}
	var examples []string
	for _, d := range got.Different {
		for _, text := range d.Examples {
			examples = append(examples, strings.Fields(text)[0])
		}
	}
	slices.Sort(examples)
	if fmt.Sprint(examples) != "[different extra missing]" {
		t.Errorf("Verify names %v of %s, want one point that is different, one extra and one missing", examples, missing)
	}
	// What is being written does not count.
	later, err := s.Verify(t.Context(), w.store, adopt.VerifyOptions{Before: at(9)})
	w.ok(err)
	if !later.Same() || later.Source != 9*devices {
		t.Errorf("Verify of points before the changes = %+v, want %d equal points", later, 9*devices)
	}
}

// TestVerifyReadsNoLaggingCluster: Verify reads the dataset with the client of ordinary reads. That of bulk reads,
// which may lag behind, has no table at all here.
func TestVerifyReadsNoLaggingCluster(t *testing.T) {
	l := layouts[0]
	w, lags := newWorld(t), newWorld(t)
	table := w.create(l.name)
	l.put(t, table, devices, 0, perDevice, 0)
	store, err := tsdb.New(w.client, "tidemark", tsdb.Options{Bulk: lags.client, Admin: w.admin})
	w.ok(err)
	defer store.Close()
	w.store = store
	s := l.source(t, table)
	_, err = s.Copy(t.Context(), w.store, adopt.CopyOptions{Rate: 10_000_000})
	w.ok(err)
	w.verify(s, devices*perDevice)
}

func storedRows(w *world, prefix string) (keys []string, err error) {
	err = w.client.OpenTable("tidemark").ReadRows(context.Background(), bigtable.PrefixRange(prefix), func(r bigtable.Row) bool {
		keys = append(keys, r.Key())
		return true
	})
	return keys, err
}
