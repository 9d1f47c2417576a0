package inbound

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/instant"
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

// A payload has at most maxEvents points. A JSON object in it has at most maxValues values, fields and others, and is
// at most maxDepth deep.
const (
	maxEvents = 1000
	maxValues = codec.MaxFields + 100
	maxDepth  = 8
)

// Events reads the payload of a message of a tenant. The error is an *Error if the message can never be stored as it
// is: then none of its points is. Another error means that the store could not be reached.
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

// object holds the values of an object by name, as encoding/json decodes them. Names of nested objects are joined with
// a dot. Null is left out.
type object map[string]any

// readJSON returns an object, or the objects of an array.
func readJSON(payload []byte) ([]object, error) {
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
	objects := make([]object, len(list))
	for i, v := range list {
		o, ok := v.(map[string]any)
		if !ok {
			return nil, badSyntax("the payload is not a JSON object, nor an array of objects")
		}
		objects[i] = make(object, len(o))
		if err := objects[i].add("", o, maxDepth); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// add adds the values of an object in the order of their names. So if several are refused, the error always names the
// same one.
func (o object) add(prefix string, from map[string]any, depth int) error {
	if depth == 0 {
		return badSyntax("objects are nested more than %d deep", maxDepth)
	}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		v := from[name]
		if n := len(prefix) + len(name); n > codec.MaxFieldName {
			return badSyntax("the name of the field %.64q has %d bytes, and %d is the most", prefix+name[:min(len(name), 64)], n, codec.MaxFieldName)
		}
		name = prefix + name
		if inner, ok := v.(map[string]any); ok {
			if err := o.add(name+".", inner, depth-1); err != nil {
				return err
			}
			continue
		}
		switch codec.ValueOf(v).Kind() {
		case codec.KindNull:
			continue
		case codec.KindList:
			return badSyntax("the field %.64q is an array; want a number, a text, true or false", name)
		case codec.KindInvalid:
			return badSyntax("the field %.64q is %.64q, which is too large for a float", name, v)
		}
		if _, twice := o[name]; twice {
			return badSyntax("the field %.64q comes twice", name)
		}
		if len(o) == maxValues {
			return badSyntax("an object has more than %d values", maxValues)
		}
		o[name] = v
	}
	return nil
}

// take removes a value that is a part of a key or an identity, and returns its text. Numbers that are equal have the
// same text.
func (o object) take(name string) (text string, ok bool) {
	v, ok := o[name]
	if ok {
		text, ok = codec.ValueOf(v).Text()
		delete(o, name)
	}
	return text, ok
}

// numbers makes numbers of the values that the route names as numbers.
func (o object) numbers(names []string) error {
	for _, name := range names {
		v, ok := o[name]
		if !ok {
			continue
		}
		n := codec.ValueOf(v).AsNumber()
		if n.Kind() == codec.KindInvalid {
			return badSyntax("the field %.64q is %.64q; the route wants a number", name, v)
		}
		o[name] = n
	}
	return nil
}

// readObject makes a point of an object, with the captured names as tags.
func (r *Route) readObject(d *Dataset, o object, m Message) (Event, error) {
	var e Event
	b := d.NewPoint()
	if err := b.addNames(m.Names); err != nil {
		return e, err
	}
	for _, name := range slices.Sorted(maps.Keys(m.Names)) {
		if said, ok := o.take(name); ok && said != m.Names[name] {
			return e, badSyntax("%s is %.64q in the payload, and %.64q outside it", name, said, m.Names[name])
		}
	}
	at, err := r.takeTime(o, m)
	if err != nil {
		return e, err
	}
	if r.count > 0 {
		if e.ID, err = r.identity(o, m); err != nil {
			return e, err
		}
	}
	for _, name := range r.key {
		if part, ok := o.take(name); ok {
			if err := b.Tag(name, part); err != nil {
				return e, err
			}
		}
	}
	if err := o.numbers(r.numbers); err != nil {
		return e, err
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if err := b.Field(name, codec.ValueOf(o[name])); err != nil {
			return e, err
		}
	}
	if r.count > 0 { // an event needs no field but its identity
		b.fields = append(b.fields, codec.Field{Name: "id", Value: codec.Str(e.ID)})
	}
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

// identity returns the identity of a message that is counted. The message needs the numbers that are summed: once its
// identity is remembered, one that corrects it would be taken for a repetition.
func (r *Route) identity(o object, m Message) (id string, err error) {
	var ok bool
	if r.idProp == "" {
		if id, ok = o.take(r.id); !ok {
			return "", badSyntax("the field %q with the message's identity is missing", r.id)
		}
	} else {
		ids := m.property(r.idProp)
		if len(ids) != 1 {
			return "", badSyntax("the message has the property %q %d times; want one, its identity", r.idProp, len(ids))
		}
		id = ids[0]
	}
	for _, name := range r.sums {
		if _, ok := o[name]; !ok {
			return "", badSyntax("the field %q is missing, which the route sums", name)
		}
	}
	return id, nil
}

// takeTime returns the time of a message, and removes its field.
func (r *Route) takeTime(o object, m Message) (Stamp, error) {
	if r.time == timeArrival {
		return At(m.Arrived), nil
	}
	v, ok := o[r.time]
	if !ok {
		return Stamp{}, badSyntax("the field %q with the time is missing", r.time)
	}
	delete(o, r.time)
	text, isText := v.(string)
	if n, isNumber := v.(json.Number); isNumber {
		text = n.String()
	} else if !isText {
		return Stamp{}, badTime("the time is neither a text nor a number")
	}
	number, isNumber := codec.ParseNumber(text)
	switch {
	case isNumber && r.unit != 0:
		if strings.ContainsAny(text, "eE") {
			text, _ = number.Text()
		}
		s, err := unixTime(text, r.unit)
		s.field = r.time
		return s, err
	case !isText:
		return Stamp{}, badTime("the time is the number %.64q, and the route names no unit; want time=%s,ms", text, r.time)
	}
	at, err := instant.Parse(text)
	if err != nil {
		return Stamp{}, badTime("the time %.64q is not RFC 3339, as 2026-01-02T15:04:05Z is", text)
	}
	return Stamp{at: at, field: r.time}, nil
}

func badTime(format string, args ...any) error {
	return &Error{ReasonTime, fmt.Errorf(format, args...)}
}

// unixTime returns the time of a decimal number of units. It is exact, and drops what is less than a nanosecond.
func unixTime(text string, unit time.Duration) (Stamp, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return Stamp{}, badTime("the time %.64q is not a decimal number that fits 64 bits", text)
	}
	var part time.Duration
	for step := unit / 10; fraction != "" && step > 0; step /= 10 {
		digit := time.Duration(fraction[0] - '0')
		if digit < 0 || digit > 9 {
			return Stamp{}, badTime("the time %.64q is not a decimal number", text)
		}
		part += digit * step
		fraction = fraction[1:]
	}
	if strings.Trim(fraction, "0123456789") != "" {
		return Stamp{}, badTime("the time %.64q is not a decimal number", text)
	}
	if strings.HasPrefix(text, "-") {
		part = -part
	}
	s := Unix(n, unit)
	s.at = s.at.Add(part)
	return s, nil
}
