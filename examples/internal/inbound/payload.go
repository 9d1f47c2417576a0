package inbound

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
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
	// Values are the fields of a message without a payload, such as a row of a file. They are as those of JSON, which
	// encoding/json decodes, or of another type that codec.ValueOf takes. Texts must be valid UTF-8.
	Values  map[string]any
	Arrived time.Time
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

// A payload makes at most maxEvents points, which have at most maxEachValues values together if each= makes them. A
// JSON object in it has at most maxValues values, fields and others, and is at most maxDepth deep.
const (
	maxEvents     = 1000
	maxEachValues = 20_000
	maxValues     = codec.MaxFields + 100
	maxDepth      = 8
)

// Events reads the payload of a message of a tenant. There is none, and no error, if there is nothing to store: the
// payload is empty, as of messages that clear a retained one in MQTT, or all its fields are null. The error is an
// *Error if the message can never be stored as it is: then none of its points is. Another error means that the store
// could not be reached.
//
// Fields that cannot be stored are left out, unless the route is strict. Datasets.LeftOut counts them.
func (r *Route) Events(ctx context.Context, ds *Datasets, id tenant.ID, m Message) ([]Event, error) {
	m.Payload = bytes.TrimPrefix(m.Payload, []byte("\ufeff"))
	switch {
	case m.Values != nil && r.format == formatLine:
		return nil, badSyntax("the message has fields, and its route wants line protocol")
	case m.Values != nil:
	case len(m.Payload) == 0 && (r.strict || r.count > 0):
		return nil, badSyntax("the payload is empty")
	case len(m.Payload) == 0:
		return nil, nil
	case !utf8.Valid(m.Payload):
		return nil, badSyntax("the payload is not valid UTF-8")
	case r.format == formatLine:
		return r.readLines(ctx, ds, id, m)
	}
	d, err := ds.Find(ctx, id, r.datasetOf(m))
	if err != nil {
		return nil, err
	}
	if err := r.checkNamed(d); err != nil {
		return nil, err
	}
	objects, err := r.readJSON(&m)
	if err != nil {
		return nil, err
	}
	var events []Event
	arrived, places := m.Arrived, map[eventPlace]bool{}
	for _, o := range objects {
		if r.each == "" { // or the objects of an array would all be one point
			m.Arrived = arrived.Add(time.Duration(len(events)))
		}
		e, err := r.readObject(d, o, m)
		if err == ErrBlank {
			continue
		}
		if err != nil {
			return nil, err
		}
		at := r.placeOf(e)
		if r.each != "" && places[at] {
			if err := o.leaveOut(r.each, outPlace, badSyntax("two elements of %.64q have the same key and time", r.each)); err != nil {
				return nil, err
			}
		} else {
			events = append(events, e)
		}
		places[at] = true
		ds.leaveOut(id, d, o.out)
	}
	if r.idProp != "" && len(events) > 1 {
		return nil, badSyntax("the payload has %d objects, and their identity comes from a property; want one", len(events))
	}
	return events, nil
}

// eventPlace is what tells two events of a payload apart: where they are stored, or which of a bucket they are.
type eventPlace struct {
	place
	id string
}

func (r *Route) placeOf(e Event) eventPlace {
	if r.count > 0 {
		e.Time = e.Time.Truncate(r.count)
	}
	return eventPlace{placeOf(e.Point), e.ID}
}

func (r *Route) datasetOf(m Message) string {
	if r.dataset != "" {
		return r.dataset
	}
	return m.Names[datasetName]
}

// readJSON returns the objects of a payload: one, those of an array, or one for each element that each= names. A
// payload that is no object is the only field of one. If the topic names that field, it is no longer a name of m.
func (r *Route) readJSON(m *Message) ([]*object, error) {
	if m.Values != nil {
		return r.flatten(m.Values)
	}
	v, err := r.decode(m.Payload)
	if err != nil {
		return nil, err
	}
	list, isList := v.([]any)
	if isList && (len(list) == 0 || len(list) > maxEvents) {
		return nil, badSyntax("the payload has %d objects; want 1 to %d", len(list), maxEvents)
	}
	if !isList || slices.ContainsFunc(list, func(v any) bool { _, ok := v.(map[string]any); return !ok }) {
		list = []any{v}
	}
	if _, ok := list[0].(map[string]any); !ok {
		if r.strict && r.into == "" {
			return nil, badSyntax("the payload is not a JSON object, nor an array of objects; want one, because the route is strict and has no into=")
		}
		name, err := r.takeInto(m)
		if err != nil {
			return nil, err
		}
		list[0] = map[string]any{name: v}
	}
	var objects []*object
	for _, v := range list {
		more, err := r.flatten(v.(map[string]any))
		if err != nil {
			return nil, err
		}
		if objects = append(objects, more...); len(objects) > maxEvents {
			return nil, badSyntax("the payload makes more than %d points", maxEvents)
		}
	}
	return objects, nil
}

// takeInto returns the name of the field of a payload that is no object.
func (r *Route) takeInto(m *Message) (string, error) {
	level, ok := strings.CutPrefix(r.into, "+")
	if !ok {
		return cmp.Or(r.into, "value"), nil
	}
	name := m.Names[level]
	if name == "" {
		return "", badSyntax("%s is empty or missing, which names the field of a payload that is no object", level)
	}
	m.Names = maps.Clone(m.Names)
	delete(m.Names, level)
	return name, nil
}

// decode returns the value of a payload. A text that is not JSON is a value, too: devices publish "on" without quotes.
func (r *Route) decode(payload []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	more := false
	if err == nil {
		_, end := dec.Token()
		more = end != io.EOF
	}
	if err == nil && !more {
		return v, nil
	}
	if text := strings.TrimSpace(string(payload)); isPlain(text) && (!r.strict || r.into != "") {
		return text, nil
	}
	if more {
		return nil, badSyntax("the payload has more than one JSON value; want an object, or an array of objects")
	}
	return nil, badSyntax("the payload is not JSON: %w", err)
}

// isPlain reports whether a text is neither the beginning of JSON nor binary.
func isPlain(text string) bool {
	return text != "" && !strings.ContainsRune(`{["`, rune(text[0])) && !strings.ContainsFunc(text, unicode.IsControl)
}

// readObject makes a point of an object, with the captured names as tags. The error is ErrBlank if all its fields are
// null.
func (r *Route) readObject(d *Dataset, o *object, m Message) (Event, error) {
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
	o.texts(r.asText)
	at, err := r.takeTime(o, m, d.bounds)
	if err != nil {
		return e, err
	}
	if r.count > 0 {
		if e.ID, err = r.identity(o, m); err != nil {
			return e, err
		}
	}
	if err := r.addKey(b, o, m); err != nil {
		return e, err
	}
	if err := r.addFields(b, o); err != nil {
		return e, err
	}
	if r.count > 0 { // an event needs no field but its identity
		b.fields = append(b.fields, codec.Field{Name: "id", Value: codec.Str(e.ID)})
	}
	switch none := len(b.fields) == 0; {
	case none && o.nulls > 0 && len(o.out) == 0:
		return e, ErrBlank
	case none && len(o.out) > 0:
		return e, badSyntax("no field can be stored: %.64q is left out, %s", o.out[0].name, o.out[0].why)
	}
	e.Point, err = b.Point(at)
	e.change = r.change
	return e, err
}

// addKey adds the key fields that are in the payload.
func (r *Route) addKey(b *PointBuilder, o *object, m Message) error {
	d := b.dataset
	for i, name := range r.key {
		if !d.merge && !d.rest && !slices.Contains(d.tags, name) { // another route's: a message would replace the point of another key
			return badSyntax("the dataset %s has another key than the route of the message", d.name)
		}
		if part, ok := o.take(name); ok {
			if err := b.Tag(name, part); err != nil {
				return err
			}
		} else if m.Names[name] == "" && name == r.rule[i] && name != OtherTags {
			return d.lacks(name)
		}
	}
	return nil
}

// addFields adds the values that are left, in the order of their names.
func (r *Route) addFields(b *PointBuilder, o *object) error {
	if err := o.numbers(r.numbers); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(o.values)) {
		var err error
		switch {
		case strings.HasPrefix(name, TagPrefix) && !r.strict:
			err = o.leaveOut(name, outTag, nil)
		case b.full() && r.count == 0:
			err = o.leaveOut(name, outMany, badSyntax("a point has more than %d fields and tags", codec.MaxFields))
		default:
			err = b.Field(name, codec.ValueOf(o.values[name]))
		}
		if err != nil {
			return err
		}
	}
	return nil
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
func (r *Route) identity(o *object, m Message) (id string, err error) {
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
		if _, ok := o.values[name]; !ok {
			return "", badSyntax("the field %q is missing, which the route sums", name)
		}
	}
	return id, nil
}
