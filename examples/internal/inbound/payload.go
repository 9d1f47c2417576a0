package inbound

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
)

// Message is what a route makes points of.
type Message struct {
	// Names are the captured levels of the topic, or the attributes. "tenant" and "dataset" name these.
	Names map[string]string
	// Property returns the values of a user property. Nil means that there are none.
	Property func(name string) []string
	Payload  []byte
	Arrived  time.Time
}

func (m Message) property(name string) []string {
	if m.Property == nil {
		return nil
	}
	return m.Property(name)
}

// Event is a point of a message. If the route counts, ID is its identity, and it is to be added to the route's rollup.
type Event struct {
	Point
	ID string
}

// A payload has at most maxEvents points. A JSON object in it has at most maxValues values, fields and others, and is at most maxDepth deep.
const (
	maxEvents = 1000
	maxValues = codec.MaxFields + 100
	maxDepth  = 8
)

// Events reads the payload of a message of a tenant. The error is an *Error if the message can never be stored as it is: then none
// of its points is. Another error means that the store could not be reached.
func (r *Route) Events(ctx context.Context, ds *Datasets, id tenant.ID, m Message) ([]Event, error) {
	switch {
	case len(m.Payload) == 0:
		return nil, badSyntax("the payload is empty")
	case !utf8.Valid(m.Payload):
		return nil, badSyntax("the payload is not valid UTF-8")
	case r.format == formatLine:
		return r.readLines(ctx, ds, id, m)
	}
	d, err := ds.Find(ctx, id, r.datasetOf(m))
	if err != nil {
		return nil, err
	}
	objects, err := readJSON(m.Payload)
	if err != nil {
		return nil, err
	}
	events := make([]Event, len(objects))
	for i, o := range objects {
		if events[i], err = r.readObject(d, o, m); err != nil {
			return nil, err
		}
	}
	if r.idProp != "" && len(events) > 1 {
		return nil, badSyntax("the payload has %d objects, and their identity comes from a property; want one", len(events))
	}
	return events, nil
}

func (r *Route) datasetOf(m Message) string {
	if r.dataset != "" {
		return r.dataset
	}
	return m.Names[datasetName]
}

// readJSON returns an object, or the objects of an array, as values by name. Names of nested objects are joined with a dot.
func readJSON(payload []byte) ([]map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, badSyntax("the payload is not JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, badSyntax("the payload has more than one JSON value; want an object, or an array of objects")
	}
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	if len(list) == 0 || len(list) > maxEvents {
		return nil, badSyntax("the payload has %d objects; want 1 to %d", len(list), maxEvents)
	}
	objects := make([]map[string]any, len(list))
	for i, v := range list {
		o, ok := v.(map[string]any)
		if !ok {
			return nil, badSyntax("the payload is not a JSON object, nor an array of objects")
		}
		objects[i] = make(map[string]any, len(o))
		if err := flatten(objects[i], "", o, maxDepth); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// flatten adds the values of an object to into. It leaves out null.
func flatten(into map[string]any, prefix string, o map[string]any, depth int) error {
	if depth == 0 {
		return badSyntax("objects are nested more than %d deep", maxDepth)
	}
	for name, v := range o {
		if n := len(prefix) + len(name); n > codec.MaxFieldName {
			return badSyntax("the name of the field %.64q has %d bytes, and %d is the most", prefix+name[:min(len(name), 64)], n, codec.MaxFieldName)
		}
		name = prefix + name
		switch v := v.(type) {
		case nil:
			continue
		case map[string]any:
			if err := flatten(into, name+".", v, depth-1); err != nil {
				return err
			}
			continue
		case []any:
			return badSyntax("the field %.64q is an array; want a number, a text, true or false", name)
		}
		if _, twice := into[name]; twice {
			return badSyntax("the field %.64q comes twice", name)
		}
		if len(into) == maxValues {
			return badSyntax("an object has more than %d values", maxValues)
		}
		into[name] = v
	}
	return nil
}

// readObject makes a point of an object, with the captured names as tags.
func (r *Route) readObject(d *Dataset, o map[string]any, m Message) (Event, error) {
	var e Event
	b := d.NewPoint()
	if err := b.addNames(m.Names); err != nil {
		return e, err
	}
	for name, value := range m.Names {
		if said, ok := o[name]; ok && fmt.Sprint(said) != value {
			return e, badSyntax("%s is %.64q in the payload, and %.64q outside it", name, fmt.Sprint(said), value)
		}
		delete(o, name)
	}
	at := m.Arrived
	if r.time != timeArrival {
		v, ok := o[r.time]
		if !ok {
			return e, badSyntax("the field %q with the time is missing", r.time)
		}
		var err error
		if at, err = r.timeOf(v); err != nil {
			return e, err
		}
		delete(o, r.time)
	}
	if r.count > 0 {
		var err error
		if e.ID, err = r.identity(o, m); err != nil {
			return e, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if err := addValue(b, slices.Contains(r.key, name), name, o[name]); err != nil {
			return e, err
		}
	}
	if r.count > 0 { // an event needs no field but its identity
		b.fields = append(b.fields, codec.Field{Name: "id", Value: codec.Str(e.ID)})
	}
	var err error
	e.Point, err = b.Point(at)
	return e, err
}

// addNames adds what a topic or attributes say as tags.
func (b *PointBuilder) addNames(names map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if name == tenantName || name == datasetName {
			continue
		}
		if names[name] == "" {
			return badSyntax("%s is empty", name)
		}
		if err := b.Tag(name, names[name]); err != nil {
			return err
		}
	}
	return nil
}

func addValue(b *PointBuilder, key bool, name string, v any) error {
	if key {
		return b.Tag(name, fmt.Sprint(v))
	}
	switch v := v.(type) {
	case string:
		return b.Field(name, codec.Str(v))
	case bool:
		return b.Field(name, codec.Bool(v))
	case json.Number:
		n, err := number(string(v))
		if err != nil {
			return badSyntax("the field %.64q is %.64q, which fits neither 64 bits nor a float", name, v)
		}
		return b.Field(name, n)
	}
	return badSyntax("the field %.64q is neither a number, a text, true nor false", name)
}

// number returns a JSON number: an integer without a point and exponent, and otherwise a float.
func number(text string) (codec.Value, error) {
	if !strings.ContainsAny(text, ".eE") {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return codec.Int(i), nil
		}
		u, err := strconv.ParseUint(text, 10, 64)
		return codec.Uint(u), err
	}
	f, err := strconv.ParseFloat(text, 64)
	return codec.Float(f), err
}

// identity returns the identity of a message that is counted.
func (r *Route) identity(o map[string]any, m Message) (string, error) {
	if r.idProp != "" {
		ids := m.property(r.idProp)
		if len(ids) != 1 {
			return "", badSyntax("the message has the property %q %d times; want one, its identity", r.idProp, len(ids))
		}
		return ids[0], nil
	}
	v, ok := o[r.id]
	if !ok {
		return "", badSyntax("the field %q with the message's identity is missing", r.id)
	}
	delete(o, r.id)
	return fmt.Sprint(v), nil
}

// timeOf returns the time in a field.
func (r *Route) timeOf(v any) (time.Time, error) {
	switch v := v.(type) {
	case string:
		at, err := time.Parse(time.RFC3339Nano, v)
		if err != nil {
			return at, badTime("the time %.64q is not RFC 3339, as 2026-01-02T15:04:05Z is", v)
		}
		return at, nil
	case json.Number:
		if r.unit == 0 {
			return time.Time{}, badTime("the time is the number %.64q, and the route names no unit; want time=%s,ms", v, r.time)
		}
		return unixTime(string(v), r.unit)
	}
	return time.Time{}, badTime("the time is neither a text nor a number")
}

func badTime(format string, args ...any) error {
	return &Error{ReasonTime, fmt.Errorf(format, args...)}
}

// unixTime returns the time of a decimal number of units. It is exact, and drops what is less than a nanosecond.
func unixTime(text string, unit time.Duration) (time.Time, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n >= math.MaxInt64/int64(unit) || n <= math.MinInt64/int64(unit) {
		return time.Time{}, badTime("the time %.64q is not a decimal number that fits 64 bits in nanoseconds", text)
	}
	ns := n * int64(unit)
	for step := int64(unit) / 10; fraction != "" && step > 0; step /= 10 {
		digit := int64(fraction[0] - '0')
		if digit < 0 || digit > 9 {
			return time.Time{}, badTime("the time %.64q is not a decimal number", text)
		}
		if ns += digit * step; strings.HasPrefix(text, "-") {
			ns -= 2 * digit * step
		}
		fraction = fraction[1:]
	}
	if strings.Trim(fraction, "0123456789") != "" {
		return time.Time{}, badTime("the time %.64q is not a decimal number", text)
	}
	return time.Unix(0, ns), nil
}
