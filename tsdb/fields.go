package tsdb

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Fields is the newest value of each field of an entity's points, as LatestFields returns it.
type Fields[T any] struct {
	Entity Entity
	// Value has the newest value of each field. It is zero if no field was found.
	Value T
	// Times has the time of the point that each value comes from.
	Times FieldTimes
	// Missing are the names of fields that the type of the values has and that were not found, in its order. A field of
	// a oneof that another one has replaced is not missing. It is nil for types without fixed fields, such as maps and
	// records.
	Missing []string
	// Back is the time of the oldest point that was looked at, in UTC. Fields may have values before it that were not
	// found. It is zero if none can have: all points were looked at, or all fields were found.
	Back time.Time
	// Err is nil, PointErrors if points that were looked at do not decode, or the error of the read.
	Err error
}

// FieldTimes are the times of fields by their names: those of the objects or messages around a field and its own,
// joined by dots, as in codec.Lookup. The zero FieldTimes has none. It never changes, so goroutines may share it.
type FieldTimes struct {
	list  []fieldTime
	whole bool // the only field is the payload
}

type fieldTime struct {
	name string
	time time.Time
}

// Len returns the number of fields.
func (t FieldTimes) Len() int { return len(t.list) }

// Of returns the time of a field, in UTC. The parts of a field that is read as a whole, such as the values of a map,
// have its time; and all parts of a payload that is one field, such as text. It is a binary search.
func (t FieldTimes) Of(name string) (at time.Time, ok bool) {
	for {
		i, found := slices.BinarySearchFunc(t.list, name, func(f fieldTime, name string) int { return strings.Compare(f.name, name) })
		if found {
			return t.list[i].time, true
		}
		dot := strings.LastIndexByte(name, '.')
		switch {
		case dot >= 0:
			name = name[:dot]
		case t.whole:
			name = ""
		default:
			return time.Time{}, false
		}
	}
}

// All yields the names and times in the order of the names.
func (t FieldTimes) All() iter.Seq2[string, time.Time] {
	return func(yield func(string, time.Time) bool) {
		for _, f := range t.list {
			if !yield(f.name, f.time) {
				return
			}
		}
	}
}

// Newest returns the newest of the times, or the zero time.
func (t FieldTimes) Newest() (newest time.Time) {
	for _, f := range t.list {
		if f.time.After(newest) {
			newest = f.time
		}
	}
	return newest
}

// FieldOptions configure LatestFields. The zero value reads the newest values.
type FieldOptions struct {
	// AsOf is the time of the newest points that are looked at. Zero is for no limit.
	AsOf time.Time
	// MaxPoints is how many points of each entity are looked at, newest first, 1 to 10,000. Zero is 1,000.
	MaxPoints int
}

const defaultFieldPoints = 1000

func (o FieldOptions) check() error {
	return invalid.Range(ErrInvalid, "MaxPoints", o.MaxPoints, 0, maxCount, "0 for 1,000, or 1 to 10,000")
}

func (o FieldOptions) maxPoints() int {
	if o.MaxPoints == 0 {
		return defaultFieldPoints
	}
	return o.MaxPoints
}

// newest returns the newest time in units. ok is false if it is before all that a dataset can store.
func (o FieldOptions) newest(p rowkey.Precision) (units int64, ok bool) {
	if o.AsOf.IsZero() {
		return p.Max(), true
	}
	return p.AtOrBefore(o.AsOf)
}
