package rowkey

import (
	"fmt"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// In a dataset whose points have an identity, the key of a point goes on behind its time:
//
//	<tenant>#<dataset>#[<salt>#]<part>#…#<part>#<reverse time>#<id>
//
// No id holds a delimiter, so that the last one tells it from the time, and points of one time stand in the order of their ids.

// MaxID is how many bytes an id may have.
const MaxID = 64

// WithIdentity returns s with keys of points that end with an id, or without. Keys of other kinds never do.
func (s Space) WithIdentity(on bool) Space {
	s.identity = on
	return s
}

// Identity reports whether keys of points end with an id.
func (s Space) Identity() bool { return s.identity }

// CheckID reports what is wrong with the id of a point in s, which is empty where points have none.
func (s Space) CheckID(id string) error {
	switch {
	case !s.identity && id != "":
		return invalid.New(ErrInvalid, "id", invalid.Quote(id), "empty: the dataset has no Identity")
	case s.identity && !validID(id):
		return invalid.New(ErrInvalid, "id", invalid.Quote(id), fmt.Sprintf("1 to %d bytes of A-Z a-z 0-9 . _ - :, as points of the dataset have an identity", MaxID))
	}
	return nil
}

func validID(id string) bool {
	if id == "" || len(id) > MaxID {
		return false
	}
	for i := range len(id) {
		if c := id[i]; !tenant.NameByte(c) && c != ':' {
			return false
		}
	}
	return true
}

// AppendEvent appends the key of the point of the entity at path with that time and id, which have passed their checks.
func (s Space) AppendEvent(dst []byte, path string, units int64, id string) []byte {
	dst = s.AppendPoint(dst, path, units)
	if s.identity {
		dst = append(append(dst, delim), id...)
	}
	return dst
}

// SplitEvent is Split, with the id of the point; empty where points have none.
func (s Space) SplitEvent(key string) (path string, units int64, id string, ok bool) {
	key, id, ok = cutID(key, s.identity)
	if !ok {
		return "", 0, "", false
	}
	path, units, ok = s.split(key)
	return path, units, id, ok
}

// cutID cuts the id off a key, where it has one. It reports false for a key whose end is no id.
func cutID(key string, identity bool) (timed, id string, ok bool) {
	if !identity {
		return key, "", true
	}
	cut := strings.LastIndexByte(key, delim)
	if cut < 0 || !validID(key[cut+1:]) {
		return key, "", false
	}
	return key[:cut], key[cut+1:], true
}

// PointTime returns the time, in units, and the id of the point whose key is entity, as AppendEntity gave it in s, and what
// AppendEvent adds. It reports false for any other key.
func (s Space) PointTime(key, entity string) (units int64, id string, ok bool) {
	rest, ok := strings.CutPrefix(key, entity)
	if !ok {
		return 0, "", false
	}
	if rest, id, ok = cutID(rest, s.identity); !ok {
		return 0, "", false
	}
	units, ok = parseReverse(rest)
	return units, id, ok
}

// EntityPrefix returns what the keys of the points of an entity start with: the beginning of one of them, whose path Split gave.
func (s Space) EntityPrefix(key, path string) string {
	n := len(s.prefix) + len(path) + 1
	if s.salts > 0 {
		n += saltLen
	}
	return key[:n]
}
