package lastvalue

import (
	"reflect"
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigtable"
)

// Newest is the newest visible point of an entity, as far as known. Once passed to a Cache it is immutable, except for
// Keep.
type Newest struct {
	Layout string // of the dataset that it was read with: the meaning of Column and Units
	Found  bool   // false if no point is visible; the other fields are then zero

	Units   int64 // the point's time
	Cell    bigtable.Timestamp
	Column  int // the index of the payload's column
	Payload []byte

	asOf  time.Time // when the read started
	last  *Mark     // the mark of the last call that began to write the entity; guarded by the stripe
	value atomic.Pointer[value]
}

// value is a decoded payload.
type value struct{ by, value any }

// Value returns the value that Keep stored last, if the same decoder stored it.
func (n *Newest) Value(by any) (any, bool) {
	if v := n.value.Load(); v != nil && v.by == by {
		return v.value, true
	}
	return nil, false
}

// Keep stores the payload's decoded value for callers with the same decoder. Many callers share it, so it must be
// immutable.
func (n *Newest) Keep(by, v any) { n.value.Store(&value{by, v}) }

// overhead is about how many bytes an entry needs in a cache besides its key and payload.
const overhead = 320

// bytes returns about how many bytes n takes in memory: a decoded value takes about as much as its payload.
func (n *Newest) bytes() int { return overhead + 2*len(n.Payload) }

var timeType = reflect.TypeFor[time.Time]()

// Copyable reports whether copies of a value of a type share no mutable memory, so that Keep may store it.
func Copyable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return Copyable(t.Elem())
	case reflect.Struct:
		if t == timeType { // its pointer is to an immutable time zone
			return true
		}
		for i := range t.NumField() {
			if !Copyable(t.Field(i).Type) {
				return false
			}
		}
		return true
	case reflect.String:
		return true
	}
	return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Complex128
}
