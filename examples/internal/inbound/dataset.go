package inbound

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

// TagPrefix begins the names of fields that hold tags.
const TagPrefix = "tag:"

// Dataset is where points with the same key tags are stored.
type Dataset struct {
	name string
	tags []string // the tags that are key fields, in order
	may  []bool   // whether a record may lack the tag
	rest bool     // whether one more key field holds all other tags
	hash bool     // whether it is the hash of a stream
	// merge says that records of one series and time are one point. Otherwise the last one is stored.
	merge bool
	// unnamed is set if no rule names the dataset. It then counts towards its tenants' datasets.
	unnamed bool
	// schema merges, unless the key has a hash: records of one series and time become one point, in one request or
	// several. A tag outside the key is a field that cannot change. So two series that differ only in such a tag are an
	// error, and not one point. With a hash each record is a point, and replaces an earlier one without reading it.
	schema *tsdb.Schema[codec.Record]
	bounds *Bounds
}

// newDataset creates a dataset with the common options.
func newDataset(name string, rule []string, shared tsdb.SchemaOptions, bounds *Bounds) (*Dataset, error) {
	key := keyNames(rule)
	d := &Dataset{name: name, tags: key, bounds: bounds}
	for i := range rule {
		d.may = append(d.may, rule[i] != key[i])
	}
	if last := len(key) - 1; last >= 0 && (key[last] == OtherTags || key[last] == OtherHash) {
		d.tags, d.rest, d.hash = key[:last], key[last] == OtherTags, key[last] == OtherHash
	}
	var err error
	if d.merge = !d.hash; d.merge {
		shared.Merge, shared.Immutable = true, TagPrefix
	}
	d.schema, err = tsdb.Define(name, tsdb.Key(key...), codec.Records(), shared)
	return d, err
}

// Name is the dataset's name.
func (d *Dataset) Name() string { return d.name }

// Merges reports whether records of one series and time become one point. Otherwise the last one is stored.
func (d *Dataset) Merges() bool { return d.merge }

// Schema reads and writes the dataset's points.
func (d *Dataset) Schema() *tsdb.Schema[codec.Record] { return d.schema }

// Error is the reason why a record can never be stored as it is.
type Error struct {
	Reason string // one of a few, for counts of refused records
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// ReasonSyntax is the reason of records that cannot be parsed.
const ReasonSyntax = "it cannot be parsed"

func badSyntax(format string, args ...any) error {
	return &Error{ReasonSyntax, fmt.Errorf(format, args...)}
}

// Point is a point that is ready to be stored.
type Point struct {
	Dataset *Dataset
	Entity  tsdb.Entity
	Time    time.Time
	Record  codec.Record
	change  *tsdb.OnChange[codec.Record] // of its route; nil if each point is stored
}

// PointBuilder makes a point of tags and fields. Its errors are *Errors. Reset begins another point in its memory.
type PointBuilder struct {
	dataset *Dataset
	key     []string
	given   []bool
	others  []codec.Field // tags outside the key
	fields  []codec.Field

	metric, kind string
	measured     bool // whether a key field is the measurement
}

// NewPoint begins a point of the dataset.
func (d *Dataset) NewPoint() *PointBuilder {
	b := &PointBuilder{}
	b.Reset(d)
	return b
}

// Reset begins a point of a dataset. Points that the builder has returned stay as they are.
func (b *PointBuilder) Reset(d *Dataset) {
	n := len(d.tags)
	key, given := slices.Grow(b.key[:0], n+1)[:n], slices.Grow(b.given[:0], n)[:n]
	clear(key)
	clear(given)
	*b = PointBuilder{dataset: d, key: key, given: given, others: b.others[:0], fields: b.fields[:0]}
}

// The most bytes of a tag's name, and of the values of all tags that are the key. A row key has at most 4 KiB, so a
// longer key is not even made.
const (
	maxTagName = codec.MaxFieldName - len(TagPrefix)
	maxKey     = 4 << 10
)

// Tag adds a tag. Each name may come once.
func (b *PointBuilder) Tag(name, value string) error {
	if len(name) > maxTagName {
		return &Error{ReasonValue, fmt.Errorf("the tag %.64q has a name of %d bytes, and %d is the most", name, len(name), maxTagName)}
	}
	if i := slices.Index(b.dataset.tags, name); i >= 0 && !(b.measured && name == Measurement) {
		if b.given[i] {
			return badSyntax("the tag %q comes twice", name)
		}
		if value == "" && b.dataset.may[i] {
			return nil
		}
		if b.dataset.may[i] && strings.TrimLeft(value, `\`) == missing {
			value = `\` + value
		}
		b.key[i], b.given[i] = value, true
		return nil
	}
	tag := codec.Field{Name: TagPrefix + name, Value: codec.Str(value)}
	if slices.ContainsFunc(b.others, func(f codec.Field) bool { return f.Name == tag.Name }) {
		return badSyntax("the tag %q comes twice", name)
	}
	if len(b.others) == codec.MaxFields {
		return badSyntax("more than %d tags", codec.MaxFields)
	}
	b.others = append(b.others, tag)
	return nil
}

// measurement sets the key field of that name, if the key has it. A tag of that name is then outside the key.
func (b *PointBuilder) measurement(name string) {
	if i := slices.Index(b.dataset.tags, Measurement); i >= 0 {
		b.key[i], b.given[i], b.measured = name, true, true
	}
}

// Stream says which metric the record is of, and of which kind: in a dataset with a hash, records of other metrics and
// kinds are other points.
func (b *PointBuilder) Stream(metric, kind string) { b.metric, b.kind = metric, kind }

// CheckKey returns an error if a tag of the key is missing, and the key needs it.
func (b *PointBuilder) CheckKey() error {
	for i, tag := range b.dataset.tags {
		if b.given[i] {
			continue
		}
		if b.dataset.may[i] {
			b.key[i] = missing
			continue
		}
		return b.dataset.lacks(tag)
	}
	return nil
}

func (d *Dataset) lacks(tag string) error {
	return &Error{"it lacks the key tag " + tag, fmt.Errorf("the tag %q is missing, which is part of the key of %s", tag, d.name)}
}

// Field adds a field. If a name comes twice, the later value is stored.
func (b *PointBuilder) Field(name string, v codec.Value) error {
	if strings.HasPrefix(name, TagPrefix) {
		return &Error{"a field has a tag's name", fmt.Errorf("the field %.64q starts with %q, which tags are stored under", name, TagPrefix)}
	}
	if len(b.fields) == codec.MaxFields {
		return badSyntax("more than %d fields", codec.MaxFields)
	}
	b.fields = append(b.fields, codec.Field{Name: name, Value: v})
	return nil
}

// full reports whether the point has as many fields as it can have.
func (b *PointBuilder) full() bool {
	n := len(b.fields)
	if !b.dataset.rest {
		n += len(b.others)
	}
	return n >= codec.MaxFields
}

// ErrNoFields is the error of a record without fields.
var ErrNoFields = errors.New("the record has no fields")

// Point returns the point. It refuses a time outside the bounds of the input. Use the builder again only after
// Reset.
func (b *PointBuilder) Point(at Stamp) (Point, error) {
	if err := b.dataset.bounds.check(at); err != nil {
		return Point{}, err
	}
	if err := b.CheckKey(); err != nil {
		return Point{}, err
	}
	if len(b.fields) == 0 {
		return Point{}, &Error{ReasonSyntax, ErrNoFields}
	}
	if n := b.keyBytes(); n > maxKey {
		return Point{}, &Error{ReasonValue, fmt.Errorf("the key has %d bytes, and %d is the most", n, maxKey)}
	}
	switch d := b.dataset; {
	case d.rest:
		b.key = append(b.key, series(b.others))
	case d.hash && b.kind == "":
		return Point{}, &Error{ReasonSeries, fmt.Errorf("%s stores OTLP metrics only: its key has a hash", d.name)}
	case d.hash:
		b.key = append(b.key, streamHash(b.metric, b.kind, b.others))
		fallthrough
	default:
		b.fields = append(b.fields, b.others...)
	}
	return Point{Dataset: b.dataset, Entity: tsdb.NewEntity(b.key...), Time: at.at, Record: codec.NewRecord(b.fields...)}, nil
}

// keyBytes returns how many bytes the key has at least.
func (b *PointBuilder) keyBytes() (n int) {
	for _, part := range b.key {
		n += len(part)
	}
	if b.dataset.rest {
		for _, tag := range b.others {
			value, _ := tag.Value.Str()
			n += len(tag.Name) - len(TagPrefix) + len("=,") + len(value)
		}
	}
	return n
}
