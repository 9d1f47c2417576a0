package adopt_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/adopt"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// epoch is the time of the first points. Tests use a clock that is some days later.
var (
	epoch = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	now   = epoch.Add(30 * 24 * time.Hour)
)

// layout is a way in which programs store time series without this module.
type layout struct {
	name, mapping string
	// row returns the row key and the columns of point i of a device; version v of its value. Columns are
	// family:qualifier.
	row func(device, i, v int) (key string, at bigtable.Timestamp, cells map[string][]byte)
	// stored returns the tenant, the entity, the time, and the payload with its tag, as the dataset stores them.
	stored func(device, i, v int) (tenant.ID, tsdb.Entity, time.Time, string, []byte)
}

var acme, globex = tenant.MustParse("acme"), tenant.MustParse("globex")

func at(i int) time.Time { return epoch.Add(time.Duration(i) * time.Minute) }

func micros(t time.Time) bigtable.Timestamp { return bigtable.Time(t).TruncateToMilliseconds() }

func value(device, i, v int) float64 { return float64(device)*1000 + float64(i)/4 + float64(v)*0.5 }

func bigEndian(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// written is when the cells of tables with server timestamps were written.
var written = micros(now.Add(-time.Hour))

var layouts = []layout{
	{
		name: "ascending", mapping: `
table: ascending
tenant: acme
dataset: {name: weather}
key: {separator: "#", parts: [site, device, time]}
time: {unit: ms, width: 13}
cells: written
fields:
  - {name: temp, column: "m:t", as: number}
  - {name: count, column: "m:n", as: int64}
  - {name: load, column: "m:l", as: float64}
  - {name: door, column: "s:door", as: text}
  - {name: on, column: "s:on", as: bool}
skip: [versions]
`,
		row: func(device, i, v int) (string, bigtable.Timestamp, map[string][]byte) {
			return fmt.Sprintf("site-%d#dev %03d#%013d", device%3, device, at(i).UnixMilli()), written, map[string][]byte{
				"m:t": fmt.Append(nil, value(device, i, v)), "m:n": bigEndian(uint64(i)), "m:l": bigEndian(math.Float64bits(value(i, device, v))),
				"s:door": []byte("open"), "s:on": []byte("true"),
			}
		},
		stored: func(device, i, v int) (tenant.ID, tsdb.Entity, time.Time, string, []byte) {
			return acme, tsdb.NewEntity(fmt.Sprintf("site-%d", device%3), fmt.Sprintf("dev %03d", device)), at(i), "rec", must(codec.Records().Append(nil, codec.NewRecord(
				codec.Field{Name: "count", Value: codec.Int(int64(i))}, codec.Field{Name: "door", Value: codec.Str("open")},
				codec.Field{Name: "load", Value: codec.Float(value(i, device, v))}, codec.Field{Name: "on", Value: codec.Bool(true)},
				codec.Field{Name: "temp", Value: codec.Float(value(device, i, v))})))
		},
	},
	{
		name: "reversed", mapping: `
table: reversed
tenant: acme
dataset: {name: events, precision: us}
key: {separator: "|", parts: ["device:uint5", time]}
time: {unit: ms, width: 19, reversed: 9223372036854775807}
cells: time
value: {column: "d:", as: json}
`,
		row: func(device, i, v int) (string, bigtable.Timestamp, map[string][]byte) {
			return fmt.Sprintf("%d|%019d", device, math.MaxInt64-at(i).UnixMilli()), micros(at(i)), map[string][]byte{"d:": jsonOf(device, i, v)}
		},
		stored: func(device, i, v int) (tenant.ID, tsdb.Entity, time.Time, string, []byte) {
			return acme, tsdb.NewEntity(fmt.Sprintf("%05d", device)), at(i), "json", jsonOf(device, i, v)
		},
	},
	{
		name: "binary", mapping: `
table: binary
dataset: {name: power, retention: d90=maxage=90d}
key: {separator: "#", parts: [=v1, tenant, device(4), time, id]}
time: {encoding: big_endian, unit: us}
fields:
  - {name: blob, column: "f:b", as: bytes}
  - {column: "f:j", as: json}
skip: [versions]
`,
		row: func(device, i, v int) (string, bigtable.Timestamp, map[string][]byte) {
			return fmt.Sprintf("v1#%s#%04d#%s#e%d", tenantOf(device), device, bigEndian(uint64(at(i).UnixMicro())), i%7), written, map[string][]byte{"f:b": {0, 0xff}, "f:j": jsonOf(device, i, v)}
		},
		stored: func(device, i, v int) (tenant.ID, tsdb.Entity, time.Time, string, []byte) {
			return tenantOf(device), tsdb.NewEntity(fmt.Sprintf("%04d", device)), at(i), "rec", must(codec.Records().Append(nil, codec.NewRecord(
				codec.Field{Name: "blob", Value: codec.Str("AP8=")}, codec.Field{Name: "a.b", Value: codec.Float(value(device, i, v))}, codec.Field{Name: "n", Value: codec.Float(float64(i))})))
		},
	},
	{
		name: "versions", mapping: `
table: versions
tenant: globex
dataset: {name: flow, precision: ms}
key: {separator: "#", parts: [site, device]}
value: {column: "m:v", as: float64}
`,
		row: func(device, i, v int) (string, bigtable.Timestamp, map[string][]byte) {
			return fmt.Sprintf("site-%d#dev-%d", device%2, device), micros(at(i)), map[string][]byte{"m:v": bigEndian(math.Float64bits(value(device, i, v)))}
		},
		stored: func(device, i, v int) (tenant.ID, tsdb.Entity, time.Time, string, []byte) {
			return globex, tsdb.NewEntity(fmt.Sprintf("site-%d", device%2), fmt.Sprintf("dev-%d", device)), at(i), "f64", bigEndian(math.Float64bits(value(device, i, v)))
		},
	},
}

func tenantOf(device int) tenant.ID {
	if device%2 == 1 {
		return globex
	}
	return acme
}

func jsonOf(device, i, v int) []byte {
	return must(json.Marshal(map[string]any{"a": map[string]any{"b": value(device, i, v)}, "n": i}))
}

// world is an engine in memory with foreign tables and a store.
type world struct {
	t      testing.TB
	client *bigtable.Client
	admin  *bigtable.AdminClient
	store  *tsdb.Store
	clock  time.Time
}

func newWorld(t testing.TB) *world {
	t.Helper()
	ctx := context.Background()
	w := &world{t: t, clock: now}
	clock := func() time.Time { return w.clock }
	server, err := local.Open(engine.Options{GCInterval: -1, Clock: clock})
	w.ok(err)
	conn, err := server.Dial(tsdb.DialOptions()...)
	w.ok(err)
	w.client, w.admin, err = local.Clients(ctx, conn)
	w.ok(err)
	w.store, err = tsdb.New(w.client, "tidemark", tsdb.Options{Admin: w.admin, StoreOptions: tsdb.StoreOptions{Clock: clock}})
	w.ok(err)
	t.Cleanup(func() {
		_ = w.store.Close()
		_ = w.client.Close()
		_ = server.Close()
	})
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// create creates a foreign table.
func (w *world) create(name string) bigtable.TableAPI {
	w.t.Helper()
	families := map[string]bigtable.GCPolicy{}
	for _, f := range []string{"m", "s", "d", "f"} {
		families[f] = bigtable.NoGcPolicy()
	}
	w.ok(w.admin.CreateTableFromConf(context.Background(), &bigtable.TableConf{TableID: name, Families: families}))
	return w.client.OpenTable(name)
}

// put writes points from to to of each device.
func (l layout) put(t testing.TB, table bigtable.TableAPI, devices, from, to, v int) {
	t.Helper()
	var keys []string
	var muts []*bigtable.Mutation
	flush := func() {
		if errs, err := table.ApplyBulk(context.Background(), keys, muts); err != nil || errs != nil {
			t.Fatal(err, errs)
		}
		keys, muts = nil, nil
	}
	for i := from; i < to; i++ {
		for d := range devices {
			key, at, cells := l.row(d, i, v)
			m := bigtable.NewMutation()
			for column, value := range cells {
				family, qualifier, _ := cutColumn(column)
				m.Set(family, qualifier, at, value)
			}
			keys, muts = append(keys, key), append(muts, m)
			if len(keys) == 2000 {
				flush()
			}
		}
	}
	flush()
}

func cutColumn(column string) (family, qualifier string, ok bool) {
	return column[:1], column[2:], true
}

// source opens a layout's table.
func (l layout) source(t testing.TB, table bigtable.TableAPI) *adopt.Source {
	t.Helper()
	m, err := adopt.Parse([]byte(l.mapping))
	if err != nil {
		t.Fatalf("the mapping of %s is refused: %v", l.name, err)
	}
	s, err := adopt.Open(table, m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
