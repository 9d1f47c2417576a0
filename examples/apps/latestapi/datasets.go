package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/examples/internal/display"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Reading is a measurement. Its fields are codec.Values: whole numbers are exact, a number may come as decimal text,
// and a field that is null or missing is left out again. Not every device has a humidity sensor.
type Reading struct {
	TempC    codec.Value `json:"temp_c,omitzero"`
	Humidity codec.Value `json:"humidity,omitzero"`
}

// Position is the position and speed of a bus.
type Position struct {
	Lat      codec.Value `json:"lat,omitzero"`
	Long     codec.Value `json:"long,omitzero"`
	SpeedKmh codec.Value `json:"speed_kmh,omitzero"`
}

// Meter is what an electricity meter sends: the energy since it was installed, the voltage, and whether its switch is
// on or off.
type Meter struct {
	WattHours codec.Value `json:"wh,omitzero"`
	Volts     codec.Value `json:"v,omitzero"`
	Switch    codec.Value `json:"switch,omitzero"`
}

func tempC(r Reading) (float64, bool)     { return r.TempC.AsNumber().Number() }
func humidity(r Reading) (float64, bool)  { return r.Humidity.AsNumber().Number() }
func speedKmh(p Position) (float64, bool) { return p.SpeedKmh.AsNumber().Number() }
func volts(m Meter) (float64, bool)       { return m.Volts.AsNumber().Number() }
func switchOf(m Meter) (string, bool)     { return m.Switch.Text() }

// wattHours returns the energy in whole watt-hours: a measure of kWh with three decimals.
func wattHours(m Meter) (int64, bool) {
	wh := m.WattHours.AsNumber()
	if exact, ok := wh.Int(); ok {
		return exact, true
	}
	x, isNumber := wh.Number()
	if !isNumber {
		return 0, false
	}
	return codec.Float(math.Round(x)).Int()
}

var (
	d90 = gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)}
	d7  = gc.Class{Name: "d7", Policy: gc.MaxAge(7 * 24 * time.Hour)}

	// The key fields are parameters of queries, so they must not have the name of another parameter.
	weather = tsdb.MustDefine("weather", tsdb.Key("site", "device"), codec.JSON[Reading](), tsdb.SchemaOptions{
		Retention: d90,
		MaxFuture: time.Hour, // a device with a wrong clock does not stay the latest for years
	})
	positions = tsdb.MustDefine("positions", tsdb.Key("company", "route", "bus"), codec.JSON[Position](), tsdb.SchemaOptions{
		Retention: d7,
		MaxFuture: time.Hour,
	})
	meters  = tsdb.MustDefine("meters", tsdb.Key("street", "meter"), codec.JSON[Meter](), tsdb.SchemaOptions{})
	schemas = []tsdb.Dataset{weather, positions, meters}
)

// datasetsOf returns the datasets that the server shows, by name.
func datasetsOf(store *tsdb.Store) map[string]dataset {
	return map[string]dataset{
		weather.Name(): show(store, weather, []window.Measure[Reading]{
			{Name: "temp_c", Of: tempC},
			{Name: "humidity", Of: humidity},
		}),
		positions.Name(): show(store, positions, []window.Measure[Position]{
			{Name: "speed_kmh", Of: speedKmh},
		}),
		meters.Name(): show(store, meters, []window.Measure[Meter]{
			{Name: "kwh", Kind: window.Counter, Int: wattHours, Decimals: 3},
			{Name: "volts", Of: volts},
			{Name: "switch", Kind: window.State, Text: switchOf},
		}),
	}
}

// dataset is a dataset as the handlers use it, without the type of its values.
type dataset interface {
	fields() []string
	// entity and prefix accept values as clients write them: text, numbers, UUIDs.
	entity(values []string) (tsdb.Entity, error)
	prefix(values []string) (tsdb.Prefix, error)
	// keyed returns the key that a client's fields name and its entity. With an error, the key is the valid part.
	keyed(values map[string]string) (key, tsdb.Entity, error)
	measures() []string
	numbers() []string // the measures that are numbers, and not texts
	latest(ctx context.Context, id tenant.ID, e tsdb.Entity, opts ...tsdb.ReadOption) (point, error)
	// latestMany returns an answer for each entity, even if some could not be read. An error applies to all of them.
	latestMany(ctx context.Context, id tenant.ID, entities []tsdb.Entity, opts ...tsdb.ReadOption) ([]answer, error)
	// latestUnder yields a *tsdb.PointError for a point that cannot be read, and continues; any other error is the last
	// pair.
	latestUnder(ctx context.Context, id tenant.ID, p tsdb.Prefix) iter.Seq2[point, error]
	// latestFields and the two below it read the newest value of each field.
	latestFields(ctx context.Context, id tenant.ID, e tsdb.Entity, options tsdb.FieldOptions) (newest, error)
	latestFieldsMany(ctx context.Context, id tenant.ID, entities []tsdb.Entity, options tsdb.FieldOptions) ([]answer, error)
	latestFieldsUnder(ctx context.Context, id tenant.ID, p tsdb.Prefix, options tsdb.FieldOptions) iter.Seq2[newest, error]
	page(ctx context.Context, id tenant.ID, q selection, size int, cursor string) (page, error)
	pageUnder(ctx context.Context, id tenant.ID, p tsdb.Prefix, size int, cursor string) (page, error)
	pageKeys(ctx context.Context, id tenant.ID, p tsdb.Prefix, size int, cursor string) (keys []key, next string, err error)
	// silent returns up to n entities without points since a time.
	silent(ctx context.Context, id tenant.ID, p tsdb.Prefix, since time.Time, n int) ([]silence, error)
	// windows and groups also return the columns. Their errors are those of the definition.
	windows(ctx context.Context, id tenant.ID, e tsdb.Entity, q windowQuery) (windows, error)
	groups(ctx context.Context, id tenant.ID, p tsdb.Prefix, fields int, q windowQuery) (iter.Seq2[groupWindows, error], aggregate.Columns, error)
	align(ctx context.Context, id tenant.ID, q alignQuery) iter.Seq2[window.Row[float64], error]
	outages(ctx context.Context, id tenant.ID, q selection, longer time.Duration) iter.Seq2[window.Outage, error]
	uptime(ctx context.Context, id tenant.ID, q selection, grid window.Grid, longer time.Duration) iter.Seq2[window.Uptime, error]
	chart(ctx context.Context, id tenant.ID, e tsdb.Entity, in tsdb.Interval, measure string, opts window.LineOptions) (window.Line, error)
	// history and rangeUnder yield all points, or one more than size, and errors as latestUnder does.
	history(ctx context.Context, id tenant.ID, q selection, size int) iter.Seq2[point, error]
	rangeUnder(ctx context.Context, id tenant.ID, q belowQuery, size int) iter.Seq2[point, error]
	pageRange(ctx context.Context, id tenant.ID, q belowQuery, size int, cursor string) (page, error)
	// columns and row are those of points in CSV.
	columns() []string
	row(p point) []string
	// follow follows an entity if there are parts for all fields, and else a group.
	follow(ctx context.Context, id tenant.ID, parts []string, opts tsdb.FollowOptions) (stream, error)
}

// key is the key fields with the text of their values. As JSON it is an object with the fields in their order.
type key struct{ fields, parts []string }

func (k key) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, part := range k.parts {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(k.fields[i])
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(part)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// point is a stored point as clients see it. A point that cannot be read has a Problem instead of a value.
type point struct {
	Key     key          `json:"key"`
	Time    instant.Time `json:"time"`
	ID      string       `json:"id,omitempty"` // of an event, in a dataset with IDs
	Value   any          `json:"value,omitempty"`
	Problem *problem     `json:"problem,omitempty"`
}

// page is a part of a history, or of a group.
type page struct {
	points []point
	next   string
}

// served is a schema and its store. Each call names its tenant; Schema.For costs nothing.
type served[T any] struct {
	store  *tsdb.Store
	schema *tsdb.Schema[T]
	names  []string
	of     []window.Measure[T]
}

func show[T any](store *tsdb.Store, schema *tsdb.Schema[T], of []window.Measure[T]) dataset {
	return served[T]{store, schema, schema.KeyFields(), of}
}

func (s served[T]) fields() []string { return s.names }

func (s served[T]) entity(values []string) (tsdb.Entity, error) {
	return s.schema.Entity(anys(values)...)
}

func (s served[T]) prefix(values []string) (tsdb.Prefix, error) {
	return s.schema.Prefix(anys(values)...)
}

func (s served[T]) keyed(values map[string]string) (k key, e tsdb.Entity, err error) {
	if k, err = keyOf(s.names, values); err == nil {
		e, err = s.entity(k.parts)
	}
	return k, e, err
}

func anys(values []string) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

// keyOf returns the key of an entity as clients read it.
func (s served[T]) keyOf(e tsdb.Entity) key {
	k := key{s.names, make([]string, len(s.names))}
	into := make([]any, len(k.parts))
	for i := range into {
		into[i] = &k.parts[i]
	}
	if s.schema.Scan(e, into...) != nil {
		k.parts = e.Parts() // parts that do not fit are shown as stored
	}
	return k
}

func (s served[T]) measures() (names []string) {
	for _, m := range s.of {
		names = append(names, m.Name)
	}
	return names
}

func (s served[T]) numbers() (names []string) {
	for _, m := range s.of {
		if m.Text == nil {
			names = append(names, m.Name)
		}
	}
	return names
}

func (s served[T]) point(p tsdb.Point[T]) point {
	return point{Key: s.keyOf(p.Entity), Time: instant.Time{Time: p.Time}, ID: p.ID, Value: display.Value{Of: p.Value}}
}

func (s served[T]) latest(ctx context.Context, id tenant.ID, e tsdb.Entity, opts ...tsdb.ReadOption) (point, error) {
	p, err := s.schema.For(s.store, id).Latest(ctx, e, opts...)
	return s.point(p), err
}

func (s served[T]) latestMany(ctx context.Context, id tenant.ID, entities []tsdb.Entity, opts ...tsdb.ReadOption) ([]answer, error) {
	found, err := s.schema.For(s.store, id).LatestMany(ctx, entities, 1, opts...)
	if _, some := errors.AsType[*tsdb.ReadError](err); err != nil && !some {
		return nil, err
	}
	answers := make([]answer, len(found))
	for i, h := range found {
		newest, err := tsdb.Point[T]{Entity: h.Entity}, h.Err
		switch {
		case len(h.Points) > 0:
			newest = h.Points[0]
		case err == nil:
			err = tsdb.ErrNotFound
		}
		answers[i] = answer{foundPoint{"found", s.point(newest)}, err}
	}
	return answers, nil
}

func (s served[T]) latestUnder(ctx context.Context, id tenant.ID, p tsdb.Prefix) iter.Seq2[point, error] {
	return s.points(s.schema.For(s.store, id).Under(p).Latest(ctx))
}

func (s served[T]) page(ctx context.Context, id tenant.ID, q selection, size int, cursor string) (page, error) {
	return s.shown(s.schema.For(s.store, id).Page(ctx, q.Entity, q.In, size, cursor, q.Order))
}

func (s served[T]) pageUnder(ctx context.Context, id tenant.ID, p tsdb.Prefix, size int, cursor string) (page, error) {
	return s.shown(s.schema.For(s.store, id).Under(p).PageLatest(ctx, size, cursor))
}

func (s served[T]) pageKeys(ctx context.Context, id tenant.ID, p tsdb.Prefix, size int, cursor string) ([]key, string, error) {
	got, err := s.schema.For(s.store, id).Under(p).PageEntities(ctx, size, cursor)
	keys := make([]key, len(got.Entities))
	for i, e := range got.Entities {
		keys[i] = s.keyOf(e)
	}
	return keys, got.Next, err
}

// shown returns a page as clients see it, with a problem instead of each value that cannot be read.
func (s served[T]) shown(got tsdb.Page[T], err error) (page, error) {
	bad, some := errors.AsType[tsdb.PointErrors](err)
	if err != nil && !some {
		return page{}, err
	}
	out := page{points: make([]point, len(got.Points)), next: got.Next}
	for i, p := range got.Points {
		out.points[i] = s.point(p)
		if len(bad) > 0 && bad[0].Entity == p.Entity && bad[0].Time.Equal(p.Time) && bad[0].ID == p.ID { // they are in the order of the points
			out.points[i].Value, out.points[i].Problem = nil, problemOf(bad[0])
			bad = bad[1:]
		}
	}
	return out, nil
}

func (s served[T]) chart(
	ctx context.Context, id tenant.ID, e tsdb.Entity, in tsdb.Interval, measure string, opts window.LineOptions,
) (window.Line, error) {
	i := slices.IndexFunc(s.of, func(m window.Measure[T]) bool { return m.Name == measure })
	return window.ReadLine(ctx, s.schema.For(s.store, id), e, in, s.of[i], opts)
}

// selection is the points of an entity that a request asks for.
type selection struct {
	Entity tsdb.Entity
	In     tsdb.Interval
	Order  tsdb.Order
}
