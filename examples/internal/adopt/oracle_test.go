package adopt_test

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/adopt"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

var tablesFlag = flag.Int("adopt.tables", 40, "random tables of TestCopyOracle")

// fact is a point that a random table holds.
type fact struct {
	tenant, entity, id string // the entity is its parts, joined by line feeds
	time               time.Time
	value              string
}

// random is a random table: how its keys are built, and which points it holds.
type random struct {
	*rand.Rand
	mapping string
	sep     string
	prefix  string // a constant
	inKey   bool   // the key has the tenant
	widths  []int  // of the key fields; 0 for any
	spell   func(time.Time) string
	suffix  string // a constant after the time
	ids     bool
	unit    time.Duration
	facts   map[[4]string]fact
	rows    map[string][]sample
	tenants []string
}

// sample is a cell of a random table.
type sample struct {
	column, value string
	at            bigtable.Timestamp
}

func (r *random) pick(of ...string) string { return of[r.IntN(len(of))] }

// newRandom returns a table of a random layout. With unfit, some of its rows and cells are no points.
func newRandom(seed uint64, unfit bool) *random {
	r := &random{Rand: rand.New(rand.NewPCG(seed, 1)), facts: map[[4]string]fact{}, rows: map[string][]sample{}}
	r.sep = r.pick("#", "|", "/", "\x00", "::", "")
	var parts []string
	if r.IntN(3) == 0 {
		r.prefix = "v1" + r.sep
		parts = append(parts, "=v1")
	}
	tenantLine := "tenant: acme\n"
	r.tenants = []string{"acme"}
	if r.inKey = r.sep != "" && r.IntN(2) == 0; r.inKey {
		parts, tenantLine, r.tenants = append(parts, "tenant"), "", []string{"acme", "acme-x", "acme.b", "b"}
	}
	for i := range 1 + r.IntN(3) {
		r.widths = append(r.widths, 0)
		part := fmt.Sprintf("f%d", i)
		if r.sep == "" || r.IntN(4) == 0 {
			r.widths[i] = 1 + r.IntN(3)
			part += fmt.Sprintf("(%d)", r.widths[i])
		}
		parts = append(parts, part)
	}
	timeLine := ""
	if r.IntN(4) > 0 {
		timeLine = r.times()
		parts = append(parts, "time")
		if r.IntN(4) == 0 {
			r.suffix = r.sep + "end"
			parts = append(parts, "=end")
		} else if r.ids = r.IntN(3) == 0; r.ids {
			parts = append(parts, "id")
		}
	} else {
		r.unit = time.Millisecond
	}
	r.mapping = "table: t\n" + tenantLine + "dataset: {name: d}\nkey:\n  separator: " + strconv.QuoteToASCII(r.sep) + "\n  parts: [" + strings.Join(parts, ", ") + "]\n" +
		timeLine + "fields: [{name: a, column: 'm:a', as: number}, {name: b, column: 'm:b', as: number}]\n"
	r.fill(unfit)
	return r
}

// times chooses how times are spelled, and returns the line of the mapping.
func (r *random) times() string {
	name := r.pick("s", "ms", "us", "ns")
	r.unit = map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": 1}[name]
	number := func(t time.Time) uint64 { return uint64(t.UnixNano() / int64(r.unit)) }
	width := len(fmt.Sprint(number(at(0))))
	switch r.IntN(4) {
	case 0:
		width += r.IntN(20 - width + 1)
		r.spell = func(t time.Time) string { return fmt.Sprintf("%0*d", width, number(t)) }
		return fmt.Sprintf("time: {unit: %s, width: %d}\n", name, width)
	case 1:
		r.spell = func(t time.Time) string { return fmt.Sprintf("%019d", math.MaxInt64-number(t)) }
		return fmt.Sprintf("time: {unit: %s, width: 19, reversed: 9223372036854775807}\n", name)
	case 2:
		r.spell = func(t time.Time) string { return string(binary.BigEndian.AppendUint64(nil, number(t))) }
		return fmt.Sprintf("time: {unit: %s, encoding: big_endian}\n", name)
	}
	r.unit = time.Millisecond
	r.spell = func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
	return "time: {encoding: rfc3339, width: 24}\n"
}

func (r *random) field(i int) string {
	if w := r.widths[i]; w > 0 {
		return strings.Repeat(r.pick("a", "b", "#", "/", "0"), w-1) + r.pick("a", "b", "%", "|", " ")
	}
	return r.pick("a", "b", "ab", "a.b", "a-", "ä", "x y", "%23", "0", "00", "\x01", "\U0010ffff")
}

func (r *random) fields() []string {
	var all []string
	for i := range r.widths {
		all = append(all, r.field(i))
	}
	return all
}

// moment returns one of few times, so that several points have the same.
func (r *random) moment() time.Time { return at(0).Add(time.Duration(r.IntN(12)) * r.unit) }

// key returns the row key of an entity, up to its time.
func (r *random) key(id string, fields []string) string {
	all := fields
	if r.inKey {
		all = slices.Concat([]string{id}, fields)
	}
	return r.prefix + strings.Join(all, r.sep)
}

func (r *random) fill(unfit bool) {
	bad := func(n int) bool { return unfit && r.IntN(n) == 0 }
	for range 80 {
		id, fields, t := r.pick(r.tenants...), r.fields(), r.moment()
		key := r.key(id, fields)
		f := fact{tenant: id, entity: strings.Join(fields, "\n"), time: t}
		cellAt := bigtable.Timestamp(1_000_000)
		if r.spell != nil {
			key += r.sep + r.spell(t) + r.suffix
			if r.ids {
				f.id = r.pick("1", "x.y", "z")
				key += r.sep + f.id
			}
		} else {
			cellAt = micros(t)
		}
		at := [4]string{f.tenant, f.entity, f.time.String(), f.id}
		if _, ok := r.facts[at]; ok {
			continue
		}
		values := map[string]string{"a": fmt.Sprint(r.IntN(100)), "b": fmt.Sprint(r.IntN(100))}
		delete(values, r.pick("a", "b", "c"))
		var cells []sample
		var value []string
		for _, c := range []string{"a", "b"} {
			if v, ok := values[c]; ok {
				cells, value = append(cells, sample{"m:" + c, v, cellAt}), append(value, c+"="+v)
			}
		}
		f.value = strings.Join(value, " ")
		switch {
		case bad(5):
			cells[r.IntN(len(cells))].value = "bad"
			f.value = ""
		case bad(8):
			cells = append(cells, sample{"m:unknown", "x", cellAt})
		case bad(8) && r.spell != nil:
			cells = append(cells, sample{cells[0].column, "older", cellAt - 1000})
		}
		r.rows[key] = append(r.rows[key], cells...)
		r.facts[at] = f // also if it is unfit, so that none follows at its place
		if bad(10) && r.sep != "" {
			junk := key + r.sep + "more"
			if r.spell != nil {
				junk = r.pick("junk", r.key(id, fields)+r.sep+"1780272x00000")
			}
			r.rows[junk] = []sample{{"m:a", "1", cellAt}}
		}
	}
	for at, f := range r.facts {
		if f.value == "" {
			delete(r.facts, at)
		}
	}
}

// put writes the table.
func (r *random) put(w *world) bigtable.TableAPI {
	table := w.create("t")
	for key, cells := range r.rows {
		m := bigtable.NewMutation()
		for _, c := range cells {
			m.Set("m", c.column[2:], c.at, []byte(c.value))
		}
		w.ok(table.Apply(context.Background(), key, m))
	}
	return table
}

// want returns the points of a tenant, sorted.
func (r *random) want(id string) []string {
	out := []string{}
	for _, f := range r.facts {
		if f.tenant == id {
			out = append(out, f.String())
		}
	}
	slices.Sort(out)
	return out
}

func (f fact) String() string {
	return fmt.Sprintf("%q %s %s %s", f.entity, f.time, f.id, f.value)
}

// got returns the points that a store has of a tenant, sorted.
func (r *random) got(t *testing.T, store *tsdb.Store, id string) []string {
	t.Helper()
	view, err := dynamic.Open(t.Context(), store, tenant.MustParse(id), "d")
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for p, err := range view.Repository().Under(tsdb.AllEntities()).Range(t.Context(), tsdb.AllTime()) {
		if err != nil {
			t.Fatal(err)
		}
		record, err := codec.Records().Decode(p.Value.Data)
		if err != nil {
			t.Fatal(err)
		}
		var value []string
		for name, v := range record.All() {
			value = append(value, fmt.Sprintf("%s=%v", name, v))
		}
		out = append(out, fact{entity: strings.Join(p.Entity.Parts(), "\n"), time: p.Time, id: p.ID, value: strings.Join(value, " ")}.String())
	}
	slices.Sort(out)
	return out
}

const skipAll = "skip: [keys, tenants, entities, times, values, columns, versions]\n"

// TestCopyOracle copies random tables, and compares what the store then has with an oracle that knows which points were
// put into them.
func TestCopyOracle(t *testing.T) {
	for seed := range uint64(*tablesFlag) {
		r := newRandom(seed, seed%2 == 1)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { r.check(t) })
	}
}

func (r *random) check(t *testing.T) {
	ctx, w := t.Context(), newWorld(t)
	m, err := adopt.Parse([]byte(r.mapping + skipAll))
	if err != nil {
		t.Fatalf("%v\n%s", err, r.mapping)
	}
	s, err := adopt.Open(r.put(w), m)
	w.ok(err)
	state, err := s.Copy(ctx, w.store, adopt.CopyOptions{Rate: 10_000_000})
	w.ok(err)
	v, err := s.Verify(ctx, w.store, adopt.VerifyOptions{RangePoints: 3})
	w.ok(err)
	if !v.Same() || v.Stored != int64(len(r.facts)) || state.Points != v.Stored {
		t.Fatalf("Copy wrote %d points, Verify = %+v, want %d equal points\n%s", state.Points, v, len(r.facts), r.mapping)
	}
	for _, id := range r.tenants {
		if got, want := r.got(t, w.store, id), r.want(id); !slices.Equal(got, want) {
			t.Fatalf("tenant %s has\n%s\nwant\n%s\n%s", id, strings.Join(got, "\n"), strings.Join(want, "\n"), r.mapping)
		}
	}
}
