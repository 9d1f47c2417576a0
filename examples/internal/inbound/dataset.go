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
	rest bool     // whether one more key field holds all other tags
	// unnamed is set if no rule names the dataset. It then counts towards its tenants' datasets.
	unnamed bool
	// schema merges: records of one series and time become one point, in one request or several. A tag outside the key
	// is a field that cannot change. So two series that differ only in such a tag are an error, and not one point.
	schema *tsdb.Schema[codec.Record]
	bounds *Bounds
}

// newDataset creates a dataset with the common options.
func newDataset(name string, key []string, shared tsdb.SchemaOptions, bounds *Bounds) (*Dataset, error) {
	d := &Dataset{name: name, tags: key, bounds: bounds}
	if last := len(key) - 1; last >= 0 && key[last] == OtherTags {
		d.tags, d.rest = key[:last], true
	}
	var err error
	shared.Merge, shared.Immutable = true, TagPrefix
	d.schema, err = tsdb.Define(name, tsdb.Key(key...), codec.Records(), shared)
	return d, err
}

// Name is the dataset's name.
func (d *Dataset) Name() string { return d.name }

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
}

// PointBuilder makes a point of tags and fields. Its errors are *Errors.
type PointBuilder struct {
	dataset *Dataset
	key     []string
	given   []bool
	others  []codec.Field // tags outside the key
	fields  []codec.Field
}

// NewPoint begins a point of the dataset.
func (d *Dataset) NewPoint() *PointBuilder {
	return &PointBuilder{dataset: d, key: make([]string, len(d.tags), len(d.tags)+1), given: make([]bool, len(d.tags))}
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
	if i := slices.Index(b.dataset.tags, name); i >= 0 {
		if b.given[i] {
			return badSyntax("the tag %q comes twice", name)
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

// CheckKey returns an error if a tag of the key is missing.
func (b *PointBuilder) CheckKey() error {
	if i := slices.Index(b.given, false); i >= 0 {
		tag := b.dataset.tags[i]
		return &Error{"it lacks the key tag " + tag, fmt.Errorf("the tag %q is missing, which is part of the key of %s", tag, b.dataset.name)}
	}
	return nil
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

// ErrNoFields is the error of a record without fields.
var ErrNoFields = errors.New("the record has no fields")

// Point returns the point. It refuses a time outside the bounds of the input. The builder must not be used again.
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
	key, fields := b.key, b.fields
	if n := b.keyBytes(); n > maxKey {
		return Point{}, &Error{ReasonValue, fmt.Errorf("the key has %d bytes, and %d is the most", n, maxKey)}
	}
	if b.dataset.rest {
		key = append(key, series(b.others))
	} else if len(b.others) > 0 {
		fields = append(b.others, fields...)
	}
	return Point{Dataset: b.dataset, Entity: tsdb.NewEntity(key...), Time: at.at, Record: codec.NewRecord(fields...)}, nil
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

// escape is applied to names and values in a series.
var escape = strings.NewReplacer(`\`, `\\`, ",", `\,`, "=", `\=`)

// series returns tags as one text, in the order of their names and escaped, so that no two sets of tags have the same.
func series(tags []codec.Field) string {
	if len(tags) == 0 {
		return "-"
	}
	slices.SortFunc(tags, func(a, b codec.Field) int { return strings.Compare(a.Name, b.Name) })
	parts := make([]string, len(tags))
	for i, t := range tags {
		value, _ := t.Value.Str()
		parts[i] = escape.Replace(strings.TrimPrefix(t.Name, TagPrefix)) + "=" + escape.Replace(value)
	}
	return strings.Join(parts, ",")
}
