package rollupadd

import (
	"encoding/binary"
	"fmt"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// A journal stores an event as a uvarint of its bucket's start and, for each measure in order, either 0 or 1 and a
// varint of the number, in the forms of encoding/binary.

// AppendEvent appends an event to dst.
func AppendEvent(dst []byte, e Event) []byte {
	dst = binary.AppendUvarint(dst, uint64(e.Bucket))
	for _, n := range e.Numbers {
		if !n.Has {
			dst = append(dst, 0)
			continue
		}
		dst = binary.AppendVarint(append(dst, 1), n.Value)
	}
	return dst
}

// ParseEvent decodes an event of this rollup from all of src.
func (s *Shape) ParseEvent(src []byte) (Event, error) {
	bad := func(want string) (Event, error) {
		return Event{}, invalid.New(ErrInvalid, "event", fmt.Sprintf("%d bytes", len(src)), want)
	}
	bucket, n := binary.Uvarint(src)
	if n <= 0 || bucket > maxBucket {
		return bad("the start of a bucket")
	}
	rest := src[n:]
	e := Event{Bucket: int64(bucket), Numbers: make([]Number, len(s.measures))}
	for i := range e.Numbers {
		if len(rest) == 0 || rest[0] > 1 {
			return bad("a number for each measure")
		}
		has := rest[0] == 1
		if rest = rest[1:]; !has {
			continue
		}
		v, n := binary.Varint(rest)
		if n <= 0 {
			return bad("a number for each measure")
		}
		e.Numbers[i], rest = Number{Value: v, Has: true}, rest[n:]
	}
	if len(rest) > 0 {
		return bad("nothing behind its numbers")
	}
	return e, s.Check(e)
}
